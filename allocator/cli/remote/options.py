"""Options shared by several commands."""

from typing import Annotated, TypeAlias

import typer

from allocator.cli.remote import completing

RoleBelow: TypeAlias = Annotated[
    str, typer.Option(help="Only this role and its descendants.", autocompletion=completing.roles)
]
"""Restricts the output to a role; empty: all roles."""

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show what the change would do.")
]

ShowOnly: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing; show the differences.")
]
"""`DryRun` for commands that change several settings."""

ForceAll: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Apply even what looks like a mistake, as `set --force` does."),
]

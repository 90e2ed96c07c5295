"""Options that several commands have."""

from typing import Annotated, TypeAlias

import typer

from allocator.cli.remote import completing

RoleBelow: TypeAlias = Annotated[
    str, typer.Option(help="Only this role and those below it.", autocompletion=completing.roles)
]
"""The role that is shown; all where it is empty."""

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, and say what the change would do.")
]

ShowOnly: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, and show what would differ.")
]
"""The same for commands that set several things."""

ForceAll: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Apply even what looks like a mistake, as `set --force` does."),
]

"""Options that several commands have, and what stands below their help."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from allocator.cli.remote import completing
from allocator.settable import RULES

EXAMPLES: Mapping[str, str] = {
    "policy_set": "policy set ps-dsf --mode characterised --dry-run",
    "shadow_set": "shadow set tsf --mode characterised",
    "settings_reset": "settings reset policy shadow",
    "framework": "explain framework spark-pi",
    "role": "explain role eng/ads --cycles 30",
    "agent": "explain agent 10.0.0.7",
    "shares": "shares --role eng --fair",
    "dump": "dump --output state.json",
    "snapshot": "snapshot report.journal --anonymise",
    "top": "top --role eng --interval 5",
    **{f"{kind.name}_set": f"{kind.name} set {kind.examples[0]}" for kind in RULES},
    **{f"{kind.name}_remove": f"{kind.name} remove {kind.examples[1]}" for kind in RULES},
}
"""By the name of the command's function."""


RoleBelow: TypeAlias = Annotated[
    str, typer.Option(help="Only this role and those below it.", autocompletion=completing.roles)
]
"""The role that is shown; all where it is empty."""

DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, and say what the change would do.")
]

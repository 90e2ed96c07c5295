"""`settings history` and `settings revert`: recent changes of settings, and how to undo them."""

from functools import partial
from typing import Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote.connection import Sidecar, named_by, printed_by, remote
from allocator.cli.remote.lists import LIMIT, LIMIT_MAX
from allocator.cli.remote.options import ForceAll, ShowOnly

_printed = partial(printed_by, "allocator.cli.render.setting_tables")


def register(settings: typer.Typer) -> None:
    numbers = named_by("names", "changes", "number")
    remote(settings, "history", _printed("history"), names=numbers)(settings_history)
    remote(settings, "revert", _printed("differences"))(settings_revert)


def settings_history(
    sidecar: Sidecar,
    limit: Annotated[
        int, typer.Option(min=1, max=LIMIT_MAX, help="Maximum number of changes, the latest first.")
    ] = LIMIT,
) -> Message:
    """List recent changes, the latest first: time, author, and the values before and after.

    Everything that one command or one reload of the configuration changes has one number.
    """
    return sidecar.ask("ListHistory", limit=limit)


def settings_revert(
    sidecar: Sidecar,
    number: Annotated[
        int,
        typer.Argument(min=1, max=2**64 - 1, help="Number of a change, see `settings history`."),
    ],
    dry_run: ShowOnly = False,
    force: ForceAll = False,
) -> Message:
    """Restore the values that a change replaced: all of them, or none. Other changes stay.

    Shows the differences: + is new, - is removed, ~ changes.
    """
    return sidecar.ask("RevertSettings", number=number, dry_run=dry_run, force=force)

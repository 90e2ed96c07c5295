"""Users' policies, for commands that decide in this process or in workers."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from allocator.cli.tree import Exit, fail

Plugins: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="File with your own policies, as in policy.plugins; may be repeated.",
    ),
]


def load_policies(paths: Sequence[str] | None) -> tuple[str, ...]:
    """Load policies of files and of installed packages, or end; return absolute paths."""
    from allocator.server.plugins.loading import PluginError, load_entry_points, load_file

    for problem in load_entry_points():
        typer.echo(f"warning: {problem}", err=True)
    whole = tuple(str(Path(path).absolute()) for path in paths or ())
    for path in whole:
        try:
            load_file(path)
        except PluginError as error:
            fail(Exit.USAGE, f"--plugin {path}: {error}")
    return whole


@cache
def load_in_worker(paths: tuple[str, ...]) -> None:
    """Load the same policies in a worker process, once."""
    from allocator.server.plugins.loading import load_entry_points, load_file

    for _ in load_entry_points():
        pass  # reported by the process that loaded them first
    for path in paths:
        load_file(path)


def try_out(names: Sequence[str], modes: Sequence[str]) -> None:
    """End if a user's policy cannot be constructed, or fails on a cluster of two agents."""
    from allocator.core import PolicySpec
    from allocator.policies import POLICIES
    from allocator.server.plugins.guarded_policy import TRIAL_S, GuardedRegistry

    for name in (name for name in names if POLICIES[name].origin):
        for mode in modes:
            try:
                GuardedRegistry(TRIAL_S).check(PolicySpec(name, mode=mode))
            except ValueError as error:
                fail(Exit.USAGE, str(error).removeprefix("name: "))


def settings_for(paths: Sequence[str]) -> dict[str, str]:
    return {"policy.plugins": ",".join(paths)} if paths else {}

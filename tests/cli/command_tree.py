"""The tree of commands, for tests that visit all of them."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from allocator.cli.app import app


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the command of each command, including groups."""
    yield from _below((), typer.main.get_command(app))


def leaves() -> dict[tuple[str, ...], Any]:
    """Commands that do something, including groups that also run by themselves."""
    return {
        path: command
        for path, command in commands()
        if not isinstance(command, TyperGroup) or command.invoke_without_command
    }


def options(command: Any) -> set[str]:
    """The words that begin with a dash."""
    return {word for each in command.params for word in each.opts if word.startswith("-")}


def _below(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below((*path, name), each)

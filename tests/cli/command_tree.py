"""The commands of both programs, as a tree that tests walk, and how to call them.

The path of a command of the laboratory begins with `LAB`; one of `mesos-allocator` does not name
its program.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from laboratory.cli.app import app as lab_app

LAB = "allocator-lab"


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Give the path and the command of each command of both programs, groups as well."""
    yield from commands_of_allocator()
    yield from _below((LAB,), typer.main.get_command(lab_app))


def commands_of_allocator() -> Iterator[tuple[tuple[str, ...], Any]]:
    """The same of `mesos-allocator` alone."""
    yield from _below((), typer.main.get_command(app))


def leaves() -> dict[tuple[str, ...], Any]:
    """Commands that do something, including groups that also run by themselves."""
    return {
        path: command
        for path, command in commands()
        if not isinstance(command, TyperGroup) or command.invoke_without_command
    }


def invoke(words: Sequence[str], **options: Any) -> Result:
    """Call a command by its path and arguments."""
    if list(words[:1]) == [LAB]:
        return CliRunner().invoke(lab_app, list(words[1:]), prog_name=LAB, **options)
    return CliRunner().invoke(app, list(words), prog_name="mesos-allocator", **options)


def options(command: Any) -> set[str]:
    """The words that begin with a dash."""
    return {word for each in command.params for word in each.opts if word.startswith("-")}


def _below(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _below((*path, name), each)

"""The reference of commands: the `--help` of all commands of a program as one page."""

from collections.abc import Iterable, Iterator
from typing import Any

import typer

from allocator.cli.app import app

INTRODUCTION = """\
# Commands

<!-- `make docs` writes this file. -->

This page lists every command of `mesos-allocator` with its arguments and options. [Ask and command
a running sidecar](../how-to/operate.md) says when to use which command. `mesos-allocator COMMAND
--help` prints the same text as this page.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 sidecar unreachable, 4 refused by the sidecar, 5
changed but not saved, 78 invalid configuration.

## Options of all commands that call a sidecar

The sections below omit them.
"""

INTRODUCTION_OF_LAB = """\
# Commands of the laboratory

<!-- `make docs` writes this file. -->

This page lists every command of `allocator-lab` with its arguments and options.
[Simulate](../how-to/simulate.md), [replay](../how-to/replay.md) and
[advise](../how-to/advise.md) say when to use which command.
"""

_ASKING = frozenset({"--target", "--timeout", "--tls-ca", "--tls-cert", "--tls-key"})
"""A command with all of these options calls a running sidecar."""

_SHARED = _ASKING | {"--token-file"}


def page() -> str:
    """The page of `mesos-allocator`."""
    found = _commands(app)
    asking = next(command for _, command in found if _asks(command))
    shared = [each for each in asking.params if each.opts[0] in _SHARED]
    lines = [INTRODUCTION, *_table(asking, shared)]
    for path, command in found:
        lines += _section(path, command)
    return "\n".join(lines)


def page_of_lab() -> str:
    """The page of `allocator-lab`."""
    # Man pages are written where only the first program is installed.
    from laboratory.cli.app import app as lab_app

    lines = [INTRODUCTION_OF_LAB]
    for path, command in _commands(lab_app):
        lines += _section(path, command)
    return "\n".join(lines)


def _commands(program: typer.Typer) -> list[tuple[tuple[str, ...], Any]]:
    return [each for each in below((), typer.main.get_command(program)) if each[0]]


def below(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from below((*path, name), each)


def _asks(command: Any) -> bool:  # noqa: ANN401
    return {each.opts[0] for each in command.params} >= _ASKING


def _section(path: tuple[str, ...], command: Any) -> Iterator[str]:  # noqa: ANN401
    yield f"{'#' * (len(path) + 1)} {' '.join(path)}\n"
    yield f"{_cell(command.help or '')}\n"
    left_out = {"--help"} | (_SHARED if _asks(command) else set())
    own = [each for each in command.params if each.opts[0] not in left_out and not each.hidden]
    if own:
        yield from _table(command, own)


def _table(command: Any, parameters: Iterable[Any]) -> Iterator[str]:  # noqa: ANN401
    yield "| argument, option | meaning |"
    yield "|---|---|"
    context = command.context_class(command)
    for each in parameters:
        record = each.get_help_record(context)
        if record is not None:
            yield f"| `{_cell(record[0], code=True)}` | {_cell(record[1])} |"
    yield ""


def _cell(text: str, *, code: bool = False) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if code else line.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")

"""Write a man page for each command, from its help: `python tools/docs/man_pages.py DIRECTORY`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from commands import below

from allocator import __version__
from allocator.cli.app import app


def write(directory: Path) -> None:
    """Write all pages of section 1."""
    directory.mkdir(parents=True, exist_ok=True)
    program = typer.main.get_command(app)
    for path, command in below((str(program.name),), program):
        name = "-".join(path)
        text = "\n".join(_page(name, " ".join(path), command)) + "\n"
        (directory / f"{name}.1").write_text(text, encoding="utf-8")


def _page(name: str, words: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's
    context = command.context_class(command, info_name=words)
    commands = {f"{name}-{each}": sub for each, sub in getattr(command, "commands", {}).items()}
    yield f'.TH "{_roff(name.upper())}" 1 "" "mesos-allocator {__version__}"'
    yield f".SH NAME\n{_roff(name)} \\- {_roff(_short(command))}"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f".SH SYNOPSIS\n.B {_roff(words)}\n{_roff(usage)}"
    yield f".SH DESCRIPTION\n{_roff(command.help or '')}"
    if command.epilog:
        yield f".PP\n{_roff(command.epilog)}"
    records = (each.get_help_record(context) for each in command.params)
    if rows := [_entry(*record) for record in records if record is not None]:
        yield "\n".join([".SH OPTIONS", *rows])
    if commands:
        helps = (
            _entry(f"{each}(1)", sub.get_short_help_str(200)) for each, sub in commands.items()
        )
        yield "\n".join([".SH COMMANDS", *helps])
    if len(parents := name.split("-")) > 2:
        yield f".SH SEE ALSO\n{_roff('-'.join(parents[:2]))}(1)"


def _short(command: Any) -> str:  # noqa: ANN401
    return command.get_short_help_str(limit=200)


def _entry(term: str, text: str) -> str:
    return f".TP\n.B {_roff(term)}\n{_roff(text)}"


def _roff(text: str) -> str:
    """Text of a help as roff: no character counts as a command, and blank lines part paragraphs."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in {".", "'"} else line or ".PP" for line in lines)


if __name__ == "__main__":
    write(Path(sys.argv[1]))

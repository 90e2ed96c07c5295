"""Advice on a terminal: recommendations with reasons, then the tables they are based on."""

from typing import TYPE_CHECKING

import typer

from allocator.cli.render.terminal import as_text, console, say, table_of
from allocator.plain import printable

if TYPE_CHECKING:
    from laboratory.advise.advising import AdviceReport


def print_advice(report: "AdviceReport") -> None:
    from laboratory.advise import words

    for title, paragraphs in words.sentences(report):
        _title(title)
        for each in paragraphs:
            say(f"- {each}")
    _title("To paste")
    _as_it_is(words.to_paste(report))
    if call := words.quota_calls(report):
        _title("For the master, by POST to /api/v1")
        _as_it_is(call)
    for table in words.tables(report):
        _title(table.title)
        console().print(table_of(table.heads, table.rows))
    _title("What was played, and what a journal does not contain")
    for line in [*words.about(report), words.model(report), *words.GUESSED]:
        say(line)


def _title(text: str) -> None:
    say()
    console().print(as_text(text), style="bold")


def _as_it_is(text: str) -> None:
    """Print text for copying, without wrapping or indentation."""
    typer.echo(printable(text.rstrip(), also="\n"))

"""The terminal: what tables are printed with."""

import sys
from collections.abc import Iterable
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allocator.plain import printable

WIDTH_PIPED = 2**20
"""Columns where there is no terminal: nothing is folded or cut off."""

NOTHING = "-"
"""Stands for an empty cell where there is no terminal, so that columns can be counted."""


def piped() -> bool:
    """Whether programs read what is printed, such as grep and awk."""
    return not sys.stdout.isatty()


class _Piped(Console):
    """Prints each row and each sentence as one line, without blanks at its end."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich has them
        """Print, as the console of a terminal does."""
        with self.capture() as captured:
            super().print(*objects, **options)
        for line in captured.get().removesuffix("\n").split("\n"):
            sys.stdout.write(f"{line.rstrip()}\n")


def console() -> Console:
    """Give where tables are printed."""
    if piped():
        return _Piped(width=WIDTH_PIPED, highlight=False, color_system=None)
    return Console(highlight=False)


def as_text(value: object) -> Text:
    """A value as text: no markup, and no control character of a framework's name gets through."""
    return Text(printable(str(value)))


def table_of(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Make a table; columns that begin with ``>`` are numbers."""
    columns = list(columns)
    empty = NOTHING if piped() else ""
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        head = as_text(column.removeprefix(">"))
        table.add_column(head, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(as_text(empty if each == "" else each) for each in row))
    return table


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]], empty: str) -> None:
    """Print a table, or what stands for an empty one."""
    table = table_of(columns, rows)
    console().print(table if table.row_count else Text(empty, style="italic"))


def in_words(amounts: dict[str, float]) -> str:
    """Write amounts by name, in Mesos's form."""
    return ";".join(f"{name}:{amount:g}" for name, amount in amounts.items())

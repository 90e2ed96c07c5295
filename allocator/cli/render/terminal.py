"""The terminal: what tables are printed with."""

import sys
from collections.abc import Iterable
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allocator.plain import printable

WIDTH_PIPED = 240
"""Columns where no terminal says how many there are: nothing is cut off."""


def console() -> Console:
    """Give where tables are printed."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_PIPED, highlight=False)


def as_text(value: object) -> Text:
    """A value as text: no markup, and no control character of a framework's name gets through."""
    return Text(printable(str(value)))


def table_of(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Make a table; columns that begin with ``>`` are numbers."""
    columns = list(columns)
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        head = as_text(column.removeprefix(">"))
        table.add_column(head, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(as_text, row))
    return table


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]], empty: str) -> None:
    """Print a table, or what stands for an empty one."""
    table = table_of(columns, rows)
    console().print(table if table.row_count else Text(empty, style="italic"))


def in_words(amounts: dict[str, float]) -> str:
    """Write amounts by name, in Mesos's form."""
    return ";".join(f"{name}:{amount:g}" for name, amount in amounts.items())

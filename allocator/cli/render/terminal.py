"""Prints tables and progress.

Progress is a bar on a terminal, and a line every `EVERY_S` otherwise. It goes to standard error, so
that results on standard output can be redirected.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TextIO, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, Group
from rich.table import Table
from rich.text import Text

from allocator.cli.render.fitting import (
    NUMBER,
    PROSE,
    fit,
    kind_of,
    shortened,
    title_of,
    wrapping,
)
from allocator.plain import printable

WIDTH_PIPED = 2**20

NOTHING = "-"
"""Replaces an empty cell without a terminal, so that programs can count columns."""


_TITLE_AND_END = 3
"""Lines of a screen beside its head and its rows: titles, the number of other rows, the cursor."""


def piped() -> bool:
    return not sys.stdout.isatty()


class Printer(Console):
    """A console that raises `BrokenPipeError` instead of exiting, so that `Root` handles it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Piped(Printer):
    """Prints each row and each sentence as one line without trailing spaces."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401 - as rich has them
        with self.capture() as captured:
            super().print(*objects, **options)
        for line in captured.get().removesuffix("\n").split("\n"):
            sys.stdout.write(f"{line.rstrip()}\n")


def console() -> Printer:
    if piped():
        return _Piped(width=WIDTH_PIPED, highlight=False, color_system=None)
    return Printer(highlight=False)


def as_text(value: object) -> Text:
    """Convert a value to text without markup or control characters, because names are untrusted."""
    return Text(printable(str(value)))


def say(text: str = "") -> None:
    """Print a line of text, which may contain untrusted names."""
    console().print(as_text(text))


def table_of(
    columns: Iterable[str],
    rows: Iterable[Iterable[object]],
    drop: Sequence[str] = (),
    room: int | None = None,
) -> Table:
    """Make a table; the first character of a column's title is its kind, see `fitting`.

    `drop`: titles of columns that may be omitted on a narrow terminal, in this order.
    `room`: width in characters; None: that of the terminal. Without a terminal, nothing is omitted
        or cut.
    """
    columns = list(columns)
    empty = NOTHING if piped() else ""
    texts = [[printable(str(empty if each == "" else each)) for each in row] for row in rows]
    titles = [printable(title_of(column)) for column in columns]
    if room is None:
        room = console().width
    widths = [max(map(cell_len, column)) for column in zip(titles, *texts, strict=True)]
    if piped():
        drop = ()
    elif drop:  # without content first
        drop = [*(t for t, *cells in zip(titles, *texts, strict=True) if not any(cells)), *drop]
    fitted = fit(columns, widths, drop, room)
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(titles))
    for place, width in fitted.items():
        column = columns[place]
        justify: Literal["left", "right"] = "right" if kind_of(column) == NUMBER else "left"
        whole = kind_of(column) != PROSE
        head = Text(shortened(titles[place], width))
        table.add_column(head, justify=justify, overflow="fold", no_wrap=whole, width=width)
    for row in texts:
        cut = (
            (wrapping if kind_of(columns[place]) == PROSE else shortened)(row[place], width)
            for place, width in fitted.items()
        )
        table.add_row(*map(Text, cut))
    return table


def print_table(
    columns: Iterable[str],
    rows: Iterable[Iterable[object]],
    empty: str,
    drop: Sequence[str] = (),
    *,
    whole: bool = False,
) -> None:
    """Print a table, or the text `empty`; `whole`: omit and cut nothing, so that lines wrap."""
    table = table_of(columns, rows, drop, WIDTH_PIPED if whole else None)
    if not table.row_count:
        console().print(Text(empty, style="italic"))
    elif whole and not piped():
        Printer(width=WIDTH_PIPED, highlight=False).print(table)
    else:
        console().print(table)


def in_words(amounts: dict[str, float]) -> str:
    return ";".join(f"{name}:{amount:g}" for name, amount in amounts.items())


def hours_in_words(hours: dict[str, float]) -> str:
    return ";".join(f"{name}:{amount:g}h" for name, amount in hours.items())


Cell: TypeAlias = Callable[[Any], object]
"""Computes the content of a cell from the object that its row shows."""

Columns: TypeAlias = Mapping[str, str | Cell]
"""Content of the cells by title of the column: a function, or the name of a field of the row."""


def amounts(field: str) -> Cell:
    return lambda each: in_words(each[field])


def if_any(field: str) -> Cell:
    """Show a number; an empty cell for 0."""
    return lambda each: each[field] or ""


def percent(field: str, digits: int = 0) -> Cell:
    return lambda each: f"{100 * each[field]:.{digits}f} %"


def figure(field: str, form: str) -> Cell:
    """Format a number as in ``.3f``; an empty cell for None."""
    return lambda each: "" if each[field] is None else format(each[field], form)


def cells(columns: Columns, each: Any) -> list[object]:  # noqa: ANN401
    return [each[cell] if isinstance(cell, str) else cell(each) for cell in columns.values()]


def print_rows(
    columns: Columns,
    found: Iterable[Any],
    empty: str,
    drop: Sequence[str] = (),
    *,
    whole: bool = False,
) -> None:
    """Print a table with one row per element of `found`, or the text `empty`."""
    print_table(columns, (cells(columns, each) for each in found), empty, drop, whole=whole)


def print_section(
    columns: Columns, found: Iterable[dict[str, Any]], drop: Sequence[str] = ()
) -> None:
    """Print a table below a blank line; print nothing if it is empty."""
    if found := list(found):
        say()
        print_rows(columns, found, "", drop)


def screen(
    head: Sequence[str],
    columns: Columns,
    found: Sequence[Any],
    drop: Sequence[str],
    size: ConsoleDimensions,
) -> Group:
    """Make a screen of some lines, and of as many rows of a table as fit below them."""
    room = max(1, size.height - len(head) - _TITLE_AND_END)
    table = table_of(columns, (cells(columns, each) for each in found[:room]), drop, size.width)
    more = f"and {len(found) - room:,} more" if len(found) > room else ""
    return Group(*map(as_text, head), table, as_text(more))


_MINUTE_S = 120
_HOUR_S = 7200
_DAY_S = 172_800


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit.

    >>> duration(4.25), duration(600), duration(7300), duration(259_200)
    ('4.2 s', '10 min', '2.0 h', '3.0 days')
    """
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < _DAY_S else f"{seconds / 86400:.1f} days"


def name_of(client: dict[str, Any]) -> str:
    return client["framework_name"] or client["framework_id"]


def host_of(agent: dict[str, Any]) -> str:
    return agent["hostname"] or agent["agent_id"]


def holders_of(agent: dict[str, Any]) -> str:
    """Names of the frameworks that hold something on an agent, each once."""
    return ", ".join(dict.fromkeys(each["framework"] for each in agent["holders"]))


EVERY_S = 10.0

Tell: TypeAlias = Callable[..., None]
"""Called with the number done so far; keywords ``what`` and ``total`` replace earlier values."""


@contextmanager
def progress(what: str, unit: str, total: int | None) -> Iterator[Tell]:
    """Show progress until the context ends: an activity, and a count of units up to `total`."""
    if not sys.stderr.isatty():
        yield Lines(what, unit, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    text, units = TextColumn("{task.description}"), TextColumn(unit)
    columns = (text, BarColumn(), MofNCompleteColumn(), units, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        bar = bars.add_task(what, total=total)

        def tell(done: int, *, what: str | None = None, total: int | None = None) -> None:
            bars.update(bar, completed=done, description=what, total=total)

        yield tell


class Lines:
    """Progress as lines of text: the first at once, then one per `EVERY_S`."""

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None,
        out: TextIO | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._unit, self._total = what, unit, total
        self._out = out or sys.stderr
        self._clock_s = clock_s
        self._begin_s = clock_s()
        self._next_s = self._begin_s
        self(0)

    def __call__(self, done: int, *, what: str | None = None, total: int | None = None) -> None:
        self._what, self._total = what or self._what, total or self._total
        now_s = self._clock_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        of = "" if self._total is None else f" of {self._total}"
        passed_s = now_s - self._begin_s
        line = f"{self._what}: {done}{of} {self._unit}, {passed_s:.0f} s"
        print(line, file=self._out, flush=True)

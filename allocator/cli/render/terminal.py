"""The terminal: what tables are printed with, and how far something is.

That is a bar on a terminal, a line now and then elsewhere. Both go to standard error, so that what
is printed as a result can be kept by itself.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TextIO, TypeAlias

from rich.cells import cell_len
from rich.console import Console
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
"""Columns where there is no terminal: nothing is folded or cut off."""

NOTHING = "-"
"""Stands for an empty cell where there is no terminal, so that columns can be counted."""


def piped() -> bool:
    """Whether programs read what is printed, such as grep and awk."""
    return not sys.stdout.isatty()


class Printer(Console):
    """A console that leaves it to the command line to end where nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Piped(Printer):
    """Prints each row and each sentence as one line, without blanks at its end."""

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
    """A value as text: no markup, and no control character of a framework's name gets through."""
    return Text(printable(str(value)))


def table_of(
    columns: Iterable[str],
    rows: Iterable[Iterable[object]],
    drop: Sequence[str] = (),
    room: int | None = None,
) -> Table:
    """Make a table; how columns begin says what they hold, see `fitting`.

    `drop`: titles of columns that are left out where a terminal is too narrow, the first first.
    `room`: so many characters to a line; None: as many as the terminal has. Where there is no
        terminal, nothing is left out or cut.
    """
    columns = list(columns)
    empty = NOTHING if piped() else ""
    texts = [[printable(str(empty if each == "" else each)) for each in row] for row in rows]
    titles = [printable(title_of(column)) for column in columns]
    if room is None:
        room = console().width
    widths = [max(map(cell_len, column)) for column in zip(titles, *texts, strict=True)]
    fitted = fit(columns, widths, () if piped() else drop, room)
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
    """Print a table, or what stands for an empty one.

    `whole`: nothing is left out or cut, however narrow the terminal: it breaks lines where it must.
    """
    table = table_of(columns, rows, drop, WIDTH_PIPED if whole else None)
    if not table.row_count:
        console().print(Text(empty, style="italic"))
    elif whole and not piped():
        Printer(width=WIDTH_PIPED, highlight=False).print(table)
    else:
        console().print(table)


def in_words(amounts: dict[str, float]) -> str:
    """Write amounts by name, in Mesos's form."""
    return ";".join(f"{name}:{amount:g}" for name, amount in amounts.items())


Cell: TypeAlias = Callable[[Any], object]
"""Gives what stands in a cell, of what its row is about."""

Columns: TypeAlias = Mapping[str, str | Cell]
"""By what stands above a column: what its cells say; a text names a field of an answer."""


def amounts(field: str) -> Cell:
    return lambda each: in_words(each[field])


def figure(field: str, form: str) -> Cell:
    """Write a number in a form such as ``.3f``; nothing where there is none."""
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
    """Print a table with a row for each that was found, or what stands for an empty one."""
    print_table(columns, (cells(columns, each) for each in found), empty, drop, whole=whole)


def print_section(
    columns: Columns, found: Iterable[dict[str, Any]], drop: Sequence[str] = ()
) -> None:
    """Print a table below a blank line; nothing where it would be empty."""
    if found := list(found):
        console().print()
        print_rows(columns, found, "", drop)


_MINUTE_S = 120
_HOUR_S = 7200
_DAY_S = 172_800


def duration(seconds: float) -> str:
    """A time as people say it.

    Examples
    --------
    >>> duration(4.25), duration(600), duration(7300), duration(259_200)
    ('4.2 s', '10 min', '2.0 h', '3.0 days')
    """
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < _HOUR_S:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < _DAY_S else f"{seconds / 86400:.1f} days"


def name_of(client: dict[str, Any]) -> str:
    """What to call a framework: its name, or its id."""
    return client["framework_name"] or client["framework_id"]


EVERY_S = 10.0
"""From one line to the next, where there is no terminal."""

Tell: TypeAlias = Callable[..., None]
"""Called with how many are done; ``what`` and ``total`` may change on the way."""


@contextmanager
def progress(what: str, unit: str, total: int | None) -> Iterator[Tell]:
    """Show progress until the context ends.

    `what` and `unit` are such as ``playing`` and ``jobs``; a `total` of None is not known yet.
    """
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
    """Progress as lines of text: the first at once, then one every `EVERY_S`."""

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

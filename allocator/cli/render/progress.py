"""How far something is: a bar on a terminal, a line now and then elsewhere.

Both go to standard error, so that what is printed as a result can be kept by itself.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeAlias

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
        """Tell how many are done."""
        self._what, self._total = what or self._what, total or self._total
        now_s = self._clock_s()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        of = "" if self._total is None else f" of {self._total}"
        passed_s = now_s - self._begin_s
        line = f"{self._what}: {done}{of} {self._unit}, {passed_s:.0f} s"
        print(line, file=self._out, flush=True)

"""What came out, beside what was published."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

_ROUNDING = 1e-9  # what a comparison forgives beside its tolerance: the rounding of float64


@dataclass(frozen=True, slots=True)
class Cell:
    """One number.

    Attributes
    ----------
    computed : float
    published : float or None
        None where the paper gives no number to compare with.
    tolerance : float
        How far the computed number may be from the published one.
    at_most : bool
        The published number is a bound: anything below it agrees, too.
    """

    computed: float
    published: float | None = None
    tolerance: float = 0.0
    at_most: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the computed number is within the tolerance of the published one."""
        if self.published is None:
            return True
        over = self.computed - self.published
        off = over if self.at_most else abs(over)
        return isfinite(self.computed) and off <= self.tolerance + _ROUNDING


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    Attributes
    ----------
    name : str
    cells : tuple of Cell
    departure : str
        Why the row is known to differ from the paper; empty where it should agree.
    """

    name: str
    cells: tuple[Cell, ...]
    departure: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every cell agrees."""
        return all(cell.agrees for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Report:
    """A table of the paper, computed.

    Attributes
    ----------
    name : str
        As in ``mesos-allocator reproduce NAME``.
    title : str
    source : str
        Paper and section.
    columns : tuple of str
        One a cell.
    rows : tuple of Row
    notes : tuple of str
        How it was computed, and how the tolerances come about.
    """

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether every row agrees, or says why it does not."""
        return all(row.agrees or row.departure for row in self.rows)

    def row(self, name: str) -> Row:
        """Find a row by its name."""
        return next(row for row in self.rows if row.name == name)


def exactly(computed: Sequence[float], published: Sequence[float]) -> tuple[Cell, ...]:
    """Cells that must be equal."""
    return tuple(Cell(float(c), p) for c, p in zip(computed, published, strict=True))

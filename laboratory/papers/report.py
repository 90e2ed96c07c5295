"""Computed results beside published ones."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isnan

from laboratory.reports.run_report import interval

_ROUNDING = 1e-9  # added to tolerances: the rounding of float64
_TOLERANCE_SHOWN = 1e-4  # relative; smaller tolerances are rounding

AGREES, NOT_SHOWN, DIFFERS = "agrees", "not shown", "differs"

REFUSED = "refused: a counter-example"
NONE_FOUND = "refused: none found"


def in_digits(value: float, digits: int) -> str:
    """A number with this many digits; large ones as whole numbers, not as powers of ten.

    Examples
    --------
    >>> in_digits(0.012345, 2), in_digits(1234.5, 2)
    ('0.012', '1234')
    """
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text


@dataclass(frozen=True, slots=True)
class TableCell:
    """One number.

    published: None if the paper gives no number to compare with.
    tolerance: how far the computed number may be from the published one.
    at_most: the published number is a bound: anything below it agrees, too.
    half: half the width of the 95 % confidence interval, for means over seeds.
    outcome: for claims without a number: ``holds``, ``not shown`` or ``contrary``; for the claim
        that something fails: `REFUSED` or `NONE_FOUND`.
    """

    computed: float
    published: float | None = None
    tolerance: float = 0.0
    at_most: bool = False
    half: float | None = None
    outcome: str = ""

    @property
    def verdict(self) -> str:
        """``agrees``, ``differs`` or ``not shown``; empty if nothing is published.

        A number agrees if its whole interval is within the tolerance of the published one, and
        differs if all of it is outside. Otherwise the seeds do not decide it.

        Examples
        --------
        >>> [TableCell(1.1, 1.0, 0.2, half=half).verdict for half in (0.05, 0.3)]
        ['agrees', 'not shown']
        >>> TableCell(1.5, 1.0, 0.2, half=0.05).verdict
        'differs'
        """
        if self.published is None:
            return NOT_SHOWN if self.outcome == NONE_FOUND else ""
        over = self.computed - self.published
        off = over if self.at_most else abs(over)
        within, half = self.tolerance + _ROUNDING, self.half or 0.0
        if isfinite(self.computed) and off + half <= within:
            return AGREES
        return NOT_SHOWN if off - half <= within else DIFFERS

    @property
    def agrees(self) -> bool:
        """Whether nothing is published, or the published number agrees."""
        return self.verdict in ("", AGREES)

    def computed_text(self) -> str:
        """The computed number with its interval, in significant digits.

        Examples
        --------
        >>> TableCell(3107.25, half=230.4).computed_text()
        '3107 ± 230'
        """
        if self.half is None:
            return in_digits(self.computed, 4)
        half = 0.0 if self.half < _ROUNDING * abs(self.computed) else self.half
        return f"{in_digits(self.computed, 4)} ± {in_digits(half, 2)}"

    def published_text(self, plus_minus: str = " ± ") -> str:
        """The published number with its tolerance; ``<`` before a bound."""
        if self.published is None:
            return ""
        # Between two zeros a tolerance has no meaning.
        differs = self.published != 0 or self.computed != 0
        shown = differs and self.tolerance > _TOLERANCE_SHOWN * abs(self.published)
        within = plus_minus + in_digits(self.tolerance, 2) if shown else ""
        return f"{'<' if self.at_most else ''}{in_digits(self.published, 4)}{within}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table.

    departure: the known reason why the row differs from the paper; empty if it should agree.
    """

    name: str
    cells: tuple[TableCell, ...]
    departure: str = ""

    @property
    def agrees(self) -> bool:
        return all(cell.agrees for cell in self.cells)

    @property
    def differs(self) -> bool:
        return any(cell.verdict == DIFFERS for cell in self.cells)


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One curve of a figure.

    half: half the width of the confidence interval of each y; empty: none.
    points: drawn as points, such as simulations beside a formula.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    half: tuple[float, ...] = ()
    points: bool = False
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a figure."""

    title: str
    xlabel: str
    ylabel: str
    lines: tuple[PlotLine, ...]
    stepped: bool = False


@dataclass(frozen=True, slots=True)
class PaperReport:
    """A table of the paper, computed.

    name: as in ``allocator-lab reproduce NAME``.
    source: paper and section.
    columns: one per cell.
    notes: how it was computed, and the reasons for the tolerances.
    panels: the plots.
    """

    name: str
    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = field(default=())
    panels: tuple[Panel, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every row that differs has a departure."""
        return all(row.departure or not row.differs for row in self.rows)

    @property
    def departures(self) -> list[str]:
        """Why rows differ from the paper, each reason once."""
        return list(dict.fromkeys(row.departure for row in self.rows if row.departure))

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


def averaged(
    values: Sequence[float],
    published: float | None = None,
    tolerance: float = 0.0,
    *,
    at_most: bool = False,
) -> TableCell:
    """A mean over seeds with its confidence interval."""
    found = interval(values)
    half: float | None = found.half
    if isnan(found.half):  # the spread of one value is unknown
        half = None if published is None else inf
    return TableCell(found.mean, published, tolerance, at_most, half)


def judged(values: Sequence[float]) -> TableCell:
    """Whether a mean is above zero, by its confidence interval."""
    found = interval(values)
    return TableCell(found.mean, half=found.half, outcome=found.outcome())


def counter_examples(percent: float) -> TableCell:
    """The percentage of cases in which a property fails that the paper says does not hold.

    Examples
    --------
    >>> counter_examples(0.0).verdict
    'not shown'
    """
    return TableCell(percent, outcome=REFUSED if percent else NONE_FOUND)


def beside(
    computed: Iterable[float],
    published: Iterable[float | None] = (),
    tolerance: float | Iterable[float] = 0.0,
) -> tuple[TableCell, ...]:
    """Numbers beside published ones, if any; one tolerance for all, or one for each."""
    found = [float(each) for each in computed]
    wanted = list(published) or [None] * len(found)
    within = [tolerance] * len(found) if isinstance(tolerance, float) else map(float, tolerance)
    return tuple(TableCell(*each) for each in zip(found, wanted, within, strict=True))


def through(
    name: str, x: Sequence[float], means: Sequence[TableCell], *, points: bool = False
) -> PlotLine:
    """A curve through means over seeds, with their intervals."""
    y, half = ([each.computed for each in means], [each.half or 0.0 for each in means])
    return PlotLine(name, tuple(x), tuple(y), tuple(half), points)


def paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a wrapped text, each as one line."""
    return tuple(" ".join(each.split()) for each in text.split("\n\n"))

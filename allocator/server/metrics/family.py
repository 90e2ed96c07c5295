"""Declares metrics: each is a `Family`, a row of a table; and helpers that tables share.

A `Part` is a table with a function that returns the source of its numbers.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import structlog
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from allocator.core import MILLI, Bools, Floats, Ints, harmless
from allocator.server.reports.report import Report

PREFIX = "mesos_allocator_"

OTHER = "other"
"""Label value for everything without its own series."""

LABEL_LENGTH_MAX = 200

_ENDINGS = {"counter": "_total", "info": "_info"}
_MIB = 2**20
_UNITS = {"cpus": ("core", 1.0), "mem": ("byte", _MIB), "disk": ("byte", _MIB)}

Series: TypeAlias = tuple[Sequence[str], float]
"""Label values, and the number."""

Buckets: TypeAlias = tuple[Sequence[tuple[str, float]], float]
"""Upper bounds, each with the number of values up to it; and the sum of all values."""

LabelledBuckets: TypeAlias = tuple[Sequence[str], Sequence[tuple[str, float]], float]
"""Label values, and the same as `Buckets`."""

Numbers: TypeAlias = (
    "float | Mapping[str, float] | Mapping[str, str] | Iterable[Series] | Buckets"
    " | Iterable[LabelledBuckets] | None"
)
"""Values of one metric: a number or None; or numbers by the value of its label, or of several
labels. Facts have texts by label; a histogram has buckets, or several by label."""

S = TypeVar("S")
"""The source of a part's numbers."""


@dataclass(frozen=True)
class Family(Generic[S]):
    """One metric.

    `name`: without `PREFIX` and Prometheus's suffixes.
    `text`: help for operators.
    """

    kind: str
    name: str
    labels: tuple[str, ...]
    text: str
    numbers: Callable[[S], Numbers]

    @property
    def full_name(self) -> str:
        """Name of its series; those of a histogram have further suffixes."""
        return f"{PREFIX}{self.name}{_ENDINGS.get(self.kind, '')}"

    def metric(self, source: S) -> Metric:
        name = f"{PREFIX}{self.name}"
        given: Any = self.numbers(source)
        if self.kind == "histogram":
            if not self.labels:
                return HistogramMetricFamily(name, self.text, *given)
            histograms = HistogramMetricFamily(name, self.text, labels=self.labels)
            for values, *numbers in given:
                histograms.add_metric([label(value) for value in values], *numbers)
            return histograms
        if self.kind == "info":
            assert tuple(given) == self.labels, self.name
            facts = {key: label(value) for key, value in given.items()}
            return InfoMetricFamily(name, self.text, facts)
        make = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        made = make(name, self.text, labels=self.labels)
        for values, number in _rows(given):
            assert len(values) == len(self.labels), self.name
            made.add_metric([label(value) for value in values], number)
        return made


Families: TypeAlias = Sequence[Family[S]]


def _rows(given: Any) -> Iterable[Series]:  # noqa: ANN401
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return (([value], number) for value, number in given.items())
    return given if isinstance(given, Iterable) else [((), given)]


class _Declare(Protocol):
    """Declares a metric; `head`: its name and labels, as in ``agents{state}``."""

    def __call__(self, head: str, text: str, numbers: Callable[[S], Numbers]) -> Family[S]: ...


def _declare(kind: str) -> _Declare:
    def declared(head: str, text: str, numbers: Callable[[S], Numbers]) -> Family[S]:
        name, _, labels = head.rstrip("}").partition("{")
        return Family(kind, name, tuple(filter(None, labels.split(","))), text, numbers)

    return declared


counter = _declare("counter")
"""A number that only grows."""

gauge = _declare("gauge")
"""A number that may also fall."""

histogram = _declare("histogram")
info = _declare("info")
"""Facts, as labels of a series that is always 1."""


def amounts(head: str, text: str, numbers: Callable[[S], Iterable[Series]]) -> Family[S]:
    """Declare amounts of resources; `amounts_of` returns their series."""
    plain = gauge(head, f"{text}, in the unit of the label.", numbers)
    return replace(plain, labels=(*plain.labels, "resource", "unit"))


def with_zeros(known: Iterable[str], counts: Mapping[str, int]) -> dict[str, float]:
    """Counts, with zeros for known cases that did not occur."""
    return {**dict.fromkeys(known, 0), **counts}


def label(text: str) -> str:
    r"""Convert any text to the value of a label: short, and without control characters.

    A scrape may be read on a terminal. A text that is changed ends in a digest, so that different
    texts stay different.

    >>> label("eng/ads"), label("a\x1b[2J")
    ('eng/ads', 'a?[2J~3f365b4b5a23')
    """
    if len(text) <= LABEL_LENGTH_MAX and text.isprintable():
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{harmless(text[: LABEL_LENGTH_MAX - 13], LABEL_LENGTH_MAX)}~{digest}"


def unit_of(resource: str) -> tuple[str, float]:
    """Return the unit of a resource in metrics, and its number per unit of Mesos.

    >>> unit_of("cpus"), unit_of("mem"), unit_of("gpus")
    (('core', 1.0), ('byte', 1048576), ('one', 1.0))
    """
    return _UNITS.get(resource, ("one", 1.0))


def amounts_of(
    report: Report, values: Sequence[Sequence[str]], amounts: Ints, given: Bools | None = None
) -> Iterator[Series]:
    """Yield the series of amounts (n, R); `values`: label values of each row.

    `given` (R,) or (n, R): which of them have series; None: resources that most agents have.
    """
    units = [(resource, *unit_of(resource)) for resource in report.resources]
    shown = np.broadcast_to(report.common if given is None else given, amounts.shape)
    for row, column in np.argwhere(shown).tolist():
        resource, unit, factor = units[column]
        yield [*values[row], resource, unit], int(amounts[row, column]) * factor / MILLI


@dataclass(frozen=True)
class Selection:
    """The rows of a report that have their own series; the others share one series.

    `top`, `rest`: rows, ascending.
    `values`: label values of each of `top`.
    `other`: label values of all of `rest`.
    """

    report: Report
    top: Ints
    rest: Ints
    values: list[list[str]]
    other: list[str]

    def each(self, numbers: Floats | Ints) -> Iterable[Series]:
        """Numbers (n,) of the rows with their own series."""
        return zip(self.values, numbers[self.top].tolist(), strict=True)

    def summed(self, numbers: Ints) -> Iterable[Series]:
        """Numbers (n,), and the sum of the others."""
        return [*self.each(numbers), (self.other, int(numbers[self.rest].sum()))]

    def largest(self, numbers: Floats | Ints) -> Iterable[Series]:
        """Numbers (n,), and the maximum of the others."""
        return [*self.each(numbers), (self.other, numbers[self.rest].max(initial=0))]

    def own(self, amounts: Ints, given: Bools) -> Iterable[Series]:
        """Amounts (n, R) of the rows with their own series, where they are `given` (n, R)."""
        return amounts_of(self.report, self.values, amounts[self.top], given[self.top])

    def amounts(self, amounts: Ints, given: Bools | None = None) -> Iterable[Series]:
        """Amounts (n, R), and the sum of the others; `given` (R,) as in `amounts_of`."""
        both = np.vstack([amounts[self.top], amounts[self.rest].sum(axis=0)])
        return amounts_of(self.report, [*self.values, self.other], both, given)


def largest(share: Floats, candidates: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return the rows with the largest shares, and the rest; lower rows first on ties."""
    order = candidates[np.argsort(-share[candidates], kind="stable")]
    return np.sort(order[:limit]), order[limit:]


_log = structlog.get_logger()


@dataclass(frozen=True)
class Part(Generic[S]):
    """A table of families with one source.

    `source`: returns the object from which their numbers are read; None: omit them from the scrape.
    """

    name: str
    families: Families[S]
    source: Callable[[], S | None]

    def collect(self) -> list[Metric]:
        source = self.source()
        return [] if source is None else [each.metric(source) for each in self.families]


PartsNow: TypeAlias = Callable[[], Iterable[Part[Any]]]

SCRAPE_ERRORS: Family[Counter[str]] = counter(
    "scrape_errors{part}",
    "Times that a part of a scrape failed.",
    lambda errors: errors,
)


class Parts(Collector):
    """Collects part by part; `errors`: number of failures of each part, by name."""

    def __init__(self, sources: Iterable[PartsNow]) -> None:
        self.errors: Counter[str] = Counter()
        self._sources = tuple(sources)
        self._told: dict[str, str] = {}

    def describe(self) -> Iterable[Metric]:
        """Describe nothing in advance; otherwise the registry would scrape at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        for source in self._sources:
            for part in source():
                yield from self._collected(part)
        yield SCRAPE_ERRORS.metric(self.errors)

    def _collected(self, part: Part[Any]) -> list[Metric]:
        self.errors[part.name] += 0  # its series exists from the start
        try:
            return part.collect()
        except Exception as error:  # noqa: BLE001 - other families are still given.
            self.errors[part.name] += 1
            if self._told.get(part.name) != repr(error):  # once, not at each scrape
                self._told[part.name] = repr(error)
                _log.exception("part of the metrics could not be computed", part=part.name)
            return []

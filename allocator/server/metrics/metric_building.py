"""What families of metrics are built with: names, labels, units."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)

from allocator.core import MILLI, Bools, Ints
from allocator.server.reports.report import Report

PREFIX = "mesos_allocator_"

OTHER = "other"
"""Stands for everything that has no series of its own."""

LABEL_LENGTH_MAX = 200
"""Longer texts are cut and end in a digest, so that they stay apart."""

_MIB = 2**20
_UNITS = {"cpus": ("core", 1.0), "mem": ("byte", _MIB), "disk": ("byte", _MIB)}


def unit_of(resource: str) -> tuple[str, float]:
    """Unit of a resource in metrics, and how many of them Mesos's own unit is.

    Examples
    --------
    >>> unit_of("cpus"), unit_of("mem"), unit_of("gpus")
    (('core', 1.0), ('byte', 1048576), ('one', 1.0))
    """
    return _UNITS.get(resource, ("one", 1.0))


def label(text: str) -> str:
    """A text of any length as the value of a label."""
    if len(text) <= LABEL_LENGTH_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{text[: LABEL_LENGTH_MAX - 13]}~{digest}"


def info_family(name: str, text: str, labels: Mapping[str, str]) -> Metric:
    """Facts as labels of a series that is always 1."""
    return InfoMetricFamily(f"{PREFIX}{name}", text, value=dict(labels))


def gauge(name: str, text: str, value: float) -> Metric:
    """One number that goes up and down."""
    return GaugeMetricFamily(f"{PREFIX}{name}", text, value=value)


def counter(name: str, text: str, value: float) -> Metric:
    """One number that only grows."""
    return CounterMetricFamily(f"{PREFIX}{name}", text, value=value)


def labelled(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str],
    rows: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    """Numbers by the values of labels."""
    metric = family(f"{PREFIX}{name}", text, labels=labels)
    for values, number in rows:
        metric.add_metric(values, number)
    return metric


def counted_by(
    name: str, text: str, key: str, counts: Mapping[str, int], known: Iterable[str]
) -> Metric:
    """A counter with one label, with a zero for everything that is known but did not happen."""
    values = dict.fromkeys(known, 0) | dict(counts)
    rows = (([value], number) for value, number in sorted(values.items()))
    return labelled(CounterMetricFamily, name, text, [key], rows)


def amounts_of(
    report: Report,
    name: str,
    text: str,
    labels: Sequence[str],
    values: Sequence[Sequence[str]],
    amounts: Ints,
    given: Bools | None = None,
) -> Metric:
    """Amounts (n, R) of whatever the n lists of label values name.

    Those that are given; else those of the resources that most agents have.
    """
    metric = GaugeMetricFamily(f"{PREFIX}{name}", text, labels=[*labels, "resource", "unit"])
    units = [(resource, *unit_of(resource)) for resource in report.resources]
    shown = np.broadcast_to(report.common, amounts.shape) if given is None else given
    for row, column in np.argwhere(shown).tolist():
        resource, unit, factor = units[column]
        number = int(amounts[row, column]) * factor / MILLI
        metric.add_metric([*values[row], resource, unit], number)
    return metric


def largest(share: np.ndarray, candidates: np.ndarray, limit: int) -> tuple[Ints, Ints]:
    """The rows with the largest shares, and the rest; lower rows first on ties."""
    order = candidates[np.argsort(-share[candidates], kind="stable")]
    return np.sort(order[:limit]), order[limit:]

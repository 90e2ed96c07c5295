"""What is remembered of demands, as metrics and dumps show it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from allocator.core import State

PREFIX = "mesos_allocator_"
SOURCES = ("request", "label", "operator", "learned", "prior", "unknown")


@dataclass(frozen=True)
class RememberedRow:
    """A demand that new frameworks may begin with.

    `kind`: ``name``, ``principal`` or ``user``.
    `who`: pattern of the name, or the principal or user.
    `demand`, in thousandths.
    `weight`: lessons that agree; halved by those that do not, and with time.
    `counts`: whether that is enough to begin with it.
    """

    role: str
    kind: str
    who: str
    demand: dict[str, int]
    weight: int
    counts: bool


@dataclass(frozen=True)
class RememberedDemands:
    """A copy of the memory: the demands, and how priors fared so far."""

    rows: tuple[RememberedRow, ...]
    confirmed: int
    refuted: int
    probes: int


def read(state: State) -> RememberedDemands:
    """Copy what is remembered; on the core's thread."""
    memory, settings = state.memory, state.settings
    rows = []
    for topic, entry in memory.entries.items():
        weight = memory.weight(settings, topic)
        rows.append(
            RememberedRow(*topic, dict(entry.amounts), weight, weight >= settings.learn_after)
        )
    return RememberedDemands(tuple(rows), memory.confirmed, memory.refuted, memory.probes)


def families(remembered: RememberedDemands, sources: list[str]) -> Iterator[Metric]:
    """Give the families of metrics about where demands come from.

    `sources`: the source of each client's demand; empty where it is unknown.
    """
    text = "Clients (a framework in a role) by where their demand comes from."
    family = GaugeMetricFamily(f"{PREFIX}demand_clients", text, labels=["source"])
    number = Counter(source or "unknown" for source in sources)
    for source in SOURCES:
        family.add_metric([source], number[source])
    yield family
    text = "Demands that are remembered of frameworks, and whether new ones begin with them."
    family = GaugeMetricFamily(f"{PREFIX}demands_remembered", text, labels=["certain"])
    certain = sum(row.counts for row in remembered.rows)
    family.add_metric(["yes"], certain)
    family.add_metric(["no"], len(remembered.rows) - certain)
    yield family
    text = "Remembered demands that a framework's first acceptance agreed with, or did not."
    judged = CounterMetricFamily(f"{PREFIX}priors", text, labels=["result"])
    judged.add_metric(["confirmed"], remembered.confirmed)
    judged.add_metric(["refuted"], remembered.refuted)
    yield judged
    text = "Times that a framework got nothing for so long that its learnt demand was doubted."
    probes = CounterMetricFamily(f"{PREFIX}demand_probes", text)
    probes.add_metric([], remembered.probes)
    yield probes


def dumped(remembered: RememberedDemands) -> Iterator[dict[str, Any]]:
    """Give the rows of a dump."""
    for row in remembered.rows:
        yield {
            "role": row.role,
            row.kind: row.who,
            "demand": row.demand,
            "weight": row.weight,
            "counts": row.counts,
        }

"""What is remembered of demands, as metrics and dumps show it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from allocator.core import State


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

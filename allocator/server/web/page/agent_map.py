"""The map of agents by how full they are: a bounded number of cells for any number of agents."""

from typing import NamedTuple

import numpy as np

from allocator.core import Bools, Floats
from allocator.server.reports.agent_rows import AgentRows, order_of, part_of
from allocator.server.views.rejected import RejectedError

CELLS_MAX = 600

LEVELS = 10

_FULL = 0.9995
"""Smallest fraction that is shown as 100.0 %."""

_BANDS = ((0.25, "up to 25 %"), (0.5, "25 to 50 %"), (0.75, "50 to 75 %"), (_FULL, "75 to 100 %"))


class MapCell(NamedTuple):
    """A cell: one agent, or several that are neighbours in the map's order.

    `first`, `size`: index of the first agent in the map's order, and number of agents.
    `name`: of the agent, or of the first and the last one.
    `used`, `least`, `most`: fraction in use, 0 to 1: average, minimum and maximum.
    `offered`: average fraction on offer, in addition.
    """

    first: int
    size: int
    name: str
    used: float
    least: float
    most: float
    offered: float
    off: int

    @property
    def shade(self) -> str:
        """Name of its colour: ``off``, or ``u0`` (idle) to ``u10`` (full)."""
        if self.off == self.size:
            return "off"
        if self.used <= 0:
            return "u0"
        return "u10" if self.used >= _FULL else f"u{1 + int(self.used * (LEVELS - 1))}"


class AgentMap(NamedTuple):
    """The n agents in natural order of their names, and how full each is.

    `resource`: the resource shown; empty: each agent's fullest resource.
    `used`, `offered` (n,): fractions in use, and on offer in addition, 0 to 1.
    `on` (n,): whether the agent may be offered.
    """

    resource: str
    resources: tuple[str, ...]
    names: list[str]
    used: Floats
    offered: Floats
    on: Bools

    def cells(self, first: int = 0, count: int | None = None) -> list[MapCell]:
        """Return the cells of some or all agents; at most `CELLS_MAX`."""
        names = self.names[first:][:count]
        if not names:
            return []
        inside = slice(first, first + len(names))
        used, offered, on = self.used[inside], self.offered[inside], self.on[inside]
        size = -(-len(names) // CELLS_MAX)
        starts = np.arange(0, len(names), size)
        sizes = np.diff(np.append(starts, len(names)))
        total, on_offer = np.add.reduceat(used, starts), np.add.reduceat(offered, starts)
        least, most = np.minimum.reduceat(used, starts), np.maximum.reduceat(used, starts)
        off = np.add.reduceat(~on, starts, dtype=np.int64)
        return [
            MapCell(
                first + begin,
                many,
                names[begin] if many == 1 else f"{names[begin]} to {names[begin + many - 1]}",
                float(total[number] / many),
                float(least[number]),
                float(most[number]),
                float(on_offer[number] / many),
                int(off[number]),
            )
            for number, (begin, many) in enumerate(
                zip(starts.tolist(), sizes.tolist(), strict=True)
            )
        ]

    def bands(self) -> list[tuple[str, int]]:
        used = self.used[self.on]
        found = [("idle", int((used <= 0).sum()))]
        below = 0.0
        for above, text in _BANDS:
            inside = (used > below) & ((used < above) if above == _FULL else (used <= above))
            found.append((text, int(inside.sum())))
            below = above
        found.append(("full", int((used >= _FULL).sum())))
        return [*found, ("not offered", int((~self.on).sum()))]


def draw(rows: AgentRows, resource: str = "") -> AgentMap:
    """Order the agents, and compute how full each is; on any thread.

    Raises RejectedError if no agent has the resource.
    """
    if resource and resource not in rows.resources:
        known = ", ".join(rows.resources)
        raise RejectedError(f"resource = {resource!r}: there is no such resource; one of {known}")
    counts = rows.counted
    if resource:
        counts = np.arange(len(rows.resources)) == rows.resources.index(resource)
    used = (part_of(rows.used, rows.capacity) * counts).max(axis=1, initial=0.0)
    both = (part_of(rows.used + rows.offered, rows.capacity) * counts).max(axis=1, initial=0.0)
    order = order_of(rows.name)
    names = [rows.name[row] for row in order.tolist()]
    offered = both - used
    return AgentMap(resource, rows.resources, names, used[order], offered[order], rows.on[order])

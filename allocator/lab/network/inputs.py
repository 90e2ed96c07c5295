"""What a task reads, and how much of it crosses which switch from where it runs.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 2.3 and Appendix.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from allocator.lab.network.topology import Distance, Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PREFERRED_PART = 0.1
"""A computer, or rack, that holds more of a task's input than this part is preferred."""


class Crossing(NamedTuple):
    """GB that come through the rack's switch only, and those that come through the core switch."""

    rack_gb: float
    core_gb: float


class Read(NamedTuple):
    """One transfer of a task's input."""

    path: tuple[int, ...]
    distance: Distance
    gb: float


@dataclass(frozen=True, eq=False)
class Input:
    """Where a task's input lies.

    at (H,): computers, each once.
    gb (H,)
    by_rack (L,): the sum for each rack.
    """

    topology: Topology
    at: Ints
    gb: Floats
    by_rack: Floats

    @property
    def total_gb(self) -> float:
        """All that is read."""
        return float(self.gb.sum())

    def crossing(self, computer: int) -> Crossing:
        """What crosses which switch, if the task runs there."""
        in_rack = float(self.by_rack[self.topology.rack_of[computer]])
        here = float(self.gb[self.at == computer].sum())
        return Crossing(in_rack - here, max(float(self.by_rack.sum()) - in_rack, 0.0))

    def worst_in_rack(self, rack: int) -> Crossing:
        """The most that crosses for a computer of a rack."""
        held = np.zeros(self.topology.computers)
        held[self.at] = self.gb
        least = float(held[self.topology.rack_of == rack].min())
        in_rack = float(self.by_rack[rack])
        return Crossing(in_rack - least, max(float(self.by_rack.sum()) - in_rack, 0.0))

    def worst(self) -> Crossing:
        """The most that crosses for any computer: in the rack that holds least."""
        return self.worst_in_rack(int(self.by_rack.argmin()))

    def preferred_computers(self) -> Ints:
        """Computers that hold more than `PREFERRED_PART`."""
        return self.at[self.gb > PREFERRED_PART * self.total_gb]

    def preferred_racks(self) -> Ints:
        """Racks that hold more than `PREFERRED_PART`."""
        return np.flatnonzero(self.by_rack > PREFERRED_PART * self.total_gb)

    def reads(self, computer: int) -> Iterator[Read]:
        """What is transferred, if the task runs there.

        What comes from a preferred computer, or from its own, is a transfer of its own; the rest is
        one for each rack.
        """
        topology, home = self.topology, self.topology.rack_of[computer]
        alone = (self.gb > PREFERRED_PART * self.total_gb) | (self.at == computer)
        for source, gb in zip(self.at[alone].tolist(), self.gb[alone].tolist(), strict=True):
            near = Distance.RACK if topology.rack_of[source] == home else Distance.CORE
            distance = Distance.LOCAL if source == computer else near
            yield Read(topology.path(source, computer), distance, gb)
        rest = np.bincount(
            topology.rack_of[self.at[~alone]], self.gb[~alone], minlength=topology.racks
        )
        for rack in np.flatnonzero(rest).tolist():
            distance = Distance.RACK if rack == home else Distance.CORE
            yield Read(topology.path_from_rack(rack, computer), distance, float(rest[rack]))


def make_input(topology: Topology, at: Ints, gb: Floats) -> Input:
    """Add up what lies on the same computer.

    at (H,): computers; one may be there more than once.
    gb (H,)
    """
    held: Floats = np.bincount(at, gb, topology.computers).astype(np.float64)
    there = np.flatnonzero(held)
    by_rack: Floats = np.bincount(topology.rack_of, held, topology.racks).astype(np.float64)
    return Input(topology, there, held[there], by_rack)

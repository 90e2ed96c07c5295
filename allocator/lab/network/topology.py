"""Computers in racks, and the links that data crosses between them."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PATH_LINKS_MAX = 6
"""The longest way: a disk, two network cards, two uplinks, the core."""


class Distance(IntEnum):
    """How far data comes."""

    LOCAL = 0
    RACK = 1
    CORE = 2


@dataclass(frozen=True)
class Topology:
    """Racks with a switch each, and a core switch between them.

    Links are full duplex: what goes out does not slow down what comes in. A rack's own switch is
    never full, as it has a port for each computer.

    rack_of (M,): the rack of each computer, from 0.
    disk_gb_s: what the disks of a computer give, in GB a second.
    card_gb_s: what a computer's network card sends, and what it receives.
    uplink_gb_s: what a rack sends to the core switch, and what it receives from there.
    core_gb_s: what the core switch carries in all.
    """

    rack_of: Ints
    disk_gb_s: float
    card_gb_s: float
    uplink_gb_s: float
    core_gb_s: float = np.inf

    @property
    def computers(self) -> int:
        """How many computers there are."""
        return len(self.rack_of)

    @property
    def racks(self) -> int:
        """How many racks there are."""
        return int(self.rack_of.max(initial=-1)) + 1

    def capacity(self) -> Floats:
        """What each link carries, (L,), in GB a second.

        The links are the computers' disks, their ways out and in, the racks' ways up and down, and
        the core.
        """
        count = [self.computers] * 3 + [self.racks] * 2 + [1]
        each = [self.disk_gb_s, self.card_gb_s, self.card_gb_s]
        each += [self.uplink_gb_s, self.uplink_gb_s, self.core_gb_s]
        return np.repeat(np.array(each, np.float64), count)

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """The links from the disk of one computer to another."""
        if source == target:
            return (source,)
        out, to = self.computers + source, 2 * self.computers + target
        return (source, out, *self._between(self.rack_of[source], self.rack_of[target]), to)

    def path_from_rack(self, rack: int, target: int) -> tuple[int, ...]:
        """The links for data that comes from many computers of a rack, a little from each.

        Their disks and cards are left out: each gives so little that others do not notice.
        """
        to = 2 * self.computers + target
        return (*self._between(rack, self.rack_of[target]), to)

    def _between(self, rack: int, other: int) -> tuple[int, ...]:
        if rack == other:
            return ()
        first = 3 * self.computers
        return (first + int(rack), first + 2 * self.racks, first + self.racks + int(other))


def even_racks(computers: int, racks: int) -> Ints:
    """Put computers into racks of nearly the same size.

    Examples
    --------
    >>> even_racks(5, 2).tolist()
    [0, 0, 0, 1, 1]
    """
    return (np.arange(computers) * racks // computers).astype(np.int64)

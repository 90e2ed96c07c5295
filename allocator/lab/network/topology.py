"""Computers in racks, the links between them, and what is moved over these as they let it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from allocator.core import Floats, Ints
from allocator.solvers.fluid.link_sharing import NO_LINK, fair_rates

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
        return len(self.rack_of)

    @property
    def racks(self) -> int:
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


# Transfers on their way, each as fast as the links that it shares let it be.

_BYTE_GB = 1e-9  # with less left than that, a transfer has ended


_ROW = np.dtype(
    [("path", "i8", PATH_LINKS_MAX), ("owner", "i8"), ("distance", "i8"), ("left_gb", "f8")]
)


class Transfers:
    """What is being moved.

    Rates are worked out anew when a transfer begins or ends, and hold until the next one does.

    moved_gb (3,): what has been moved, by `Distance`; the parts of transfers that were cancelled
        among it.
    """

    def __init__(self, capacity: Floats) -> None:
        """Begin with idle links of these capacities, in GB a second."""
        self.now_s = 0.0
        self.moved_gb = np.zeros(len(Distance))
        self._capacity = capacity
        self._count = 0
        self._rows = np.zeros(64, _ROW)
        self._rate = np.zeros(0)
        self._changed = False

    def __len__(self) -> int:
        return self._count

    @property
    def _there(self) -> NDArray[np.void]:
        return self._rows[: self._count]

    def start(self, owner: int, path: Sequence[int], distance: Distance, gb: float) -> None:
        """Begin to move so much.

        owner: by which `advance` and `cancel` name it; several transfers may have the same.
        path: links, one at least.
        """
        row = self._count
        if row == len(self._rows):
            self._rows = np.concatenate([self._rows, self._rows])
        links = (*path, *[NO_LINK] * (PATH_LINKS_MAX - len(path)))
        self._rows[row] = links, owner, distance, gb
        self._count += 1
        self._changed = True

    def cancel(self, owner: int) -> None:
        self._keep(self._there["owner"] != owner)

    def next_end_s(self) -> float:
        """When the next transfer ends; infinite where there is none."""
        if not self._count:
            return np.inf
        self._share()
        left = self._there["left_gb"]
        if (left <= _BYTE_GB).any():
            return self.now_s
        with np.errstate(divide="ignore"):  # an empty link
            return self.now_s + float((left / self._rate).min())

    def advance(self, now_s: float) -> list[int]:
        """Go on to a moment, no later than the next end; gives the owners of what ended."""
        passed, self.now_s = now_s - self.now_s, now_s
        if not self._count:
            return []
        self._share()
        left, distance = self._there["left_gb"], self._there["distance"]
        if passed > 0:
            # Infinite rates are those of links that are never full: all is there at once.
            step = np.minimum(self._rate * passed, left)
            left -= step
            self.moved_gb += np.bincount(distance, step, len(Distance))
        ended = (left <= _BYTE_GB) | np.isinf(self._rate)
        if not ended.any():
            return []
        self.moved_gb += np.bincount(distance[ended], left[ended], len(Distance))
        owners: list[int] = self._there["owner"][ended].tolist()
        self._keep(~ended)
        return owners

    def _share(self) -> None:
        if self._changed:
            self._rate = fair_rates(self._there["path"], self._capacity)
            self._changed = False

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(kept)
        if len(rows) == self._count:
            return
        self._rows[: len(rows)] = self._rows[rows]
        self._count = len(rows)
        self._changed = True

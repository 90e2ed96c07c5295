"""Computers in racks, the links between them, and transfers over the links."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from allocator.core import Floats, Ints
from laboratory.solvers.link_sharing import NO_LINK, fair_rates

PATH_LINKS_MAX = 6
"""The longest path: a disk, two network cards, two uplinks, the core."""


class Distance(IntEnum):
    """The location of data relative to its reader."""

    LOCAL = 0
    RACK = 1
    CORE = 2


@dataclass(frozen=True)
class Topology:
    """Racks with a switch each, and a core switch between them.

    Links are full duplex. A rack's own switch is never a bottleneck, as it has a port for each
    computer.

    rack_of (M,): the rack of each computer, from 0.
    disk_gb_s: rate of a computer's disks, in GB a second.
    card_gb_s: rate of a computer's network card in each direction.
    uplink_gb_s: rate of a rack's uplink to the core switch in each direction.
    core_gb_s: total rate of the core switch.
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
        """The rate of each link, (L,), in GB a second.

        The links are the computers' disks, outgoing and incoming sides, the racks' uplinks in both
        directions, and the core.
        """
        count = [self.computers] * 3 + [self.racks] * 2 + [1]
        each = [self.disk_gb_s, self.card_gb_s, self.card_gb_s]
        each += [self.uplink_gb_s, self.uplink_gb_s, self.core_gb_s]
        return np.repeat(np.array(each, np.float64), count)

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """The links from the disk of one computer to another computer."""
        if source == target:
            return (source,)
        out, to = self.computers + source, 2 * self.computers + target
        return (source, out, *self._between(self.rack_of[source], self.rack_of[target]), to)

    def path_from_rack(self, rack: int, target: int) -> tuple[int, ...]:
        """The links for data from many computers of a rack, a little from each.

        Their disks and cards are left out, as their loads are negligible.
        """
        to = 2 * self.computers + target
        return (*self._between(rack, self.rack_of[target]), to)

    def _between(self, rack: int, other: int) -> tuple[int, ...]:
        if rack == other:
            return ()
        first = 3 * self.computers
        return (first + int(rack), first + 2 * self.racks, first + self.racks + int(other))


def even_racks(computers: int, racks: int) -> Ints:
    """Divide computers into racks of nearly the same size.

    Examples
    --------
    >>> even_racks(5, 2).tolist()
    [0, 0, 0, 1, 1]
    """
    return (np.arange(computers) * racks // computers).astype(np.int64)


# Current transfers, at the rates that shared links permit.

_BYTE_GB = 1e-9  # GB; a transfer with less left has ended


_ROW = np.dtype(
    [("path", "i8", PATH_LINKS_MAX), ("owner", "i8"), ("distance", "i8"), ("left_gb", "f8")]
)


class Transfers:
    """Transfers in progress.

    Rates are recomputed when a transfer begins or ends, and constant in between.

    moved_gb (3,): data moved, by `Distance`, including parts of cancelled transfers.
    """

    def __init__(self, capacity: Floats) -> None:
        """Begin with idle links of these rates, in GB a second."""
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
        """Start a transfer.

        owner: identifies it in `advance` and `cancel`; several transfers may share it.
        path: links, at least one.
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
        """The time of the next end of a transfer; infinite if there is none."""
        if not self._count:
            return np.inf
        self._share()
        left = self._there["left_gb"]
        if (left <= _BYTE_GB).any():
            return self.now_s
        with np.errstate(divide="ignore"):  # an empty link
            return self.now_s + float((left / self._rate).min())

    def advance(self, now_s: float) -> list[int]:
        """Advance to a time, at most that of the next end; returns owners of ended transfers."""
        passed, self.now_s = now_s - self.now_s, now_s
        if not self._count:
            return []
        self._share()
        left, distance = self._there["left_gb"], self._there["distance"]
        if passed > 0:
            # A path of unlimited links has an infinite rate: its transfer ends at once.
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

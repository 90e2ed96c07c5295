"""Transfers on their way, each as fast as the links that it shares let it be."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allocator.lab.network.topology import PATH_LINKS_MAX, Distance
from allocator.solvers.fluid.link_sharing import NO_LINK, fair_rates

Floats = NDArray[np.float64]

_BYTE_GB = 1e-9  # with less left than that, a transfer has ended


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
        self._path = np.zeros((64, PATH_LINKS_MAX), np.int64)
        self._owner = np.zeros(64, np.int64)
        self._distance = np.zeros(64, np.int64)
        self._left_gb = np.zeros(64)
        self._rate = np.zeros(0)
        self._changed = False

    def __len__(self) -> int:
        return self._count

    def start(self, owner: int, path: Sequence[int], distance: Distance, gb: float) -> None:
        """Begin to move so much.

        owner: by which `advance` and `cancel` name it; several transfers may have the same.
        path: links, one at least.
        """
        row = self._count
        if row == len(self._owner):
            self._path = np.concatenate([self._path, self._path])
            self._owner = np.concatenate([self._owner, self._owner])
            self._distance = np.concatenate([self._distance, self._distance])
            self._left_gb = np.concatenate([self._left_gb, self._left_gb])
        self._path[row] = NO_LINK
        self._path[row, : len(path)] = path
        self._owner[row], self._distance[row], self._left_gb[row] = owner, distance, gb
        self._count += 1
        self._changed = True

    def cancel(self, owner: int) -> None:
        """Stop all transfers of an owner."""
        self._keep(self._owner[: self._count] != owner)

    def next_end_s(self) -> float:
        """When the next transfer ends; infinite where there is none."""
        if not self._count:
            return np.inf
        self._share()
        left = self._left_gb[: self._count]
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
        left, distance = self._left_gb[: self._count], self._distance[: self._count]
        if passed > 0:
            # Infinite rates are those of links that are never full: all is there at once.
            step = np.minimum(self._rate * passed, left)
            left -= step
            self.moved_gb += np.bincount(distance, step, len(Distance))
        ended = (left <= _BYTE_GB) | np.isinf(self._rate)
        if not ended.any():
            return []
        self.moved_gb += np.bincount(distance[ended], left[ended], len(Distance))
        owners = self._owner[: self._count][ended].tolist()
        self._keep(~ended)
        return owners

    def _share(self) -> None:
        if self._changed:
            self._rate = fair_rates(self._path[: self._count], self._capacity)
            self._changed = False

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(kept)
        if len(rows) == self._count:
            return
        for column in (self._path, self._owner, self._distance, self._left_gb):
            column[: len(rows)] = column[rows]
        self._count = len(rows)
        self._changed = True

"""Partly accepted offers whose rest has not been returned yet."""

import numpy as np

from allocator.core.numba.array_structures import pair
from allocator.core.snapshot import Bools, Ints


class AcceptedOffers:
    """Pairs of a client and an agent where the client accepted a part of what is offered to it.

    What such a client then returns is the rest of an accepted offer, not a decline.
    """

    def __init__(self) -> None:
        self._keys: set[int] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def note(self, client: Ints, agent: Ints, rows: Bools) -> None:
        """Record offers of which a part came into use in these rows (N,)."""
        if rows.any():
            self._keys.update(pair(agent[rows], client[rows]).tolist())

    def take(self, client: Ints, agent: Ints, over: Bools) -> Bools:
        """Return in which rows (N,) something was accepted; forget it once nothing is on offer."""
        found = np.zeros(len(client), np.bool_)
        if not self._keys:
            return found
        keys = pair(agent, client).tolist()
        found[:] = [key in self._keys for key in keys]
        self._keys.difference_update(key for key, ends in zip(keys, over, strict=True) if ends)
        return found

    def follow(self, client: Ints, agent: Ints, noted: Bools, back: Bools, over: Bools) -> Bools:
        """Do what `note` does in some rows (N,), and `take` in others (`back`), row by row.

        Returns (N,): as `take` does.
        """
        found = np.zeros(len(client), np.bool_)
        if not (self._keys or noted.any()):
            return found
        rows = np.flatnonzero(noted | back)
        keys = pair(agent[rows], client[rows]).tolist()
        columns = rows.tolist(), keys, noted[rows].tolist(), over[rows].tolist()
        for row, key, used, ends in zip(*columns, strict=True):
            if used:
                self._keys.add(key)
            elif key in self._keys:
                found[row] = True
                if ends:
                    self._keys.discard(key)
        return found

    def forget(self, *, client: int = 0, agent: int = 0) -> None:
        """Forget a client or an agent that is gone."""
        if not self._keys:
            return
        gone = agent << 32 | client
        mask = (2**32 - 1) if client else -(2**32)
        self._keys = {key for key in self._keys if key & mask != gone}

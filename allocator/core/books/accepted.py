"""Records offers that were accepted in part, until the remaining resources are returned."""

import numpy as np

from allocator.core.numba.array_structures import pair
from allocator.core.snapshot import Bools, Ints


class AcceptedOffers:
    """The pairs (client, agent) where the client accepted a part of what it was offered.

    When such a client then returns resources, they are the rest of an accepted offer, not a
    decline.
    """

    def __init__(self) -> None:
        self._keys: set[int] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def note(self, client: Ints, agent: Ints, rows: Bools) -> None:
        """Add the pairs in `rows` (N,), whose clients have accepted a part of an offer."""
        if rows.any():
            self._keys.update(pair(agent[rows], client[rows]).tolist())

    def take(self, client: Ints, agent: Ints, over: Bools) -> Bools:
        """Return which pairs (N,) are recorded; remove those in `over` (N,).

        `over`: whether nothing is on offer any more.
        """
        found = np.zeros(len(client), np.bool_)
        if not self._keys:
            return found
        keys = pair(agent, client).tolist()
        found[:] = [key in self._keys for key in keys]
        self._keys.difference_update(key for key, ends in zip(keys, over, strict=True) if ends)
        return found

    def follow(self, client: Ints, agent: Ints, noted: Bools, back: Bools, over: Bools) -> Bools:
        """Apply `note` to the rows in `noted`, and `take` to those in `back`, in order; all (N,).

        Returns (N,), as `take` does.
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
        if not self._keys:
            return
        gone = agent << 32 | client
        mask = (2**32 - 1) if client else -(2**32)
        self._keys = {key for key in self._keys if key & mask != gone}

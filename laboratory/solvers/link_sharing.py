"""Max-min fair rates of transfers that share links, compiled.

The link with the least capacity per transfer saturates first. Its transfers get that rate, which is
subtracted from the capacity of the other links that they cross. This is repeated until every
transfer has its rate. Then each transfer crosses a saturated link on which no transfer is faster,
which is the definition of max-min fairness [1]_.

Shapes: F transfers, L links, P links on the longest path.

References
----------
.. [1] Bertsekas, Gallager. "Data Networks." Prentice Hall 1992, sec. 6.5.2.
"""

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_LINK = -1
"""Fills the row of a shorter path."""


@loop
def fair_rates(path: Ints, capacity: Floats) -> Floats:
    """Compute the max-min fair rate of each transfer.

    `path` (F, P): the links that each transfer crosses, at least one, each at most once; padded
        with `NO_LINK`.
    `capacity` (L,), >= 0: maximum sum of the rates of all transfers over a link; may be infinite.
    Returns `rate` (F,): in the unit of the capacities; infinite if all links of a transfer have
        infinite capacity.

    Examples
    --------
    Two transfers share link 0 of capacity 1, one of them and a third link 1 of capacity 3.

    >>> fair_rates(np.array([[0, -1], [0, 1], [1, -1]]), np.array([1.0, 3.0])).tolist()
    [0.5, 0.5, 2.5]
    """
    transfers, longest = path.shape
    links = len(capacity)
    start = np.zeros(links + 1, np.int64)
    for f in range(transfers):
        for p in range(longest):
            if path[f, p] >= 0:
                start[path[f, p] + 1] += 1
    start = np.cumsum(start)
    filled, crossing = start[:links].copy(), np.empty(start[links], np.int64)
    for f in range(transfers):
        for p in range(longest):
            link = path[f, p]
            if link >= 0:
                crossing[filled[link]] = f
                filled[link] += 1
    left, count = capacity.copy(), start[1:] - start[:links]
    open_links = np.flatnonzero(count)
    rate, set_already = np.full(transfers, np.inf), np.zeros(transfers, np.bool_)
    while len(open_links):
        least, at, kept = np.inf, -1, 0
        for k in range(len(open_links)):
            link = open_links[k]
            if count[link] == 0:
                continue
            open_links[kept] = link
            kept += 1
            share = max(left[link], 0.0) / count[link]
            if share < least:
                least, at = share, link
        open_links = open_links[:kept]
        if at < 0:
            break
        for k in range(start[at], start[at + 1]):
            f = crossing[k]
            if set_already[f]:
                continue
            set_already[f] = True
            rate[f] = least
            for p in range(longest):
                if path[f, p] >= 0:
                    left[path[f, p]] -= least
                    count[path[f, p]] -= 1
    return rate

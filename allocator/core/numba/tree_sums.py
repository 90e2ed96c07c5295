"""Sums over a tree whose nodes are numbered with leaves first, and children before parents."""

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, loop_view


@loop
def _add_up_amounts(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    amount: NDArray[np.int64],
    gain: NDArray[np.float64],
    count: NDArray[np.float64],
) -> NDArray[np.float64]:
    # Sum all columns in one pass, because each sum depends on the one before it.
    columns, leaves = amount.shape[1], len(client)
    result = np.zeros((len(parent), columns + 1))
    for row in range(len(at)):
        for k in range(columns):
            result[at[row], k] += amount[row, k] * gain[row]
        result[at[row], columns] += count[row]
    for inner in range(leaves, len(parent) - 1):
        for k in range(columns + 1):
            result[parent[inner], k] += result[inner, k]
    for leaf in range(leaves):
        row = client[leaf]
        for k in range(columns):
            result[leaf, k] = amount[row, k] * gain[row]
        result[leaf, columns] = count[row]
    return result


def add_up_amounts(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    amount: NDArray[np.int64],
    gain: NDArray[np.float64],
    count: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum amounts (C, K) times a gain (C,), and counts (C,), over a tree.

    Additions are in the order of clients, then of nodes, so equal inputs give equal bits.

    `parent` (N,), `client` (L,): as in `Tree` of the snapshot.
    `at` (C,): the inner node that counts each client's amounts.
    Returns (N, K + 1): at a leaf the values of its client, at an inner node the sum below it;
        counts are in the last column.
    """
    arrays = parent, client, at, amount, gain, count
    summed: NDArray[np.float64] = _add_up_amounts(*map(loop_view, arrays))
    return summed

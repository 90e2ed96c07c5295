"""Sums over a tree whose nodes are numbered with leaves first, and children before parents."""

import numpy as np

from allocator.core.numba.array_types import Floats, Ints
from allocator.core.numba.compiled import loop


@loop
def add_up_amounts(
    parent: Ints, client: Ints, at: Ints, amount: Ints, gain: Floats, count: Floats
) -> Floats:
    """Sum amounts (C, K) times a gain (C,), and counts (C,), over a tree.

    Additions are in the order of clients, then of nodes, so equal inputs give equal bits.

    `parent` (N,), `client` (L,): as in `Tree` of the snapshot.
    `at` (C,): the inner node that counts each client's amounts.
    Returns (N, K + 1): at a leaf the values of its client, at an inner node the sum below it;
        counts are in the last column.
    """
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

"""Sums over a tree whose nodes are numbered children before parents."""

import numpy as np
from numpy.typing import NDArray

from allocator.core.compiled import loop


@loop
def _add_upwards(parent: NDArray[np.int64], first: int, values: NDArray[np.float64]) -> None:
    # Children come before parents, so a node's own sum is complete when it is added to its
    # parent.
    for node in range(first, len(parent) - 1):
        for k in range(values.shape[1]):
            values[parent[node], k] += values[node, k]


def sum_upwards(
    parent: NDArray[np.int64],
    first: int,
    at: NDArray[np.int64],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Add values up at the nodes that they belong to, and at all nodes above these.

    Parameters
    ----------
    parent : (N,) int64
        -1 for the root, the last node.
    first : int
        The first inner node.
    at : (C,) int64
        The inner node that each row of values belongs to.
    values : (C, K) float64

    Returns
    -------
    (N, K) float64
        Zeros at the leaves. The order of all additions is that of the rows, then of the nodes, so
        equal values give equal bits.
    """
    count, columns = len(parent), values.shape[1]
    result = np.empty((count, columns))
    # First each row of values at its own node, then everything upwards.
    for k in range(columns):
        result[:, k] = np.bincount(at, values[:, k], minlength=count)
    view = parent.view()
    view.flags.writeable = False  # one type, whoever calls: a loop is compiled for each
    _add_upwards(view, first, result)
    return result

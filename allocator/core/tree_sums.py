"""Sums over a tree whose nodes are numbered leaves first, then children before parents."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.compiled import loop, loop_view, part

_Number = TypeVar("_Number", np.int64, np.float64)


@part()
def _carry_upwards(parent: NDArray[np.int64], first: int, sums: NDArray[_Number]) -> None:
    """Add each inner node to its parent; `first` is the lowest of them."""
    # Children come before parents, so a node's own sum is complete when it is added.
    for node in range(first, len(parent) - 1):
        for k in range(sums.shape[1]):
            sums[parent[node], k] += sums[node, k]


@loop
def _add_up(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    values: NDArray[_Number],
) -> NDArray[_Number]:
    columns, leaves = values.shape[1], len(client)
    result = np.zeros((len(parent), columns), values.dtype)
    # First each client's row at its inner node.
    for row in range(len(at)):
        for k in range(columns):
            result[at[row], k] += values[row, k]
    _carry_upwards(parent, leaves, result)
    # A leaf has what is its client's.
    for leaf in range(leaves):
        for k in range(columns):
            result[leaf, k] = values[client[leaf], k]
    return result


@loop
def _add_up_amounts(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    amount: NDArray[np.int64],
    gain: NDArray[np.float64],
    count: NDArray[np.float64],
) -> NDArray[np.float64]:
    # As for values; what each client's row would be is worked out on the way.
    columns, leaves = amount.shape[1], len(client)
    result = np.zeros((len(parent), columns + 1))
    for row in range(len(at)):
        for k in range(columns):
            result[at[row], k] += amount[row, k] * gain[row]
        result[at[row], columns] += count[row]
    _carry_upwards(parent, leaves, result)
    for leaf in range(leaves):
        row = client[leaf]
        for k in range(columns):
            result[leaf, k] = amount[row, k] * gain[row]
        result[leaf, columns] = count[row]
    return result


def add_up(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    values: NDArray[_Number],
) -> NDArray[_Number]:
    """Add up values of clients at every node of a tree.

    Parameters
    ----------
    parent : (N,) int64
        -1 for the root, the last node.
    client : (L,) int64
        Client of each leaf; the leaves are the first nodes.
    at : (C,) int64
        The inner node that each client belongs to, whether it has a leaf or not.
    values : (C, K) int64 or float64

    Returns
    -------
    (N, K), of the same type
        At a leaf its client's row; at an inner node the sum over all clients below it. The order of
        all additions is that of the clients, then of the nodes, so equal values give equal bits.
    """
    # One type, whoever calls: a loop is compiled for each.
    summed: NDArray[_Number] = _add_up(*map(loop_view, (parent, client, at, values)))
    return summed


def add_up_amounts(
    parent: NDArray[np.int64],
    client: NDArray[np.int64],
    at: NDArray[np.int64],
    amount: NDArray[np.int64],
    gain: NDArray[np.float64],
    count: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Add up amounts (C, K), each row times a gain (C,), and beside them a count (C,): (N, K + 1).

    The other parameters are those of `add_up`.
    """
    arrays = parent, client, at, amount, gain, count
    summed: NDArray[np.float64] = _add_up_amounts(*map(loop_view, arrays))
    return summed

"""Sums up a tree whose children are numbered before their parents."""

from typing import Any

import numba


@numba.njit(cache=True, nogil=True)
def add_upwards(values: Any, parent: Any, first: int) -> None:  # noqa: ANN401
    """Add the row of every node from `first` on, but the last (the root), to its parent's.

    Parameters
    ----------
    values : (N, K) int64 or float64
        Changed in place.
    parent : (N,) int64
    first : int
    """
    for node in range(first, len(parent) - 1):
        for k in range(values.shape[1]):
            values[parent[node], k] += values[node, k]

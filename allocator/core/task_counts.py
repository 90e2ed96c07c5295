"""Counts the tasks that clients hold, and rounds quotients of fractional weights."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.memo import fixed, memoize

_ROUNDING = 1e-9  # relative; larger than the rounding errors of quotients of weights


def whole_below(numbers: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Round down to whole numbers, tolerating rounding errors.

    Weights are fractions, so amounts divided by them may be 1.9999... instead of 2.

    >>> whole_below(np.array([7 / 49 * 14, 1.9]))
    array([2., 1.])
    """
    below: NDArray[np.float64] = np.floor(numbers * (1 + _ROUNDING))
    return below


def whole_above(numbers: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Round up to whole numbers, tolerating rounding errors.

    >>> whole_above(np.array([1.0000000000000002, 1.1]))
    array([1., 2.])
    """
    above: NDArray[np.float64] = np.ceil(numbers * (1 - _ROUNDING))
    return above


@memoize()
def has_demand(demand: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which clients (C,) have a known demand; `demand` (C, R): zeros count as unknown."""
    return fixed(np.asarray((demand > 0).any(axis=1)))


@loop
def _tasks_held(
    held: NDArray[np.int64], demand: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    result = np.zeros(len(held))
    for client in range(len(held)):
        if not known[client]:
            continue
        # The resource that suffices for the fewest tasks determines the number.
        least = np.inf
        for r in range(held.shape[1]):
            if demand[client, r] > 0:
                least = min(least, held[client, r] / demand[client, r])
        if least < np.inf:
            result[client] = least
    return result


def tasks_held(
    held: NDArray[np.int64], demand: NDArray[np.int64], known: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the number of tasks that clients hold, with fractions, (C,); 0 if unknown or empty.

    `held`, `demand` (C, R), in thousandths; `known` (C,): clients with a known demand.
    """
    tasks: NDArray[np.float64] = _tasks_held(*map(loop_view, (held, demand, known)))
    return tasks

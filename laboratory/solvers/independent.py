"""Independent allocation: each machine is divided separately among the users that can use it.

The result is the Shapley value of the game in which the value of a coalition is the number of
machines that it can use. The method is strategy-proof, but lacks the sharing incentive [1]_; it
exists for comparison.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.1 and Theorems 1 and 5.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def solve(
    eligible: NDArray[np.bool_], count: NDArray[np.int64], weight: Floats | None = None
) -> Floats:
    """Divide each machine among its users, in proportion to their weights.

    `eligible` (U, T): whether user u can use machines of type t.
    `count` (T,): machines of each type.
    `weight` (U,), > 0.
    Returns (U, T): machines of each type that each user gets; types without users stay idle.

    Examples
    --------
    Theorem 1 of [1]_: user 2 contributed the second machine, but gets only half of it.

    >>> solve(np.array([[True, True], [False, True]]), np.array([1, 1])).sum(axis=1).tolist()
    [1.5, 0.5]
    """
    claim = np.where(eligible, 1.0 if weight is None else np.asarray(weight)[:, None], 0.0)
    claimed = claim.sum(axis=0)
    part = np.divide(claim, claimed, out=np.zeros(claim.shape), where=claimed > 0)
    return part * count

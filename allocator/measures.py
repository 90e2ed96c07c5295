"""Measures of fairness: arrays to numbers.

All functions are pure. Amounts may be int64 thousandths or floats, in any unit, as long as arrays
that are compared share it. ``C`` counts clients (or frameworks, or roles), ``R`` resources.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 3 and 4.
.. [2] Jain, Chiu, Hawe. "A Quantitative Measure of Fairness and Discrimination for Resource
   Allocation in Shared Computer Systems." DEC-TR-301, 1984.
"""

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.int64] | NDArray[np.float64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

ENVY_PAIRS_MAX = 1_000_000
"""Maximum number of pairs of a demand and a bundle that `envy_max` compares: 40 ms at R = 4."""

_ENVY_CHUNK = 32  # demands compared at a time; keeps temporary arrays in cache


def resource_share(held: Amounts, total: Amounts) -> Floats:
    """Each client's share of each resource, (C, R).

    `held` (C, R): offered and used.
    `total` (R,): the cluster's capacity; the share of a resource without capacity is 0.
    """
    share = np.zeros(np.shape(held))
    np.divide(held, total, out=share, where=np.broadcast_to(np.asarray(total) > 0, share.shape))
    return share


def dominant_share(
    held: Amounts, total: Amounts, counted: Bools | None = None, weight: Floats | None = None
) -> Floats:
    """Each client's largest share of any resource, (C,) [1]_.

    `held` (C, R): offered and used.
    `total` (R,): the cluster's capacity.
    `counted` (R,): which resources count; all by default.
    `weight` (C,), > 0: divides the share.

    Examples
    --------
    Section 4.1 of [1]_: of 9 CPUs and 18 GB, A holds 3 and 12, B holds 6 and 2.

    >>> dominant_share(np.array([[3, 12], [6, 2]]), np.array([9, 18])).round(3).tolist()
    [0.667, 0.667]
    """
    share = resource_share(held, total)
    if counted is not None:
        share = share[:, counted]
    dominant: Floats = share.max(axis=1, initial=0.0)
    return dominant if weight is None else dominant / weight


def dominant_resource(demand: Amounts, total: Amounts) -> NDArray[np.int64]:
    """The resource of which a task needs the largest share, (C,); the first on ties."""
    return resource_share(demand, total).argmax(axis=1)


def jain_index(share: Floats) -> float:
    """Evenness of shares (C,), >= 0, from 1 / C (one has all) to 1 (all are equal) [2]_.

    It is 1 if there are no clients, or none holds anything.

    >>> jain_index(np.array([1.0, 1.0, 0.0, 0.0]))
    0.5
    """
    share = np.asarray(share, np.float64)
    largest = share.max(initial=0.0)
    if largest <= 0:
        return 1.0
    share = share / largest
    return float(share.sum() ** 2 / (len(share) * (share @ share)))


def tasks_of(bundle: Amounts, demand: Amounts) -> Floats:
    """Number of tasks, including fractions, that a bundle can run, (...); 0 for an empty demand.

    `bundle`, `demand` (..., R), >= 0: broadcast against each other.
    """
    bundle, demand = np.broadcast_arrays(bundle, demand)
    ratio = np.full(bundle.shape, np.inf)
    np.divide(bundle, demand, out=ratio, where=demand > 0)
    tasks = ratio.min(axis=-1, initial=np.inf)
    return np.where(np.isinf(tasks), 0.0, tasks)


def envy(held: Amounts, demand: Amounts, weight: Floats | None = None) -> Floats:
    """Number of additional tasks that each client could run with another's bundle, (C,), >= 0.

    `held` (C, R).
    `demand` (C, R), >= 0: all zeros if unknown; such a client has no envy.
    `weight` (C,), > 0: a client of weight 1 compares its own bundle with half of what a client of
    weight 2 holds.

    Bundles are summed over agents, so this is an upper bound if a task must fit on one agent.
    O(C**2 * R) in the worst case; equal demands and equal bundles are compared once.
    """
    # Compare each distinct demand with each distinct bundle, in chunks to bound memory.
    kinds, kind_of, bundles, weight = _coalesce(held, demand, weight)
    best = np.empty(len(kinds))
    for start in range(0, len(kinds), _ENVY_CHUNK):
        best[start : start + _ENVY_CHUNK] = _best_bundle(
            kinds[start : start + _ENVY_CHUNK], bundles
        )
    # Divide as for other bundles, so that equal ones compare equal.
    own = tasks_of(np.asarray(held, np.float64) / weight[:, None], demand)
    return np.maximum(best[kind_of] - own, 0.0) * weight


def envy_max(held: Amounts, demand: Amounts, weight: Floats | None = None) -> float:
    """The largest `envy` of any client, in tasks.

    NaN if distinct demands times distinct bundles exceed `ENVY_PAIRS_MAX`, which would delay
    cycles.

    Examples
    --------
    The first client could run 3 tasks with the second one's bundle, and runs 1.

    >>> envy_max(np.array([[1, 1], [3, 4]]), np.array([[1, 1], [1, 1]]))
    2.0
    """
    kinds, _, bundles, _ = _coalesce(held, demand, weight)
    if len(kinds) * len(bundles) > ENVY_PAIRS_MAX:
        return float("nan")
    return float(envy(held, demand, weight).max(initial=0.0))


def _coalesce(
    held: Amounts, demand: Amounts, weight: Floats | None
) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
    """Distinct demands, each client's index into them, distinct bundles per weight, and weights."""
    demand = np.asarray(demand, np.float64)
    weight = np.ones(len(demand)) if weight is None else np.asarray(weight, np.float64)
    kinds, kind_of = np.unique(demand, axis=0, return_inverse=True)
    bundles = np.unique(np.asarray(held, np.float64) / weight[:, None], axis=0)
    return kinds, kind_of.reshape(-1), bundles, weight


def _best_bundle(demand: Floats, bundle: Floats) -> Floats:
    """Maximum number of tasks of each demand (K, R) that a bundle of (B, R) can run, (K,)."""
    tasks = np.full((len(demand), len(bundle)), np.inf)
    # The scarcest needed resource limits the tasks of a bundle.
    for column in range(demand.shape[1]):
        needed = demand[:, column] > 0
        ratio = np.divide.outer(bundle[:, column], demand[needed, column]).T
        tasks[needed] = np.minimum(tasks[needed], ratio)
    best: Floats = tasks.max(axis=1, initial=0.0)
    return np.where((demand > 0).any(axis=1), best, 0.0)

"""Choosy's Theorems 1 to 3 as properties, on random clusters to which users brought machines.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 3 and 4, Theorems 1 to 3.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.lab.papers.report import Cell, Report, Row
from allocator.solvers.max_min import independent, max_min

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LIES = 10
"""Claims that a user tries on each cluster."""

_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Pool:
    """A cluster that users brought together.

    brought (U, T): machines of each type that each user brought; it can use them.
    eligible (U, T)
    """

    brought: Ints
    eligible: Bools

    @property
    def count(self) -> Ints:
        """Machines of each type."""
        return self.brought.sum(axis=0)

    @property
    def entitled(self) -> Ints:
        """Machines that each user brought."""
        return self.brought.sum(axis=1)


def draw(rng: np.random.Generator) -> Pool:
    """Draw two to six users, each of whom brought at least one machine."""
    users, types = rng.integers(2, 7), rng.integers(2, 9)
    brought = rng.poisson(0.8, (users, types))
    brought[np.arange(users), rng.integers(0, types, users)] += 1
    return Pool(brought, (brought > 0) | (rng.random((users, types)) < 0.3))


def shortfall_independent(pool: Pool) -> float:
    """Machines that some user is short of what it brought, under independent allocation."""
    got = independent.solve(pool.eligible, pool.count).sum(axis=1)
    return float((pool.entitled - got).max())


def shortfall_cmmf(pool: Pool) -> float:
    """The same under CMMF, weighted by what users brought."""
    weight = pool.entitled.astype(np.float64)
    got = max_min.solve(pool.eligible, pool.count, weight).machines
    return float((pool.entitled - got).max())


def gain_by_lying(pool: Pool, rng: np.random.Generator, *, cmmf: bool) -> float:
    """Machines that it can use which a user gains by any of some lies about those it can use."""
    most = 0.0
    honest = _given(pool.eligible, pool.count, cmmf=cmmf).sum(axis=1)
    for _ in range(LIES):
        user = int(rng.integers(len(honest)))
        claim = pool.eligible.copy()
        claim[user] = rng.random(claim.shape[1]) < rng.random()
        got = _given(claim, pool.count, cmmf=cmmf)[user][pool.eligible[user]].sum()
        most = max(most, float(got - honest[user]))
    return most


def _given(eligible: Bools, count: Ints, *, cmmf: bool) -> Floats:
    solution = max_min.solve(eligible, count).given if cmmf else independent.solve(eligible, count)
    return np.asarray(solution, np.float64)


def theorems(seed: int = 0, trials: int = 200) -> Report:
    """In how many percent of the clusters each statement fails."""
    rng = np.random.default_rng(seed)
    failed = np.zeros((trials, 4), np.bool_)
    for row in failed:
        pool = draw(rng)
        row[:] = (
            shortfall_independent(pool) > _SLACK,
            shortfall_cmmf(pool) > _SLACK,
            gain_by_lying(pool, rng, cmmf=True) > _SLACK,
            gain_by_lying(pool, rng, cmmf=False) > _SLACK,
        )
    one, two, three, other = (100 * failed.mean(axis=0)).tolist()
    found = "a counter-example" if one else "none found"
    return Report(
        name="choosy-theorems",
        title="Theorems 1 to 3: in how many percent of random clusters each property fails",
        source="Ghodsi et al., EuroSys 2013, sec. 4, Theorems 1 to 3",
        columns=("percent",),
        rows=(
            Row(
                "Theorem 1: independent allocation, constrained sharing incentive",
                (Cell(one, outcome=f"refused: {found}"),),
            ),
            Row("Theorem 2: weighted CMMF, constrained sharing incentive", (Cell(two, 0.0),)),
            Row("Theorem 3: CMMF, strategy-proofness", (Cell(three, 0.0),)),
            Row("Appendix: independent allocation, strategy-proofness", (Cell(other, 0.0),)),
        ),
        notes=(
            (
                f"{trials} random clusters of two to six users. Published 0: proved. 'Refused': "
                "the theorem says that it fails, and each cluster that fails is a counter-example. "
                f"{LIES} lies a cluster: any set of types instead of the true one; what counts are "
                "machines that the user can use."
            ),
        ),
    )

"""Choosy: how long the offline optimum takes (Figure 15).

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 7.4 and Figure 15.
"""

import time

import numpy as np
from numpy.typing import NDArray

from allocator.sim.papers.report import Cell, Report, Row
from allocator.solvers import max_min, max_min_whole
from allocator.solvers.max_min_online import OnlineMaxMin

SOURCE = "Ghodsi et al., EuroSys 2013"

_CONSTRAINTS = 21
_CONSTRAINTS_PER_JOB = 1.8


def constraint_graph(
    users: int, machines: int, types: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Random users and machine types after the distributions of section 7.1.

    Returns
    -------
    eligible : (users, types) bool
    count : (types,) int64
    """
    frequency = np.linspace(0.07, 1.0, _CONSTRAINTS)
    meets = rng.random((types, _CONSTRAINTS)) < frequency
    needs = rng.random((users, _CONSTRAINTS)) < _CONSTRAINTS_PER_JOB / _CONSTRAINTS
    eligible = np.logical_not((needs[:, None, :] & ~meets[None, :, :]).any(axis=2))
    popularity = rng.dirichlet(np.ones(types))
    return eligible, rng.multinomial(machines, popularity)


def figure_15(seed: int = 0, trials: int = 3) -> Report:
    """Figure 15: time that the offline optimum takes at its largest size."""
    # The first time, loops are compiled.
    OnlineMaxMin(np.ones((1, 1), np.bool_), np.ones(1, np.int64)).join(np.ones(1, np.bool_))
    max_min_whole.solve(np.ones((1, 1), np.bool_), np.ones(1, np.int64))
    rows = []
    for users, machines, types in ((1000, 10_000, 100), (5000, 100_000, 100)):
        divisible, whole, joined = [], [], []
        for trial in range(trials):
            rng = np.random.default_rng(seed + trial)
            eligible, count = constraint_graph(users, machines, types, rng)
            start = time.perf_counter()
            max_min.solve(eligible, count)
            between = time.perf_counter()
            max_min_whole.solve(eligible, count)
            divisible.append(between - start)
            whole.append(time.perf_counter() - between)
            shares = OnlineMaxMin(eligible[1:], count)
            start = time.perf_counter()
            shares.join(eligible[0])
            joined.append(time.perf_counter() - start)
        seconds = [float(np.mean(each)) for each in (divisible, whole, joined)]
        name = f"{users} users, {machines} machines, {types} types"
        rows.append(Row(name, tuple(Cell(each, 5.0, at_most=True) for each in seconds)))
    return Report(
        name="choosy-fig-15",
        title="Seconds that the offline optimum takes, with its certificate",
        source=f"{SOURCE}, sec. 7.4 and Figure 15",
        columns=("divisible", "whole machines", "one user joins"),
        rows=tuple(rows),
        notes=(
            (
                f"Mean of {trials} random constraint graphs ({_CONSTRAINTS} constraints, "
                f"{_CONSTRAINTS_PER_JOB} a job, sec. 7.1) on this machine; the text says less than "
                "5 s at the largest size."
            ),
        ),
    )

"""Choosy: how long the offline optimum takes (Figure 15).

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 7.4 and Figure 15.
"""

import time
from itertools import product

import numpy as np
from numpy.typing import NDArray

from allocator.lab.papers.report import Line, Panel, Report, Row, averaged
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from allocator.solvers.max_min.online import OnlineMaxMin

SOURCE = "Ghodsi et al., EuroSys 2013"

USERS = (100, 1000, 5000)
MACHINES = (1000, 10_000, 100_000)
TYPES = (10, 100)

_CONSTRAINTS = 21
_CONSTRAINTS_PER_JOB = 1.8


def constraint_graph(
    users: int, machines: int, types: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Random users and machine types after the distributions of section 7.1."""
    frequency = np.linspace(0.07, 1.0, _CONSTRAINTS)
    meets = rng.random((types, _CONSTRAINTS)) < frequency
    needs = rng.random((users, _CONSTRAINTS)) < _CONSTRAINTS_PER_JOB / _CONSTRAINTS
    eligible = np.logical_not((needs[:, None, :] & ~meets[None, :, :]).any(axis=2))
    popularity = rng.dirichlet(np.ones(types))
    return eligible, rng.multinomial(machines, popularity)


def figure_15(seed: int = 0, trials: int = 3) -> Report:
    """Figure 15: time that the offline optimum takes, over users, machines and types."""
    # The first time, loops are compiled.
    _seconds(20, 100, 5, seed)
    rows, lines = [], []
    for machines, types in product(MACHINES, TYPES):
        means = []
        for users in USERS:
            took = [_seconds(users, machines, types, seed + trial) for trial in range(trials)]
            cells = [averaged(each, 5.0, at_most=True) for each in zip(*took, strict=True)]
            rows.append(Row(f"{users} users, {machines} machines, {types} types", tuple(cells)))
            means.append(1000 * cells[0].computed)
        name = f"{machines} machines, {types} types"
        lines.append(Line(name, tuple(map(float, USERS)), tuple(means), dashed=types == TYPES[0]))
    return Report(
        name="choosy-fig-15",
        title="Seconds that the offline optimum takes, with its certificate",
        source=f"{SOURCE}, sec. 7.4 and Figure 15",
        columns=("divisible", "whole machines", "one user joins"),
        rows=tuple(rows),
        notes=(
            (
                f"Mean of {trials} random constraint graphs ({_CONSTRAINTS} constraints, "
                f"{_CONSTRAINTS_PER_JOB} a job, sec. 7.1), processor time of this machine; the "
                "text says less than 5 s at the largest size."
            ),
            (
                "Linear programs, as in the paper, or a maximum flow for each step of a bisection "
                "are not what is timed: the optimum is decomposed by minimum cuts "
                "(`tests/bench/bench_max_min.py` has the bisection beside it)."
            ),
        ),
        panels=(Panel("Figure 15, divisible", "users", "time (ms)", tuple(lines)),),
    )


def _seconds(users: int, machines: int, types: int, seed: int) -> tuple[float, float, float]:
    """Time of the divisible optimum, of that in whole machines, and of a user who joins."""
    eligible, count = constraint_graph(users, machines, types, np.random.default_rng(seed))
    start = time.process_time()
    max_min.solve(eligible, count)
    between = time.process_time()
    max_min_whole.solve(eligible, count)
    end = time.process_time()
    shares = OnlineMaxMin(eligible[1:], count)
    begin = time.process_time()
    shares.join(eligible[0])
    return between - start, end - between, time.process_time() - begin

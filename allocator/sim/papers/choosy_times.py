"""Choosy: how long a user waits for its share (Figure 6), and how long the optimum takes (Fig. 15).

The printed inverse distribution function of the remaining task time has the exponent ``1 - alpha``
in its second branch, which does not invert the function printed above it; the inverse is
``m * (alpha * (1 - x)) ** (1 / (1 - alpha))``.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 6.2, 7.4 and Figures 6 and 15.
"""

import time

import numpy as np
from numpy.typing import NDArray

from allocator.sim.papers.report import Cell, Report, Row
from allocator.solvers import max_min, max_min_whole
from allocator.solvers.max_min_online import OnlineMaxMin

Floats = NDArray[np.float64]

SOURCE = "Ghodsi et al., EuroSys 2013"

ALPHAS = (1.9, 2.5, 3.0)
PICKINESS = (0.2, 0.5, 0.8, 0.85)
RAMP_UP_MAX = 2.0
"""In mean task times; the text's bound for alpha > 1.9 and pickiness up to 0.85."""

_MACHINES = 2000  # that a user can use, in the simulation
_CONSTRAINTS = 21
_CONSTRAINTS_PER_JOB = 1.8


def remaining(x: Floats, alpha: float) -> Floats:
    """Distribution function of the time that a running task still takes; the shortest is 1."""
    x = np.asarray(x, np.float64)
    late = 1 - np.maximum(x, 1.0) ** (1 - alpha) / alpha
    return np.where(x < 1, (alpha - 1) / alpha * x, late)


def remaining_inverse(part: Floats, alpha: float) -> Floats:
    """Time within which this part of the running tasks ends; the shortest task takes 1.

    Parameters
    ----------
    part : (...) float64, from 0 to below 1
    alpha : float, > 1
        Shape of the Pareto distribution of task times.
    """
    part = np.asarray(part, np.float64)
    early = alpha / (alpha - 1) * part
    late = (alpha * (1 - part)) ** (1 / (1 - alpha))
    return np.where(part < (alpha - 1) / alpha, early, late)


def ramp_up(pickiness: float, alpha: float) -> float:
    """Mean time until a user has its share, in mean task times, for many machines.

    Parameters
    ----------
    pickiness : float
        The user's share divided by the number of machines that it can use.
    alpha : float, > 1
    """
    mean = alpha / (alpha - 1)
    return float(remaining_inverse(np.array(pickiness), alpha)) / mean


def simulated_ramp_up(pickiness: float, alpha: float, rng: np.random.Generator) -> float:
    """The same by drawing the tasks that run when the user comes, once.

    The user comes upon long tasks in proportion to their length: that density is Pareto again,
    with shape ``alpha - 1``; it comes at a uniformly drawn moment of the task.
    """
    length = (1 - rng.random(_MACHINES)) ** (-1 / (alpha - 1))
    left = np.sort(length * rng.random(_MACHINES))
    return float(left[round(pickiness * _MACHINES) - 1]) * (alpha - 1) / alpha


def figure_6(seed: int = 0, trials: int = 200) -> Report:
    """Figure 6: ramp-up time by pickiness, by the formula and drawn."""
    rng = np.random.default_rng(seed)
    rows = []
    for alpha in ALPHAS:
        formula = [ramp_up(pickiness, alpha) for pickiness in PICKINESS]
        bounded = tuple(Cell(each, RAMP_UP_MAX, at_most=True) for each in formula)
        rows.append(Row(f"alpha {alpha:g}, formula", bounded))
        drawn = []
        for pickiness, expected in zip(PICKINESS, formula, strict=True):
            times = [simulated_ramp_up(pickiness, alpha, rng) for _ in range(trials)]
            error = float(np.std(times, ddof=1)) / trials**0.5
            drawn.append(Cell(float(np.mean(times)), expected, 4 * error + 0.005 * expected))
        rows.append(Row(f"alpha {alpha:g}, drawn", tuple(drawn)))
    return Report(
        name="choosy-fig-6",
        title="Ramp-up time in mean task times, by pickiness",
        source=f"{SOURCE}, sec. 6.2 and Figure 6",
        columns=tuple(f"{pickiness:g}" for pickiness in PICKINESS),
        rows=tuple(rows),
        notes=(
            "Formula: against the text's bound, under twice the mean up to pickiness 0.85.",
            (
                f"Drawn: means of {trials} users who can use {_MACHINES} machines each, against "
                "the formula; tolerance four standard errors, and half a percent, for the "
                "formula is the limit of many machines."
            ),
        ),
    )


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

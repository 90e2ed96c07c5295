"""Bonald and Roberts: service rates under proportional fairness (PF) and DRF in dynamic traffic.

Jobs of two classes come at random and share two resources; how many of each class there are is a
Markov process, whose rates are the fluid allocations. The mean service rate of a class is its
arrival rate over its mean number of jobs. The paper simulates; here the stationary distribution is
solved for, on numbers of jobs up to a bound.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 3.1 to 3.3 and Figures 1 and 2.
"""

from collections.abc import Mapping
from functools import cache
from math import gcd

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve

from allocator.lab.papers.report import Cell, Line, Panel, Report, Row
from allocator.solvers.fluid import proportional_fairness, water_filling

Floats = NDArray[np.float64]

SOURCE = "Bonald and Roberts, Performance Evaluation 2014, sec. 3.3 and Figures 1 and 2"

Profile = tuple[tuple[float, float], tuple[float, float]]
FIG_1: Profile = ((1, 0.1), (0.1, 1))
FIG_2: Profile = ((1, 0.1), (0.5, 1))
LOADS = (0.2, 0.5, 0.8)
"""Of resource 1."""

CURVE = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
"""Loads that are drawn."""

JOBS_MAX = 60
"""Jobs of each class; at a load of 0.8, 80 instead of 60 change no digit that is shown."""

LIGHT: Mapping[str, Profile] = {
    "light traffic, a1 = (1, 1/10), a2 = (1/2, 1)": FIG_2,
    "light traffic, a1 = (1, 1/5), a2 = (4/5, 1)": ((1, 0.2), (0.8, 1)),
}

_LIGHT_DEPARTS = (
    "The printed coefficients for PF, 1, beta, max(2 - 1/beta, alpha), 1, do not follow from the "
    "model. With phi the allocation to one job of each class, each class is slowed by the other "
    "2 (1 - phi_k) / (phi_1 + phi_2) times, as computed (for DRF that is beta, as printed). What "
    "the text concludes stands: class 2 is slowed less under PF; class 1 is slowed somewhat more, "
    "as in Figure 2."
)

_LIGHT = 1e-4  # a load at which its square does not matter
_LIGHT_JOBS_MAX = 4


@cache
def allocation(policy: str, profile: Profile, first: int, second: int) -> tuple[float, float]:
    """Tasks of all jobs of each class together, where there are so many jobs of each."""
    divisor = gcd(first, second)
    if divisor > 1:
        one, two = allocation(policy, profile, first // divisor, second // divisor)
        return one, two
    jobs = np.array([first, second], float)
    demand, capacity = np.array(profile, float), np.ones(2)
    active = jobs > 0
    tasks = np.zeros(2)
    if policy == "pf":
        found = proportional_fairness.solve(demand[active], capacity, jobs[active])
        tasks[active] = found.tasks
    else:
        speed = water_filling.rate(demand[active], capacity, jobs[active])
        tasks[active] = water_filling.solve(demand[active], capacity, speed).tasks
    return float(tasks[0]), float(tasks[1])


def service_rates(
    policy: str, profile: Profile, demand: tuple[float, float], jobs_max: int = JOBS_MAX
) -> Floats:
    """Mean service rate of each class, (2,); 1 for a job alone.

    policy: ``pf`` or ``drf``.
    profile: requirements a of each class on each resource, normalised; the largest of a class is 1.
    demand: arrival rates times the mean time that a job alone takes.
    jobs_max: jobs of each class at most; those that come upon so many are turned away.
    """
    size = jobs_max + 1
    state = np.arange(size * size).reshape(size, size)
    rate = np.array(
        [
            allocation(policy, profile, one, two) if one or two else (0.0, 0.0)
            for one in range(size)
            for two in range(size)
        ]
    ).reshape(size, size, 2)
    tails, heads, speeds = [], [], []
    for axis in (0, 1):
        lower = np.delete(state, -1, axis).ravel()
        upper = np.delete(state, 0, axis).ravel()
        tails += [lower, upper]
        heads += [upper, lower]
        speeds += [np.full(len(lower), demand[axis]), rate[..., axis].ravel()[upper]]
    tail, head, speed = np.concatenate(tails), np.concatenate(heads), np.concatenate(speeds)
    count = size * size
    inflow = sparse.coo_matrix((speed, (head, tail)), shape=(count, count)).tolil()
    inflow.setdiag(-np.bincount(tail, speed, minlength=count))
    inflow[0] = 1.0  # one balance equation follows from the others; the parts add up to one
    part = spsolve(inflow.tocsc(), np.eye(1, count)[0]).reshape(size, size)
    jobs = np.arange(size)
    mean = np.array([part.sum(axis=1) @ jobs, part.sum(axis=0) @ jobs])
    # Little's law, with the jobs that got in.
    admitted = np.array([1 - part[-1].sum(), 1 - part[:, -1].sum()]) * demand
    return np.asarray(admitted / mean, np.float64)


def light_traffic(policy: str, profile: Profile) -> Floats:
    """By how much a small demand of each class slows each class down, (2, 2).

    Entry (k, l): the service rate of class k is about 1 minus the sum over l of this times rho_l.
    """
    small = 1e-2 * _LIGHT
    base = service_rates(policy, profile, (small, small), _LIGHT_JOBS_MAX)
    columns = []
    for axis in (0, 1):
        more = [small, small]
        more[axis] += _LIGHT
        columns.append(
            (base - service_rates(policy, profile, (more[0], more[1]), _LIGHT_JOBS_MAX)) / _LIGHT
        )
    return np.column_stack(columns)


def printed_light_traffic(policy: str, profile: Profile) -> Floats:
    """The paper's coefficients of the same, for a1 = (1, alpha), a2 = (beta, 1)."""
    alpha, beta = profile[0][1], profile[1][0]
    second = beta if policy == "drf" else max(2 - 1 / beta, alpha)
    return np.array([[1, beta], [second, 1]])


def derived_light_traffic(policy: str, profile: Profile) -> Floats:
    """The coefficients by hand, (2, 2).

    Up to two jobs matter. With phi the allocation to one job of each class, the balance of the
    states (0, 0), (1, 0), (0, 1) and (1, 1) gives ``2 (1 - phi[k]) / (phi[0] + phi[1])`` for the
    other class, and two jobs of the same class halve each other's rate: 1.
    """
    phi = np.array(allocation(policy, profile, 1, 1))
    first, second = 2 * (1 - phi) / phi.sum()
    return np.array([[1, first], [second, 1]])


def demand_at(load: float, profile: Profile, ratio: float) -> tuple[float, float]:
    """Demands with ``rho1 = ratio * rho2`` that load resource 1 so much."""
    second = load / (ratio * profile[0][0] + profile[1][0])
    return ratio * second, second


def figures() -> Report:
    """Figures 1 and 2 at three loads, and the light-traffic approximations."""
    rows, panels = [], []
    cases = (
        ("Fig. 1a, balanced", FIG_1, 1.0),
        ("Fig. 1b, rho1 = 3 rho2", FIG_1, 3.0),
        ("Fig. 2a, balanced", FIG_2, 1.0),
        ("Fig. 2b, rho1 = 3 rho2", FIG_2, 3.0),
    )
    for name, profile, ratio in cases:
        for load in LOADS:
            demand = demand_at(load, profile, ratio)
            drf, pf = (service_rates(policy, profile, demand) for policy in ("drf", "pf"))
            cells = [Cell(float(each)) for each in (drf[0], pf[0], drf[1], pf[1])]
            cells.append(Cell(float(drf[1] / pf[1]), 1.0, at_most=True))
            rows.append(Row(f"{name}, load {load:g}", tuple(cells)))
        panels.append(Panel(name, "load of resource 1", "service rate", _curves(profile, ratio)))
    for name, profile in LIGHT.items():
        for policy in ("drf", "pf"):
            found = light_traffic(policy, profile).ravel()
            printed = printed_light_traffic(policy, profile).ravel()
            cells = [Cell(float(f), float(p), 0.005) for f, p in zip(found, printed, strict=True)]
            departure = _LIGHT_DEPARTS if policy == "pf" else ""
            rows.append(Row(f"{name}, {policy.upper()}", tuple(cells), departure))
    return Report(
        name="pf-service-rates",
        title="Mean service rates of two classes against the load of resource 1 (a job alone: 1)",
        source=SOURCE,
        columns=("DRF, class 1", "PF, class 1", "DRF, class 2", "PF, class 2", "DRF/PF, class 2"),
        rows=tuple(rows),
        notes=(
            (
                "The figures have no printed numbers. What the text says of them is compared: PF "
                "serves class 2 at least as fast, clearly so where resource 2 has less load."
            ),
            (
                "Light traffic: the four columns are by how much rho1 and rho2 slow class 1, and "
                "rho1 and rho2 class 2 (1 - rho1 - beta rho2 and so on), by difference quotients."
            ),
            f"Stationary distribution with at most {JOBS_MAX} jobs of each class.",
        ),
        panels=tuple(panels),
    )


def _curves(profile: Profile, ratio: float) -> tuple[Line, ...]:
    """Both classes under both policies."""
    lines = []
    for policy in ("drf", "pf"):
        rates = [service_rates(policy, profile, demand_at(load, profile, ratio)) for load in CURVE]
        for kind in (0, 1):
            values = tuple(float(rate[kind]) for rate in rates)
            name = f"{policy.upper()}, class {kind + 1}"
            lines.append(Line(name, CURVE, values, dashed=policy == "drf"))
    return tuple(lines)

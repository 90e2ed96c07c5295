"""Bonald and Roberts: four classes in dynamic traffic, and where traffic is too much.

The numbers of jobs are a Markov process whose rates are the fluid allocations, as in
`service_rates`; with four classes it is simulated, as the paper does.

References
----------
.. [1] Bonald, Roberts. "Enhanced Cluster Computing Performance through Proportional Fairness."
   Performance Evaluation 79, 2014, sec. 3.2, 3.3 and Figure 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from allocator.lab.papers.report import Cell, Line, Panel, Report, Row, averaged
from allocator.lab.reports.run_report import interval
from allocator.solvers.fluid import proportional_fairness, water_filling

Floats = NDArray[np.float64]

Profile = tuple[tuple[float, ...], ...]
FIG_3: Profile = ((1, 0.1), (1, 0.5), (0.5, 1), (0.1, 1))
TWO: Profile = ((1, 0.1), (0.5, 1))

POLICIES = ("drf", "pf")
LOADS = (0.2, 0.5, 0.8)
RATIOS = {"Fig. 3a, balanced": (1.0, 1.0, 1.0, 1.0), "Fig. 3b, unbalanced": (3.0, 3.0, 1.0, 1.0)}
EVENTS = 40_000
_WARM_UP = 0.1  # part of the events that is not counted


@lru_cache(maxsize=200_000)
def allocation(policy: str, profile: Profile, jobs: tuple[int, ...]) -> tuple[float, ...]:
    """Tasks of all jobs of each class together, where there are so many jobs of each."""
    divisor = gcd(*jobs)
    if divisor > 1:
        return allocation(policy, profile, tuple(count // divisor for count in jobs))
    there = np.array(jobs, float)
    active = there > 0
    demand, capacity = np.array(profile, float)[active], np.ones(len(profile[0]))
    tasks = np.zeros(len(jobs))
    if policy == "pf":
        tasks[active] = proportional_fairness.solve(demand, capacity, there[active]).tasks
    else:
        speed = water_filling.rate(demand, capacity, there[active])
        tasks[active] = water_filling.solve(demand, capacity, speed).tasks
    return tuple(tasks.tolist())


@dataclass(frozen=True, slots=True)
class Traffic:
    """How a simulated process went.

    rate (K,): service rate of each class: arrivals over the mean number of jobs (Little's law).
    mean_jobs: of all classes together, mean over time after the warm-up.
    last_jobs: at the end.
    """

    rate: Floats
    mean_jobs: float
    last_jobs: int


def simulate(
    policy: str, profile: Profile, demand: Sequence[float], seed: int, events: int = EVENTS
) -> Traffic:
    """Let jobs come and end; `demand` is the traffic of each class, (K,)."""
    rng = np.random.default_rng(seed)
    arrivals = list(demand)
    classes = len(arrivals)
    jobs = [0] * classes
    draws = rng.random(events).tolist()
    time, area = 0.0, [0.0] * classes
    begins = int(_WARM_UP * events)
    for step in range(events):
        ends = allocation(policy, profile, tuple(jobs)) if any(jobs) else (0.0,) * classes
        total = sum(arrivals) + sum(ends)
        if step >= begins:
            # The mean of the time until the next event has less variance than a draw of it.
            time += 1 / total
            area = [each + count / total for each, count in zip(area, jobs, strict=True)]
        point = draws[step] * total
        for place, speed in enumerate((*arrivals, *ends)):
            point -= speed
            if point < 0:
                jobs[place % classes] += 1 if place < classes else -1
                break
    mean = np.array(area) / time
    return Traffic(np.array(arrivals) / np.maximum(mean, 1e-12), float(mean.sum()), sum(jobs))


def demand_at(load: float, profile: Profile, ratio: Sequence[float]) -> list[float]:
    """Demands in this ratio that load resource 1 so much."""
    used = sum(part * each[0] for part, each in zip(ratio, profile, strict=True))
    return [load * part / used for part in ratio]


def figure_3(seed: int = 0, trials: int = 10) -> Report:
    """Figure 3: four classes; the paper plots those whose dominant resource is the second."""
    rows, panels = [], []
    for name, ratio in RATIOS.items():
        means: dict[str, list[tuple[float, float]]] = {}
        for load in LOADS:
            demand = demand_at(load, FIG_3, ratio)
            rates = {
                policy: np.array(
                    [simulate(policy, FIG_3, demand, seed + t).rate for t in range(trials)]
                )
                for policy in POLICIES
            }
            cells = []
            for each in (2, 3):
                for policy in POLICIES:
                    cells.append(averaged(rates[policy][:, each].tolist()))
                    found = interval(rates[policy][:, each].tolist())
                    line = means.setdefault(f"{policy.upper()}, class {each + 1}", [])
                    line.append((found.mean, found.half))
            quotient = rates["drf"][:, 2:].sum(axis=1) / rates["pf"][:, 2:].sum(axis=1)
            cells.append(averaged(quotient.tolist(), 1.0, at_most=True))
            rows.append(Row(f"{name}, load {load:g}", tuple(cells)))
        lines = tuple(
            Line(each, LOADS, tuple(m for m, _ in found), tuple(h for _, h in found))
            for each, found in means.items()
        )
        panels.append(Panel(name, "load of resource 1", "service rate", lines))
    return Report(
        name="pf-fig-3",
        title="Mean service rates of classes 3 and 4 of four, against the load of resource 1",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.3 and Figure 3",
        columns=("DRF, class 3", "PF, class 3", "DRF, class 4", "PF, class 4", "DRF/PF"),
        rows=tuple(rows),
        notes=(
            (
                "The figure has no printed numbers. What the text says is compared: 'the trends "
                "shown in previous cases are maintained', so PF is at or above DRF."
            ),
            f"{trials} simulations of {EVENTS} events each, with 95 % confidence intervals.",
        ),
        panels=tuple(panels),
    )


def capacity_region(seed: int = 0, trials: int = 4) -> Report:
    """Equation (10): stable while the load of each resource is below its capacity."""
    rows = []
    for policy in POLICIES:
        for load in (0.9, 1.1):
            demand = demand_at(load, TWO, (1.0, 1.0))
            grown = []
            for trial in range(trials):
                short = simulate(policy, TWO, demand, seed + trial, EVENTS // 4)
                long = simulate(policy, TWO, demand, seed + trial, EVENTS)
                grown.append(long.mean_jobs / short.mean_jobs)
            stable = load < 1
            # Four times as long: about as many jobs, or about four times as many.
            cells = (
                averaged(grown, 1.0 if stable else 4.0, 0.8 if stable else 1.2),
                Cell(max(_used(TWO, demand))),
            )
            rows.append(Row(f"{policy.upper()}, load {load:g}", cells))
    return Report(
        name="pf-capacity-region",
        title="Mean number of jobs when the process runs four times as long, over that before",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.2, eq. 10",
        columns=("growth", "largest load"),
        rows=tuple(rows),
        notes=(
            (
                "Below the boundary the mean settles (published as 1 here), above it the number "
                f"of jobs grows with time (4). {trials} simulations."
            ),
        ),
    )


def _used(profile: Profile, demand: Sequence[float]) -> list[float]:
    return (np.array(demand) @ np.array(profile)).tolist()

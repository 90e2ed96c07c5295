"""Bonald and Roberts: service rates under proportional fairness (PF) and DRF in dynamic traffic.

Jobs of several classes arrive at random and share two resources; the number of jobs of each class
is a Markov process, whose rates are the fluid allocations. The mean service rate of a class is its
arrival rate over its mean number of jobs. For two classes the stationary distribution is solved
for, with a bound on the numbers of jobs; four classes are simulated, as all are in the paper.

Source: section 3 and Figures 1 to 5 of the paper.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from allocator.core import Floats
from allocator.solvers.fluid import proportional_fairness
from laboratory.papers.report import (
    Panel,
    PaperReport,
    PlotLine,
    Row,
    TableCell,
    averaged,
    beside,
    paragraphs,
    through,
)
from laboratory.solvers import water_filling

Profile = tuple[tuple[float, ...], ...]
FIG_3: Profile = ((1, 0.1), (1, 0.5), (0.5, 1), (0.1, 1))

POLICIES = ("drf", "pf")
LOADS = (0.2, 0.5, 0.8)
RATIOS = {"Fig. 3a, balanced": (1.0, 1.0, 1.0, 1.0), "Fig. 3b, unbalanced": (3.0, 3.0, 1.0, 1.0)}
EVENTS = 40_000
_WARM_UP = 0.1  # fraction of the events that is not counted


@lru_cache(maxsize=200_000)
def allocation(policy: str, profile: Profile, jobs: tuple[int, ...]) -> tuple[float, ...]:
    """Total tasks of each class, given the number of jobs of each."""
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


def demand_at(load: float, profile: Profile, ratio: Sequence[float]) -> list[float]:
    """Demands in this ratio that give resource 1 this load."""
    used = sum(part * each[0] for part, each in zip(ratio, profile, strict=True))
    return [part * (load / used) for part in ratio]


# Two classes, exactly.

FIG_1: Profile = ((1, 0.1), (0.1, 1))
FIG_2: Profile = ((1, 0.1), (0.5, 1))
CURVE = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
"""Loads of the plotted curves."""

JOBS_MAX = 60
"""Limit on the jobs of each class; at a load of 0.8, 80 instead of 60 change no shown digit."""

LIGHT: Mapping[str, Profile] = {
    "light traffic, a1 = (1, 1/10), a2 = (1/2, 1)": FIG_2,
    "light traffic, a1 = (1, 1/5), a2 = (4/5, 1)": ((1, 0.2), (0.8, 1)),
}

_LIGHT_DEPARTS = (
    "The printed coefficients for PF, 1, beta, max(2 - 1/beta, alpha), 1, do not follow from the "
    "model. With phi the allocation to one job of each class, each class is slowed by the other "
    "2 (1 - phi_k) / (phi_1 + phi_2) times, as computed (for DRF that is beta, as printed)."
    " The conclusions of the text still hold: class 2 is slowed less under PF; class 1 is"
    " slowed somewhat more, as in Figure 2."
)

_LIGHT = 1e-4  # a load whose square is negligible
_LIGHT_JOBS_MAX = 4


def service_rates(
    policy: str, profile: Profile, demand: Sequence[float], jobs_max: int = JOBS_MAX
) -> Floats:
    """Mean service rate of each class, (2,); 1 for a job alone.

    policy: ``pf`` or ``drf``.
    profile: requirements a of each class on each resource, normalised; the largest of a class is 1.
    demand: arrival rates times the mean time that a job alone takes.
    jobs_max: limit on the jobs of each class; arrivals beyond it are turned away.
    """
    size = jobs_max + 1
    state = np.arange(size * size).reshape(size, size)
    rate = np.array(
        [
            allocation(policy, profile, (one, two)) if one or two else (0.0, 0.0)
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
    inflow[0] = 1.0  # replaces a redundant balance equation: probabilities sum to one
    part = spsolve(inflow.tocsc(), np.eye(1, count)[0]).reshape(size, size)
    jobs = np.arange(size)
    mean = np.array([part.sum(axis=1) @ jobs, part.sum(axis=0) @ jobs])
    # Little's law, with the admitted jobs.
    admitted = np.array([1 - part[-1].sum(), 1 - part[:, -1].sum()]) * demand
    return np.asarray(admitted / mean, np.float64)


def light_traffic(policy: str, profile: Profile) -> Floats:
    """The slowdown of each class by a small demand of each class, (2, 2).

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
    """The paper's coefficients for the same, for a1 = (1, alpha), a2 = (beta, 1)."""
    alpha, beta = profile[0][1], profile[1][0]
    second = beta if policy == "drf" else max(2 - 1 / beta, alpha)
    return np.array([[1, beta], [second, 1]])


def figures() -> PaperReport:
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
            demand = demand_at(load, profile, (ratio, 1.0))
            drf, pf = (service_rates(policy, profile, demand) for policy in POLICIES)
            over = TableCell(float(drf[1] / pf[1]), 1.0, at_most=True)
            cells = (*beside((drf[0], pf[0], drf[1], pf[1])), over)
            rows.append(Row(f"{name}, load {load:g}", cells))
        lines = rate_curves(profile, ratio, CURVE, dashed=("drf",))
        panels.append(Panel(name, "load of resource 1", "service rate", lines))
    for name, profile in LIGHT.items():
        for policy in POLICIES:
            printed = printed_light_traffic(policy, profile).ravel().tolist()
            cells = beside(light_traffic(policy, profile).ravel(), printed, 0.005)
            departure = _LIGHT_DEPARTS if policy == "pf" else ""
            rows.append(Row(f"{name}, {policy.upper()}", cells, departure))
    return PaperReport(
        name="pf-service-rates",
        title="Mean service rates of two classes against the load of resource 1 (a job alone: 1)",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.3 and Figures 1 and 2",
        columns=("DRF, class 1", "PF, class 1", "DRF, class 2", "PF, class 2", "DRF/PF, class 2"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The figures contain no numbers. The statements of the text about them are compared: PF
            serves class 2 at least as fast, clearly so where resource 2 has less load.

            Rows about light traffic: the four columns show by how much rho1 and rho2 slow class 1,
            and by how much they slow class 2 (1 - rho1 - beta rho2 and so on), by difference
            quotients.

            Stationary distribution with at most {JOBS_MAX} jobs of each class.
        """),
        panels=tuple(panels),
    )


HEAVY: Profile = ((1, 0.1), (0.5, 1))
HEAVY_LOAD = 0.9
HEAVY_RATIO = 3.0
_HEAVY_JOBS_MAX = 90
_HEAVY_WITHIN = 0.15  # of an approximation for loads near 1

_HEAVY_DEPARTS = (
    "An erratum: the printed rate of class 2 is (1 - rho) / alpha. Where resource 1 is saturated "
    "and resource 2 is not, PF gives each job the same part of resource 1, so class 2, which needs "
    "beta of it, has 1 / beta times the rate of class 1: (1 - rho) / beta"
)


def heavy_traffic() -> PaperReport:
    """Approximations for heavy, unbalanced traffic, at one load."""
    beta, alpha, spare = HEAVY[1][0], HEAVY[0][1], 1 - HEAVY_LOAD
    demand = demand_at(HEAVY_LOAD, HEAVY, (HEAVY_RATIO, 1.0))
    drf, pf = (service_rates(policy, HEAVY, demand, _HEAVY_JOBS_MAX) for policy in POLICIES)

    def row(name: str, computed: float, published: float, departure: str = "") -> Row:
        return Row(name, beside((computed,), (published,), _HEAVY_WITHIN * published), departure)

    return PaperReport(
        name="pf-heavy-traffic",
        title=f"Mean service rates in heavy traffic: resource 1 is loaded {HEAVY_LOAD:g}",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.3",
        columns=("service rate",),
        rows=(
            row("DRF, class 1: 1 - rho", drf[0], spare),
            row("DRF, class 2: 1 - rho", drf[1], spare),
            row("PF, class 1: 1 - rho", pf[0], spare),
            row("PF, class 2: (1 - rho) / beta, as derived", pf[1], spare / beta),
            row("PF, class 2: (1 - rho) / alpha, as printed", pf[1], spare / alpha, _HEAVY_DEPARTS),
        ),
        notes=paragraphs(f"""
            Profiles (1, alpha) and (beta, 1), alpha = {alpha:g}, beta = {beta:g}; class 1 has
            {HEAVY_RATIO:g} times the traffic of class 2. Stationary distribution with at most
            {_HEAVY_JOBS_MAX} jobs of each class. The approximations are for loads near 1: within
            {100 * _HEAVY_WITHIN:g} %.
        """),
    )


def rate_curves(
    profile: Profile,
    ratio: float,
    loads: tuple[float, ...],
    what: str = "",
    dashed: Sequence[str] = POLICIES,
) -> tuple[PlotLine, ...]:
    """Curves of the mean service rates of both classes by load, under both policies."""
    lines = []
    for policy in POLICIES:
        rates = [
            service_rates(policy, profile, demand_at(load, profile, (ratio, 1.0))) for load in loads
        ]
        for kind in (0, 1):
            values = tuple(float(rate[kind]) for rate in rates)
            name = f"{policy.upper()}, class {kind + 1}{what}"
            lines.append(PlotLine(name, loads, values, dashed=policy in dashed))
    return tuple(lines)


def mean_rates(
    rates: Mapping[str, Floats],
    classes: Sequence[int],
    lines: dict[str, list[TableCell]],
    published: float | None = None,
    tolerance: float = 0.0,
) -> list[TableCell]:
    """Means over trials of the rates of some classes, for both policies side by side.

    rates (trials, K): by policy.
    lines: each mean is appended to the curve of its name.
    """
    cells = []
    for kind, policy in product(classes, POLICIES):
        cell = averaged(rates[policy][:, kind].tolist(), published, tolerance)
        lines.setdefault(f"{policy.upper()}, class {kind + 1}", []).append(cell)
        cells.append(cell)
    return cells


# Four classes, simulated; and overload.


@dataclass(frozen=True, slots=True)
class Traffic:
    """Results of a simulation.

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
    """Simulate arrivals and ends of jobs; `demand` is the traffic of each class, (K,)."""
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
            # The mean time to the next event has less variance than a draw of it.
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


def figure_3(seed: int = 0, trials: int = 10) -> PaperReport:
    """Figure 3: four classes; the paper plots those whose dominant resource is the second."""
    rows, panels = [], []
    for name, ratio in RATIOS.items():
        means: dict[str, list[TableCell]] = {}
        for load in LOADS:
            demand = demand_at(load, FIG_3, ratio)
            rates = {
                policy: np.array(
                    [simulate(policy, FIG_3, demand, seed + t).rate for t in range(trials)]
                )
                for policy in POLICIES
            }
            cells = mean_rates(rates, (2, 3), means)
            quotient = rates["drf"][:, 2:].sum(axis=1) / rates["pf"][:, 2:].sum(axis=1)
            cells.append(averaged(quotient.tolist(), 1.0, at_most=True))
            rows.append(Row(f"{name}, load {load:g}", tuple(cells)))
        lines = tuple(through(each, LOADS, found) for each, found in means.items())
        panels.append(Panel(name, "load of resource 1", "service rate", lines))
    return PaperReport(
        name="pf-fig-3",
        title="Mean service rates of classes 3 and 4 of four, against the load of resource 1",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.3 and Figure 3",
        columns=("DRF, class 3", "PF, class 3", "DRF, class 4", "PF, class 4", "DRF/PF"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The figure contains no numbers. The statement of the text is compared: 'the trends shown
            in previous cases are maintained', so PF is at or above DRF.

            {trials} simulations of {EVENTS} events each, with 95 % confidence intervals.
        """),
        panels=tuple(panels),
    )


def capacity_region(seed: int = 0, trials: int = 4) -> PaperReport:
    """Equation (10): stable while the load of each resource is below its capacity."""
    rows = []
    for policy in POLICIES:
        for load in (0.9, 1.1):
            demand = demand_at(load, FIG_2, (1.0, 1.0))
            grown = []
            for trial in range(trials):
                short = simulate(policy, FIG_2, demand, seed + trial, EVENTS // 4)
                long = simulate(policy, FIG_2, demand, seed + trial, EVENTS)
                grown.append(long.mean_jobs / short.mean_jobs)
            stable = load < 1
            # Four times as long: the number of jobs stays about equal, or grows about fourfold.
            cells = (
                averaged(grown, 1.0 if stable else 4.0, 0.8 if stable else 1.2),
                TableCell(float((np.array(demand) @ np.array(FIG_2)).max())),
            )
            rows.append(Row(f"{policy.upper()}, load {load:g}", cells))
    return PaperReport(
        name="pf-capacity-region",
        title="Mean number of jobs when the process runs four times as long, over that before",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.2, eq. 10",
        columns=("growth", "largest load"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Below the boundary of the capacity region the mean number of jobs converges (ratio 1),
            above it the number grows in proportion to time (ratio 4). {trials} simulations.
        """),
    )


# Gain by a false claim in dynamic traffic (Figures 4 and 5).
#
# Two classes need (1, alpha) and (alpha, 1). First one permanent job of class 1 claims beta of
# resource 2 instead of alpha, while jobs of class 2 come and go; then all of class 1 do.
#
# The printed rate of the job has an extra factor 1/n in its first branch: if both resources are
# saturated, phi + alpha n phi2 = 1 and beta phi + n phi2 = 1 give
# ``(1 - alpha) / (1 - alpha beta)`` for any number of others. Without the factor the best claim
# comes out as printed.
#
# Source: sec. 3.4 and Figures 4 and 5.

ALPHA = 0.1
BEST_FOR = (1, 2, 5)
"""Numbers of other jobs for which a claim is optimal."""

CLAIM_LOADS = (0.2, 0.4, 0.6, 0.8)
_OTHERS_MAX = 2000
_CLAIM_CURVE = tuple(np.linspace(0.02, 0.96, 48).tolist())
_SHORT_OF_CAPACITY = 0.93  # closer to it the limit on jobs would distort rates
_CLAIM_JOBS_MAX = 45
_VISIBLE = 0.005  # smaller differences cannot be seen in the paper's figure


def best_claim(others: int, alpha: float = ALPHA) -> float:
    """The best claim of the job beside `others` jobs of class 2."""
    return 1 / (1 + others * (1 - alpha))


def job_rate(others: int, claim: float, alpha: float = ALPHA) -> float:
    """Tasks of the permanent job under PF, beside `others` jobs of class 2."""
    if not others:
        return 1.0
    between = (1 - alpha) / (1 - alpha * claim)
    return min(between, 1 / (claim * (others + 1)))


def mean_rate(load: float, claim: float, alpha: float = ALPHA) -> float:
    """Mean service rate of the permanent job for a traffic demand of class 2 below 1."""
    part, weight, total = 1.0, 0.0, 0.0
    for others in range(_OTHERS_MAX):
        rate = job_rate(others, claim, alpha)
        weight += part * rate
        total += part
        # A birth and death process: one more job arrives, or one of them ends.
        part *= load / (1 - claim * job_rate(others + 1, claim, alpha))
    return weight / total


def figure_4() -> PaperReport:
    """Figure 4: one job with a false claim."""
    claims = {"true": ALPHA} | {f"best beside {n}": best_claim(n) for n in BEST_FOR}
    rows = []
    for load in CLAIM_LOADS:
        true = mean_rate(load, ALPHA)
        cells = [TableCell(true)]
        cells += [TableCell(mean_rate(load, best_claim(n)), true, at_most=True) for n in BEST_FOR]
        rows.append(Row(f"load {load:g}", tuple(cells)))
    lines = tuple(
        PlotLine(name, _CLAIM_CURVE, tuple(mean_rate(load, claim) for load in _CLAIM_CURVE))
        for name, claim in claims.items()
    )
    return PaperReport(
        name="pf-fig-4",
        title="Mean service rate of one permanent job under PF, by what it claims",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.4 and Figure 4",
        columns=tuple(claims),
        rows=tuple(rows),
        notes=paragraphs("""
            Exact: the stationary distribution of a birth and death process. The rate under each
            false claim must not exceed the rate under the true claim: 'no benefit is gained from
            any of these static optimizations'.

            The first case of the printed rate has a superfluous factor 1/n. Without this factor it
            equals the rate of the solver, and the best claims are as printed.
        """),
        panels=(Panel("Figure 4", "load of class 2", "service rate of the job", lines),),
    )


def figure_5() -> PaperReport:
    """Figure 5: all jobs of a class make false claims."""
    rows, panels = [], []
    for policy in POLICIES:
        lines = []
        true = {load: _class_rate(policy, ALPHA, load) for load in CLAIM_LOADS}
        for claim in (ALPHA, *(best_claim(n) for n in BEST_FOR)):
            limit = (1 + ALPHA) / (1 + claim)
            name = "true" if claim == ALPHA else f"claims {claim:.3g}"
            cells = [TableCell(limit)]
            for load in CLAIM_LOADS:
                if load > _SHORT_OF_CAPACITY * limit:
                    cells.append(TableCell(0.0, true[load], at_most=True))
                    continue
                rate = _class_rate(policy, claim, load)
                cells.append(TableCell(rate, true[load], _VISIBLE, at_most=True))
            rows.append(Row(f"{policy.upper()}, {name}", tuple(cells)))
            loads = [load for load in np.linspace(0.1, 0.9, 9) if load < _SHORT_OF_CAPACITY * limit]
            rates = tuple(_class_rate(policy, claim, float(load)) for load in loads)
            lines.append(PlotLine(name, tuple(map(float, loads)), rates, dashed=claim != ALPHA))
        panels.append(
            Panel(
                f"Figure 5, {policy.upper()}", "load of resource 1", "rate of class 1", tuple(lines)
            )
        )
    return PaperReport(
        name="pf-fig-5",
        title="Mean service rate of class 1 where all of it claims too much, balanced load",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.4 and Figure 5",
        columns=("capacity", *(f"load {load:g}" for load in CLAIM_LOADS)),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The rate under each false claim must not exceed the rate under the true claim: 'there is
            no winning strategy'. Differences below {_VISIBLE:g} cannot be seen in the figure: a
            small false claim gains a thousandth at some loads. Capacity: (1 + alpha) / (1 + beta),
            beyond which, and just below, the rate is given as 0.
        """),
        panels=tuple(panels),
    )


def _class_rate(policy: str, claim: float, load: float) -> float:
    """Service rate of class 1; the load is that of the jobs' true needs."""
    true = ((1.0, ALPHA), (ALPHA, 1.0))
    claimed = ((1.0, claim), (ALPHA, 1.0))
    rates = service_rates(policy, claimed, demand_at(load, true, (1.0, 1.0)), _CLAIM_JOBS_MAX)
    return float(rates[0])

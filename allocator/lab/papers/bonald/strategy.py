"""Bonald and Roberts: what a false claim brings in dynamic traffic (Figures 4 and 5).

Two classes need (1, alpha) and (alpha, 1). First one permanent job of class 1 claims beta of
resource 2 instead of alpha, while jobs of class 2 come and go; then all of class 1 do.

The printed rate of the job has a factor 1/n in its first branch, which is too much: where both
resources are saturated, phi + alpha n phi2 = 1 and beta phi + n phi2 = 1 give
``(1 - alpha) / (1 - alpha beta)``, however many the others are. Without the factor the best claim
comes out as printed.

Source: section 3.4 and Figures 4 and 5 of the paper.
"""

import numpy as np

from allocator.lab.papers.bonald.traffic import demand_at, service_rates
from allocator.lab.papers.report import Cell, Line, Panel, Report, Row, paragraphs

ALPHA = 0.1
BEST_FOR = (1, 2, 5)
"""Numbers of other jobs for which a claim is the best one."""

LOADS = (0.2, 0.4, 0.6, 0.8)
_OTHERS_MAX = 2000
_CURVE = tuple(np.linspace(0.02, 0.96, 48).tolist())
_SHORT_OF_CAPACITY = 0.93  # nearer to it the bound on the number of jobs would show
_JOBS_MAX = 45
_VISIBLE = 0.005  # less cannot be seen in the paper's figure


def best_claim(others: int, alpha: float = ALPHA) -> float:
    """The claim that gives the job most while there are so many others."""
    return 1 / (1 + others * (1 - alpha))


def job_rate(others: int, claim: float, alpha: float = ALPHA) -> float:
    """Tasks of the permanent job under PF, beside so many of class 2."""
    if not others:
        return 1.0
    between = (1 - alpha) / (1 - alpha * claim)
    return min(between, 1 / (claim * (others + 1)))


def mean_rate(load: float, claim: float, alpha: float = ALPHA) -> float:
    """Mean service rate of the permanent job, where class 2 has this traffic demand, below 1."""
    part, weight, total = 1.0, 0.0, 0.0
    for others in range(_OTHERS_MAX):
        rate = job_rate(others, claim, alpha)
        weight += part * rate
        total += part
        # A birth and death process: one more job comes, or one of them ends.
        part *= load / (1 - claim * job_rate(others + 1, claim, alpha))
    return weight / total


def figure_4() -> Report:
    """Figure 4: one job that lies."""
    claims = {"true": ALPHA} | {f"best beside {n}": best_claim(n) for n in BEST_FOR}
    rows = []
    for load in LOADS:
        true = mean_rate(load, ALPHA)
        cells = [Cell(true)]
        cells += [Cell(mean_rate(load, best_claim(n)), true, at_most=True) for n in BEST_FOR]
        rows.append(Row(f"load {load:g}", tuple(cells)))
    lines = tuple(
        Line(name, _CURVE, tuple(mean_rate(load, claim) for load in _CURVE))
        for name, claim in claims.items()
    )
    return Report(
        name="pf-fig-4",
        title="Mean service rate of one permanent job under PF, by what it claims",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.4 and Figure 4",
        columns=tuple(claims),
        rows=tuple(rows),
        notes=paragraphs("""
            Exact: the stationary distribution of a birth and death process. The bound of each false
            claim is the true one's rate: 'no benefit is gained from any of these static
            optimizations'.

            The printed rate has a factor 1/n too much in its first branch; without it, it is the
            solver's, and the best claims come out as printed.
        """),
        panels=(Panel("Figure 4", "load of class 2", "service rate of the job", lines),),
    )


def figure_5() -> Report:
    """Figure 5: a whole class that lies."""
    rows, panels = [], []
    for policy in ("drf", "pf"):
        lines = []
        true = {load: _class_rate(policy, ALPHA, load) for load in LOADS}
        for claim in (ALPHA, *(best_claim(n) for n in BEST_FOR)):
            limit = (1 + ALPHA) / (1 + claim)
            name = "true" if claim == ALPHA else f"claims {claim:.3g}"
            cells = [Cell(limit)]
            for load in LOADS:
                if load > _SHORT_OF_CAPACITY * limit:
                    cells.append(Cell(0.0, true[load], at_most=True))
                    continue
                rate = _class_rate(policy, claim, load)
                cells.append(Cell(rate, true[load], _VISIBLE, at_most=True))
            rows.append(Row(f"{policy.upper()}, {name}", tuple(cells)))
            loads = [load for load in np.linspace(0.1, 0.9, 9) if load < _SHORT_OF_CAPACITY * limit]
            rates = tuple(_class_rate(policy, claim, float(load)) for load in loads)
            lines.append(Line(name, tuple(map(float, loads)), rates, dashed=claim != ALPHA))
        panels.append(
            Panel(
                f"Figure 5, {policy.upper()}", "load of resource 1", "rate of class 1", tuple(lines)
            )
        )
    return Report(
        name="pf-fig-5",
        title="Mean service rate of class 1 where all of it claims too much, balanced load",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.4 and Figure 5",
        columns=("capacity", *(f"load {load:g}" for load in LOADS)),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The bound of each false claim is the true one's rate: 'there is no winning strategy'.
            What is below {_VISIBLE:g} cannot be seen in the figure: a small claim gains a
            thousandth at some loads. Capacity: (1 + alpha) / (1 + beta), beyond which, and just
            below, the rate is given as 0.
        """),
        panels=tuple(panels),
    )


def _class_rate(policy: str, claim: float, load: float) -> float:
    """Service rate of class 1; the load is that of what the jobs truly need."""
    true = ((1.0, ALPHA), (ALPHA, 1.0))
    claimed = ((1.0, claim), (ALPHA, 1.0))
    rates = service_rates(policy, claimed, demand_at(load, true, (1.0, 1.0)), _JOBS_MAX)
    return float(rates[0])

"""How closely `ps-dsf` meets the definition of PS-DSF, by experiment: distribution of the gap.

References
----------
.. [1] Khamse-Ashari, Lambadaris, Kesidis, Urgaonkar, Zhao. "Per-Server Dominant-Share Fairness
   (PS-DSF): A Multi-Resource Fair Allocation Mechanism for Heterogeneous Servers." ICC 2017,
   Definition 1.
.. [2] Kesidis, Shan, Wang, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, sec. III.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from allocator.core import Bools, Ints
from allocator.solvers.fluid.per_server_fairness import residual, solve
from allocator.testing import static_snapshot
from laboratory.papers.online import fill
from laboratory.papers.report import (
    Panel,
    PaperReport,
    PlotLine,
    Row,
    TableCell,
    beside,
    paragraphs,
)

_TASKS = 200  # tasks of a framework that fit on an agent, roughly
_TOLERANCE = 0.05  # difference of equal levels due to whole tasks

POLICIES = tuple(
    (policy, selection)
    for policy in ("ps-dsf", "ps-dsf-exact")
    for selection in ("random", "round_robin", "joint")
)

DRAWN = (("ps-dsf", "random"), ("ps-dsf", "joint"), ("ps-dsf-exact", "random"))

_PARTS = (50, 90, 99)


def random_cluster(rng: np.random.Generator) -> tuple[Ints, Ints, Bools]:
    """Two to six frameworks, two to five agents, two resources; demands, capacities, eligible."""
    frameworks, agents = rng.integers(2, 7), rng.integers(2, 6)
    demand = rng.integers(0, 6, (frameworks, 2))
    demand[np.arange(frameworks), rng.integers(0, 2, frameworks)] += 1
    capacity = rng.integers(1, 11, (agents, 2)) * _TASKS
    eligible = rng.random((frameworks, agents)) < 0.7
    eligible[np.arange(frameworks), rng.integers(0, agents, frameworks)] = True
    return demand, capacity, eligible


class Gap(NamedTuple):
    """How far a policy's whole tasks are from the definition, and from the solver's tasks.

    short: the `residual`; holders of at most `_TOLERANCE` of a resource are ignored.
    moved: fraction of tasks that would have to change frameworks to match the solver's allocation.
    lacks: largest shortfall of a framework, relative to its tasks in the solver's allocation.
    """

    short: float
    moved: float
    lacks: float


def gap(
    demand: Ints, capacity: Ints, eligible: Bools, policy: str, selection: str, seed: int
) -> Gap:
    """Fill a cluster by a policy, and compare."""
    snapshot = static_snapshot(capacity.tolist(), demand.tolist(), allowed=eligible)
    found = fill(snapshot, policy, selection, seed)
    problem = demand.astype(float), capacity.astype(float), eligible
    best = solve(*problem).tasks.sum(axis=1)
    short = residual(found.astype(float), *problem, least=_TOLERANCE)
    more = found.sum(axis=1) - best
    moved, lacks = np.abs(more).sum() / 2 / best.sum(), (-more / best).max()
    return Gap(short, float(moved), max(0.0, float(lacks)))


def definition_of_filling(seed: int = 0, trials: int = 1000) -> PaperReport:
    """The policies `ps-dsf` and `ps-dsf-exact` against the definition, on random clusters."""
    rng = np.random.default_rng(seed)
    clusters = [random_cluster(rng) for _ in range(trials)]
    found = {
        (policy, selection): [gap(*each, policy, selection, seed) for each in clusters]
        for policy, selection in POLICIES
    }
    rows = [Row(" ".join(name), _cells(gaps)) for name, gaps in found.items()]
    return PaperReport(
        name="ps-dsf-fluid",
        title="How often a filling meets the definition, and percent of tasks that differ",
        source="Khamse-Ashari et al., ICC 2017, Definition 1; the text gives no such numbers",
        columns=("meets it", "differ", "median", "90th", "99th", "largest", "worst off", "largest"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            {trials} random clusters of two to six frameworks and two to five agents; an agent has
            room for some {_TASKS} tasks, so an allocation counts as meeting the definition if
            levels are equal within {100 * _TOLERANCE:g} %.

            'Differ': percent of all tasks that belong to another framework than in the solver's
            allocation: mean, percentiles and maximum. Several allocations may meet the definition,
            so an allocation that meets it may differ. 'Worst off': for the framework that lacks
            most, by how many percent it has fewer tasks than in the solver's allocation: mean and
            maximum.

            `ps-dsf` decides task by task, and takes nothing back. `ps-dsf-exact` follows the
            solver's allocation up to parts of tasks; where an agent has few tasks of a framework,
            such a part may be more than {100 * _TOLERANCE:g} % of a level.
        """),
        panels=(
            _distribution("Tasks that differ", "percent of all tasks", found, "moved"),
            _distribution("Who lacks most", "percent of its tasks", found, "lacks"),
        ),
    )


def _cells(gaps: Sequence[Gap]) -> tuple[TableCell, ...]:
    short, moved, lacks = (np.array(each) for each in zip(*gaps, strict=True))
    meets = (short <= _TOLERANCE).mean()
    numbers = (
        meets, moved.mean(), *np.percentile(moved, _PARTS), moved.max(), lacks.mean(), lacks.max()
    )  # fmt: skip
    return beside(100 * each for each in numbers)


def _distribution(
    title: str, label: str, found: Mapping[tuple[str, str], Sequence[Gap]], measure: str
) -> Panel:
    """In how many percent of the clusters the gap is larger."""
    above = np.linspace(0, 100, 101)
    lines = []
    for name in DRAWN:
        percent = np.percentile([100 * getattr(each, measure) for each in found[name]], above)
        lines.append(
            PlotLine(" ".join(name), tuple(percent.tolist()), tuple((100 - above).tolist()))
        )
    return Panel(title, label, "percent of clusters with more", tuple(lines))

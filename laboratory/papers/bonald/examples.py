"""Bonald and Roberts: examples of proportional fairness (PF) beside DRF.

Each example is solved in the fluid model, and filled with whole tasks by the policy, which serves
the most deprived job, on a pool so large that one task is a small part of it.

Source: sections 2.3, 2.4, 4.1 and 4.2 of the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allocator.core import Floats
from allocator.solvers.fluid import proportional_fairness
from allocator.testing import static_snapshot
from laboratory.papers.drf import drf
from laboratory.papers.online import fill
from laboratory.papers.report import PaperReport, Row, TableCell, beside, paragraphs

SOURCE = "Bonald and Roberts, Performance Evaluation 2014, sec. 2 and 4"
POOL = 3000
"""Size of the pool for whole tasks, in units of the fluid model."""

_SIXTHS = 6  # all demands of the examples are whole numbers of sixths


@dataclass(frozen=True, slots=True)
class Example:
    """Two jobs on two resources of capacity 1.

    demand (2, 2): normalised requirements a of each job.
    tasks (2,): published allocation.
    prices (2,)
    departure: why the published prices cannot be right.
    """

    name: str
    demand: Sequence[Sequence[float]]
    tasks: Sequence[float]
    prices: Sequence[float] = ()
    departure: str = ""


_PRICES_DEPART = (
    "Printed (1, 1) does not satisfy the paper's own equation (3): 1 / (4/5) = nu1 / 2 + nu2 and "
    "1 / (3/5) = nu1 + nu2 / 3 give (3/2, 1/2)."
)

PF = (
    Example("Prop. 5, true", ((1 / 2, 1), (1, 1 / 2)), (2 / 3, 2 / 3), (1, 1)),
    Example("Prop. 5, job 1 claims (2/3, 1)", ((2 / 3, 1), (1, 1 / 2)), (3 / 4, 1 / 2), (2, 0)),
    Example("Remark 3, job 1 claims (1, 1)", ((1, 1), (1, 1 / 2)), (1 / 2, 1 / 2), (2, 0)),
    Example(
        "Remark 4, true", ((1 / 2, 1), (1, 1 / 3)), (4 / 5, 3 / 5), (1, 1), departure=_PRICES_DEPART
    ),
    Example("Remark 4, job 1 claims (2/3, 1)", ((2 / 3, 1), (1, 1 / 3)), (3 / 4, 1 / 2), (2, 0)),
)

_ONE_RESOURCE_DEPARTS = (
    "Printed (1, 2) would use resource 1 twice over; equal shares of it, which the text names, "
    "are (1/2, 1)."
)

DRF = (
    Example("Remark 2, DRF", ((1, 1 / 3), (1 / 2, 1)), (2 / 3, 2 / 3)),
    Example(
        "Remark 2, DRF without resource 2",
        ((1, 0), (1 / 2, 0)),
        (1, 2),
        departure=_ONE_RESOURCE_DEPARTS,
    ),
)

ZERO_LOAD_RATE = 0.54


def filled(policy: str, demand: Sequence[Sequence[float]]) -> Floats:
    """Tasks per unit of the pool when a policy fills it with whole tasks, (2,)."""
    sixths = np.rint(np.array(demand) * _SIXTHS)
    snapshot = static_snapshot(capacity=[[POOL * _SIXTHS] * 2], demand=sixths)
    return fill(snapshot, policy).sum(axis=1) / POOL


def zero_load_rate(tasks: int = 500, capacity: int = 100) -> float:
    """Service rate of a job alone, relative to the fluid model (sec. 4.2).

    While more tasks are left than fit, one ends every ``1 / capacity``; the last ones run with
    fewer and fewer others.
    """
    full = (tasks - capacity + 1) / capacity
    rest = sum(1 / running for running in range(1, capacity))
    return (tasks / capacity) / (full + rest)


def examples() -> PaperReport:
    """Propositions and remarks of section 2, and the zero-load rate of section 4.2."""
    rows: list[Row] = []
    ones = np.ones(2)
    for case in PF:
        solution = proportional_fairness.solve(np.array(case.demand, float), ones, ones)
        tasks = beside(solution.tasks, case.tasks, 1e-6)
        prices = beside(solution.prices, case.prices, 1e-6)
        rows.append(Row(case.name, (*tasks, *prices), case.departure))
        rows.append(_whole("pf", case.name, case.demand, case.tasks))
    for case in DRF:
        found = drf(np.array(case.demand, float), ones)
        rows.append(Row(case.name, beside(found, case.tasks, 1e-6), case.departure))
    used = float(np.array(DRF[0].tasks) @ np.array(DRF[0].demand)[:, 1])
    rows.append(Row("Remark 2, DRF, part of resource 2 in use", (TableCell(used, 8 / 9, 1e-6),)))
    rows.append(_whole("drf", DRF[0].name, DRF[0].demand, DRF[0].tasks))
    rows.append(
        Row(
            "Sec. 4.2, service rate at load zero",
            (TableCell(zero_load_rate(), ZERO_LOAD_RATE, 0.005),),
        )
    )
    return PaperReport(
        name="pf-examples",
        title="Two jobs on two resources: task volumes phi and prices nu",
        source=SOURCE,
        columns=("phi1", "phi2", "nu1", "nu2"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            'whole tasks': filled by the policy on a pool of {POOL} units a resource, divided by
            {POOL}; tolerance one task.

        Remark 2 only says that resource 2 is not saturated; its load, 8/9, follows from (2/3, 2/3).
        """),
    )


def _whole(
    policy: str, name: str, demand: Sequence[Sequence[float]], expected: Sequence[float]
) -> Row:
    return Row(f"{name}, whole tasks", beside(filled(policy, demand), expected, 1 / POOL))

"""The example of Dominant Resource Fairness, and of the policies that it is compared with.

9 CPUs and 18 GB; A's tasks need <1 CPU, 4 GB>, B's <3 CPU, 1 GB>. So A's dominant resource is
memory (4/18 a task) and B's is CPU (3/9).

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4.1 and 4.3.
"""

import numpy as np

from allocator import measures
from allocator.core import PolicySpec
from allocator.lab.papers.report import Cell, Report, Row, exactly
from allocator.policies import build
from allocator.solvers.fluid import proportional_fairness, water_filling
from allocator.testing import amounts_granted, placement, static_snapshot

SOURCE = "Ghodsi et al., NSDI 2011, sec. 4.1 and 4.3"

CAPACITY = np.array([9.0, 18.0])
DEMAND = np.array([[1.0, 4.0], [3.0, 1.0]])

ASSET = (63 / 25, 54 / 25)
CEEI = (45 / 11, 18 / 11)
SCALE = 275
"""So many clusters in one make every optimum a whole number of tasks."""


def filled(policy: str, scale: int = 1) -> list[int]:
    """Tasks of A and B where a policy fills an empty cluster, `scale` times as large."""
    snapshot = static_snapshot(capacity=[CAPACITY * scale], demand=DEMAND)
    spec = PolicySpec(policy, "listed", mode="characterised", flat=True)
    grants = build(spec).allocate(snapshot, 0)
    return [int(n) for n in placement(snapshot, grants).sum(axis=1)]


def example() -> Report:
    """DRF's own example, and asset fairness and CEEI on the same cluster."""
    weight = np.ones(2)
    dominant = water_filling.rate(DEMAND, CAPACITY, weight)
    asset = water_filling.rate(DEMAND, CAPACITY, weight, lambda need: need.sum(axis=1))
    optimum = proportional_fairness.solve(DEMAND, CAPACITY, weight)
    rows = [
        Row("DRF, whole tasks", exactly(filled("drf"), [3, 2])),
        Row("DRF, dominant shares", exactly(_dominant_shares(), [2 / 3, 2 / 3])),
        Row("DRF, fluid", _fluid(water_filling.solve(DEMAND, CAPACITY, dominant).tasks, (3, 2))),
        Row(
            "asset fairness, fluid",
            _fluid(water_filling.solve(DEMAND, CAPACITY, asset).tasks, ASSET),
        ),
        Row("CEEI, fluid", _fluid(optimum.tasks, CEEI)),
    ]
    for policy, expected in (("drf", (3, 2)), ("asset", ASSET), ("ceei", CEEI)):
        tasks = np.array(filled(policy, SCALE)) / SCALE
        rows.append(
            Row(
                f"{policy}, whole tasks, {SCALE} clusters in one",
                tuple(Cell(float(t), e, 1 / SCALE) for t, e in zip(tasks, expected, strict=True)),
            )
        )
    return Report(
        name="drf-example",
        title="9 CPUs and 18 GB; A needs <1, 4>, B needs <3, 1>: tasks",
        source=SOURCE,
        columns=("A", "B"),
        rows=tuple(rows),
        notes=(
            (
                f"Whole tasks of a cluster {SCALE} times as large come within one task of the "
                f"fluid optimum: the tolerance is 1/{SCALE}."
            ),
        ),
    )


def _dominant_shares() -> list[float]:
    snapshot = static_snapshot(capacity=[CAPACITY], demand=DEMAND)
    spec = PolicySpec("drf", "listed", mode="characterised", flat=True)
    held = amounts_granted(snapshot, build(spec).allocate(snapshot, 0))
    return measures.dominant_share(held, CAPACITY).tolist()


def _fluid(tasks: np.ndarray, expected: tuple[float, float]) -> tuple[Cell, ...]:
    return tuple(Cell(float(t), e, 1e-6) for t, e in zip(tasks, expected, strict=True))

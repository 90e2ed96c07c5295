"""Bonald and Roberts: three types of resource in dynamic traffic.

The text says that other configurations, some with three types, confirm the trends of its figures,
but shows no figure of them. Three classes of jobs need most of one resource each. They are
simulated with the same random numbers under both allocations, and compared seed by seed.

Source: section 3.3 of the paper, its last paragraph.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from allocator.core import Floats
from laboratory.papers.bonald.traffic import (
    EVENTS,
    LOADS,
    POLICIES,
    Profile,
    demand_at,
    mean_rates,
    simulate,
)
from laboratory.papers.report import (
    Panel,
    PaperReport,
    Row,
    TableCell,
    averaged,
    paragraphs,
    through,
)

CLASSES: Profile = ((1, 0.1, 0.1), (0.1, 1, 0.1), (0.1, 0.1, 1))
RATIOS: Mapping[str, Sequence[float]] = {"balanced": (1, 1, 1), "rho 9 : 3 : 1": (9, 3, 1)}

IMPERCEPTIBLE = 0.01
"""Difference of service rates (a job alone: 1) that is invisible in a figure."""

NEAR = 0.02
"""Tolerance of a service rate that is published as about 1 less the load."""


def rates(ratio: Sequence[float], load: float, seeds: Sequence[int], events: int) -> list[Floats]:
    """Service rates of each class under each policy and seed, (policies, seeds, classes)."""
    demand = demand_at(load, CLASSES, ratio)
    return [
        np.array([simulate(policy, CLASSES, demand, seed, events).rate for seed in seeds])
        for policy in POLICIES
    ]


def _at_most(values: Floats, bound: float, tolerance: float = 0.0) -> TableCell:
    return averaged(values.tolist(), bound, tolerance, at_most=True)


def balanced_cells(drf: Floats, pf: Floats, spare: float) -> tuple[TableCell, ...]:
    """Means over the classes, which differ by chance only."""
    over = _at_most((drf / pf).mean(axis=1), 1.0)
    near = averaged(pf.mean(axis=1).tolist(), spare, NEAR)
    return over, near, _at_most(drf.mean(axis=1), spare)


def unbalanced_cells(drf: Floats, pf: Floats, spare: float) -> tuple[TableCell, ...]:
    """Classes 2 and 3, whose resources have less load, and class 1, whose resource has most."""
    over = drf / pf
    return (
        _at_most(over[:, 1:].mean(axis=1), 1.0),
        averaged(pf[:, 0].tolist(), spare, NEAR),
        averaged(drf[:, 0].tolist(), spare, NEAR),
        _at_most(drf[:, 0] - pf[:, 0], 0.0, IMPERCEPTIBLE),
        _at_most(over[:, 2] / over[:, 0], 1.0),
    )


def three_resources(seed: int = 0, trials: int = 10, events: int = EVENTS) -> PaperReport:
    """Section 3.3: the trends of the figures with three types of resource."""
    rows, panels = [], []
    for name, ratio in RATIOS.items():
        means: dict[str, list[TableCell]] = {}
        for load in LOADS:
            drf, pf = rates(ratio, load, range(seed, seed + trials), events)
            cells = (balanced_cells if len(set(ratio)) == 1 else unbalanced_cells)(
                drf, pf, 1 - load
            )
            rows.append(Row(f"{name}, load {load:g}", cells))
            mean_rates({"drf": drf, "pf": pf}, range(len(CLASSES)), means)
        lines = tuple(through(each, LOADS, those) for each, those in means.items())
        panels.append(Panel(name, "load of resource 1", "service rate", lines))
    return PaperReport(
        name="pf-three-resources",
        title="Three classes of jobs on three types of resource in dynamic traffic",
        source="Bonald and Roberts, Performance Evaluation 2014, sec. 3.3",
        columns=("DRF/PF", "PF, 1 - load", "DRF, 1 - load", "DRF less PF", "3 against 1"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Profiles (1, 1/10, 1/10), (1/10, 1, 1/10) and (1/10, 1/10, 1). The text gives neither
            profiles nor numbers. The profiles were chosen here, and the statements of the text
            about trends are compared.

            'DRF/PF': the ratio of service rates, under balanced load for all classes, otherwise for
            classes whose resource has less load; PF should be faster. '1 - load': the rate of the
            class whose resource has the highest load, published as about 1 minus the load, here
            ± {NEAR:g}; under balanced load only for PF, and DRF should be below. 'DRF less PF': the
            loss of that class, published as imperceptible, here at most {IMPERCEPTIBLE:g}. '3
            against 1': DRF/PF of the class with the least load, divided by DRF/PF of the class with
            the highest load; below 1, the former gains more.

            {trials} simulations of {events} events each, with 95 % confidence intervals; both
            allocations get the same random numbers, and are compared simulation by simulation.
        """),
        panels=tuple(panels),
    )

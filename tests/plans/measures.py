"""How far an allocation is from what its policy promises, by independent oracles."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.solvers.fluid.per_server_fairness import residual
from tests.plans.clusters import Cluster, fairest, of_slots, of_two_resources, proportional

_SOME = 2e-3  # of an agent: whoever holds a smaller part of it holds none


@dataclass(frozen=True)
class Measure:
    """What a policy is measured by.

    Attributes
    ----------
    unit : str
    draw : callable
        Makes a random cluster of a seed.
    off : callable
        How far tasks (F, A) on a cluster are off.
    bound : float
        What they may be, for tasks are whole.
    turns : int
        After so many times that all turned over.
    """

    unit: str
    draw: Callable[[int], Cluster]
    off: Callable[[Cluster, np.ndarray], float]
    bound: float
    turns: int = 1


def tasks_from_max_min(cluster: Cluster, tasks: np.ndarray) -> float:
    """By how many tasks any framework is off, by linear programs."""
    return float(np.abs(tasks.sum(axis=1) - fairest(cluster)).max())


def percent_from_proportional(cluster: Cluster, tasks: np.ndarray) -> float:
    """By how many percent the weighted mean of what frameworks get is below the best, by cones."""
    best, got = proportional(cluster), np.maximum(tasks.sum(axis=1), 1e-9)
    return float(100 * np.average(np.log(best / got), weights=cluster.weight))


def percent_from_definition(cluster: Cluster, tasks: np.ndarray) -> float:
    """By how many percent the definition of PS-DSF is missed."""
    demand, capacity = cluster.demand.astype(float), cluster.capacity.astype(float)
    given = tasks.astype(float)
    wrong = residual(given, demand, capacity, cluster.eligible, cluster.weight, least=_SOME)
    return 100 * wrong


MEASURES = {
    "cmmf": Measure("tasks", of_slots, tasks_from_max_min, bound=1.0),
    "pf-exact": Measure("%", of_two_resources, percent_from_proportional, bound=0.1),
    "ps-dsf-exact": Measure("%", of_two_resources, percent_from_definition, bound=1.0),
}

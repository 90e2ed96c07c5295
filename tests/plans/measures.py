"""The distance of allocations from the definitions of policies, by independent oracles."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.plans.clusters import Cluster, fairest, of_slots, of_two_resources, proportional

_SOME = 2e-3  # of an agent: smaller fractions count as zero


@dataclass(frozen=True)
class Measure:
    """The measure of a policy.

    draw: makes a random cluster of a seed.
    off: the deviation of tasks (F, A) on a cluster.
    bound: the permitted deviation, because tasks are whole.
    turns: number of complete turnovers before the measurement.
    """

    unit: str
    draw: Callable[[int], Cluster]
    off: Callable[[Cluster, np.ndarray], float]
    bound: float
    turns: int = 1


def tasks_from_max_min(cluster: Cluster, tasks: np.ndarray) -> float:
    """The maximum deviation of any framework in tasks, by linear programs."""
    return float(np.abs(tasks.sum(axis=1) - fairest(cluster)).max())


def percent_from_proportional(cluster: Cluster, tasks: np.ndarray) -> float:
    """The weighted mean utility relative to the optimum, in percent below it, by conic programs."""
    best, got = proportional(cluster), np.maximum(tasks.sum(axis=1), 1e-9)
    return float(100 * np.average(np.log(best / got), weights=cluster.weight))


def percent_from_definition(cluster: Cluster, tasks: np.ndarray) -> float:
    """The largest violation of the definition of PS-DSF by any framework on any agent, in percent.

    Khamse-Ashari et al., Definition 1: no framework can have more on an agent, unless another one
    loses tasks there whose virtual dominant share on it is not larger. So for each framework and
    suitable agent, some resource that it needs there is used up, and no holder of that resource
    has a larger share. The unused part of the resource, or the difference of the shares, is the
    violation.
    """
    return 100 * max(
        min(_missed(cluster, tasks, framework, agent, need) for need in _needed(cluster, framework))
        for framework, agent in zip(*np.nonzero(cluster.eligible), strict=True)
    )


def _needed(cluster: Cluster, framework: int) -> list[int]:
    return [each for each, amount in enumerate(cluster.demand[framework]) if amount]


def _missed(
    cluster: Cluster, tasks: np.ndarray, framework: int, agent: int, resource: int
) -> float:
    """The violation of the definition if this resource of the agent is the bottleneck."""
    capacity = float(cluster.capacity[agent, resource])
    held = [
        int(count) * int(demand) / capacity
        for count, demand in zip(tasks[:, agent], cluster.demand[:, resource], strict=True)
    ]
    higher = [
        _virtual_share(cluster, tasks, each, agent) for each, has in enumerate(held) if has > _SOME
    ]
    own = _virtual_share(cluster, tasks, framework, agent)
    above = 1 - own / max(higher) if higher else 0.0
    return max(0.0, above, 1 - sum(held))


def _virtual_share(cluster: Cluster, tasks: np.ndarray, framework: int, agent: int) -> float:
    """Its tasks everywhere, by its weight and the number that it could run alone on the agent."""
    alone = min(
        float(cluster.capacity[agent, each] / cluster.demand[framework, each])
        for each in _needed(cluster, framework)
    )
    return float(tasks[framework].sum() / (cluster.weight[framework] * alone))


MEASURES = {
    "cmmf": Measure("tasks", of_slots, tasks_from_max_min, bound=1.0),
    "pf-exact": Measure("%", of_two_resources, percent_from_proportional, bound=0.1),
    "ps-dsf-exact": Measure("%", of_two_resources, percent_from_definition, bound=1.0),
}

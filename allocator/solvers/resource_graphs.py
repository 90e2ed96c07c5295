"""Frameworks, agents and their resources as networkx graphs, and fair tasks written to them.

A *resource graph* has two sorts of nodes, told apart by the attribute ``side``: frameworks (0),
with what one task needs (``need``) and a ``weight``, and agents (1), with a ``capacity``. Both are
amounts by name of the resource; what is not named is nothing. An edge says that the agent suits the
framework. `graphs` has the same for shares of machines and for flows.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid import proportional_fairness_agents as fairness
from allocator.solvers.graphs import MACHINE, USER, sides, suitable

if TYPE_CHECKING:
    import networkx as nx

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def resource_graph(
    demand: Floats,
    capacity: Floats,
    eligible: Bools,
    weight: Floats | None = None,
    *,
    resources: Sequence[str],
    frameworks: Sequence[Hashable] | None = None,
    agents: Sequence[Hashable] | None = None,
) -> "nx.Graph[Any]":
    """Make a graph of what tasks need, what agents have, and who may use which.

    `demand` (F, R); `capacity` (A, R); `eligible` (F, A); `weight` (F,).
    `resources`: names of the columns.
    `frameworks`, `agents`: different ones; ``framework 0``, ``agent 0`` and so on by default.

    Examples
    --------
    >>> graph = resource_graph(
    ...     np.array([[2.0]]), np.array([[8.0]]), np.ones((1, 1), bool), resources=["cpus"]
    ... )
    >>> graph.nodes["framework 0"]["need"]
    {'cpus': 2.0}
    """
    import networkx as nx

    frameworks = frameworks or [f"framework {row}" for row in range(len(demand))]
    agents = agents or [f"agent {row}" for row in range(len(capacity))]
    graph: nx.Graph[Any] = nx.Graph()
    heavy = np.ones(len(demand)) if weight is None else weight
    for name, need, its_weight in zip(frameworks, demand.tolist(), heavy.tolist(), strict=True):
        graph.add_node(name, side=USER, need=_named(resources, need), weight=its_weight)
    for name, has in zip(agents, capacity.tolist(), strict=True):
        graph.add_node(name, side=MACHINE, capacity=_named(resources, has))
    for row, column in zip(*(each.tolist() for each in np.nonzero(eligible)), strict=True):
        graph.add_edge(frameworks[row], agents[column])
    if len(graph) != len(frameworks) + len(agents):
        raise ValueError("frameworks and agents need different names")
    return graph


def fair_tasks(graph: "nx.Graph[Any]", alpha: float = 1.0) -> "nx.Graph[Any]":
    """Find the proportionally fair tasks, or the alpha-fair ones, of a resource graph.

    Returns a copy, in which frameworks and edges have ``tasks``, and agents a ``price`` for each
        resource: the certificate.
    Raises ValueError on a node without a side, an edge within a side, or what the solver refuses.
    Raises NotOptimal.
    """
    names = _names(graph)
    found = fairness.solve(*_arrays(graph, *names), alpha)
    result = _with_tasks(graph, found.tasks, names)
    for name, prices in zip(names[1], found.prices.tolist(), strict=True):
        result.nodes[name]["price"] = _named(names[2], prices)
    return result


def per_server_tasks(graph: "nx.Graph[Any]") -> "nx.Graph[Any]":
    """Find tasks of a resource graph that meet the definition of PS-DSF.

    Returns a copy, in which frameworks and edges have ``tasks``.
    Raises ValueError, NotOptimal as `fair_tasks`.
    """
    names = _names(graph)
    found = per_server_fairness.solve(*_arrays(graph, *names))
    return _with_tasks(graph, found.tasks, names)


_Names = tuple[list[Any], list[Any], list[str]]


def _names(graph: "nx.Graph[Any]") -> _Names:
    """Of frameworks, agents and resources."""
    frameworks, agents = sides(graph)
    amounts = [graph.nodes[name].get("need", {}) for name in frameworks]
    amounts += [graph.nodes[name].get("capacity", {}) for name in agents]
    return frameworks, agents, sorted({name for each in amounts for name in each})


def _arrays(
    graph: "nx.Graph[Any]", frameworks: list[Any], agents: list[Any], resources: list[str]
) -> tuple[Floats, Floats, Bools, Floats]:
    """What the solvers take: demand, capacity, eligible, weight."""

    def table(names: list[Any], key: str) -> Floats:
        rows = [graph.nodes[name].get(key, {}) for name in names]
        amounts = [[float(row.get(resource, 0.0)) for resource in resources] for row in rows]
        return np.array(amounts, np.float64).reshape(len(names), len(resources))

    weight = np.array([graph.nodes[name].get("weight", 1.0) for name in frameworks], np.float64)
    eligible = suitable(graph, frameworks, agents)
    return table(frameworks, "need"), table(agents, "capacity"), eligible, weight


def _with_tasks(graph: "nx.Graph[Any]", tasks: Floats, names: _Names) -> "nx.Graph[Any]":
    result = graph.copy()
    frameworks, agents, _ = names
    for framework, row in zip(frameworks, tasks, strict=True):
        result.nodes[framework]["tasks"] = float(row.sum())
        for agent, count in zip(agents, row.tolist(), strict=True):
            if result.has_edge(framework, agent):
                result.edges[framework, agent]["tasks"] = count
    return result


def _named(names: Sequence[str], amounts: Sequence[float]) -> dict[str, float]:
    return dict(zip(names, amounts, strict=True))

"""Conversion of allocation problems between the solvers' arrays and networkx graphs.

Operators can export and draw these graphs. `max_min_shares`, `fair_tasks` and `per_server_tasks`
take a graph, and return a copy with the solution in attributes of its nodes and edges. The two
kinds of nodes of a graph are distinguished by the attribute ``side``.

A *constraint graph* has users (0), with ``weight`` and ``limit``, and machine types (1), with
``count``, the number of machines of the type. An edge means that the user can use the type.

A *resource graph* has frameworks (0), with the ``need`` of one task and a ``weight``, and agents
(1), with a ``capacity``. Needs and capacities are amounts by resource name; missing names have the
amount 0. An edge means that the framework can use the agent.

References
----------
.. [1] Hagberg, Schult, Swart. "Exploring Network Structure, Dynamics, and Function using NetworkX."
   SciPy 2008.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid import proportional_fairness_agents as fairness
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min.constraint_graph import UNLIMITED, Bools, Floats, Ints

if TYPE_CHECKING:
    import networkx as nx


USER, MACHINE = 0, 1
"""The sides of a constraint graph."""


def constraint_graph(
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    *,
    users: Sequence[Hashable] | None = None,
    types: Sequence[Hashable] | None = None,
) -> "nx.Graph[Any]":
    """Build a constraint graph from arrays of U users and T machine types.

    `eligible` (U, T): whether user u can use machines of type t.
    `count` (T,): number of machines of each type.
    `weight` (U,): 1 by default.
    `users`, `types`: distinct names; ``user 0``, ``type 0`` and so on by default.

    Examples
    --------
    >>> graph = constraint_graph(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([2, 1, 7]))
    >>> sorted(graph["user 0"])
    ['type 0', 'type 1']
    """
    import networkx as nx

    users = users or [f"user {row}" for row in range(len(eligible))]
    types = types or [f"type {row}" for row in range(len(count))]
    graph: nx.Graph[Any] = nx.Graph()
    heavy = np.ones(len(users)) if weight is None else weight
    for name, its_weight in zip(users, heavy.tolist(), strict=True):
        graph.add_node(name, side=USER, weight=its_weight)
    for name, machines in zip(types, np.asarray(count).tolist(), strict=True):
        graph.add_node(name, side=MACHINE, count=machines)
    rows, columns = np.nonzero(eligible)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        graph.add_edge(users[row], types[column])
    if len(graph) != len(users) + len(types):
        raise ValueError("users and types need different names")
    return graph


def max_min_shares(graph: "nx.Graph[Any]") -> "nx.Graph[Any]":
    """Compute the constrained max-min fair shares of a constraint graph with divisible machines.

    Returns a copy of the graph with new attributes: ``machines`` of each user; ``given`` of each
        edge, the user's machines of the type; and ``cut`` of each user and type, the number of its
        cut in the certificate (see `max_min`), from the lowest level. The cut is -1 for users that
        can use no machine, and for types without users or machines.
    Raises ValueError on a node without a side, an edge within a side, or input that
        `max_min.solve` refuses.
    Raises NotOptimal.
    """
    found = max_min.solve(*_arrays(graph))
    result = graph.copy()
    of_user, of_type = _cuts(found)
    users, types = sides(graph)
    for name, cut in zip([*users, *types], [*of_user.tolist(), *of_type.tolist()], strict=True):
        result.nodes[name]["cut"] = cut
    _write_given(result, found.machines, found.given)
    return result


def _arrays(graph: "nx.Graph[Any]") -> tuple[Bools, Ints, Floats, Floats]:
    """Return the arrays that `max_min.solve` takes: eligible, count, weight, limit."""
    users, types = sides(graph)
    return (
        suitable(graph, users, types),
        np.array([graph.nodes[name].get("count", 1) for name in types], np.int64),
        np.array([graph.nodes[name].get("weight", 1.0) for name in users], np.float64),
        np.array([graph.nodes[name].get("limit", UNLIMITED) for name in users], np.float64),
    )


def _write_given(graph: "nx.Graph[Any]", machines: Floats, given: Floats) -> None:
    users, types = sides(graph)
    column_of = {name: column for column, name in enumerate(types)}
    for row, name in enumerate(users):
        graph.nodes[name]["machines"] = machines[row].item()
        for kind in graph[name]:
            graph.edges[name, kind]["given"] = given[row, column_of[kind]].item()


def _cuts(found: max_min.MaxMinSolution) -> tuple[Ints, Ints]:
    """Return the number of the cut of each user and of each type; -1 for none."""
    graph = found.classes.graph
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count) + 1, -1)
    for number, cut in enumerate(found.classes.cuts):
        of_class[cut.classes], of_group[cut.groups] = number, number
    # The last entry is for types without a group, which have the number -1.
    return of_class[graph.class_of_user], of_group[graph.group_of_type]


def sides(graph: "nx.Graph[Any]") -> tuple[list[Any], list[Any]]:
    """Return the names on each side of a graph. Raises ValueError on a node without a side."""
    users: list[Any] = []
    types: list[Any] = []
    for name, attributes in graph.nodes(data=True):
        side = attributes.get("side")
        if side not in {USER, MACHINE}:
            raise ValueError(f"node {name!r} has the side {side!r}; it must be 0 or 1")
        (users if side == USER else types).append(name)
    return users, types


def suitable(graph: "nx.Graph[Any]", users: Sequence[Any], machines: Sequence[Any]) -> Bools:
    """Return which users and machines an edge joins, (users, machines).

    Raises ValueError on an edge within a side.
    """
    row_of = {name: row for row, name in enumerate(users)}
    column_of = {name: column for column, name in enumerate(machines)}
    found = np.zeros((len(users), len(machines)), np.bool_)
    for one, other in graph.edges:
        user, machine = (one, other) if one in row_of else (other, one)
        if user not in row_of or machine not in column_of:
            raise ValueError(f"an edge joins {one!r} and {other!r}, which are on one side")
        found[row_of[user], column_of[machine]] = True
    return found


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
    """Build a resource graph from arrays of F frameworks, A agents and R resources.

    `demand` (F, R): needs of one task; `capacity` (A, R): of each agent.
    `eligible` (F, A): whether the framework can use the agent.
    `weight` (F,): 1 by default.
    `frameworks`, `agents`: distinct names; ``framework 0``, ``agent 0`` and so on by default.

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
    """Compute the alpha-fair numbers of tasks of a resource graph; by default proportionally fair.

    Returns a copy of the graph with new attributes: ``tasks`` of each framework and edge, and
        ``price`` of each agent, the prices by resource name that prove the optimum.
    Raises ValueError on a node without a side, an edge within a side, or input that the solver
        rejects.
    Raises NotOptimal as the solver, `proportional_fairness_agents.solve`.
    """
    names = _names(graph)
    found = fairness.solve(*_fluid_arrays(graph, *names), alpha)
    result = _with_tasks(graph, found.tasks, names)
    for name, prices in zip(names[1], found.prices.tolist(), strict=True):
        result.nodes[name]["price"] = _named(names[2], prices)
    return result


def per_server_tasks(graph: "nx.Graph[Any]") -> "nx.Graph[Any]":
    """Compute a PS-DSF allocation of a resource graph, see `per_server_fairness`.

    Returns a copy of the graph with the attribute ``tasks`` of each framework and edge.
    Raises ValueError, NotOptimal as `fair_tasks`.
    """
    names = _names(graph)
    found = per_server_fairness.solve(*_fluid_arrays(graph, *names))
    return _with_tasks(graph, found.tasks, names)


_Names = tuple[list[Any], list[Any], list[str]]


def _names(graph: "nx.Graph[Any]") -> _Names:
    frameworks, agents = sides(graph)
    amounts = [graph.nodes[name].get("need", {}) for name in frameworks]
    amounts += [graph.nodes[name].get("capacity", {}) for name in agents]
    return frameworks, agents, sorted({name for each in amounts for name in each})


def _fluid_arrays(
    graph: "nx.Graph[Any]", frameworks: list[Any], agents: list[Any], resources: list[str]
) -> tuple[Floats, Floats, Bools, Floats]:
    """Return the arrays that the solvers take: demand, capacity, eligible, weight."""

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

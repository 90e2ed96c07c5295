"""Graphs that people read, as networkx has them: constraint graphs and flow networks.

The solvers work on arrays. Here are their problems as graphs, for an operator to export and draw,
and for whoever has one already: `max_min_shares` and `cheapest_flow` take a graph and give it back
with the solution written to its nodes and edges.

A *constraint graph* has two sorts of nodes, told apart by the attribute ``side``: users (0), with
``weight`` and ``limit``, and machines (1), with ``count``: how many of the type there are. An edge
says that the user can use them. A *flow network* is as networkx's own functions take it: nodes have
a ``demand`` (negative for a supply), edges a ``capacity`` and a ``weight``, the cost of a unit.

References
----------
.. [1] Hagberg, Schult, Swart. "Exploring Network Structure, Dynamics, and Function using NetworkX."
   SciPy 2008.
"""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from allocator.solvers.flow.min_cost_flow import Network, solve
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from allocator.solvers.max_min.constraint_graph import UNLIMITED, Bools, Floats, Ints

if TYPE_CHECKING:
    import networkx as nx

USER, MACHINE = 0, 1
"""The sides of a constraint graph."""

_NO_CAPACITY = 2**40  # of an edge that names none: more than all that is supplied


def constraint_graph(
    eligible: Bools,
    count: Ints,
    weight: Floats | None = None,
    *,
    users: Sequence[Hashable] | None = None,
    types: Sequence[Hashable] | None = None,
) -> "nx.Graph[Any]":
    """Make a graph of who can use which machines.

    `eligible` (U, T); `count` (T,); `weight` (U,).
    `users`, `types`: different ones; ``user 0``, ``type 0`` and so on by default.

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
    """Find the constrained max-min fair shares of a constraint graph, of divisible machines.

    Returns a copy, in which users have ``machines``, edges what is ``given``, and users and
        machines the number of their ``cut``: the sets that prove it, from the lowest share; -1 for
        who can use no machine, and for machines that nobody can use.
    Raises ValueError on a node without a side, an edge within a side, or what `max_min.solve`
        refuses.
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


def whole_shares(graph: "nx.Graph[Any]") -> "nx.Graph[Any]":
    """Find the constrained max-min fair shares of a constraint graph, of whole machines.

    Returns a copy, in which users have ``machines``, and edges what is ``given``.
    Raises ValueError, NotOptimal as `max_min_shares`.
    """
    found = max_min_whole.solve(*_arrays(graph))
    result = graph.copy()
    _write_given(result, found.machines, found.given)
    return result


def _arrays(graph: "nx.Graph[Any]") -> tuple[Bools, Ints, Floats, Floats]:
    """What the solvers take: eligible, count, weight, limit."""
    users, types = sides(graph)
    return (
        suitable(graph, users, types),
        np.array([graph.nodes[name].get("count", 1) for name in types], np.int64),
        np.array([graph.nodes[name].get("weight", 1.0) for name in users], np.float64),
        np.array([graph.nodes[name].get("limit", UNLIMITED) for name in users], np.float64),
    )


def _write_given(graph: "nx.Graph[Any]", machines: Floats | Ints, given: Floats | Ints) -> None:
    """Write what users get to them, and to their edges."""
    users, types = sides(graph)
    column_of = {name: column for column, name in enumerate(types)}
    for row, name in enumerate(users):
        graph.nodes[name]["machines"] = machines[row].item()
        for kind in graph[name]:
            graph.edges[name, kind]["given"] = given[row, column_of[kind]].item()


def _cuts(found: max_min.Solution) -> tuple[Ints, Ints]:
    """The cut of each user and of each type; -1 for none."""
    graph = found.classes.graph
    of_class, of_group = np.full(len(graph.size), -1), np.full(len(graph.count) + 1, -1)
    for number, cut in enumerate(found.classes.cuts):
        of_class[cut.classes], of_group[cut.groups] = number, number
    # The last entry is that of types in no group, which have the number -1.
    return of_class[graph.class_of_user], of_group[graph.group_of_type]


def sides(graph: "nx.Graph[Any]") -> tuple[list[Any], list[Any]]:
    """The names on either side of a constraint graph or resource graph; an error without one."""
    users: list[Any] = []
    types: list[Any] = []
    for name, attributes in graph.nodes(data=True):
        side = attributes.get("side")
        if side not in {USER, MACHINE}:
            raise ValueError(f"node {name!r} has the side {side!r}; it must be 0 or 1")
        (users if side == USER else types).append(name)
    return users, types


def suitable(graph: "nx.Graph[Any]", users: Sequence[Any], machines: Sequence[Any]) -> Bools:
    """Who has an edge to which machines, (U, T); an error where one joins a side to itself."""
    row_of = {name: row for row, name in enumerate(users)}
    column_of = {name: column for column, name in enumerate(machines)}
    found = np.zeros((len(users), len(machines)), np.bool_)
    for one, other in graph.edges:
        user, machine = (one, other) if one in row_of else (other, one)
        if user not in row_of or machine not in column_of:
            raise ValueError(f"an edge joins {one!r} and {other!r}, which are on one side")
        found[row_of[user], column_of[machine]] = True
    return found


def flow_graph(network: Network, names: Sequence[Hashable] | None = None) -> "nx.DiGraph[Any]":
    """Make a graph of a flow network.

    `network`: without two arcs from one node to the same other one.
    `names`: of the nodes, different ones; their numbers by default.
    """
    import networkx as nx

    nodes = list(names or range(len(network.supply)))
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for name, supply in zip(nodes, network.supply.tolist(), strict=True):
        graph.add_node(name, demand=-supply)
    columns = network.tail, network.head, network.capacity, network.cost
    for tail, head, capacity, cost in zip(*(each.tolist() for each in columns), strict=True):
        graph.add_edge(nodes[tail], nodes[head], capacity=capacity, weight=cost)
    if len(graph) != len(nodes) or graph.number_of_edges() != len(network.tail):
        raise ValueError("nodes need different names, and arcs different ends")
    return graph


def flow_network(graph: "nx.DiGraph[Any]") -> tuple[Network, list[Any]]:
    """Read a graph as a flow network.

    Returns `network`: arcs in the order of the graph's edges; `names`: of the nodes.
    """
    names = list(graph.nodes)
    number = {name: row for row, name in enumerate(names)}
    edges = list(graph.edges(data=True))
    demand = [graph.nodes[name].get("demand", 0) for name in names]
    network = Network(
        np.array([number[tail] for tail, _, _ in edges], np.int64),
        np.array([number[head] for _, head, _ in edges], np.int64),
        np.array([data.get("capacity", _NO_CAPACITY) for _, _, data in edges], np.int64),
        np.array([data.get("weight", 0) for _, _, data in edges], np.int64),
        -np.array(demand, np.int64),
    )
    return network, names


def cheapest_flow(graph: "nx.DiGraph[Any]") -> "nx.DiGraph[Any]":
    """Find a flow of minimum cost.

    Returns a copy, in which edges have a ``flow`` and nodes a ``potential``, which prove it.
    Raises ValueError, Infeasible, NotOptimal as `min_cost_flow.solve`.
    """
    network, names = flow_network(graph)
    found = solve(network)
    result = graph.copy()
    for name, potential in zip(names, found.potential.tolist(), strict=True):
        result.nodes[name]["potential"] = potential
    for (tail, head), flow in zip(graph.edges, found.flow.tolist(), strict=True):
        result.edges[tail, head]["flow"] = flow
    return result

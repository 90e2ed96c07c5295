"""Problems as networkx has them: there and back, with solutions, against networkx itself."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.flow.min_cost_flow import Infeasible, Network
from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid import proportional_fairness_agents as fairness
from allocator.solvers.graphs import (
    cheapest_flow,
    constraint_graph,
    flow_graph,
    flow_network,
    max_min_shares,
    whole_shares,
)
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from allocator.solvers.resource_graphs import fair_tasks, per_server_tasks, resource_graph


@st.composite
def problems(draw: st.DrawFn):
    users, types = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    eligible = draw(arrays(np.bool_, (users, types)))
    count = draw(arrays(np.int64, types, elements=st.integers(0, 9)))
    return eligible, count, draw(arrays(np.float64, users, elements=st.floats(0.1, 10)))


@given(problems())
def test_shares_are_those_of_the_arrays(problem) -> None:
    eligible, count, weight = problem
    solved = max_min_shares(constraint_graph(eligible, count, weight))
    best = max_min.solve(eligible, count, weight)
    for row, machines in enumerate(best.machines):
        name = f"user {row}"
        assert solved.nodes[name]["machines"] == machines
        given_out = sum(data["given"] for _, _, data in solved.edges(name, data=True))
        assert given_out == pytest.approx(machines)
    for user, kind, data in solved.edges(data=True):
        # Machines go to their own cut alone; nobody could use those of a higher one.
        cuts = solved.nodes[user]["cut"], solved.nodes[kind]["cut"]
        assert cuts[0] >= cuts[1]
        assert data["given"] <= 1e-9 or cuts[0] == cuts[1]


@given(problems())
def test_the_smallest_share_is_what_networkx_says(problem) -> None:
    """By Hall's condition: all can have a level if a flow of networkx carries it."""
    eligible, count, _ = problem
    graph = max_min_shares(constraint_graph(eligible, count))
    able = [name for name, data in graph.nodes(data=True) if data["side"] == 0 and graph[name]]
    least = min((graph.nodes[name]["machines"] for name in able), default=0.0)
    network: nx.DiGraph = nx.DiGraph()
    for name in able:
        network.add_edge("s", name, capacity=least)
        for kind in graph[name]:
            network.add_edge(name, kind)
            network.add_edge(kind, "t", capacity=graph.nodes[kind]["count"])
    if able:
        assert nx.maximum_flow_value(network, "s", "t") == pytest.approx(least * len(able))


@st.composite
def networks(draw: st.DrawFn) -> nx.DiGraph:
    nodes = draw(st.integers(2, 6))
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    for tail, head in draw(st.lists(ends.filter(lambda end: end[0] != end[1]), max_size=12)):
        numbers = draw(st.tuples(st.integers(0, 6), st.integers(-3, 9)))
        graph.add_edge(tail, head, capacity=numbers[0], weight=numbers[1])
    for tail, head in draw(st.lists(ends, max_size=3)):
        amount = draw(st.integers(0, 4))
        for node, more in ((tail, -amount), (head, amount)):
            graph.nodes[node]["demand"] = graph.nodes[node].get("demand", 0) + more
    return graph


@given(networks())
def test_a_flow_costs_what_networkx_finds(graph: nx.DiGraph) -> None:
    try:
        best = nx.cost_of_flow(graph, nx.network_simplex(graph)[1])
    except nx.NetworkXUnfeasible:
        with pytest.raises(Infeasible):
            cheapest_flow(graph)
        return
    solved = cheapest_flow(graph)
    edges = solved.edges(data=True)
    assert sum(data["flow"] * data["weight"] for _, _, data in edges) == best
    for node, data in solved.nodes(data=True):
        arrives = sum(data["flow"] for _, _, data in solved.in_edges(node, data=True))
        leaves = sum(data["flow"] for _, _, data in solved.out_edges(node, data=True))
        assert arrives - leaves == data.get("demand", 0)
    for tail, head, data in edges:
        potential = solved.nodes[tail]["potential"] - solved.nodes[head]["potential"]
        gain = data["weight"] + potential
        assert gain >= 0 or data["flow"] == data["capacity"]
        assert gain <= 0 or data["flow"] == 0


def test_a_network_goes_there_and_back() -> None:
    tail, head = np.array([0, 1]), np.array([1, 2])
    network = Network(tail, head, np.array([3, 4]), np.array([5, -6]), np.array([2, 0, -2]))
    again, names = flow_network(flow_graph(network, ["a", "b", "c"]))
    assert names == ["a", "b", "c"]
    for one, other in zip(
        (network.tail, network.head, network.capacity, network.cost, network.supply),
        (again.tail, again.head, again.capacity, again.cost, again.supply),
        strict=True,
    ):
        assert one.tolist() == other.tolist()


def test_what_is_no_graph_of_this_sort_is_named() -> None:
    graph: nx.Graph = nx.Graph()
    graph.add_node("a")
    with pytest.raises(ValueError, match="node 'a' has the side None"):
        max_min_shares(graph)
    graph.nodes["a"]["side"] = 0
    graph.add_node("b", side=0)
    graph.add_edge("a", "b")
    with pytest.raises(ValueError, match="'a' and 'b', which are on one side"):
        max_min_shares(graph)
    with pytest.raises(ValueError, match="different names"):
        constraint_graph(np.ones((1, 1), bool), np.ones(1, int), users=["x"], types=["x"])
    one = np.ones(2, int)
    twice = Network(np.zeros(2, int), one, one, one, np.zeros(2, int))
    with pytest.raises(ValueError, match="arcs different ends"):
        flow_graph(twice)


@given(problems())
def test_whole_shares_are_those_of_the_arrays(problem) -> None:
    solved = whole_shares(constraint_graph(*problem))
    best = max_min_whole.solve(*problem)
    for row, machines in enumerate(best.machines):
        name = f"user {row}"
        assert solved.nodes[name]["machines"] == machines
        assert sum(data["given"] for _, _, data in solved.edges(name, data=True)) == machines


@st.composite
def clusters(draw: st.DrawFn):
    frameworks, agents = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    amounts = st.sampled_from([1.0, 2.0, 5.0])
    demand = draw(arrays(np.float64, (frameworks, 2), elements=amounts))
    capacity = draw(arrays(np.float64, (agents, 2), elements=st.sampled_from([0.0, 10.0, 40.0])))
    eligible = draw(arrays(np.bool_, (frameworks, agents)))
    return demand, capacity, eligible, draw(arrays(np.float64, frameworks, elements=amounts))


@given(clusters())
def test_tasks_of_resource_graphs_are_those_of_the_arrays(cluster) -> None:
    demand, capacity, eligible, weight = cluster
    graph = resource_graph(demand, capacity, eligible, weight, resources=["cpus", "mem"])
    for solved, best in (
        (fair_tasks(graph, 2.0), fairness.solve(demand, capacity, eligible, weight, 2.0)),
        (per_server_tasks(graph), per_server_fairness.solve(demand, capacity, eligible, weight)),
    ):
        assert nx.is_isomorphic(solved, graph)
        for framework, agent, data in solved.edges(data=True):
            row, column = int(framework.split()[1]), int(agent.split()[1])
            assert data["tasks"] == best.tasks[row, column]
            assert solved.nodes[framework]["tasks"] == best.tasks[row].sum()
    # The prices prove the first: no task costs less than what it is worth.
    solved = fair_tasks(graph)
    for framework, agent in solved.edges:
        need, price = solved.nodes[framework]["need"], solved.nodes[agent]["price"]
        cost = sum(need[resource] * price[resource] for resource in need)
        tasks = solved.nodes[framework]["tasks"]
        lacks = any(solved.nodes[agent]["capacity"][resource] == 0 for resource in need)
        assert lacks or cost * tasks >= solved.nodes[framework]["weight"] * (1 - 1e-6)


def test_a_resource_graph_of_an_operator_may_leave_out_what_is_nothing() -> None:
    graph: nx.Graph = nx.Graph()
    graph.add_node("etl", side=0, need={"cpus": 1.0})
    graph.add_node("learn", side=0, need={"cpus": 1.0, "gpus": 1.0}, weight=3.0)
    graph.add_node("plain", side=1, capacity={"cpus": 8.0})
    graph.add_node("fast", side=1, capacity={"cpus": 8.0, "gpus": 4.0})
    graph.add_edges_from([("etl", "plain"), ("etl", "fast"), ("learn", "plain"), ("learn", "fast")])
    solved = fair_tasks(graph)
    assert solved.nodes["learn"]["tasks"] == pytest.approx(4)
    assert solved.nodes["etl"]["tasks"] == pytest.approx(12)
    assert solved.edges["learn", "plain"]["tasks"] == 0
    graph.add_edge("plain", "fast")
    with pytest.raises(ValueError, match="'plain' and 'fast', which are on one side"):
        per_server_tasks(graph)

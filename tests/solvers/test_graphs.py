"""Problems converted to networkx and back, with solutions, compared with networkx's own."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid import proportional_fairness_agents as fairness
from allocator.solvers.graphs import (
    constraint_graph,
    fair_tasks,
    max_min_shares,
    per_server_tasks,
    resource_graph,
)
from allocator.solvers.max_min import max_min


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
        # A user gets machines only of its own cut, and is eligible for none of a higher one.
        cuts = solved.nodes[user]["cut"], solved.nodes[kind]["cut"]
        assert cuts[0] >= cuts[1]
        assert data["given"] <= 1e-9 or cuts[0] == cuts[1]


@given(problems())
def test_the_smallest_share_is_what_networkx_says(problem) -> None:
    """By Hall's condition: a level is feasible if networkx finds a flow for it."""
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


def test_invalid_graphs_are_refused_with_a_reason() -> None:
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
    # The prices prove the first: no task costs less than its value.
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

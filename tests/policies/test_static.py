"""Snapshots made by hand."""

import numpy as np

from allocator.testing import excluded_pairs, make_tree, placement, static_snapshot, thousandths
from tests.tables import dense


def test_agents_begin_at_row_one_and_amounts_are_thousandths():
    cluster = static_snapshot(capacity=[[1.5, 2.0], [3.0, 4.0]], demand=[[0.1, 0]])
    assert cluster.capacity.tolist() == [[0, 0], [1500, 2000], [3000, 4000]]
    assert cluster.agents.tolist() == [1, 2]
    assert cluster.total.tolist() == [4500, 6000]
    assert cluster.demand.tolist() == [[100, 0]]
    assert cluster.characterised.tolist() == [True]
    assert thousandths([[0.0005, 0.001]]).tolist() == [[0, 1]]


def test_roles_become_nodes_children_before_parents():
    """Clients a, b, c in roles 1, 0, 2; role 2 below role 1; b is not served.

    Nodes: a, c, then roles 2, 1, 0.
    """
    made = make_tree(
        role=[1, 0, 2],
        role_parent=[-1, 0, 1],
        weight=[5, 6, 7],
        role_weight=[1, 2, 3],
        served=[1, 2, 4],
        live=[True, False, True],
    )
    tree = made["tree"]
    assert tree.client.tolist() == [0, 2]
    assert tree.parent.tolist() == [3, 2, 3, 4, -1]
    assert tree.child.tolist() == [1, 0, 2, 3]
    assert tree.child_start.tolist() == [0, 0, 0, 1, 3, 4]
    assert tree.weight.tolist() == [5, 7, 3, 2, 1]
    assert tree.served.tolist() == [1, 4, 4, 5, 7]
    assert made["leaf_of_client"].tolist() == [0, -1, 1]
    assert made["parent_of_client"].tolist() == [3, 4, 2]


def test_exclusions_are_bits_of_words():
    barred = np.zeros((66, 2), bool)
    barred[1, 0] = barred[65, 1] = True
    assert dense(excluded_pairs(barred)).tolist() == [[[0, 0], [2, 0], [0, 2]]]


def test_equal_agents_are_one_class():
    cluster = static_snapshot(capacity=[[2], [1], [2]], demand=[[1]])
    assert cluster.classes.capacity.tolist() == [[1000], [2000]]
    assert cluster.classes.count.tolist() == [1, 2]


def test_placement_counts_tasks_by_client_and_agent():
    from allocator.core.snapshot import Grants

    cluster = static_snapshot([[2], [2]], [[1], [1]])
    grants = Grants(
        np.array([1, 1, 0]), np.array([2, 2, 1]), np.array([1, 1, 1]), np.ones((3, 1), int)
    )
    assert placement(cluster, grants).tolist() == [[1, 0], [0, 2]]

"""The tree in which clients compete, against a direct reading of the role paths."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books.competition_tree import shape
from allocator.core.books.roles import RoleTable
from allocator.core.books.turns import Turns

PATHS = ["a", "b", "a/x", "a/y", "a/x/p", "c"]


def role_table(paths: list[str]) -> RoleTable:
    roles = RoleTable()
    for handle, path in enumerate(paths, start=1):
        roles.define(handle, path)
    return roles


def no_turns(clients: int, roles: int) -> Turns:
    """No client has been served before."""
    of_client, of_role = np.zeros(clients, np.int64), np.zeros(roles, np.int64)
    return Turns(of_client, of_client, np.arange(clients), of_client, of_role, of_role)


def ancestors(path: str) -> list[str]:
    """A role and its ancestors, without the root."""
    parts = path.split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


clients = st.lists(st.tuples(st.sampled_from(range(1, 7)), st.booleans()), min_size=1, max_size=12)


@given(clients=clients)
def test_leaves_hang_below_their_roles(clients: list[tuple[int, bool]]):
    roles = role_table(PATHS)
    role = np.array([0] + [r for r, _ in clients])
    live = np.array([False] + [alive for _, alive in clients])
    turns = no_turns(len(role), len(roles.path))
    made = shape(live, role, roles, flat=False)
    tree = made.tree(roles.weight, np.zeros(len(roles.path), np.int64), turns)
    assert tree.client.tolist() == np.flatnonzero(live).tolist()
    root = len(tree.parent) - 1
    assert tree.parent[root] == -1
    assert (tree.parent[:-1] > np.arange(root)).all(), "children come before parents"
    for node in range(root + 1):
        mine = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
        assert mine.tolist() == np.flatnonzero(tree.parent == node).tolist()
    kept = {path for c in tree.client.tolist() for path in ancestors(PATHS[role[c] - 1])}
    virtual = {
        PATHS[role[c] - 1]
        for c in tree.client.tolist()
        if any(path.rpartition("/")[0] == PATHS[role[c] - 1] for path in kept)
    }
    assert root == len(tree.client) + len(kept) + len(virtual)
    for leaf, client in enumerate(tree.client.tolist()):
        depth, node = 0, leaf
        while tree.parent[node] >= 0:
            node, depth = int(tree.parent[node]), depth + 1
        path = PATHS[role[client] - 1]
        assert depth == len(ancestors(path)) + 1 + (path in virtual)
    assert not tree.served.any()


@given(clients=clients)
def test_flat_all_clients_compete_with_the_weights_of_their_roles(
    clients: list[tuple[int, bool]],
):
    roles = role_table(PATHS)
    roles.set_weights({"a/x": 3.0, "c": 0.5})
    role = np.array([0] + [r for r, _ in clients])
    live = np.array([False] + [alive for _, alive in clients])
    made = shape(live, role, roles, flat=True)
    no_turn = no_turns(len(role), len(roles.path))
    tree = made.tree(roles.weight, np.zeros(len(roles.path), np.int64), no_turn)
    root = len(tree.client)
    assert tree.parent.tolist() == [root] * root + [-1]
    expected = [{3: 3.0, 6: 0.5}.get(int(role[c]), 1.0) for c in tree.client]
    assert tree.weight[:-1].tolist() == expected


def test_weights_stand_at_their_role_and_wait_for_it():
    roles = RoleTable()
    roles.set_weights({"a/x": 2.0})
    for handle, path in enumerate(PATHS, start=1):
        roles.define(handle, path)
    live = np.array([False, True, True])
    made = shape(live, np.array([0, 3, 1]), roles, flat=False)
    no_turn = no_turns(3, len(roles.path))
    tree = made.tree(roles.weight, np.zeros(len(roles.path), np.int64), no_turn)
    # Two leaves, then the virtual leaf of a and a/x, then a, then the root.
    assert tree.weight.tolist() == [1.0, 1.0, 1.0, 2.0, 1.0, 1.0]
    assert tree.parent.tolist() == [3, 2, 4, 4, 5, -1]

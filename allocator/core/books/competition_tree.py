"""The tree of one cycle: which clients compete, below which roles."""

from dataclasses import dataclass

import numpy as np

from allocator.core.books.roles import ROOT, RoleTable
from allocator.core.books.turns import Turns, behind, line_up
from allocator.core.numba.memo import fixed, memoize
from allocator.core.snapshot import Bools, Floats, Ints, Tree


@dataclass(frozen=True, slots=True)
class Shape:
    """The tree without the numbers that change from cycle to cycle.

    `client` (L,); `parent` (N,); `child_start`, `child` (N + 1,), (N - 1,).
    `role` (N,): the role whose weight a node has; the root, whose weight is 1, if it has none of
        its own.
    `below` (N,): the role that the children of an inner node are in.
    `top` (L,): the child of the root that a leaf is, or is below.
    `leaf_of_client`, `parent_of_client` (C,).
    """

    client: Ints
    parent: Ints
    child_start: Ints
    child: Ints
    role: Ints
    below: Ints
    top: Ints
    leaf_of_client: Ints
    parent_of_client: Ints

    def tree(
        self,
        weight_of_role: Floats,
        scheme_of_role: Ints,
        turns: Turns,
        weight_of_client: Floats | None = None,
    ) -> Tree:
        """Fill in weights, schemes and turns.

        Clients' own weights (C,), if any, multiply those of their roles.
        """
        leaves = len(self.client)
        role, below = self.role[leaves:], self.below[leaves:]
        # A virtual leaf has no role's weight; below it are only the role's own frameworks.
        virtual = (role == ROOT) & (below != ROOT)
        own = np.where(virtual, turns.here[below], turns.role[below])
        leaf = self.client
        own = np.concatenate([turns.client[leaf], own])
        later = behind(turns.belongs_to[leaf], own[self.top], own[:leaves], turns.in_role[leaf])
        place = line_up(self.parent, turns.framework[leaf] + later, own)
        weight = _chosen(weight_of_role, self.role)
        if weight_of_client is not None:
            weight = _with_own(weight, weight_of_client, self.client)
        return Tree(
            self.client,
            self.parent,
            self.child_start,
            self.child,
            weight,
            place,
            _chosen(scheme_of_role, self.below),
        )


@memoize(size=2)
def _chosen(of_role: np.ndarray, role: Ints) -> np.ndarray:
    return fixed(of_role[role])


@memoize(size=2)
def _with_own(weight: Floats, of_client: Floats, client: Ints) -> Floats:
    """Multiply the leaves' weights, which come first, by those of their clients."""
    weight = weight.copy()
    weight[: len(client)] *= of_client[client]
    return fixed(weight)


def shape(live: Bools, role_of_client: Ints, roles: RoleTable, *, flat: bool) -> Shape:
    """Build the tree over the live clients.

    A role that has both frameworks and child roles to serve gets one more child, of weight 1, for
    its own frameworks: Mesos's virtual leaf.

    `live`, `role_of_client` (C,).
    `flat`: all clients are children of the root, with the weights of their roles.
    """
    client = np.flatnonzero(live)
    if flat:
        root = len(client)
        parent = np.append(np.full(root, root), -1)
        bears = np.append(role_of_client[client], ROOT)
        nowhere = np.full(root + 1, ROOT)
        return _link(client, parent, bears, nowhere, np.full(len(live), root))
    own = role_of_client[client]
    # Keep the roles that have a client, and their ancestors, the deepest roles first.
    kept = np.zeros(len(roles.path), np.bool_)
    kept[own] = True
    kept[ROOT] = True
    for level in reversed(roles.by_depth()):
        kept[roles.parent[level[kept[level]]]] = True
    rows = np.flatnonzero(kept)
    inner = rows[rows != ROOT]
    has_child = np.zeros(len(roles.path), np.bool_)
    has_child[roles.parent[inner]] = True
    has_own = np.zeros(len(roles.path), np.bool_)
    has_own[own] = True
    virtual = np.flatnonzero(has_child & has_own & (np.arange(len(roles.path)) != ROOT))
    return _hierarchy(client, role_of_client, roles, inner, virtual)


def _hierarchy(
    client: Ints, role_of_client: Ints, roles: RoleTable, inner: Ints, virtual: Ints
) -> Shape:
    """Number the nodes: leaves, then roles, deepest first; virtual leaves before their siblings."""
    leaves = len(client)
    role = np.concatenate([inner, virtual])
    depth = np.concatenate([roles.depth[inner], roles.depth[virtual] + 1])
    is_virtual = np.arange(len(role)) >= len(inner)
    # Children have lower numbers than their parents; on one level the virtual leaves come first.
    order = np.lexsort((role, ~is_virtual, -depth))
    number = np.empty(len(role), np.int64)
    number[order] = leaves + np.arange(len(role))
    root = leaves + len(role)

    # From roles to nodes. The parent of a virtual leaf is its own role's node.
    node_of_role = np.full(len(roles.path), -1, np.int64)
    node_of_role[ROOT] = root
    node_of_role[inner] = number[: len(inner)]
    parent_of_inner = np.empty(len(role), np.int64)
    parent_of_inner[: len(inner)] = node_of_role[roles.parent[inner]]
    parent_of_inner[len(inner) :] = node_of_role[virtual]
    # The nearest ancestor in the tree stands for a role that is not in it, to count the holdings of
    # its clients. From the top, so that the parent is always known.
    for level in roles.by_depth():
        absent = level[node_of_role[level] < 0]
        node_of_role[absent] = node_of_role[roles.parent[absent]]
    # Clients of a role with a virtual leaf are below that leaf.
    holder = node_of_role.copy()
    holder[virtual] = number[len(inner) :]
    parent_of_client = holder[role_of_client]

    # Clients, roles and virtual leaves, root. A virtual leaf has no weight of its own, but its
    # children are in its role.
    parent = np.concatenate([parent_of_client[client], parent_of_inner[order], [-1]])
    bears = np.concatenate(
        [np.zeros(leaves, np.int64), np.where(is_virtual, ROOT, role)[order], [ROOT]]
    )
    below = np.concatenate([np.zeros(leaves, np.int64), role[order], [ROOT]])
    return _link(client, parent, bears, below, parent_of_client)


def _link(client: Ints, parent: Ints, role: Ints, below: Ints, parent_of_client: Ints) -> Shape:
    # Sorted by parent, the children of a node are adjacent, in ascending order.
    child = np.argsort(parent[:-1], kind="stable")
    child_start = np.zeros(len(parent) + 1, np.int64)
    np.cumsum(np.bincount(parent[:-1], minlength=len(parent)), out=child_start[1:])
    leaf_of_client = np.full(len(parent_of_client), -1, np.int64)
    leaf_of_client[client] = np.arange(len(client))
    top = np.arange(len(client))
    while (deeper := parent[parent[top]] >= 0).any():
        top = np.where(deeper, parent[top], top)
    arrays = client, parent, child_start, child, role, below, top, leaf_of_client, parent_of_client
    return Shape(*map(fixed, arrays))

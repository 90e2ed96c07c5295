"""Random inputs for Hypothesis: small, and rich in ties, zeros and corner cases."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from allocator.core.snapshot import Filters, Grants, Snapshot
from allocator.policies.static import excluded_words, make_snapshot, make_tree

# Few distinct values, so that ties, exact fits and exhausted agents are common.
AMOUNTS = st.sampled_from([0, 0, 1000, 2000, 3000, 4000, 6000, 7500, 12_000])
NEEDS = st.sampled_from([0, 0, 500, 1000, 1000, 2000, 3000])
WEIGHTS = st.sampled_from([1.0, 1.0, 2.0, 0.5, 3.0])


def amounts(shape: tuple[int, ...], values: st.SearchStrategy[int] = AMOUNTS):
    return hnp.arrays(np.int64, shape, elements=values, fill=st.nothing())


@st.composite
def snapshot_trees(draw, clients: int) -> dict[str, Any]:
    """Roles up to three deep, with weights, past grants, and clients that are not served."""
    parents = [-1]
    depth = [0]
    for _ in range(draw(st.integers(0, 4))):
        parent = draw(st.integers(0, len(parents) - 1).filter(lambda q: depth[q] < 2))
        parents.append(parent)
        depth.append(depth[parent] + 1)
    of_client = st.lists(st.integers(0, len(parents) - 1), min_size=clients, max_size=clients)
    live = hnp.arrays(np.bool_, clients, elements=st.sampled_from([True, True, True, False]))
    return make_tree(
        role=draw(of_client),
        role_parent=parents,
        weight=draw(st.lists(WEIGHTS, min_size=clients, max_size=clients)),
        role_weight=draw(st.lists(WEIGHTS, min_size=len(parents), max_size=len(parents))),
        served=draw(amounts((clients,), st.integers(0, 2))),
        live=draw(live),
    )


@st.composite
def snapshot_filters(draw, agents: int, clients: int, resources: int) -> Filters:
    """Refusals, as lists of agents 1 to A-1."""
    count = draw(st.integers(0, 6))
    head = np.full(agents, -1)
    following = np.full(count, -1)
    for row in range(count):
        agent = draw(st.integers(1, agents - 1))
        following[row] = head[agent]
        head[agent] = row
    client = draw(amounts((count,), st.integers(0, clients - 1)))
    return Filters(head, following, client, draw(amounts((count, resources))))


@st.composite
def snapshots(draw, *, agents_max: int = 5, clients_max: int = 6) -> Snapshot:
    """Small snapshots in which everything occurs that a cycle may meet.

    Equal agents and clients, empty agents, resources that some lack or that do not count, known and
    unknown demands, weights, deep trees, refusals, exclusions, a minimum, holdings.
    """
    resources = draw(st.integers(1, 3))
    agents = draw(st.integers(1, agents_max)) + 1
    clients = draw(st.integers(1, clients_max))
    absent = draw(st.sampled_from([0, 0, 0, 61, 70]))  # so that bits of two words are in use
    shapes = draw(amounts((draw(st.integers(1, 3)), resources)))
    capacity = shapes[draw(amounts((agents,), st.integers(0, len(shapes) - 1)))]
    capacity[0] = 0
    free = capacity - np.minimum(capacity, draw(amounts(capacity.shape)))
    if draw(st.booleans()):
        free = capacity.copy()
    demand = draw(amounts((clients, resources), NEEDS))
    characterised = draw(hnp.arrays(np.bool_, clients, elements=st.booleans()))
    holds = draw(hnp.arrays(np.bool_, (agents, clients), elements=st.booleans()))
    holds[0] = False
    held = draw(amounts((clients, resources))) * holds.any(axis=0)[:, None]
    tree = draw(snapshot_trees(clients))
    barred = draw(
        hnp.arrays(np.bool_, (clients, agents - 1), elements=st.sampled_from([False, False, True]))
    )
    listed = draw(hnp.arrays(np.bool_, agents, elements=st.sampled_from([True, True, False])))
    listed[0] = False
    shifted = _shift_clients(tree, absent)
    return make_snapshot(
        capacity=capacity,
        free=free,
        counted=draw(
            hnp.arrays(np.bool_, resources, elements=st.sampled_from([True, True, False]))
        ),
        demand=_after(absent, demand),
        characterised=_after(absent, characterised & (demand > 0).any(axis=1)),
        held=_after(absent, held),
        agents_held=_after(absent, holds.sum(axis=0)),
        holder=np.array(
            [(agent << 32) + client + absent for agent, client in np.argwhere(holds)], np.int64
        ),
        agents=np.flatnonzero(listed),
        minimum=draw(amounts((draw(st.integers(0, 2)), resources), NEEDS)),
        excluded=excluded_words(_after(absent, barred)),
        filters=draw(snapshot_filters(agents, absent + clients, resources)),
        **shifted,
    )


def _after(absent: int, rows: np.ndarray) -> np.ndarray:
    """Put so many rows of nothing in front."""
    return np.concatenate([np.zeros((absent, *rows.shape[1:]), rows.dtype), rows])


def _shift_clients(tree: dict[str, Any], absent: int) -> dict[str, Any]:
    """Number the clients from `absent` on; those before are in nobody's service."""
    root = len(tree["tree"].parent) - 1
    return {
        "tree": tree["tree"]._replace(client=tree["tree"].client + absent),
        "leaf_of_client": np.append(np.full(absent, -1), tree["leaf_of_client"]),
        "parent_of_client": np.append(np.full(absent, root), tree["parent_of_client"]),
    }


def after_grants(snapshot: Snapshot, grants: Grants) -> Snapshot:
    """Charge grants: the snapshot as it would be taken after them, but for `served`."""
    free, held = snapshot.free.copy(), snapshot.held.copy()
    np.subtract.at(free, grants.agent, grants.amount)
    np.add.at(held, grants.client, grants.amount)
    holder = np.union1d(snapshot.holder, (grants.agent << 32) + grants.client)
    new = np.setdiff1d(holder, snapshot.holder) & 0xFFFFFFFF
    agents_held = snapshot.agents_held + np.bincount(new, minlength=len(held))
    return replace(snapshot, free=free, held=held, holder=holder, agents_held=agents_held)

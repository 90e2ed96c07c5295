"""Random inputs for Hypothesis: small, and rich in ties, zeros and corner cases."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from allocator.core.numba.bit_tables import empty_table
from allocator.core.snapshot import UNBOUNDED, Bounds, Filters, Snapshot, Specials, Tier
from allocator.testing import excluded_pairs, make_snapshot, make_tree, table_of
from tests.oracle_offers import opening_of

# Few distinct values, so that ties, exact fits and exhausted agents are common.
AMOUNTS = (0, 0, 1000, 2000, 3000, 4000, 6000, 7500, 12_000)
NEEDS = (0, 0, 500, 1000, 1000, 2000, 3000)
MINIMUMS = (0, 0, 1000, 2000, 3000, 4000)
WEIGHTS = (1.0, 1.0, 2.0, 0.5, 3.0)


def arrays_of(shape: tuple[int, ...] | int, values: Sequence[Any], dtype: type = np.int64):
    """Arrays with few distinct values; failing examples shrink to the first.

    They are drawn as bytes: one draw for an array, because a draw for each entry took most of the
    time of the tests.
    """
    return _arrays_of(shape, tuple(values), dtype)


@cache  # Hypothesis validates each new strategy, which takes longer than a draw.
def _arrays_of(shape: tuple[int, ...] | int, values: tuple[Any, ...], dtype: type):
    size = int(np.prod(shape))
    options: np.ndarray = np.array(values, dtype)

    def chosen(drawn: bytes) -> np.ndarray:
        return options[np.frombuffer(drawn, np.uint8) % len(options)].reshape(shape)

    return st.binary(min_size=size, max_size=size).map(chosen)


def amounts(shape: tuple[int, ...], values: Sequence[int] = AMOUNTS):
    return arrays_of(shape, values)


def flags(shape: tuple[int, ...] | int, values: Sequence[bool] = (False, True)):
    return arrays_of(shape, values, np.bool_)


@cache
@st.composite
def snapshot_trees(draw, clients: int) -> dict[str, Any]:
    """Roles up to three deep, with weights, past grants, and clients that are not served."""
    parents = [-1]
    depth = [0]
    for _ in range(draw(st.integers(0, 4))):
        parent = draw(st.integers(0, len(parents) - 1).filter(lambda q: depth[q] < 2))
        parents.append(parent)
        depth.append(depth[parent] + 1)
    return make_tree(
        role=draw(amounts((clients,), range(len(parents)))).tolist(),
        role_parent=parents,
        weight=draw(arrays_of(clients, WEIGHTS, np.float64)).tolist(),
        role_weight=draw(arrays_of(len(parents), WEIGHTS, np.float64)).tolist(),
        served=draw(amounts((clients,), range(3))),
        live=draw(flags(clients, (True, True, True, False))),
    )


@cache
@st.composite
def snapshot_filters(draw, agents: int, clients: int, resources: int, kinds: int) -> Filters:
    """Refusals, as lists of agents 1 to A-1."""
    count = draw(st.integers(0, 6))
    head = np.full(agents, -1, np.int32)
    following = np.full(count, -1, np.int32)
    for row, agent in enumerate(draw(amounts((count,), range(1, agents)))):
        following[row] = head[agent]
        head[agent] = row
    client = draw(amounts((count,), range(max(clients - 100, 0), clients)))
    amount = draw(amounts((kinds, count)))
    largest = np.zeros((kinds, agents), np.int64)
    for agent in range(agents):
        row = head[agent]
        while row >= 0:
            largest[:, agent] = np.maximum(largest[:, agent], amount[:, row])
            row = following[row]
    return Filters(
        head=head,
        next=following,
        client=client.astype(np.int32),
        amount=amount,
        plain_kind=np.arange(resources),
        largest=largest,
        covered=empty_table(agents, clients + 1),
    )


@cache
@st.composite
def snapshot_specials(draw, agents: int, clients: int, resources: int) -> Specials:
    """Reserved, revocable, shared and indivisible resources, mostly none."""
    if draw(st.booleans()):
        return Specials.none(agents, clients // 64 + 1)
    count = draw(st.integers(1, 4))
    tier = draw(amounts((count,), [*Tier]))
    free = draw(amounts((agents, count), (0, 0, 0, 500, 1000, 4000)))
    free[0] = 0
    agent, row = np.nonzero(free)
    reached = draw(flags((count, clients), (True, True, False)))
    return Specials(
        start=np.searchsorted(agent, np.arange(agents + 1)),
        row=row,
        free=free[agent, row],
        kind=resources + np.arange(count),
        column=draw(amounts((count,), range(resources))),
        tier=tier,
        bounded=tier == Tier.OPEN,
        whole=draw(flags(count)),
        reach=pack_bits(reached),
    )


@st.composite
def snapshot_bounds(draw, free: np.ndarray, clients: int) -> Bounds:
    """Limits and guarantees of roles, caps and bounds of frameworks, mostly none."""
    resources = free.shape[1]
    count = draw(st.sampled_from([0, 0, 1, 2, 3]))
    own = draw(st.sampled_from([0, 0, 1, 2]))
    if not count and not own:
        return Bounds.none(clients, resources)
    above = np.array([draw(st.sampled_from([-1, *range(q + 1, count)])) for q in range(count)])
    limits = (UNBOUNDED, UNBOUNDED, -1000, 0, 1000, 3000, 6000)
    owed = draw(amounts((count, resources), (0, 0, 1000, 2000, 4000)))
    owed[above >= 0] = 0
    further = draw(amounts((clients, draw(st.sampled_from([1, 2]))), range(-1, own)))
    return Bounds(
        of_client=draw(amounts((clients,), range(-1, count))),
        further=np.where(further >= 0, count + further, -1),
        above=np.append(above, np.full(own, -1)).astype(np.int64),
        left=draw(amounts((count + own, resources), limits)),
        owed=np.concatenate([owed, np.zeros((own, resources), np.int64)]),
        available=free.sum(axis=0) + draw(amounts((resources,))),
        required=owed.sum(axis=0),
    )


@cache
@st.composite
def snapshot_minimum_rows(draw, clients: int, rows: int) -> np.ndarray:
    """The rows of the minimum for each client: mostly all rows for all."""
    result = np.tile([0, rows], (clients, 1))
    for client in draw(st.lists(st.integers(0, clients - 1), max_size=2)):
        first = draw(st.integers(0, rows))
        result[client] = first, draw(st.integers(first, rows))
    return result


def pack_bits(flags: np.ndarray) -> np.ndarray:
    """Pack flags (n, C) into words (n, C // 64 + 1)."""
    result = np.zeros((len(flags), flags.shape[1] // 64 + 1), np.uint64)
    for row, bit in np.argwhere(flags):
        result[row, bit // 64] |= np.uint64(1 << int(bit) % 64)
    return result


def covered_bits(
    filters: Filters,
    free: np.ndarray,
    specials: Specials,
    demand: np.ndarray,
    characterised: np.ndarray,
    minimum: np.ndarray,
    minimum_rows: np.ndarray,
) -> np.ndarray:
    """The bits of `Filters.covered`, pair by pair."""
    opening = [
        opening_of(needs, minimum[first:end].tolist())
        for needs, (first, end) in zip(demand.tolist(), minimum_rows.tolist(), strict=True)
    ]
    covered = np.zeros((len(free), len(demand)), np.bool_)
    for agent in range(len(free)):
        rows = range(specials.start[agent], specials.start[agent + 1])
        row = filters.head[agent]
        while row >= 0:
            client, refused = int(filters.client[row]), filters.amount[:, row]
            plain = demand[client] * opening[client] if characterised[client] else free[agent]
            kinds = filters.plain_kind
            covers = bool((np.where(kinds >= 0, refused[kinds], 0) >= plain).all())
            for e in rows:
                word = int(specials.reach[specials.row[e], client // 64])
                if word >> client % 64 & 1:
                    covers &= bool(refused[specials.kind[specials.row[e]]] >= specials.free[e])
            if characterised[client] and opening[client] != 1 and rows:
                covers = False  # the width of an offer depends on the special kinds
            covered[agent, client] |= covers
            row = filters.next[row]
    return table_of(covered[1:].T)


def bits_of_filters(snapshot: Snapshot) -> np.ndarray:
    """The bits of `Filters.covered` that a snapshot should have."""
    return covered_bits(
        snapshot.filters,
        snapshot.free,
        snapshot.specials,
        snapshot.demand,
        snapshot.characterised,
        snapshot.minimum,
        snapshot.minimum_rows,
    )


@st.composite
def snapshots(
    draw, *, agents_max: int = 5, clients_max: int = 6, several: bool = False
) -> Snapshot:
    """Small snapshots with every situation that a cycle may meet.

    Equal agents and clients, empty agents, resources that some lack or that do not count, known and
    unknown demands, weights, deep trees, refusals, exclusions, a minimum, holdings.

    `several`: mostly offers begin with several tasks.
    """
    resources = draw(st.integers(1, 3))
    agents = draw(st.integers(1, agents_max)) + 1
    clients = draw(st.integers(1, clients_max))
    # So that bits of two words, or of two blocks of words, are in use.
    absent = draw(st.sampled_from([0, 0, 0, 0, 61, 70, 2046]))
    shapes = draw(amounts((draw(st.integers(1, 3)), resources)))
    capacity = shapes[draw(amounts((agents,), range(len(shapes))))]
    capacity[0] = 0
    free = capacity - np.minimum(capacity, draw(amounts(capacity.shape)))
    if draw(st.booleans()):
        free = capacity.copy()
    demand = draw(amounts((clients, resources), NEEDS))
    characterised = draw(flags(clients, (True, True, False) if several else (False, True)))
    holds = draw(flags((agents, clients)))
    holds[0] = False
    held = draw(amounts((clients, resources))) * holds.any(axis=0)[:, None]
    tree = draw(snapshot_trees(clients))
    barred = draw(flags((clients, agents - 1), (False, False, True)))
    listed = draw(flags(agents, (True, True, False)))
    listed[0] = False
    shifted = _shift_clients(tree, absent)
    specials = draw(snapshot_specials(agents, absent + clients, resources))
    filters = draw(
        snapshot_filters(agents, absent + clients, resources, resources + len(specials.kind))
    )
    rows, least = (st.integers(1, 2), MINIMUMS) if several else (st.integers(0, 2), NEEDS)
    minimum = draw(amounts((draw(rows), resources), least))
    demand, characterised = _after(absent, demand), _after(absent, characterised)
    characterised &= (demand > 0).any(axis=1)
    minimum_rows = draw(snapshot_minimum_rows(absent + clients, len(minimum)))
    return make_snapshot(
        capacity=capacity,
        free=free,
        counted=draw(flags(resources, (True, True, False))),
        specials=specials,
        bounds=draw(snapshot_bounds(free, absent + clients)),
        demand=demand,
        characterised=characterised,
        held=_after(absent, held),
        agents_held=_after(absent, holds.sum(axis=0)),
        holder=np.array(
            [(agent << 32) + client + absent for agent, client in np.argwhere(holds)], np.int64
        ),
        agents=np.flatnonzero(listed),
        minimum=minimum,
        minimum_rows=minimum_rows,
        overdue=_after(absent, draw(flags(clients, (False, False, True)))),
        excluded=excluded_pairs(_after(absent, barred)),
        filters=filters._replace(
            covered=covered_bits(
                filters, free, specials, demand, characterised, minimum, minimum_rows
            )
        ),
        **shifted,
    )


def _after(absent: int, rows: np.ndarray) -> np.ndarray:
    """Prepend this number of zero rows."""
    return np.concatenate([np.zeros((absent, *rows.shape[1:]), rows.dtype), rows])


def _shift_clients(tree: dict[str, Any], absent: int) -> dict[str, Any]:
    """Number the clients from `absent` on; earlier rows are unused."""
    root = len(tree["tree"].parent) - 1
    return {
        "tree": tree["tree"]._replace(client=tree["tree"].client + absent),
        "leaf_of_client": np.append(np.full(absent, -1), tree["leaf_of_client"]),
        "parent_of_client": np.append(np.full(absent, root), tree["parent_of_client"]),
    }

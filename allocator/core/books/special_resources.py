"""Lists free special resources (reserved, revocable, shared, ...), and who may have them."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.books.tables import REFINED, REVOCABLE, SHARED
from allocator.core.filters.rest_kind_filters import RestKindFilters
from allocator.core.numba.array_structures import pack
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.shared_bits import shared_width
from allocator.core.resources import Kind
from allocator.core.snapshot import BitWords, Bools, Ints, Specials, Tier

_CAPABILITIES = {
    REVOCABLE: "REVOCABLE_RESOURCES",
    SHARED: "SHARED_RESOURCES",
    REFINED: "RESERVATION_REFINEMENT",
}


def special_kinds(state: State) -> Specials:
    """Return the special kinds, and which clients may get each, without any free amounts.

    Every client may get a kind of the rest: only the module knows the reservations of its parts.
    """
    plain = frozenset(state.space.plain_kind.tolist())
    chosen = [
        (handle, kind)
        for handle, kind in enumerate(state.space.kinds)
        if kind is not None and handle not in plain
    ]
    # By tier, then the innermost reservation first, divisible before indivisible, then by handle.
    chosen.sort(key=lambda each: (_tier(each[1]), -_depth(each[1]), each[1].whole, each[0]))
    kinds = [kind for _, kind in chosen]
    words = shared_width(state.eligibility.excluded)
    reach = np.zeros((len(kinds), words), np.uint64)
    takers: dict[tuple[str, int], BitWords] = {}
    for row, kind in enumerate(kinds):
        key = (kind.reserved_role, _needs(kind))
        if key not in takers:
            takers[key] = pack(_takers(state, *key), words)
        reach[row] = takers[key]
    return Specials.none(0, 0)._replace(
        kind=np.array([handle for handle, _ in chosen], np.int64),
        column=np.array([state.space.column(kind.name) for kind in kinds], np.int64),
        tier=np.array([_tier(kind) for kind in kinds], np.int64),
        bounded=np.array([kind.bounded for kind in kinds], np.bool_),
        whole=np.array([kind.whole for kind in kinds], np.bool_),
        reach=reach,
    )


def with_free(kinds: Specials, free: Ints) -> Specials:
    """Return special kinds with what is free of them; `free` (K, A): by kind and agent."""
    start, row, amount = _list(loop_view(free), loop_view(kinds.kind))
    return kinds._replace(start=start, row=row, free=amount)


@loop
def _list(free: Ints, kind: Ints) -> tuple[Ints, Ints, Ints]:
    """List the kinds (S,) of which each agent has something free, as indices into `kind`."""
    agents = free.shape[1]
    start = np.zeros(agents + 1, np.int64)
    for each in kind:
        for agent in range(agents):
            start[agent + 1] += free[each, agent] != 0
    for agent in range(agents):
        start[agent + 1] += start[agent]
    row, amount = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    end = start[:-1].copy()
    for s in range(len(kind)):
        for agent in range(agents):
            if free[kind[s], agent] != 0:
                row[end[agent]], amount[end[agent]] = s, free[kind[s], agent]
                end[agent] += 1
    return start, row, amount


def without_refusers(specials: Specials, handle: Ints, refusals: RestKindFilters) -> Specials:
    """Bar clients from an agent's rest if they recently got nothing of it.

    Such an agent's rest gets another row in `Specials`, whose reach excludes these clients.

    `handle` (A,): handles of the agents in `specials`.
    """
    row, words = specials.row.copy(), specials.reach.shape[1]
    rows: list[int] = []
    reach: list[BitWords] = []
    places = np.flatnonzero(np.isin(handle, list(refusals))) if len(refusals) else handle[:0]
    for place in places.tolist():
        agent = int(handle[place])
        for entry in range(int(specials.start[place]), int(specials.start[place + 1])):
            usual = int(row[entry])
            kept = refusals.clients(agent, int(specials.kind[usual]), int(specials.free[entry]))
            if kept:
                row[entry] = len(specials.kind) + len(rows)
                rows.append(usual)
                outside = np.zeros(64 * words, np.bool_)
                outside[kept] = True
                reach.append(specials.reach[usual] & ~pack(outside, words))
    if not rows:
        return specials
    some = np.array(rows)
    return specials._replace(
        row=row,
        kind=np.append(specials.kind, specials.kind[some]),
        column=np.append(specials.column, specials.column[some]),
        tier=np.append(specials.tier, specials.tier[some]),
        bounded=np.append(specials.bounded, specials.bounded[some]),
        whole=np.append(specials.whole, specials.whole[some]),
        reach=np.concatenate([specials.reach, reach]),
    )


def out_of_reach(kind: Kind, takes: int, inside: bool) -> tuple[str, ...]:
    """Explain why a client may not get a kind: the missing capabilities, or the role.

    `takes`: the framework's capabilities, as bits.
    `inside`: whether the client's role is, or is below, the role that the kind is reserved to.
    Returns names of capabilities, and the role as ``@role``; empty if the client may get the kind.
    """
    lacking = _needs(kind) & ~takes
    names = tuple(name for bit, name in _CAPABILITIES.items() if lacking & bit)
    return names if inside or not kind.reserved_role else (*names, f"@{kind.reserved_role}")


def _tier(kind: Kind) -> int:
    if kind.rest:
        return Tier.REST
    if kind.shared:
        return Tier.SHARED
    if kind.revocable:
        return Tier.REVOCABLE
    return Tier.RESERVED if kind.depth else Tier.OPEN


def _depth(kind: Kind) -> int:
    return kind.reserved_role.count("/")


def _needs(kind: Kind) -> int:
    return REVOCABLE * kind.revocable + SHARED * kind.shared + REFINED * (kind.depth > 1)


def _takers(state: State, reserved_role: str, needs: int) -> Bools:
    """Return which clients (C,) are in the role or below it, and have the capabilities."""
    clients = state.clients
    takers: Bools = (clients.takes & needs) == needs
    if reserved_role:
        takers = takers & state.roles.inside(reserved_role)[clients.role]
    return takers

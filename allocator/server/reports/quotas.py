"""A copy of what quotas say of roles at one moment, and who is kept waiting by what."""

from dataclasses import dataclass

import numpy as np

from allocator.core import Allocator, Bools, Ints


@dataclass(frozen=True)
class QuotaRows:
    """The roles with a quota or a limit, q of them.

    `outermost` (q,): not below another of these roles.
    `guarantee`, `limit`, `consumed` (q, R), in thousandths: a limit of `UNBOUNDED` is none.
    `bounded` (R,): which resources quotas bound: the scalars.
    `required`, `available` (R,), in thousandths: headroom: what has to stay free for guarantees,
        and what is free and counts against quota.
    """

    path: list[str]
    outermost: Bools
    guarantee: Ints
    limit: Ints
    consumed: Ints
    bounded: Bools
    required: Ints
    available: Ints


@dataclass(frozen=True)
class Overdue:
    """Clients that may be offered something and were not for longer than patience has.

    `filters`: those that refuse offers, on some agents at least.
    `limit`: of the others those in a role that has reached a limit.
    `nothing`: all others.
    """

    filters: int = 0
    limit: int = 0
    nothing: int = 0


def read(allocator: Allocator) -> tuple[QuotaRows, Overdue]:
    """Copy what the core knows; on the core's thread."""
    use = allocator.quota_use()
    rows = QuotaRows(
        path=use.path,
        outermost=use.above < 0,
        guarantee=use.guarantee,
        limit=use.limit,
        consumed=use.consumed,
        required=np.maximum(use.guarantee - use.consumed, 0).sum(axis=0),
        bounded=allocator.state.space.scalar,
        available=use.available,
    )
    reached: Bools = np.asarray((use.left <= 0).any(axis=1))
    # Deepest first: whoever is above has its flag when those below ask for it.
    for index in range(len(reached) - 1, -1, -1):
        reached[index] |= use.above[index] >= 0 and reached[use.above[index]]
    return rows, _overdue(allocator, reached, use.of_role)


def _overdue(allocator: Allocator, reached: Bools, of_role: Ints) -> Overdue:
    """Count who waits; `reached` says which roles with a quota have no more to give."""
    state = allocator.state
    patience, clients = state.settings.patience_cycles, state.clients
    if not patience:
        return Overdue()
    late = np.flatnonzero(state.live_clients() & (clients.waited >= patience))
    refuses = state.filters.rows.per_client[late] > 0
    quota = of_role[clients.role[late]]
    limited = (quota >= 0) & np.append(reached, False)[quota] & ~refuses
    return Overdue(
        filters=int(refuses.sum()),
        limit=int(limited.sum()),
        nothing=int((~refuses & ~limited).sum()),
    )

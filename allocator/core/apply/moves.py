"""What holds, transitions and releases do to the state where many of them come row by row.

The result is the same as when `resources` applies each of them by itself, in their order. Here one
compiled loop changes the ledger for all rows. What follows from that (filters, declines, lessons)
does not change what the ledger does, so it comes after the loop, in the same order.
"""

import numpy as np

from allocator.core.apply.holdings import close_idle, keep_filters, known_rows
from allocator.core.apply.learning import Taken, learn_from_acceptance, learn_from_end
from allocator.core.books.ledger_loops import Rows
from allocator.core.books.state import State
from allocator.core.events import Move, Moves
from allocator.core.snapshot import Bools


def move(state: State, moves: Moves) -> int:
    """Apply rows up to the first that must come as an event, as it opens a client or is wrong.

    All kinds are bound. Returns how many were applied: those of whole events.
    """
    done = 0
    while done < len(moves):
        # It may stop where a client leaves: then clients are looked up again.
        more = _move_some(state, moves.cut(slice(done, None)))
        if not more:
            break
        done += more
    return done


def _move_some(state: State, moves: Moves) -> int:
    rows = _rows(state, moves)
    done = state.ledger.move(
        rows, state.clients.role, state.clients.subscribed, now_ms=state.now_ms
    )
    if done:
        _follow(state, moves.cut(slice(done)), rows.first(done))
    return done


def _rows(state: State, moves: Moves) -> Rows:
    """Whom moves are about."""
    holdings, what = moves.holdings, moves.what
    client, agent = known_rows(state, holdings)
    inside = (holdings.agent > 0) & (holdings.agent < len(state.agents.bound))
    asked = (what == Move.USE) & (holdings.framework == 0) & inside
    # A holding of an unknown pair opens a client.
    apart = (what == Move.HOLD) & (client == 0)
    if apart.any():
        apart = np.isin(moves.event, moves.event[apart])
    return Rows(
        what=what,
        event=moves.event,
        client=client,
        agent=np.where(asked, holdings.agent, agent),
        role=holdings.role,
        kind=holdings.kind,
        amount=np.ascontiguousarray(holdings.amount),
        allocated=moves.allocated,
        asked=asked,
        apart=apart,
        here=np.zeros(len(moves), np.bool_),
        offered=np.zeros(len(moves), np.bool_),
    )


def _follow(state: State, moves: Moves, rows: Rows) -> None:
    """Do what follows from rows that were applied."""
    client, agent, known = rows.client, rows.agent, rows.client > 0
    back = known & (rows.what == Move.RELEASE)
    used = known & (rows.what == Move.USE)
    if back.any():
        _keep_filters(state, moves, rows)
    # Which offers were declined, see `resources.release`.
    over = back & ~rows.offered
    noted = used & rows.offered & rows.amount.any(axis=1)
    accepted = state.accepted.follow(client, agent, noted, back, over)
    declined = over & ~rows.allocated & (moves.refuse_ms >= 0) & ~accepted
    _learn(state, moves, rows, declined)
    if not state.clients.subscribed[client[-1]]:
        close_idle(state, client[-1:])


def _keep_filters(state: State, moves: Moves, rows: Rows) -> None:
    count = len(moves)
    # Where there may be no room for all, one that replaces another makes room for the next.
    step = count if state.filters.has_room(count) else 1
    for start in range(0, count, step):
        some = slice(start, start + step)
        client, agent, refuse_ms = rows.client[some], rows.agent[some], moves.refuse_ms[some]
        keep_filters(state, client, agent, moves.holdings.cut(some), refuse_ms)


def _learn(state: State, moves: Moves, rows: Rows, declined: Bools) -> None:
    """Learn from acceptances, declines and ended tasks."""
    taken = Taken.of(state, moves.holdings)
    used = (rows.what == Move.USE) & taken.something
    ended = (rows.what == Move.RELEASE) & rows.allocated
    if not used.any():
        # Who has learnt nothing before learns nothing of ends.
        ended &= state.clients.learned[rows.client].any(axis=1)
    some = np.flatnonzero((rows.client > 0) & (used | ended | declined))
    columns = some, rows.client[some], used[some], ended[some], rows.here[some]
    declines = state.clients.declines
    for row, client, is_use, is_end, here in zip(*(each.tolist() for each in columns), strict=True):
        if is_use:
            learn_from_acceptance(state, client, taken, row, here=here)
        elif is_end:
            learn_from_end(state, client, taken.lists[row])
        else:
            declines[client] += 1

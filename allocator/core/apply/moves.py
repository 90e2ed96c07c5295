"""Applies many holds, transitions and releases at once.

The result is the same as from the functions in `holdings`, one by one. One compiled loop changes
the ledger for all rows. The consequences (filters, declines, learnt demands) do not affect the
ledger, so they are handled after the loop, in the order of the rows.
"""

import numpy as np

from allocator.core.apply.holdings import close_idle, keep_filters, known_rows
from allocator.core.apply.learning import (
    Taken,
    learn_durations,
    learn_from_acceptance,
    learn_from_end,
)
from allocator.core.books.ledger_loops import Rows
from allocator.core.books.state import State
from allocator.core.events import Move, Moves
from allocator.core.snapshot import Bools


def move(state: State, moves: Moves) -> int:
    """Apply rows up to the first event that needs a new client or is invalid.

    Returns the number of applied rows; events are never applied in part.
    """
    done = 0
    while done < len(moves):
        # The loop stops when a client's row is freed; then look up the clients again.
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
    holdings, what = moves.holdings, moves.what
    client, agent = known_rows(state, holdings)
    inside = (holdings.agent > 0) & (holdings.agent < len(state.agents.bound))
    asked = (what == Move.USE) & (holdings.framework == 0) & inside
    # A holding of a client without a row needs a new row: leave the whole event to `step`.
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
        began_ms=np.full(len(moves), -1),
    )


def _follow(state: State, moves: Moves, rows: Rows) -> None:
    client, agent, known = rows.client, rows.agent, rows.client > 0
    back = known & (rows.what == Move.RELEASE)
    used = known & (rows.what == Move.USE)
    if back.any():
        _keep_filters(state, moves, rows)
    # Which offers were declined, see `holdings.release`.
    over = back & ~rows.offered
    noted = used & rows.offered & rows.amount.any(axis=1)
    accepted = state.accepted.follow(client, agent, noted, back, over)
    declined = over & ~rows.allocated & (moves.refuse_ms >= 0) & ~accepted
    _learn(state, moves, rows, declined)
    ended = back & rows.allocated & rows.amount.any(axis=1)
    learn_durations(state, client, rows.began_ms, ended)
    if not state.clients.subscribed[client[-1]]:
        close_idle(state, client[-1:])


def _keep_filters(state: State, moves: Moves, rows: Rows) -> None:
    count = len(moves)
    # Without room for all filters, add them one by one: one that replaces another makes room.
    step = count if state.filters.has_room(count) else 1
    for start in range(0, count, step):
        some = slice(start, start + step)
        client, agent, refuse_ms = rows.client[some], rows.agent[some], moves.refuse_ms[some]
        keep_filters(state, client, agent, moves.holdings.cut(some), refuse_ms)


def _learn(state: State, moves: Moves, rows: Rows, declined: Bools) -> None:
    taken = Taken.of(state, moves.holdings)
    used = (rows.what == Move.USE) & taken.something
    ended = (rows.what == Move.RELEASE) & rows.allocated
    if not used.any():
        # An ended task only refines a demand that was learnt before.
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

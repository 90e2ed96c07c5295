"""What acceptances, declines and ended tasks tell of a framework's demand."""

import numpy as np

from allocator.core.apply.frameworks import refresh_client
from allocator.core.demand_memory import common_unit, name_topic
from allocator.core.events import Holdings
from allocator.core.snapshot import Bools, Ints
from allocator.core.state import State


def learn_from_acceptances(state: State, client: Ints, holdings: Holdings, here: Bools) -> None:
    """Learn the demand of clients from what they take of their offers.

    Parameters
    ----------
    state : State
    client : (N,) int64
        0 where nobody is known.
    holdings : Holdings
        What they take, N rows.
    here : (N,) bool
        Where the client uses something on the agent already.
    """
    taken = _by_column(state, holdings)
    total = np.maximum(state.total_by_column(), 1)
    share = (taken / total).max(axis=1, initial=0.0)
    clients, settings = state.clients, state.settings
    for row in np.flatnonzero((client > 0) & taken.any(axis=1)).tolist():
        one = int(client[row])
        hasty = clients.declines[one] >= settings.probe_after
        clients.declines[one] = 0
        clients.accepts[one] += 1
        changed = _judge_prior(state, one, taken[row], declined=bool(hasty))
        known = clients.learned[one]
        unit = common_unit(known.tolist(), taken[row].tolist())
        if here[row] and ((taken[row] == 0) & (known > 0)).any():
            # Its executor is there already, and its tasks take no more of some resource.
            changed |= not clients.mixed[one]
            clients.mixed[one] = True
        elif unit is not None:
            # Several tasks of one size: what is learned is the size.
            changed |= unit != tuple(known.tolist())
            clients.learned[one] = unit
        elif not known.any() or share[row] < (known / total).max():
            clients.learned[one] = taken[row]
            changed = True
        _teach(state, one, taken[row])
        # Another one changes nothing, unless it is the one after which what is learned counts.
        if changed or clients.accepts[one] == settings.learn_after:
            refresh_client(state, one)


def _judge_prior(state: State, client: int, taken: Ints, *, declined: bool) -> bool:
    """Keep a client's prior, or give it up, by what it took; True where that changes something.

    Parameters
    ----------
    state : State
    client : int
    taken : (R,) int64, thousandths
    declined : bool
        Whether it declined many offers before. Then the prior is too small, though what was taken
        may be a multiple of it.
    """
    clients, memory = state.clients, state.memory
    prior = clients.prior[client]
    if not prior.any():
        return False
    first = bool(clients.by_prior[client])
    unit = common_unit(prior.tolist(), taken.tolist())
    if unit is None or (declined and (taken != prior).any()):
        prior[:] = 0
        memory.refuted += first
        return True
    if first:
        clients.learned[client] = unit
        memory.confirmed += 1
    return first


def learn_from_ends(state: State, client: Ints, holdings: Holdings, ended: Bools) -> None:
    """Learn from tasks that ended, each in a row of its own, how large a single one is.

    What was accepted at once may have been several tasks: one of the same shape says so. Those of
    other shapes say nothing: an executor and its tasks end one by one, too.

    Parameters
    ----------
    state : State
    client : (N,) int64
        0 where nobody is known.
    holdings : Holdings
        What came back, N rows.
    ended : (N,) bool
        Which of them were in use.
    """
    clients = state.clients
    rows = np.flatnonzero(ended & clients.learned[client].any(axis=1))
    if not len(rows):
        return
    ends = np.column_stack([client[rows], _by_column(state, holdings)[rows]])
    different, count = np.unique(ends, axis=0, return_counts=True)
    for (one, *amounts), times in zip(different.tolist(), count.tolist(), strict=True):
        known = clients.learned[one].tolist()
        unit = common_unit(known, amounts)
        if unit is None:
            continue
        # A task larger than what is remembered says that this is too little.
        _teach(state, one, np.array(amounts), times=times, one_task=True)
        if unit == tuple(amounts) != tuple(known):
            clients.learned[one] = amounts
            refresh_client(state, one)


def _teach(
    state: State, client: int, amounts: Ints, *, times: int = 1, one_task: bool = False
) -> None:
    """Let the frameworks of the same name that come later know."""
    clients = state.clients
    info = state.frameworks.info[int(clients.framework[client])]
    if info is not None:
        topic = name_topic(state.roles.path[int(clients.role[client])], info)
        named = state.space.named(amounts)
        state.memory.teach(state.settings, topic, named, times=times, one_task=one_task)


def _by_column(state: State, holdings: Holdings) -> Ints:
    """Amounts of rows by resource, whatever the kinds, (N, R)."""
    wide = np.zeros((len(holdings.framework), len(state.space)), np.int64)
    wide[:, holdings.kind] = holdings.amount
    return state.space.by_column(wide)

"""Requests to leave agents: what a plan wants for others while somebody holds it.

Mesos takes nothing from a framework that runs. It can ask, by an *inverse offer*, and only about an
agent whose maintenance is scheduled: so a schedule is the operator's leave to ask.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.books.state import State
from allocator.core.snapshot import Ints

RECLAIMS_MAX = 500
"""As many go with one answer; the next ones have the others."""


class Reclaims(NamedTuple):
    """Frameworks that are asked to leave agents, one a row.

    Attributes
    ----------
    framework, agent : (N,) int64
        Handles.
    """

    framework: Ints
    agent: Ints


NO_RECLAIMS = Reclaims(np.zeros(0, np.int64), np.zeros(0, np.int64))


def to_leave(state: State) -> Ints:
    """Who is to leave which agent by the plan in force, as in `Plan`, and was there when it arose.

    Whoever has left since, and come back, found the place free: nobody whom the plan meant took it.
    """
    plan = state.plan
    if plan is None or not len(plan.leave):
        return np.zeros(0, np.int64)
    return plan.leave[state.ledger.opened_ms(plan.leave) <= plan.seen_ms]


def reclaims(state: State, cycle: int) -> Reclaims:
    """Say who is to be asked to leave which agent, by the plan in force.

    A framework is asked only where it is to leave in all of its roles, for it is asked for
    everything that it has there. Only those that hold something still, and agents whose
    maintenance is scheduled.
    """
    leave = to_leave(state)
    if not len(leave) or state.paused:
        return NO_RECLAIMS
    wanted = np.unique(leave >> 32)
    wanted = wanted[state.agents.unavailable_from_ms[wanted] >= 0]
    if not len(wanted):
        return NO_RECLAIMS
    # Who holds something there, and whether it is to leave.
    holder = state.ledger.holders(wanted)
    agent, client = wanted[holder >> 32], holder & (2**32 - 1)
    stays = ~np.isin(agent << 32 | client, leave)
    pair, row = np.unique(agent << 32 | state.clients.framework[client], return_inverse=True)
    asked = pair[np.bincount(row, stays, minlength=len(pair)) == 0]
    # Each cycle begins where the one before ended.
    if len(asked) > RECLAIMS_MAX:
        asked = np.roll(asked, -(cycle * RECLAIMS_MAX % len(asked)))[:RECLAIMS_MAX]
    return Reclaims(asked & (2**32 - 1), asked >> 32)

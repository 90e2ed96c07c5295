"""Reclaims: asks frameworks to leave agents whose resources a plan gives to other clients.

Mesos takes nothing from a running framework. It can ask, by an *inverse offer*, but only about an
agent with scheduled maintenance. The schedule is therefore the operator's permission to ask.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.books.state import Asked, State
from allocator.core.events import InverseOffer
from allocator.core.snapshot import Ints

RECLAIMS_MAX = 500
"""Maximum number of requests per answer; the next answers carry the remaining ones."""

REFUSED_MS = 60_000
"""Minimum time for which a refusal is respected; meanwhile plans prefer to ask other clients."""

_REFUSED = "DECLINE"


class Reclaims(NamedTuple):
    """Requests to frameworks to leave agents, one per row; handles (N,)."""

    framework: Ints
    agent: Ints


NO_RECLAIMS = Reclaims(np.zeros(0, np.int64), np.zeros(0, np.int64))


def to_leave(state: State) -> Ints:
    """Return which clients should leave which agents by the plan in force, keys as in `Plan`.

    Holdings that are newer than the plan do not count: they came from free resources.
    """
    plan = state.plan
    if plan is None or not len(plan.leave):
        return np.zeros(0, np.int64)
    return plan.leave[state.ledger.opened_ms(plan.leave) <= plan.seen_ms]


def asked_to_leave(state: State, *, refused: bool = False) -> Ints:
    """Return unfulfilled requests to clients to leave agents, sorted keys as in `Plan`.

    `refused`: True: those with a refusal in force; False: the others.
    """
    keys, since_ms = [], []
    for (framework, agent), asked in state.asked.items():
        if _refuses(asked, state.now_ms) == refused:
            mine = [agent << 32 | client for client in state.frameworks.clients[framework]]
            keys += mine
            since_ms += [asked.since_ms] * len(mine)
    found = np.array(keys, np.int64)
    return np.sort(found[state.ledger.opened_ms(found) <= np.array(since_ms, np.int64)])


class AskedRow(NamedTuple):
    """A request to a framework to leave an agent, for display.

    `for_s`: time since the first request, in seconds.
    `answer`: as in `Asked`.
    """

    framework: int
    agent: int
    framework_id: str
    name: str
    agent_id: str
    for_s: float
    for_whom: tuple[str, ...]
    answer: str

    def __str__(self) -> str:
        whom = f" for {', '.join(self.for_whom)}" if self.for_whom else ""
        said = f"; it answered {self.answer}" if self.answer else "; it has not answered"
        asked = f"{self.framework_id} is asked to leave {self.agent_id}{whom}"
        return f"{asked}, since {self.for_s:.0f} s{said}"


def asked_rows(state: State) -> tuple[AskedRow, ...]:
    """Return the requests to leave agents, oldest first."""
    rows = []
    for (framework, agent), each in state.asked.items():
        info, at = state.frameworks.info[framework], state.agents.info[agent]
        if info is not None and at is not None:
            names = info.framework_id, info.name, at.agent_id
            for_s = (state.now_ms - each.since_ms) / 1000
            rows.append(AskedRow(framework, agent, *names, for_s, each.for_whom, each.answer))
    return tuple(sorted(rows, key=lambda row: (-row.for_s, row.framework_id, row.agent_id)))


def note_answer(state: State, event: InverseOffer) -> None:
    """Record a framework's answer to the request to leave an agent."""
    key = event.framework, event.agent
    asked = state.asked.get(key)
    if asked is not None:
        until_ms = state.now_ms + max(event.refuse_ms, REFUSED_MS)
        state.asked[key] = asked._replace(answer=event.status, until_ms=until_ms)


def forget_asked(state: State, *, framework: int = 0, agent: int = 0) -> None:
    """Drop the requests of a framework, or of an agent, that has left."""
    for key in [key for key in state.asked if framework == key[0] or agent == key[1]]:
        del state.asked[key]


def reclaims(state: State, cycle: int) -> Reclaims:
    """Choose frameworks to ask to leave agents, by the plan in force, and record the requests.

    An inverse offer concerns all that a framework has on an agent. A framework is therefore asked
    only if by the plan it should leave in all of its roles, still holds something there, and the
    agent's maintenance is scheduled. A request stays until the framework has left or the plan drops
    it. A framework that refuses is not asked again for a while.
    """
    if state.paused:
        return NO_RECLAIMS
    asked = _wanted(state)
    wanted = set(zip((asked & (2**32 - 1)).tolist(), (asked >> 32).tolist(), strict=True))
    for key, each in list(state.asked.items()):
        if key not in wanted and not _refuses(each, state.now_ms):
            del state.asked[key]
    asked = asked[~np.isin(asked, _refusing(state))]
    # If there are too many, each cycle continues after the last request of the previous one.
    if len(asked) > RECLAIMS_MAX:
        asked = np.roll(asked, -(cycle * RECLAIMS_MAX % len(asked)))[:RECLAIMS_MAX]
    found = Reclaims(asked & (2**32 - 1), asked >> 32)
    for framework, agent in zip(found.framework.tolist(), found.agent.tolist(), strict=True):
        if (framework, agent) not in state.asked:
            state.asked[framework, agent] = Asked(state.now_ms, _for_whom(state, agent))
    return found


def _refuses(asked: Asked, now_ms: int) -> bool:
    return asked.answer == _REFUSED and now_ms <= asked.until_ms


def _refusing(state: State) -> list[int]:
    """Return keys ``agent * 2**32 + framework`` of refusals in force."""
    now_ms = state.now_ms
    return [
        agent << 32 | one for (one, agent), each in state.asked.items() if _refuses(each, now_ms)
    ]


def _wanted(state: State) -> Ints:
    """Return keys ``agent * 2**32 + framework`` of frameworks that should leave an agent, (N,)."""
    leave = to_leave(state)
    wanted = np.unique(leave >> 32)
    wanted = wanted[state.agents.unavailable_from_ms[wanted] >= 0]
    if not len(wanted):
        return np.zeros(0, np.int64)
    holder = state.ledger.holders(wanted)
    agent, client = wanted[holder >> 32], holder & (2**32 - 1)
    stays = ~np.isin(agent << 32 | client, leave)
    pair, row = np.unique(agent << 32 | state.clients.framework[client], return_inverse=True)
    keys: Ints = pair[np.bincount(row, stays, minlength=len(pair)) == 0]
    return keys


def _for_whom(state: State, agent: int) -> tuple[str, ...]:
    """Return ids of the frameworks that should get resources of an agent by the plan in force."""
    plan = state.plan
    group = -1 if plan is None or agent >= len(plan.group) else int(plan.group[agent])
    if plan is None or group < 0:
        return ()
    bits = np.unpackbits(plan.allowed[group].astype("<u8").view(np.uint8), bitorder="little")
    clients = np.flatnonzero(bits[: len(state.clients.framework)])
    infos = (state.frameworks.info[each] for each in state.clients.framework[clients].tolist())
    return tuple(sorted({info.framework_id for info in infos if info is not None}))

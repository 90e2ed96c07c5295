"""The last offers that were decided for somebody, and what became of them."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from allocator.core import OfferEvent, Outcomes, Reason, Release, Transition
from allocator.explain.answers import NEVER, Amounts, OfferFate
from allocator.explain.cycles import by_name
from allocator.explain.picture import Picture

OFFERS = 8
"""So many are told of."""

OVER_AND_OVER = 3
"""Whoever declines so many whole agents in a row waits for something else than its turn."""


@dataclass(frozen=True)
class _Decided:
    number: int
    stamp: int
    cycle: int
    at_ms: int
    agent: int
    row: int


def fates(picture: Picture, framework: int, role: int, most: int = OFFERS) -> list[OfferFate]:
    """The last offers to a client (handles of its framework and role), the latest first."""
    found: list[OfferFate] = []
    for record in reversed(picture.cycles):
        made = record.decisions
        rows = np.flatnonzero((made.framework == framework) & (made.role == role))
        for row in reversed(rows.tolist()):
            if len(found) == most:
                return found
            decided = _Decided(
                number=made.first_decision + row,
                stamp=record.stamp,
                cycle=made.cycle,
                at_ms=record.at_ms,
                agent=int(made.agent[row]),
                row=row,
            )
            decision = dict(zip(made.kind.tolist(), made.amount[row].tolist(), strict=True))
            outcome, offered = _outcome(picture, decided, decision)
            then, then_ms, refused_ms = "", NEVER, 0
            if outcome in {"offered", "partial"}:
                then, then_ms, refused_ms = _then(picture, decided, framework, role, offered)
            amounts = by_name(picture.kinds, made, row)
            found.append(
                OfferFate(
                    cycle=decided.cycle,
                    at_ms=decided.at_ms,
                    agent=picture.agent_name(decided.agent),
                    amounts=amounts,
                    outcome=outcome,
                    then=then,
                    then_ms=then_ms,
                    refused_ms=refused_ms,
                    whole=_is_whole(picture, decided.agent, amounts),
                )
            )
    return found


def declined_whole(picture: Picture, client: int) -> int:
    """How many whole agents a client of unknown demand declined, and accepted nothing since.

    0 where they are few, and where its demand is known.
    """
    if picture.clients.demand[client].any():
        return 0
    names, declined = picture.names, 0
    for fate in fates(picture, int(names.framework[client]), int(names.role[client])):
        if fate.then == "accepted":
            break
        declined += fate.then == "declined" and fate.whole
    return declined if declined >= OVER_AND_OVER else 0


def _is_whole(picture: Picture, agent: int, amounts: Amounts) -> bool:
    """Whether amounts are all that an agent has."""
    if agent >= len(picture.agents.bound) or not picture.agents.bound[agent]:
        return False
    has = zip(picture.resources, picture.agents.capacity[agent].tolist(), strict=True)
    return all(amounts.get(name, 0) >= capacity for name, capacity in has)


def _outcome(
    picture: Picture, decided: _Decided, amounts: dict[int, int]
) -> tuple[str, dict[int, int]]:
    """What the module made of it, and what it offered, by kind; empty where that is not known."""
    for each in picture.events:
        event = each.event
        if isinstance(event, Outcomes) and each.stamp > decided.stamp:
            at = decided.number - event.first_decision
            if 0 <= at < len(event.reason):
                if event.reason[at] == Reason.PARTIAL:
                    row = int(event.partial[:at].sum())
                    part = event.amount[row].tolist()
                    amounts = dict(zip(event.kind.tolist(), part, strict=True))
                return Reason(int(event.reason[at])).name.lower().replace("_", " "), amounts
    return "", amounts


def _then(
    picture: Picture, decided: _Decided, framework: int, role: int, amounts: dict[int, int]
) -> tuple[str, int, int]:
    """What the framework did, when, and for how long it refused (ms).

    Of an offer that is accepted the rest comes back, too, and mostly before what is used is told.
    So only what came back whole was declined.

    `amounts` (dict of kind to thousandths): what was offered.
    """
    back, back_ms, refused_ms = Counter[int](), NEVER, 0
    for each in picture.events:
        if each.stamp <= decided.stamp:
            continue
        rows = _rows(each, framework, role, decided.agent)
        if not len(rows):
            continue
        if isinstance(each.event, Transition):
            return "accepted", each.at_ms, 0
        if isinstance(each.event, Release) and not each.event.allocated[rows].all():
            offered = rows[~each.event.allocated[rows]]
            table = each.event.released
            sums = table.amount[offered].sum(axis=0).tolist()
            back.update(dict(zip(table.kind.tolist(), sums, strict=True)))
            back_ms = each.at_ms
            refused_ms = max(refused_ms, int(each.event.refuse_ms[offered].max()))
            if all(back[kind] >= amount for kind, amount in amounts.items()):
                return "declined", back_ms, refused_ms
    return "held", NEVER, 0


def _rows(each: OfferEvent, framework: int, role: int, agent: int) -> np.ndarray:
    """Rows of an event that are about a client's offers on an agent."""
    event = each.event
    if isinstance(event, Outcomes):
        return np.empty(0, np.int64)
    table = event.used if isinstance(event, Transition) else event.released
    # A framework of 0 is one that the master could not tell.
    named = (table.framework == framework) | (table.framework == 0)
    return np.flatnonzero(named & (table.role == role) & (table.agent == agent))

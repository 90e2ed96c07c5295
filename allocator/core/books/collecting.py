"""Records of gangs that collect room over several cycles, and of gangs that were offered."""

from typing import NamedTuple


class Collecting(NamedTuple):
    """What a gang collects: the agents on which free resources are kept for it.

    `since_ms`: when the collection began, by the master's clock.
    `agent`, `line`, `tasks`: agents (handles), lines of the gang (see `Lines`), and for how many
        tasks of the line room is kept on the agent.
    `kept` (R,), in thousandths: what was free and kept at the start of the last full cycle.
    `expected_ms`: when the gang is expected to begin, by the medians of learnt durations: the
        earliest of all forecasts. -1: no forecast yet.
    `latest_ms`: the first forecast by the p95 of learnt durations.
    `lent`: handles of agents whose kept room was offered to clients whose tasks end before.
    """

    since_ms: int
    agent: tuple[int, ...] = ()
    line: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    expected_ms: int = -1
    latest_ms: int = -1
    lent: tuple[int, ...] = ()


class GangOffers(NamedTuple):
    """How a client reacted to gangs that it was offered.

    `accepts`: the client's number of acceptances when it was last offered a gang.
    `declined`: the number of consecutive gangs before that offer from which it accepted nothing.
    `waited`: the full cycles that it had waited for that offer.
    `collected`: what it had collected for that offer; None: it did not collect.
    `made`: False if the module could not make that offer.
    """

    accepts: int
    declined: int
    waited: int
    collected: Collecting | None
    made: bool = True

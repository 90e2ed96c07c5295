"""Gangs that collect room over several cycles: what is kept of them."""

from typing import NamedTuple


class Collecting(NamedTuple):
    """What a gang collects.

    `since_ms`: when it began, by the master's clock.
    `agent`, `tasks`: handles, and for how many of its tasks it keeps room there.
    `kept` (R,), in thousandths: what was free and kept at the start of the last full cycle.
    `expected_ms`, `latest_ms`: when it begins by the medians of learnt durations, and by their p95.
        Of several forecasts the first one counts; of the former, the earliest. -1: none was
        possible yet.
    `lent`: handles of those agents whose room was offered to others, who end before.
    """

    since_ms: int
    agent: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    expected_ms: int = -1
    latest_ms: int = -1
    lent: tuple[int, ...] = ()


class GangOffers(NamedTuple):
    """What a client made of the gangs that it was offered.

    `accepts`: how often it had accepted something when it was offered a gang last.
    `declined`: gangs before that one, in a row, of which it accepted nothing.
    `waited`: full cycles that it had waited for the offer.
    `collected`: what it collected until then; None: nothing.
    `made`: whether the offer was made, as far as is known.
    """

    accepts: int
    declined: int
    waited: int
    collected: Collecting | None
    made: bool = True

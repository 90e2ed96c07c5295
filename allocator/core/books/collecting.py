"""Gangs that collect room over several cycles: what is kept of them."""

from typing import NamedTuple


class Collecting(NamedTuple):
    """What a gang collects.

    `since_ms`: when it began, by the master's clock.
    `agent`, `tasks`: handles, and for how many of its tasks it keeps room there.
    """

    since_ms: int
    agent: tuple[int, ...] = ()
    tasks: tuple[int, ...] = ()


class GangOffers(NamedTuple):
    """What a client made of the gangs that it was offered.

    `accepts`: how often it had accepted something when it was offered a gang last.
    `declined`: gangs before that one, in a row, of which it accepted nothing.
    """

    accepts: int
    declined: int

"""Requests to leave agents; `allocator.core.plans.reclaims` makes them."""

from typing import NamedTuple


class Asked(NamedTuple):
    """A framework that is asked to leave an agent.

    `since_ms`: when it was asked first, by the master's clock.
    `for_whom`: ids of the frameworks that its place is for, by the plan that wanted it first.
    `answer`: what it said, as the wire has it; empty where it has said nothing yet.
    `until_ms`: how long its refusal holds.
    """

    since_ms: int
    for_whom: tuple[str, ...]
    answer: str = ""
    until_ms: int = 0

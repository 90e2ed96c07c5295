"""Requests to leave agents; `allocator.core.plans.reclaims` makes them."""

from typing import NamedTuple


class Asked(NamedTuple):
    """A request to a framework to leave an agent.

    `since_ms`: time of the first request, by the master's clock.
    `for_whom`: ids of the frameworks that should get the resources, by the plan that first required
        the request.
    `answer`: as in the protocol; empty: none yet.
    `until_ms`: when a refusal expires.
    """

    since_ms: int
    for_whom: tuple[str, ...]
    answer: str = ""
    until_ms: int = 0

"""Explain why a client gets no offers: blockers, offers and lost cycles, from a copy of the books.

`take` copies what is needed on the thread that owns the core; everything else works on the copy, on
any thread. No rule is implemented a second time: `barring` uses the tests that the cycles use.
Results are messages of `explain.proto`, with times on the host's clock.

Start with `blockers`, which finds what keeps a client from offers.
"""

from allocator.explain.barring import warm
from allocator.explain.cycles import CYCLES
from allocator.explain.explaining import explain
from allocator.explain.picture import (
    Picture,
    UnknownSubjectError,
    agent_name,
    handle_of_agent,
    handles_of_framework,
    rows_of_role,
    take,
)

__all__ = [
    "CYCLES",
    "Picture",
    "UnknownSubjectError",
    "agent_name",
    "explain",
    "handle_of_agent",
    "handles_of_framework",
    "rows_of_role",
    "take",
    "warm",
]

"""Why somebody gets nothing: blockers, offers and lost cycles, from a picture of the books.

`take` copies what is needed on the thread that owns the core; everything else works on the copy,
on any thread. No rule is written down here a second time: `barring` asks the tests that the cycles
ask. What is found is said in the messages of `explain.proto`, times on the host's clock.

Begin with `blockers`, which finds what keeps somebody from offers.
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

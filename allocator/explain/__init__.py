"""Explains why a client gets no offers: blockers, recent offers, and cycles in which it lost.

`take` copies what is needed on the thread that owns the core; everything else works on the copy, on
any thread. `barring` calls the tests that the cycles use, so no rule is implemented twice. Results
are messages of `explain.proto`, with times on the server's clock. Start with `blockers`.
"""

from allocator.explain.calibration import Calibration, Corrections, ForecastResults
from allocator.explain.cycles import CYCLES
from allocator.explain.explaining import explain, next_offer
from allocator.explain.next_offer import NextOffer
from allocator.explain.picture import (
    Picture,
    UnknownSubjectError,
    agent_name,
    handle_of_agent,
    handles_of_framework,
    rows_of_role,
    take,
    wanting,
)
from allocator.explain.unmet import Shape, Unmet, shapes_of, unmet

__all__ = [
    "CYCLES",
    "Calibration",
    "Corrections",
    "ForecastResults",
    "NextOffer",
    "Picture",
    "Shape",
    "UnknownSubjectError",
    "Unmet",
    "agent_name",
    "explain",
    "handle_of_agent",
    "handles_of_framework",
    "next_offer",
    "rows_of_role",
    "shapes_of",
    "take",
    "unmet",
    "wanting",
]

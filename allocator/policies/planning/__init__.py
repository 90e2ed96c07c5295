"""Policies that plan: a solver says what everybody should have, cycles are steered towards it.

A planner is a function from a `Problem` to a `Plan`; `Steered` decides cycles by the plan, and by
progressive filling where there is none.
"""

from allocator.policies.planning.groups import (
    Groups,
    bits_of,
    dominant_shares,
    group_agents,
    merged,
    plan_by_agent,
    plan_of,
    sole_owners,
)
from allocator.policies.planning.steered import Planner, Steered, same_question

__all__ = [
    "Groups",
    "Planner",
    "Steered",
    "bits_of",
    "dominant_shares",
    "group_agents",
    "merged",
    "plan_by_agent",
    "plan_of",
    "same_question",
    "sole_owners",
]

"""Policies that plan: a solver says what everybody should have, cycles are steered towards it.

A planner is a function from a `Problem` to a `Plan`; `PlanGuided` decides cycles by the plan, and
by progressive filling where there is none.
"""

from allocator.policies.plan_guided.filling import PlanGuided, Planner, same_question
from allocator.policies.plan_guided.groups import (
    Groups,
    bits_of,
    dominant_shares,
    group_agents,
    merged,
    plan_by_agent,
    plan_of,
    sole_owners,
)

__all__ = [
    "Groups",
    "PlanGuided",
    "Planner",
    "bits_of",
    "dominant_shares",
    "group_agents",
    "merged",
    "plan_by_agent",
    "plan_of",
    "same_question",
    "sole_owners",
]

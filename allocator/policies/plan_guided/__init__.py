"""Policies that plan: a solver says what everybody should have, cycles are steered towards it.

A `PlanFunction` makes a `Plan` of a `Problem`. `PlanGuided` decides cycles by the plan, and by
progressive filling where there is none.

Begin with `filling`; `groups` is for solvers.
"""

from allocator.policies.plan_guided.filling import PlanFunction, PlanGuided, same_question
from allocator.policies.plan_guided.groups import (
    Groups,
    affordable,
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
    "PlanFunction",
    "PlanGuided",
    "affordable",
    "bits_of",
    "dominant_shares",
    "group_agents",
    "merged",
    "plan_by_agent",
    "plan_of",
    "same_question",
    "sole_owners",
]

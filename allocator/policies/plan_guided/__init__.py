"""Policies that plan: a solver computes what each client should have, and cycles steer towards it.

`PlanGuided` decides cycles by a `Plan`, or by progressive filling if there is none. A
`PlanFunction` computes plans.

Start with `filling`; solvers' wrappers use `groups`.
"""

from allocator.policies.plan_guided.filling import PlanFunction, PlanGuided, same_question
from allocator.policies.plan_guided.groups import (
    Groups,
    affordable,
    dominant_shares,
    group_agents,
    grouped,
    merged,
    plan_by_agent,
    plan_of,
    sole_owners,
)
from allocator.policies.plan_guided.sorts import bits_of, distinct_agents

__all__ = [
    "Groups",
    "PlanFunction",
    "PlanGuided",
    "affordable",
    "bits_of",
    "distinct_agents",
    "dominant_shares",
    "group_agents",
    "grouped",
    "merged",
    "plan_by_agent",
    "plan_of",
    "same_question",
    "sole_owners",
]

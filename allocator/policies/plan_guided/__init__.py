"""Policies that plan: a solver computes what each client should have, and cycles steer towards it.

`PlanGuided` decides cycles by a `Plan`, or by progressive filling if there is none. A
`PlanFunction` computes plans.

Start with `filling`; solvers' wrappers use `groups`.
"""

from allocator.policies.plan_guided.filling import PlanFunction as PlanFunction
from allocator.policies.plan_guided.filling import PlanGuided as PlanGuided
from allocator.policies.plan_guided.filling import same_question as same_question
from allocator.policies.plan_guided.groups import Groups as Groups
from allocator.policies.plan_guided.groups import affordable as affordable
from allocator.policies.plan_guided.groups import dominant_shares as dominant_shares
from allocator.policies.plan_guided.groups import group_agents as group_agents
from allocator.policies.plan_guided.groups import grouped as grouped
from allocator.policies.plan_guided.groups import merged as merged
from allocator.policies.plan_guided.groups import plan_by_agent as plan_by_agent
from allocator.policies.plan_guided.groups import plan_of as plan_of
from allocator.policies.plan_guided.groups import sole_owners as sole_owners
from allocator.policies.plan_guided.sorts import bits_of as bits_of
from allocator.policies.plan_guided.sorts import distinct_agents as distinct_agents

"""Provides plans that a cycle waits for.

Other plans are computed in the background and arrive as events. A host may let a cycle wait for the
first plan; one without a thread for plans computes all of them within cycles.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from allocator.core.plans.adopted import AdoptPlan
from allocator.core.plans.problems import PlanningPolicy, PlanProblem
from allocator.core.snapshot import Ints

FirstPlan: TypeAlias = Callable[[PlanningPolicy, Ints | None], AdoptPlan | None]
"""Waits for the first plan, for a cycle over some agents (None: all); None: it did not arrive."""


class PlanSource:
    """Supplies plans that do not arrive as events: the first one, and those made within cycles.

    `began_with`: the first plan, if the last cycle waited for it.
    `plans_here`: whether plans are made within cycles.
    """

    def __init__(self, first_plan: FirstPlan | None, *, plans_here: bool) -> None:
        self.began_with: AdoptPlan | None = None
        self._first_plan = first_plan
        self.plans_here = plans_here
        self._foretold: AdoptPlan | None = None
        self._planned: PlanProblem | None = None

    def renew(self) -> None:
        """Forget the last problem, after the policy or the state was replaced."""
        self._planned = None

    def foretell(self, first_plan: AdoptPlan | None) -> None:
        """Set the first plan in advance, so that the next cycle does not wait for it."""
        self._foretold = first_plan

    def first(
        self, planning_policy: PlanningPolicy | None, agents: Ints | None, *, wanted: bool
    ) -> AdoptPlan | None:
        """Wait for the first plan, if a cycle needs one and none exists."""
        plan, self._foretold = self._foretold, None
        if planning_policy is None or not wanted:
            plan = None
        elif plan is None and self._first_plan is not None:
            plan = self._first_plan(planning_policy, agents)
        self.began_with = plan
        return plan

    def here(
        self,
        planning_policy: PlanningPolicy | None,
        agents: Ints | None,
        problem_now: Callable[[], PlanProblem | None],
    ) -> AdoptPlan | None:
        """Make a plan before a cycle over all agents, if the last plan is no longer valid.

        None: no new plan is needed, or making it failed; then the last plan stays in force.
        """
        if not self.plans_here or agents is not None or planning_policy is None:
            return None
        problem = problem_now()
        if problem is None:
            return None
        before, planned = self._planned, None
        if before is None or not planning_policy.stands(before, problem):
            self._planned = problem
            with suppress(Exception):
                planned = AdoptPlan(planning_policy.plan(problem))
        return planned

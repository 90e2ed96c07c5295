"""The allocator: applies events to its books, and decides in cycles who is offered what.

It has no clock, no thread and no random source of its own. Its behaviour depends only on the events
and times that it receives, so the same journal gives the same decisions.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress

import numpy as np

from allocator.core import events
from allocator.core.apply import apply
from allocator.core.apply.moves import move
from allocator.core.apply.settings import replace_settings, set_policy, set_shadow
from allocator.core.books import budgets, usage_over_time
from allocator.core.books.caps import CapTable, capped
from allocator.core.books.quota import QuotaUse, consumed_in, quota_use
from allocator.core.books.state import SessionLimits, State
from allocator.core.books.usage_over_time import ForgetUsage
from allocator.core.checkpoint import Detached, restore
from allocator.core.cycle import before_drains
from allocator.core.cycle import cycle as cycles
from allocator.core.cycle.collecting import renew, waiting
from allocator.core.cycle.deciding import Decide, Decided, Question, decide_by
from allocator.core.cycle.decisions import Decisions, explained
from allocator.core.cycle.demand_probing import note_hunger, probed
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.diagnostics.reallocation import Newcomer, add_newcomer, forget_holdings
from allocator.core.diagnostics.trail import Trail
from allocator.core.events import EventError
from allocator.core.plan import Plan
from allocator.core.plans.adopted import AdoptPlan, adopt, check, still_true
from allocator.core.plans.plan_source import FirstPlan, PlanSource
from allocator.core.plans.problems import PlanningPolicy, PlanProblem, PlanRows
from allocator.core.policy import Policy, PolicySpec, ScoringPolicy
from allocator.core.settings import Settings
from allocator.core.snapshot import Bools, Floats, Ints, Snapshot


class Allocator:
    """Keeps the books of one session, and decides what to offer to which client.

    `state`: the books. Read-only: only methods of the allocator change them.
    `decided`: the grants of the last cycle; None if it had nothing to decide.
    """

    def __init__(
        self,
        build_policy: Callable[[PolicySpec], Policy],
        settings: Settings,
        limits: SessionLimits | None = None,
        *,
        substitute: Policy | None = None,
        around_cycle: Callable[[], AbstractContextManager[object]] = nullcontext,
        trail: Trail | None = None,
        plans: bool = False,
        first_plan: FirstPlan | None = None,
        decide: Decide | None = None,
    ) -> None:
        """Begin a session.

        `build_policy`: builds a policy from its specification; raises ValueError if it is invalid.
        `settings`: operators' settings; the allocator keeps the object, and events change it.
        `substitute`: used if the policy fails or makes invalid grants; None: no grants then.
        `around_cycle`: returns a context manager around each cycle, for hosts that measure time.
        `trail`: records the last cycles and the events about offers.
        `plans`: for a policy that plans. True: plans are computed synchronously, before full cycles
            that need one. False: plans arrive as events (`AdoptPlan`).
        `first_plan`: waits for the first plan; the host limits the time.
        `decide`: decides in place of the policy and the substitute.
        Raises ValueError if the settings name no policy.
        """
        self.state = State(settings, limits or SessionLimits())
        self.last_cycle = cycles.CycleReport()
        self.cycle = 0
        self.decided: Decided | None = None
        self.trail = trail
        self._build = build_policy
        self._use(build_policy(settings.policy))
        self._decide = decide or decide_by(substitute)
        self._around_cycle = around_cycle
        self._snapshots = SnapshotBuilder()
        self._overruled = ""
        self.plan_source = PlanSource(first_plan, plans_here=plans)

    def _use(self, policy: Policy) -> None:
        self._policy = policy
        # Checking against a protocol is slow, so it is not done in each cycle.
        self._planning_policy = policy if isinstance(policy, PlanningPolicy) else None

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def planning_policy(self) -> PlanningPolicy | None:
        """The policy if it plans, else None."""
        return self._planning_policy

    @property
    def settings(self) -> Settings:
        return self.state.settings

    def step(self, event: events.Event | AdoptPlan | ForgetUsage) -> None:
        """Apply one event. Raises EventError if it is not possible; then nothing has changed."""
        if isinstance(event, events.SetPolicy):
            self._use(set_policy(self.state, event, self._build))
            self.plan_source.renew()
            return
        if isinstance(event, AdoptPlan):
            adopt(self.state, event)
            return
        if isinstance(event, ForgetUsage):
            usage_over_time.forget(self.state, event)
            return
        if isinstance(event, events.SetShadow):
            set_shadow(self.state, event, self._build)
            return
        apply(self.state, event)
        if self.trail is not None:
            self.trail.note(self.state.now_ms, event)

    def move(self, moves: events.Moves) -> int:
        """Apply moves row by row, up to the first one that `step` must handle.

        All kinds in the moves must be bound. Returns the number of applied moves. The caller passes
        the event of the next move to `step`, which applies or refuses it.
        """
        done = move(self.state, moves)
        if self.trail is not None and done:
            self.trail.note(self.state.now_ms, moves.cut(slice(done)))
        return done

    def reconfigure(self, settings: Settings) -> None:
        """Replace all operators' settings at once, with a copy of these.

        Raises EventError if one of them is not possible; then nothing has changed.
        """
        self._use(replace_settings(self.state, settings, self._build))
        self.plan_source.renew()

    def advance(self, now_ms: int) -> None:
        """Set the time of the following events and of the next cycle.

        Raises EventError if `now_ms` is before the current time.
        """
        if now_ms < self.state.now_ms:
            message = f"{now_ms} is before {self.state.now_ms}; the clock must not run backwards"
            raise EventError("value", "clock_ms", message)
        usage_over_time.count_until(self.state, now_ms)
        budgets.count_until(self.state, now_ms)
        self.state.now_ms = now_ms
        self.state.memory.advance(now_ms)

    def overrule(self, policy_error: str) -> None:
        """Let the substitute decide the next cycle.

        `policy_error`: the error to report for the policy; empty: the policy decides.

        A replay uses this to repeat a cycle in which the policy failed for a reason that may not
        recur, such as a timeout.
        """
        self._overruled = policy_error

    def allocate(self, now_ms: int, agents: Ints | None = None) -> Decisions:
        """Run a cycle; `agents` (n,): the handles of the only agents to offer; None: all."""
        self.advance(now_ms)
        wanted = self.state.plan is None and not self.state.paused
        self._take_over(self.plan_source.first(self.planning_policy, agents, wanted=wanted))
        with self._around_cycle():
            decisions = self._allocate(now_ms, agents)
            return decisions if agents is not None else cycles.reclaiming(self.state, decisions)

    def _allocate(self, now_ms: int, agents: Ints | None) -> Decisions:
        self.cycle += 1
        self.decided = None
        state = self.state
        state.filters.expire(now_ms)
        if agents is None:
            state.memory.durations.trim(state.settings)
            before_drains.look_ahead(state)
        # Count cycles without decisions, too: seeds depend only on the number of cycles.
        if state.paused:
            self.last_cycle = cycles.CycleReport()
            return self._nothing()
        self._take_over(self.plan_source.here(self.planning_policy, agents, self.problem))
        snapshot = self._snapshot(agents)
        candidates, clients = len(snapshot.agents), len(snapshot.tree.client)
        if not candidates or not clients:
            self.last_cycle = cycles.CycleReport(candidates, clients)
            return self._nothing(holds_back=agents is None)
        if agents is None and state.clients.gangs:
            snapshot = renew(state, snapshot, self._snapshots.limits(state, snapshot))
        seed = _seed(state.settings.seed, self.cycle)
        overruled, self._overruled = self._overruled, ""
        question = Question(state, snapshot, self._policy, self.cycle, seed, overruled)
        self.decided = self._decide(question)
        grants, error = self.decided
        # In a full cycle, a client that gets no offer although some agent could serve it waits for
        # one more cycle. Partial cycles do not count.
        served = state.clients.served[snapshot.tree.client]
        seen = None if self.trail is None else self.trail.see(state, snapshot)
        doubted = None if state.settings.shadow is None else probed(state)
        decisions = cycles.commit(state, snapshot, grants, self.cycle)
        if self.trail is not None:
            self.trail.keep(
                state,
                snapshot,
                seen,
                grants,
                decisions,
                error,
                seed=seed,
                probed=doubted,
                whole=agents is None,
            )
        if agents is None:
            rest = snapshot.tree.client[state.clients.served[snapshot.tree.client] == served]
            waits, able = waiting(state, snapshot, rest)
            if snapshot.over_budget is not None:
                waits = waits[~snapshot.over_budget[waits]]
            state.clients.waited[waits] += 1
            decisions = explained(
                decisions, snapshot, able, error, plans=bool(self.planning_policy)
            )
        note_hunger(state, snapshot, served, full=agents is None)
        self.last_cycle = cycles.CycleReport(
            candidates, clients, len(grants), len(decisions), error
        )
        return decisions

    def _snapshot(self, agents: Ints | None) -> Snapshot:
        by_plan = self._planning_policy is not None
        return self._snapshots.build(self.state, agents, by_plan=by_plan)

    def problem(self) -> PlanProblem | None:
        """Copy the input of a plan, without changing any state; None if no client can be served."""
        if not self.state.live_clients().any():
            return None
        about_holders = self.planning_policy is not None and self.planning_policy.about_holders
        return self._snapshots.problem(self.state, about_holders=about_holders)

    def plan_for(self, problem: PlanProblem) -> AdoptPlan:
        """Compute a plan, on any thread. Raises whatever exception the policy raises."""
        assert self.planning_policy is not None
        return AdoptPlan(self.planning_policy.plan(problem))

    def fresh(self, rows: PlanRows, plan: Plan) -> AdoptPlan:
        """Remove from a plan the clients and agents that have left since its problem was copied.

        Raises EventError if the plan is inconsistent, or if its rows are not those of `rows`.
        """
        check(plan)
        return AdoptPlan(still_true(self.state, rows, plan))

    def _take_over(self, plan: AdoptPlan | None) -> None:
        if plan is not None:
            with suppress(EventError):
                self.step(plan)

    def kept(self) -> tuple[int, cycles.CycleReport, State]:
        """Return all state that later answers depend on, for a checkpoint."""
        return self.cycle, self.last_cycle, self.state

    def resume(self, kept: tuple[int, cycles.CycleReport, State]) -> None:
        """Continue from a checkpoint. Raises ValueError if its settings name no policy."""
        # Building the policy may fail, so do it first.
        policy = self._build(kept[2].settings.policy)
        self.cycle, self.last_cycle, self.state = kept
        self._use(policy)
        self._snapshots = SnapshotBuilder()
        self.plan_source.renew()

    def remember(self, before: "Allocator") -> None:
        """Take over the learnt demands and the averages of use of the previous session.

        The allocator of that session must not be used afterwards.
        """
        usage_over_time.end_session(before.state)
        self.state.memory = before.state.memory
        self.state.memory.begin_session()

    def copied(self) -> Detached:
        """Copy the whole state, for hypothetical questions to another allocator."""
        return Detached(self.kept())

    def suppose(self, copied: Detached, policy: PolicySpec | None = None) -> None:
        """Load a copy of another allocator's state, to answer hypothetical questions.

        `policy`: replaces the policy in the copy; raises EventError if it names none.
        """
        self.resume(restore(copied.columns(), self.kept()))
        if policy is not None:
            self.step(events.SetPolicy(policy))

    def reallocate_from_scratch(
        self,
        copied: Detached,
        newcomer: Newcomer | None = None,
        policy: PolicySpec | None = None,
    ) -> int:
        """Load a copy of another allocator's state, and allocate the whole cluster from scratch.

        Only for hypothetical questions, see `allocator.core.diagnostics.reallocation`.

        `newcomer`: a further framework that takes part.
        Returns the newcomer's handle; 0 without a newcomer.
        Raises EventError if there is no room for the newcomer.
        """
        self.suppose(copied, policy)
        forget_holdings(self.state)
        handle = add_newcomer(self.state, newcomer) if newcomer else 0
        self.allocate(self.state.now_ms)
        return handle

    def preview(self) -> Snapshot | None:
        """Take the snapshot that a full cycle would begin with; None if no client can be served.

        Changes only a cache, so later decisions are unaffected.
        """
        if not self.state.live_clients().any():
            return None
        return self._snapshot(None)

    def used(self) -> Ints | None:
        """Return each client's average holdings (C, R), in thousandths; None: no averages are kept.

        The average of a client that left is divided equally among the clients of its role.
        """
        return usage_over_time.used(self.state) if self.state.memory.usage.half_life_ms else None

    def check(self) -> None:
        self.state.check()

    def quota_use(self) -> QuotaUse:
        """Return what roles with a quota consume and may still get, as cycles see it."""
        return quota_use(self.state, self._snapshots.quota_tree(self.state))

    def caps(self) -> CapTable:
        """Return the caps inside roles, as cycles see them."""
        return self._snapshots.caps(self.state)

    def capped(self) -> Bools:
        return capped(self.state, self.caps())

    def consumed_in(self, path: str) -> Mapping[str, int]:
        """Return the holdings that count against a role's quota, by resource, without zeros."""
        pairs = zip(self.state.space.names, consumed_in(self.state, path).tolist(), strict=True)
        return {name: amount for name, amount in pairs if amount}

    def scores(self) -> Floats:
        """Score every client as a cycle over all agents would at its start.

        Returns (C,); scores of siblings are comparable. nan where a client has no score: it cannot
        be served now, its score depends on the agent, or the policy has no scores or fails.
        """
        none = np.full(len(self.state.clients.framework), np.nan)
        snapshot = self.preview()
        if snapshot is None or not isinstance(self._policy, ScoringPolicy):
            return none
        try:
            scores = self._policy.scores(snapshot)
        except Exception:  # noqa: BLE001 - the only loss is a column of a table.
            return none
        return scores if scores.shape == none.shape else none

    def _nothing(self, *, holds_back: bool = False) -> Decisions:
        return Decisions(self.cycle, self.state.open_decisions.next, holds_back=holds_back)


def _seed(seed: int, cycle: int) -> int:
    """Derive a cycle's seed: one round of splitmix64 over both numbers."""
    mask = (1 << 64) - 1
    mixed = (seed * 0x9E3779B97F4A7C15 + cycle * 0xD1B54A32D192ED03) & mask
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
    return mixed ^ (mixed >> 31)

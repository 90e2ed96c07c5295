"""Any sequence of events, against a dictionary model of the books.

After every step the books are exact (`held + free == capacity`), equal to the model's, and every
invariant holds; no decision goes to whom the model would refuse; and when a cycle ends nothing is
left that somebody may take.
"""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    Exclude,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Options,
    Outcomes,
    PolicySpec,
    Reason,
    Release,
    RemoveAgent,
    RemoveFramework,
    Revive,
    SetPaused,
    SetPolicy,
    Settings,
    Suppress,
    Transition,
    UpdateAgent,
    UpdateFramework,
)
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.policies import build
from tests.core.model import Model, Vector
from tests.strategies import covered_bits

KINDS = 2
ROLES = {1: "a", 2: "b", 3: "b/x"}
HANDLES = st.integers(1, 4)
AMOUNT = st.integers(0, 3).map(lambda n: n * 1000)
CAPACITY = st.tuples(*[AMOUNT] * KINDS)
INTERVAL_MS = 1000


def holdings(rows: list[tuple[tuple[int, int, int], Vector]]) -> Holdings:
    keys = np.array([key for key, _ in rows], np.int64).reshape(-1, 3)
    amount = np.array([amount for _, amount in rows], np.int64).reshape(-1, KINDS)
    return Holdings(keys[:, 0], keys[:, 1], keys[:, 2], np.arange(KINDS), amount)


class AllocatorMachine(RuleBasedStateMachine):
    """Drives an `Allocator` and the model side by side."""

    @initialize(
        name=st.sampled_from(["drf", "ps-dsf", "rps-dsf", "tsf", "bf-drf", "choosy", "asset"]),
        selection=st.sampled_from(["", "random", "round_robin", "listed", "joint"]),
        flat=st.booleans(),
    )
    def begin(self, name: str, selection: str, flat: bool) -> None:
        self.now_ms = 0
        self.model = Model(KINDS)
        spec = PolicySpec(name, selection=selection, flat=flat)
        self.allocator = Allocator(build, Settings(policy=spec, learn_demand=False))
        self.snapshots = SnapshotBuilder()
        self.allocator.step(Options(allocation_interval_ms=INTERVAL_MS, minimum=()))
        self.allocator.step(
            Define(kinds={0: Kind("cpus"), 1: Kind("mem")}, roles=ROLES),
        )

    @rule(agent=HANDLES, capacity=CAPACITY, active=st.booleans())
    def add_agent(self, agent: int, capacity: Vector, active: bool) -> None:
        if agent in self.model.capacity:
            return
        info = AgentInfo(f"agent-{agent}", capabilities=frozenset({"HIERARCHICAL_ROLE"}))
        self.allocator.step(AddAgent(agent, info, dict(enumerate(capacity)), active=active))
        self.model.capacity[agent] = capacity
        self.model.agent_active[agent] = active

    @rule(agent=HANDLES)
    def remove_agent(self, agent: int) -> None:
        if agent not in self.model.capacity:
            return
        self.allocator.step(RemoveAgent(agent))
        del self.model.capacity[agent], self.model.agent_active[agent]
        self.model.drop(agent=agent)

    @rule(agent=HANDLES, capacity=CAPACITY)
    def resize_agent(self, agent: int, capacity: Vector) -> None:
        if agent not in self.model.capacity:
            return
        self.allocator.step(UpdateAgent(agent, capacity=dict(enumerate(capacity))))
        self.model.capacity[agent] = capacity

    @rule(agent=HANDLES, active=st.booleans())
    def activate_agent(self, agent: int, active: bool) -> None:
        if agent not in self.model.capacity:
            return
        self.allocator.step(ActivateAgent(agent, active))
        self.model.agent_active[agent] = active

    @rule(framework=HANDLES, roles=st.sets(st.sampled_from(sorted(ROLES)), min_size=1))
    def add_framework(self, framework: int, roles: set[int]) -> None:
        if framework in self.model.roles:
            return
        info = FrameworkInfo(f"framework-{framework}")
        self.allocator.step(AddFramework(framework, info, tuple(sorted(roles))))
        self.model.roles[framework] = set(roles)
        self.model.framework_active[framework] = True

    @rule(framework=HANDLES, roles=st.sets(st.sampled_from(sorted(ROLES)), min_size=1))
    def update_framework(self, framework: int, roles: set[int]) -> None:
        if framework not in self.model.roles:
            return
        info = FrameworkInfo(f"framework-{framework}")
        suppressed = tuple(sorted(roles))[:1]
        self.allocator.step(
            UpdateFramework(framework, info, tuple(sorted(roles)), suppressed_roles=suppressed)
        )
        model = self.model
        for role in model.roles[framework] - roles:
            model.suppressed.discard((framework, role))
            model.drop_filters(framework=framework, role=role)
            model.excluded = {key for key in model.excluded if key[:2] != (framework, role)}
        for role in sorted(roles):
            if (framework, role) in model.suppressed and role not in suppressed:
                model.drop_filters(framework=framework, role=role)
            model.suppressed.discard((framework, role))
            if role in suppressed:
                model.suppressed.add((framework, role))
        model.roles[framework] = set(roles)

    @rule(framework=HANDLES)
    def remove_framework(self, framework: int) -> None:
        if framework not in self.model.roles:
            return
        self.allocator.step(RemoveFramework(framework))
        del self.model.roles[framework], self.model.framework_active[framework]
        self.model.suppressed = {s for s in self.model.suppressed if s[0] != framework}
        self.model.drop(framework=framework)

    @rule(framework=HANDLES, active=st.booleans())
    def activate_framework(self, framework: int, active: bool) -> None:
        if framework not in self.model.roles:
            return
        self.allocator.step(ActivateFramework(framework, active))
        self.model.framework_active[framework] = active
        if not active:
            self.model.drop_filters(framework=framework)

    @rule(framework=HANDLES, revive=st.booleans())
    def suppress_or_revive(self, framework: int, revive: bool) -> None:
        if framework not in self.model.roles:
            return
        self.allocator.step(Revive(framework) if revive else Suppress(framework))
        for role in self.model.roles[framework]:
            if revive:
                self.model.suppressed.discard((framework, role))
                self.model.drop_filters(framework=framework, role=role)
            else:
                self.model.suppressed.add((framework, role))

    @rule(framework=HANDLES, agent=HANDLES, begins=st.booleans(), pick=st.integers(0, 2))
    def exclude(self, framework: int, agent: int, begins: bool, pick: int) -> None:
        if framework not in self.model.roles or agent not in self.model.capacity:
            return
        roles = sorted(self.model.roles[framework])
        role = roles[pick % len(roles)]
        one = np.array([framework]), np.array([role]), np.array([agent])
        self.allocator.step(Exclude(*one, np.array([begins])))
        if begins:
            self.model.excluded.add((framework, role, agent))
        else:
            self.model.excluded.discard((framework, role, agent))

    @rule(framework=HANDLES, agent=HANDLES, amount=CAPACITY, role=st.sampled_from(sorted(ROLES)))
    def hold(self, framework: int, agent: int, amount: Vector, role: int) -> None:
        free = agent in self.model.capacity and framework in self.model.roles
        if not free or not any(amount):
            return
        self.allocator.step(Hold(holdings([((framework, role, agent), amount)])))
        key = framework, role, agent
        self.model.held[key] = tuple(
            a + b for a, b in zip(self.model.held.get(key, (0, 0)), amount, strict=True)
        )

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        self.allocator.step(SetPaused(paused))
        self.model.paused = paused

    @rule(name=st.sampled_from(["drf", "ps-dsf", "choosy"]), flat=st.booleans())
    def switch_policy(self, name: str, flat: bool) -> None:
        self.allocator.step(SetPolicy(PolicySpec(name, flat=flat)))

    @rule(later_ms=st.sampled_from([1, 1000, 6000]), fate=st.randoms(use_true_random=False))
    def cycle(self, later_ms: int, fate) -> None:
        self.now_ms += later_ms
        made = self.allocator.allocate(self.now_ms)
        assert self.allocator.last_cycle.policy_error == ""
        self.check_decisions(made)
        self.check_nothing_left()
        self.settle(made, fate)

    def check_decisions(self, made: Decisions) -> None:
        model = self.model
        assert not (model.paused and len(made))
        for key, amount in decisions(made):
            assert model.may_serve(key, amount, self.now_ms), key
            assert all(a <= b for a, b in zip(amount, model.free(key[2]), strict=True))
            model.offer(key, amount)

    def check_nothing_left(self) -> None:
        """What is free after a cycle is barred for everybody."""
        model = self.model
        if model.paused:
            return
        for agent in model.capacity:
            free = model.free(agent)
            if any(free):
                for framework, roles in model.roles.items():
                    for role in roles:
                        key = framework, role, agent
                        assert not model.may_serve(key, free, self.now_ms), key

    def settle(self, made: Decisions, fate) -> None:
        offered = np.array([fate.random() < 0.8 for _ in range(len(made))], np.bool_)
        partial = offered & np.array([fate.random() < 0.3 for _ in range(len(made))], np.bool_)
        less = []
        for row, (key, amount) in enumerate(decisions(made)):
            if not offered[row] or partial[row]:
                self.model.release(key, amount, used=False)
            if partial[row]:
                part = tuple(fate.choice([0, a]) for a in amount)
                less.append(part)
                self.model.offer(key, part)
                if not any(self.model.held[key]):  # nor does it hold anything from before
                    del self.model.held[key], self.model.offered[key]
        amounts = np.array(less, np.int64).reshape(-1, KINDS)
        whole = np.where(offered, Reason.OFFERED, Reason.NOTHING_AVAILABLE)
        reason = np.where(partial, Reason.PARTIAL, whole)
        self.allocator.step(Outcomes(made.first_decision, reason, np.arange(KINDS), amounts))

    @precondition(lambda self: bool(self.model.held))
    @rule(fate=st.randoms(use_true_random=False), refuse_ms=st.sampled_from([-1, 0, 1, 5000]))
    def give_back(self, fate, refuse_ms: int) -> None:
        """Frameworks use, decline or finish some of what they hold, in one bulk event."""
        rows = [
            (key, tuple(fate.choice([0, amount // 2, amount]) for amount in held))
            for key, held in sorted(self.model.held.items())
            if fate.random() < 0.5
        ]
        used = np.array([fate.random() < 0.3 for _ in rows], np.bool_)
        if fate.random() < 0.3:
            self.allocator.step(Transition(holdings(rows)))
            for key, amount in rows:
                self.model.use(key, amount)
            return
        refuse = np.full(len(rows), refuse_ms)
        self.allocator.step(Release(holdings(rows), refuse, used))
        for (key, amount), was_used in zip(rows, used.tolist(), strict=True):
            self.model.release(key, amount, used=was_used)
            framework, role, _ = key
            if (
                refuse_ms > 0
                and self.model.framework_active[framework]
                and role in self.model.roles[framework]
            ):
                until = self.now_ms + max(refuse_ms, INTERVAL_MS)
                self.model.filters.append((key, amount, until))

    @invariant()
    def books_are_exact(self) -> None:
        if not hasattr(self, "allocator"):
            return
        self.allocator.check()
        books, state = self.allocator.state.ledger.books, self.allocator.state
        rows = state.ledger.rows()
        framework = state.clients.framework[books.client[rows]]
        role = state.clients.role[books.client[rows]]
        keys = list(zip(framework.tolist(), role.tolist(), books.agent[rows].tolist(), strict=True))
        held = dict(zip(keys, map(tuple, books.held[rows].tolist()), strict=True))
        offered = dict(zip(keys, map(tuple, books.offered[rows].tolist()), strict=True))
        assert held == self.model.held
        assert {key: v for key, v in offered.items() if any(v)} == {
            key: v for key, v in self.model.offered.items() if any(v)
        }
        for agent in self.model.capacity:
            assert tuple(state.free[agent].tolist()) == self.model.free(agent)

    @invariant()
    def the_bits_of_filters_are_right(self) -> None:
        """However they were brought up to date."""
        if not hasattr(self, "allocator") or not len(self.allocator.state.clients):
            return
        shot = self.snapshots.build(self.allocator.state, None)
        shown, agents = shot.filters, len(shot.free)
        covered = covered_bits(shown, shot.free, shot.specials, shot.demand, shot.characterised)
        words = covered.shape[1]
        assert (shown.covered[:agents, :words] == covered[:, : shown.covered.shape[1]]).all()


def decisions(made: Decisions) -> list[tuple[tuple[int, int, int], Vector]]:
    """Decisions as keys and full vectors."""
    full = np.zeros((len(made), KINDS), np.int64)
    full[:, made.kind] = made.amount
    keys = zip(made.framework.tolist(), made.role.tolist(), made.agent.tolist(), strict=True)
    return list(zip(keys, map(tuple, full.tolist()), strict=True))


TestAllocatorMachine = AllocatorMachine.TestCase
TestAllocatorMachine.settings = settings(stateful_step_count=40)

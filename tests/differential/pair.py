"""Our allocator and the model side by side: each verb drives both, `check` compares their books.

With the built-in allocator's policy a cycle compares the offers of both; offers of another policy
are checked by the model, and booked. This drives the core directly rather than by `tests.world`,
because it needs the model's terms: `Resource` and `Bag` keep whole stacks of reservations, which
Mesos's rules look at and the core never sees.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
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
    SetQuota,
    Settings,
    SetWeights,
    SetWhitelist,
    Suppress,
    Transition,
    UpdateAgent,
    UpdateAllocation,
    UpdateFramework,
)
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.snapshot import Ints
from allocator.policies import build
from tests.differential.model import Agent, Framework, Key, Model, Offers, Quota
from tests.differential.resources import Bag, Resource, minus
from tests.strategies import bits_of_filters
from tests.world.rows import settled

BUILT_IN = PolicySpec("drf", selection="listed", mode="oblivious")
"""The policy whose offers are the model's: hierarchical DRF, agents visited as listed."""


def kind_of(resource: Resource) -> Kind:
    """Convert a resource to the core's kind."""
    return Kind(
        name=resource.name,
        scalar=resource.scalar,
        reserved_role=resource.reserved_to,
        depth=len(resource.reservations),
        revocable=resource.revocable,
        shared=resource.shared,
        form=resource.disk,
        indivisible=resource.whole,
    )


Fate: TypeAlias = Callable[[Bag], Bag | None]


def whole(bag: Bag) -> Bag:
    """Turn every decision into an offer of all of it."""
    return bag


class Returned(NamedTuple):
    """Holdings that a framework releases, and the duration of its refusal."""

    key: Key
    bag: Bag
    refuse_ms: int | None
    used: bool


class Pair:
    """The core with a policy, and the model of the rules.

    Handles of roles follow the order of their paths, and frameworks of one role follow the core's
    rows, so that both sides break ties alike.
    """

    def __init__(
        self, roles: Iterable[str], options: Options, policy: PolicySpec, *, gangs: bool = False
    ) -> None:
        """Start both sides; `gangs`: whether frameworks may state them, which the model ignores."""
        self.handle = {role: number for number, role in enumerate(sorted(roles), 1)}
        self.path = {number: role for role, number in self.handle.items()}
        self.compares_offers = policy == BUILT_IN and not gangs
        # What a collecting gang keeps would count as left over.
        waits: dict[str, Any] = (
            {"patience_cycles": 0} if self.compares_offers else {"collect_ms": 0}
        )
        self.core = Allocator(build, Settings(policy=policy, learn_demand=False, **waits))
        self.snapshots: SnapshotBuilder | None = SnapshotBuilder()
        self._checks = count()
        self.core.step(options)
        self.core.step(Define(roles=self.path))
        self.kinds: dict[Resource, int] = {}
        self._amounts({Resource("cpus"): 0, Resource("mem"): 0})
        self.model = Model(
            interval_ms=options.allocation_interval_ms,
            fairness_excluded=options.fairness_excluded,
            filter_gpus=options.filter_gpus,
            region=options.region,
            minimum=[dict(row) for row in options.minimum],
            tie_name=lambda framework, role: self.core.state.clients.row(
                framework, self.handle[role]
            ),
        )

    # Conversion to the core's terms.

    def _amounts(self, bag: Bag) -> dict[int, int]:
        for resource in bag:
            if resource not in self.kinds:
                self.kinds[resource] = len(self.kinds)
                self.core.step(Define(kinds={self.kinds[resource]: kind_of(resource)}))
        return {self.kinds[resource]: amount for resource, amount in bag.items()}

    def _holdings(self, rows: Iterable[tuple[Key, Bag]]) -> Holdings:
        """Make the rows of one event, over the union of their kinds."""
        rows = list(rows)
        kinds = sorted({kind for _, bag in rows for kind in self._amounts(bag)})
        where = [(framework, self.handle[role], agent) for (framework, role, agent), _ in rows]
        amounts = [[self._amounts(bag).get(kind, 0) for kind in kinds] for _, bag in rows]
        key = np.array(where, np.int64).reshape(-1, 3)
        amount = np.array(amounts, np.int64).reshape(len(rows), len(kinds))
        return Holdings(key[:, 0], key[:, 1], key[:, 2], np.array(kinds, np.int64), amount)

    def _handles(self, roles: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted(self.handle[role] for role in roles))

    def _info(self, number: int, framework: Framework) -> FrameworkInfo:
        minimum = {self.handle[role]: tuple(rows) for role, rows in framework.minimum.items()}
        labels = {}
        if framework.gang:
            labels = {DEMAND_LABEL: "cpus:1", GANG_LABEL: f"tasks:{framework.gang}"}
        return FrameworkInfo(
            f"framework-{number}",
            capabilities=framework.capabilities,
            minimum=minimum,
            labels=labels,
        )

    def _offers(self, made: Decisions) -> Offers:
        resources = list(self.kinds)
        offers: Offers = {}
        for row in range(len(made)):
            key = int(made.framework[row]), self.path[int(made.role[row])], int(made.agent[row])
            pairs = zip(made.kind.tolist(), made.amount[row].tolist(), strict=True)
            assert key not in offers, "one decision for each framework, role and agent"
            offers[key] = {resources[kind]: amount for kind, amount in pairs if amount}
        return offers

    # Agents.

    def add_agent(self, number: int, agent: Agent) -> None:
        info = AgentInfo(
            f"agent-{number}",
            hostname=agent.hostname,
            attributes=agent.attributes,
            region=agent.region,
            capabilities=agent.capabilities,
        )
        self.core.step(AddAgent(number, info, self._amounts(agent.total), active=agent.active))
        self.model.add_agent(number, agent)

    def update_agent(self, number: int, agent: Agent) -> None:
        self.core.step(
            UpdateAgent(
                number,
                hostname=agent.hostname,
                attributes=agent.attributes,
                region=agent.region,
                capabilities=agent.capabilities,
                capacity=self._amounts(agent.total),
            )
        )
        self.model.update_agent(number, agent)

    def activate_agent(self, number: int, active: bool) -> None:
        self.core.step(ActivateAgent(number, active))
        self.model.agents[number].active = active

    def remove_agent(self, number: int) -> None:
        self.core.step(RemoveAgent(number))
        self.model.remove_agent(number)

    def set_whitelist(self, hostnames: frozenset[str] | None) -> None:
        self.core.step(SetWhitelist(hostnames))
        self.model.whitelist = hostnames

    # Frameworks.

    def add_framework(self, number: int, framework: Framework) -> None:
        self.core.step(
            AddFramework(
                number,
                self._info(number, framework),
                self._handles(framework.roles),
                self._handles(framework.suppressed),
                active=framework.active,
            )
        )
        self.model.add_framework(number, framework)

    def update_framework(self, number: int, framework: Framework) -> None:
        """Resubscribe a framework; an inactive one stays inactive."""
        roles, suppressed = self._handles(framework.roles), self._handles(framework.suppressed)
        info = self._info(number, framework)
        self.core.step(UpdateFramework(number, info, roles, suppressed))
        self.model.update_framework(
            number,
            framework.roles,
            framework.suppressed,
            framework.capabilities,
            framework.minimum,
            framework.gang,
        )

    def activate_framework(self, number: int, active: bool) -> None:
        self.core.step(ActivateFramework(number, active))
        self.model.activate_framework(number, active)

    def remove_framework(self, number: int) -> None:
        self.core.step(RemoveFramework(number))
        self.model.remove_framework(number)

    def suppress(self, number: int, roles: set[str]) -> None:
        self.core.step(Suppress(number, self._handles(roles)))
        self.model.suppress(number, roles)

    def revive(self, number: int, roles: set[str]) -> None:
        self.core.step(Revive(number, self._handles(roles)))
        self.model.revive(number, roles)

    def exclude(self, key: Key, excluded: bool) -> None:
        framework, role, agent = key
        one = np.array([framework]), np.array([self.handle[role]]), np.array([agent])
        self.core.step(Exclude(*one, np.array([excluded])))
        self.model.excluded.discard(key)
        if excluded:
            self.model.excluded.add(key)

    def set_weights(self, weights: Mapping[str, Fraction]) -> None:
        self.core.step(SetWeights({role: float(weight) for role, weight in weights.items()}))
        self.model.weights.update(weights)

    # Resources.

    def hold(self, key: Key, bag: Bag) -> None:
        self.core.step(Hold(self._holdings([(key, bag)])))
        self.model.hold(key, bag)

    def use(self, rows: Iterable[tuple[Key, Bag]]) -> None:
        """Start using offered resources, in one event."""
        self.core.step(Transition(self._holdings(rows)))
        for key, bag in rows:
            self.model.use(key, bag)

    def release(self, rows: Iterable[Returned]) -> None:
        """Give resources back, in one event."""
        back = self._holdings((each.key, each.bag) for each in rows)
        refuse_ms = np.array([-1 if each.refuse_ms is None else each.refuse_ms for each in rows])
        used = np.array([each.used for each in rows], np.bool_)
        self.core.step(Release(back, refuse_ms.astype(np.int64), used))
        for key, bag, refused_ms, was_used in rows:
            self.model.release(key, bag, refused_ms, used=was_used)

    def convert(self, agent: int, consumed: Bag, converted: Bag, key: Key | None = None) -> None:
        """Apply an operation to what a client holds, or an operator's to free resources."""
        framework, role = (key[0], self.handle[key[1]]) if key else (0, 0)
        amounts = self._amounts(consumed), self._amounts(converted)
        self.core.step(UpdateAllocation(framework, role, agent, *amounts))
        self.model.convert(agent, consumed, converted, key)

    def set_policy(self, policy: PolicySpec) -> None:
        self.core.step(SetPolicy(policy))
        self.compares_offers &= policy == BUILT_IN

    def set_quota(self, role: str, quota: Quota) -> None:
        self.core.step(SetQuota(role, quota.guarantees, quota.limits))
        self.model.set_quota(role, quota)

    # Time.

    def set_paused(self, paused: bool) -> None:
        self.core.step(SetPaused(paused))
        self.model.paused = paused

    def advance(self, later_ms: int) -> None:
        self.model.now_ms += later_ms
        self.core.advance(self.model.now_ms)

    def cycle(self, agents: Iterable[int] | None = None, fate: Fate = whole) -> Offers:
        """Run a cycle; `fate` gives the part of each decision that becomes an offer, or None."""
        wanted = None if agents is None else np.array(sorted(agents), np.int64)
        made = self.core.allocate(self.model.now_ms, wanted)
        assert self.core.last_cycle.policy_error == ""
        ours = self._offers(made)
        if self.compares_offers:
            offers = self.model.cycle(agents)
            assert ours == offers, differences(ours, offers)
        else:
            self.model.adopt(ours, agents)
        self._settle(made, ours, [fate(bag) for bag in ours.values()])
        self.check()
        return ours

    def _settle(self, made: Decisions, ours: Offers, fates: list[Bag | None]) -> None:
        """Report the outcomes of decisions to both."""
        if all(became == bag for became, bag in zip(fates, ours.values(), strict=True)):
            self.core.step(settled(made))
            return
        reasons, parts = [], []
        for (key, bag), became in zip(ours.items(), fates, strict=True):
            part = {} if became is None else became
            self.model.withdraw(key, minus(bag, part))
            if became is None:
                reasons.append(Reason.NOTHING_AVAILABLE)
            elif became == bag:
                reasons.append(Reason.OFFERED)
            else:
                reasons.append(Reason.PARTIAL)
                parts.append((key, part))
        told = self._holdings(parts)
        reason = np.array(reasons, np.int64)
        self.core.step(Outcomes(made.first_decision, reason, told.kind, told.amount))

    def check(self) -> None:
        """Compare the books of both, and check the core's invariants."""
        self.core.check()
        state, books = self.core.state, self.core.state.ledger.books
        held: Offers = {}
        offered: Offers = {}
        for row in state.ledger.rows().tolist():
            client = int(books.client[row])
            framework, role = int(state.clients.framework[client]), int(state.clients.role[client])
            key = framework, self.path[role], int(books.agent[row])
            held[key] = self._bag(books.held[:, row])
            offered[key] = self._bag(books.offered[:, row])
        assert held == self.model.held, differences(held, self.model.held)
        offered = {key: bag for key, bag in offered.items() if bag}
        assert offered == self.model.offered, differences(offered, self.model.offered)
        for agent in self.model.agents:
            assert self._bag(state.free[agent]) == self.model.free(agent), agent
        # Not after each event: incremental updates must also be right after several.
        if next(self._checks) % 3 == 0:
            self._check_filters()

    def _bag(self, amounts: Ints) -> Bag:
        pairs = zip(self.kinds, amounts.tolist(), strict=False)
        return {resource: amount for resource, amount in pairs if amount}

    def _check_filters(self) -> None:
        """Compare a cycle's incrementally updated filters with a computation from scratch."""
        if self.snapshots is None or not len(self.core.state.clients):
            return
        shot = self.snapshots.build(self.core.state, None)
        shown, agents = shot.filters, len(shot.free)
        covered = bits_of_filters(shot)
        tables = (_by_word(each[:, :agents]) for each in (shown.covered, covered))
        pairs = zip(*tables, strict=False)
        assert all((mine == its).all() for mine, its in pairs)


def _by_word(table: np.ndarray) -> np.ndarray:
    """The words of a table (B, A, V), one row for each word."""
    return table.swapaxes(1, 2).reshape(-1, table.shape[1])


def differences(ours: Offers, offers: Offers) -> str:
    """List the differences between two sets of offers, one line each."""
    lines = [
        f"{key}: {told(ours.get(key, {}))} by us, {told(offers.get(key, {}))} by the model"
        for key in sorted(ours.keys() | offers.keys())
        if ours.get(key) != offers.get(key)
    ]
    return "\n".join(["", *lines])


def told(bag: Bag) -> str:
    """Write a bag in Mesos's syntax."""
    parts = []
    for each, amount in bag.items():
        flags = [each.disk, "revocable" * each.revocable, "shared" * each.shared]
        marks = ", ".join(filter(None, [*each.reservations, *flags]))
        parts.append(f"{each.name}({marks}):{amount}" if marks else f"{each.name}:{amount}")
    return "; ".join(parts) or "nothing"

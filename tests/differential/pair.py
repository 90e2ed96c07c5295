"""Our allocator and the model side by side: each verb tells both, each cycle compares them.

It speaks to the core without `tests.world`, for its words are the model's: `Resource` and `Bag`
keep whole stacks of reservations, which Mesos's rules look at and the core never sees.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

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
    PolicySpec,
    RemoveAgent,
    RemoveFramework,
    Revive,
    SetPaused,
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
from allocator.policies import build
from tests.differential.model import Agent, Framework, Key, Model, Offers, Quota
from tests.differential.resources import Bag, Resource
from tests.world.rows import given_back, holdings, settled


def kind_of(resource: Resource) -> Kind:
    """Say the same in the core's words."""
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


class Pair:
    """Hierarchical DRF in oblivious mode, without patience, and the model of the rules.

    Agents are visited as listed, in both. Roles get their handles in the order of their paths, and
    of frameworks in the same role the core's lower row comes first: so equals come in one order.
    """

    def __init__(self, roles: Iterable[str], options: Options) -> None:
        self.handle = {role: number for number, role in enumerate(sorted(roles), 1)}
        self.path = {number: role for role, number in self.handle.items()}
        policy = PolicySpec("drf", selection="listed", mode="oblivious")
        self.core = Allocator(build, Settings(policy=policy, patience_cycles=0))
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

    # In the core's words.

    def _amounts(self, bag: Bag) -> dict[int, int]:
        for resource in bag:
            if resource not in self.kinds:
                self.kinds[resource] = len(self.kinds)
                self.core.step(Define(kinds={self.kinds[resource]: kind_of(resource)}))
        return {self.kinds[resource]: amount for resource, amount in bag.items()}

    def _holdings(self, key: Key, bag: Bag) -> Holdings:
        framework, role, agent = key
        amounts = self._amounts(bag)
        row = framework, self.handle[role], agent, *amounts.values()
        return holdings(row, kinds=tuple(amounts))

    def _handles(self, roles: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted(self.handle[role] for role in roles))

    def _info(self, number: int, framework: Framework) -> FrameworkInfo:
        minimum = {self.handle[role]: tuple(rows) for role, rows in framework.minimum.items()}
        return FrameworkInfo(
            f"framework-{number}", capabilities=framework.capabilities, minimum=minimum
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
        """Subscribe anew; whether the framework is active stays as it is."""
        roles, suppressed = self._handles(framework.roles), self._handles(framework.suppressed)
        info = self._info(number, framework)
        self.core.step(UpdateFramework(number, info, roles, suppressed))
        self.model.update_framework(
            number,
            framework.roles,
            framework.suppressed,
            framework.capabilities,
            framework.minimum,
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
        self.core.step(Hold(self._holdings(key, bag)))
        self.model.hold(key, bag)

    def use(self, key: Key, bag: Bag) -> None:
        """Offered resources come into use, which changes nothing that is offered to anybody."""
        self.core.step(Transition(self._holdings(key, bag)))

    def release(self, key: Key, bag: Bag, refuse_ms: int | None, used: bool) -> None:
        refused = -1 if refuse_ms is None else refuse_ms
        self.core.step(given_back(self._holdings(key, bag), refused, used=used))
        self.model.release(key, bag, refuse_ms)

    def convert(self, agent: int, consumed: Bag, converted: Bag, key: Key | None = None) -> None:
        """An operation on what a client holds, or by an operator on what is free."""
        framework, role = (key[0], self.handle[key[1]]) if key else (0, 0)
        amounts = self._amounts(consumed), self._amounts(converted)
        self.core.step(UpdateAllocation(framework, role, agent, *amounts))
        self.model.convert(agent, consumed, converted, key)

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

    def cycle(self, agents: Iterable[int] | None = None) -> Offers:
        """Run a cycle in both; every decision becomes an offer."""
        wanted = None if agents is None else np.array(sorted(agents), np.int64)
        made = self.core.allocate(self.model.now_ms, wanted)
        assert self.core.last_cycle.policy_error == ""
        self.core.step(settled(made))
        self.core.check()
        ours = self._offers(made)
        offers = self.model.cycle(agents)
        assert ours == offers, differences(ours, offers)
        return offers


def differences(ours: Offers, offers: Offers) -> str:
    """Say where two sets of offers differ, a line each."""
    lines = [
        f"{key}: {told(ours.get(key, {}))} by us, {told(offers.get(key, {}))} by the model"
        for key in sorted(ours.keys() | offers.keys())
        if ours.get(key) != offers.get(key)
    ]
    return "\n".join(["", *lines])


def told(bag: Bag) -> str:
    """A bag in Mesos's way of writing."""
    parts = []
    for each, amount in bag.items():
        flags = [each.disk, "revocable" * each.revocable, "shared" * each.shared]
        marks = ", ".join(filter(None, [*each.reservations, *flags]))
        parts.append(f"{each.name}({marks}):{amount}" if marks else f"{each.name}:{amount}")
    return "; ".join(parts) or "nothing"

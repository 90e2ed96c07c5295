"""A small master for tests of the core: it sends events to an allocator, and runs cycles.

Every decision becomes an offer. The books are checked after every cycle.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

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
    Event,
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
    SessionLimits,
    SetDemand,
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
    parse_quantities,
)
from allocator.policies import build
from tests.world.amounts import Amounts, Text, resources
from tests.world.nouns import Agent, Framework, Offer
from tests.world.rows import given_back, holdings, settled

MODERN_AGENT = frozenset(
    {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT", "RESOURCE_PROVIDER"}
)
SECOND_MS = 1000
DAY_S = 86_400


Used = Mapping[tuple[Framework, str], Text]


class World:
    """A session with an allocator.

    told: all events that the allocator received, for replay by another one.
    """

    def __init__(
        self,
        policy: PolicySpec | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        limits: SessionLimits | None = None,
        interval_s: int = 1,
        **options,
    ) -> None:
        chosen = Settings(policy=policy or PolicySpec("drf"), **(settings or {}))
        self.allocator = Allocator(build, chosen, limits)
        self.interval_ms = interval_s * SECOND_MS
        self.allocator.step(Options(allocation_interval_ms=self.interval_ms, **options))
        self.told: list[Event] = []
        self.now_ms = 0
        self._kinds: dict[Kind, int] = {}
        self._roles: dict[str, int] = {}
        self.agents: dict[int, Agent] = {}
        self.frameworks: dict[int, Framework] = {}

    def tell(self, event: Event) -> None:
        """Apply one event."""
        self.allocator.step(event)
        self.told.append(event)

    # ---------------------------------------------------------------- agents

    def agent(
        self,
        has: Text,
        *,
        handle: int | None = None,
        used: Used | None = None,
        capabilities: Iterable[str] = MODERN_AGENT,
        **info,
    ) -> Agent:
        """Add an agent, with resources already in use on it."""
        handle = handle or _lowest_free(self.agents)
        agent = Agent(handle, +Counter(resources(has)))
        self.agents[handle] = agent
        unavailable_from_ms = info.pop("unavailable_from_ms", -1)
        info.setdefault("hostname", f"host-{handle}")
        known = AgentInfo(f"agent-{handle}", capabilities=frozenset(capabilities), **info)
        capacity = self.amounts(agent.resources)
        self.tell(AddAgent(handle, known, capacity, unavailable_from_ms=unavailable_from_ms))
        for (framework, role), what in (used or {}).items():
            self.hold(framework, role, agent, what)
        return agent

    def update_agent(self, agent: Agent, has: Text | None = None, **info) -> None:
        if has is not None:
            agent.resources = +Counter(resources(has))
            info["capacity"] = self.amounts(agent.resources)
        if "capabilities" in info:
            info["capabilities"] = frozenset(info["capabilities"])
        self.tell(UpdateAgent(agent.handle, **info))

    def remove_agent(self, agent: Agent) -> None:
        self.tell(RemoveAgent(agent.handle))
        del self.agents[agent.handle]

    def deactivate_agent(self, agent: Agent, *, active: bool = False) -> None:
        """Deactivate an agent, or activate it again."""
        self.tell(ActivateAgent(agent.handle, active))

    def whitelist(self, *hostnames: str) -> None:
        """Allow these hosts only."""
        self.tell(SetWhitelist(frozenset(hostnames)))

    # ------------------------------------------------------------ frameworks

    def framework(
        self,
        *roles: str,
        handle: int | None = None,
        capabilities: Iterable[str] = (),
        suppressed: Iterable[str] = (),
        active: bool = True,
        multi_role: bool = True,
        minimum: Mapping[str, Iterable[str]] | None = None,
        **info,
    ) -> Framework:
        """Subscribe a framework; `info` are fields of its `FrameworkInfo`."""
        handle = handle or _lowest_free(self.frameworks)
        known = frozenset(capabilities) | (frozenset({"MULTI_ROLE"}) if multi_role else frozenset())
        framework = Framework(handle, roles, known)
        self.frameworks[handle] = framework
        self.subscribe(framework, suppressed=suppressed, active=active, minimum=minimum, **info)
        return framework

    def unknown_framework(self, *roles: str) -> Framework:
        """Get a framework for use in events before it is added."""
        handle = _lowest_free(self.frameworks)
        framework = Framework(handle, roles, frozenset({"MULTI_ROLE"}))
        self.frameworks[handle] = framework
        return framework

    def subscribe(
        self,
        framework: Framework,
        *,
        suppressed: Iterable[str] = (),
        active: bool = True,
        minimum: Mapping[str, Iterable[str]] | None = None,
        **info,
    ) -> None:
        """Add a framework that earlier events named."""
        known, roles = self._info(framework, minimum, **info), self.roles(*framework.roles)
        self.tell(AddFramework(framework.handle, known, roles, self.roles(*suppressed), active))

    def update_framework(
        self,
        framework: Framework,
        roles: Iterable[str] | None = None,
        *,
        suppressed: Iterable[str] = (),
        capabilities: Iterable[str] | None = None,
        minimum: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Resubscribe with other roles, capabilities or minimums."""
        framework.roles = framework.roles if roles is None else tuple(roles)
        if capabilities is not None:
            framework.capabilities = frozenset({"MULTI_ROLE", *capabilities})
        info, handles = self._info(framework, minimum), self.roles(*framework.roles)
        self.tell(UpdateFramework(framework.handle, info, handles, self.roles(*suppressed)))

    def _info(
        self, framework: Framework, minimum: Mapping[str, Iterable[str]] | None, **info
    ) -> FrameworkInfo:
        rows = {
            self.roles(role)[0]: tuple(parse_quantities(each) for each in texts)
            for role, texts in (minimum or {}).items()
        }
        name = f"framework-{framework.handle}"
        usual = {"framework_id": name, "name": name, **info}
        return FrameworkInfo(**usual, capabilities=framework.capabilities, minimum=rows)

    def remove_framework(self, framework: Framework) -> None:
        self.tell(RemoveFramework(framework.handle))
        del self.frameworks[framework.handle]

    def activate(self, framework: Framework, *, active: bool = True) -> None:
        """Reconnect a framework."""
        self.tell(ActivateFramework(framework.handle, active))

    def deactivate(self, framework: Framework) -> None:
        """Disconnect a framework."""
        self.activate(framework, active=False)

    def suppress(self, framework: Framework, *roles: str) -> None:
        """Suppress these roles, or all."""
        self.tell(Suppress(framework.handle, self.roles(*roles)))

    def revive(self, framework: Framework, *roles: str) -> None:
        """Revive these roles, or all."""
        self.tell(Revive(framework.handle, self.roles(*roles)))

    def exclude(
        self, framework: Framework, role: str, agent: Agent, *, excluded: bool = True
    ) -> None:
        """Exclude a framework in a role from an agent (offer constraints), or readmit it."""
        who, what, where = np.array([[framework.handle], self.roles(role), [agent.handle]])
        self.tell(Exclude(who, what, where, np.array([excluded])))

    # -------------------------------------------------------------- operators

    def weights(self, **weights: float) -> None:
        """Set weights of roles."""
        self.tell(SetWeights(weights))

    def quota(self, role: str, guarantee: str = "", limit: str | None = None) -> None:
        """Set a quota; without a limit the guarantee is also the limit. Nothing removes it."""
        bound = parse_quantities(guarantee if limit is None else limit)
        self.quota_amounts(role, parse_quantities(guarantee), bound)

    def quota_amounts(
        self, role: str, guarantee: Mapping[str, int], limit: Mapping[str, int]
    ) -> None:
        """Set a quota in thousandths."""
        self.tell(SetQuota(role, guarantee, limit))

    def demand(self, framework: Framework, task: str) -> None:
        """Declare the needs of one task of a framework."""
        self.tell(SetDemand("", f"framework-{framework.handle}", parse_quantities(task)))

    def pause(self, *, paused: bool = True) -> None:
        """Pause offers."""
        self.tell(SetPaused(paused))

    # --------------------------------------------------------------- resources

    def hold(self, framework: Framework, role: str, agent: Agent, what: Text) -> None:
        """Add resources in use."""
        self.tell(Hold(self._holdings(framework, role, agent, resources(what))))

    def decline(self, offer: Offer, refuse_s: float = -1, part: Text | None = None) -> None:
        """Decline an offer or part of it; without a time there is no filter."""
        refuse_ms = round(refuse_s * SECOND_MS) if refuse_s >= 0 else -1
        self._release(offer, part, refuse_ms, allocated=False)

    def use(self, offer: Offer, part: Text | None = None) -> None:
        """Launch tasks on an offer or part of it."""
        what = offer.resources if part is None else resources(part)
        self.tell(Transition(self._holdings(offer.framework, offer.role, offer.agent, what)))

    def finish(self, offer: Offer, part: Text | None = None) -> None:
        """End tasks."""
        self._release(offer, part, -1, allocated=True)

    def _release(self, offer: Offer, part: Text | None, refuse_ms: int, *, allocated: bool) -> None:
        what = offer.resources if part is None else resources(part)
        back = self._holdings(offer.framework, offer.role, offer.agent, what)
        self.tell(given_back(back, refuse_ms, used=allocated))

    def convert(self, offer: Offer, consumed: Text, converted: Text) -> Offer:
        """Apply a framework's operation to an offer; returns the resulting offer."""
        before, after = resources(consumed), resources(converted)
        self.tell(
            UpdateAllocation(
                offer.framework.handle,
                self.roles(offer.role)[0],
                offer.agent.handle,
                self.amounts(before),
                self.amounts(after),
            )
        )
        _convert(offer.agent, before, after)
        now = Counter(offer.resources)
        now.subtract(before)
        return offer._replace(resources=+(now + after))

    def operate(self, agent: Agent, consumed: Text, converted: Text) -> None:
        """Apply an operator's operation to free resources."""
        before, after = resources(consumed), resources(converted)
        self.tell(UpdateAllocation(0, 0, agent.handle, self.amounts(before), self.amounts(after)))
        _convert(agent, before, after)

    def held(self, framework: Framework) -> Amounts:
        """Holdings of a framework, in all roles and on all agents."""
        state = self.allocator.state
        rows = state.clients.framework == framework.handle
        held = state.ledger.books.client_held[:, rows].sum(axis=1)
        return +Counter({kind: int(held[handle]) for kind, handle in self._kinds.items()})

    # -------------------------------------------------------------------- cycles

    def cycle(self, *agents: Agent, after_ms: int | None = None) -> list[Offer]:
        """Run a cycle over these agents, or all, one interval later; returns the offers."""
        self.now_ms += self.interval_ms if after_ms is None else after_ms
        candidates = np.array([each.handle for each in agents]) if agents else None
        made = self.allocator.allocate(self.now_ms, candidates)
        assert not self.allocator.last_cycle.policy_error
        self.tell(settled(made))
        self.allocator.check()
        offers = [self._offer(made, row) for row in range(len(made))]
        return sorted(offers, key=lambda one: (one.framework.handle, one.role, one.agent.handle))

    def _offer(self, made: Decisions, row: int) -> Offer:
        amounts: Amounts = Counter()
        for handle, amount in zip(made.kind.tolist(), made.amount[row].tolist(), strict=True):
            kind = self.allocator.state.space.kinds[handle]
            assert kind is not None
            amounts[kind] += amount
        role = self.allocator.state.roles.path[int(made.role[row])]
        framework = self.frameworks[int(made.framework[row])]
        return Offer(framework, role, self.agents[int(made.agent[row])], +amounts)

    # ------------------------------------------------------------------- handles

    def amounts(self, what: Amounts) -> dict[int, int]:
        """Define handles for kinds."""
        fresh = {
            kind: len(self._kinds) + n
            for n, kind in enumerate(k for k in what if k not in self._kinds)
        }
        if fresh:
            self._kinds.update(fresh)
            self.tell(Define(kinds={handle: kind for kind, handle in fresh.items()}))
        return {self._kinds[kind]: amount for kind, amount in what.items()}

    def bind(self, *names: str, roles: Iterable[str] = ()) -> None:
        """Define handles for plain resources and roles in this order, at the beginning."""
        kinds = {handle: Kind(name) for handle, name in enumerate(names)}
        paths = dict(enumerate(roles, 1))
        self._kinds = {kind: handle for handle, kind in kinds.items()}
        self._roles = {path: handle for handle, path in paths.items()}
        self.tell(Define(kinds, paths))

    def roles(self, *paths: str) -> tuple[int, ...]:
        """Define handles for roles and their ancestors."""
        for path in paths:
            parts = path.split("/")
            for depth in range(1, len(parts) + 1):
                role = "/".join(parts[:depth])
                if role not in self._roles:
                    self._roles[role] = len(self._roles) + 1
                    self.tell(Define(roles={self._roles[role]: role}))
        return tuple(self._roles[path] for path in paths)

    def _holdings(self, framework: Framework, role: str, agent: Agent, what: Amounts) -> Holdings:
        amounts = self.amounts(what)
        (handle,) = self.roles(role)
        row = framework.handle, handle, agent.handle, *amounts.values()
        return holdings(row, kinds=tuple(amounts))


def _lowest_free(bound: Mapping[int, object]) -> int:
    return next(handle for handle in count(1) if handle not in bound)


def _convert(agent: Agent, consumed: Amounts, converted: Amounts) -> None:
    """Update the agent's resources; a shared volume counts once, whatever its number of holders."""
    has = Counter(agent.resources)
    has.subtract(consumed)
    agent.resources = +(has + converted)

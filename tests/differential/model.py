"""A model of Mesos's built-in allocator, from its documented rules: slow, simple, independent.

It uses dictionaries, integers and fractions, and no code of the core. It has one method per event;
`cycle`, which returns offers; and `adopt`, which checks another policy's offers. `held` is what
each framework has in a role on an agent, `offered` the part of it that is not in use yet.

To be deterministic, the model visits agents in the order of their numbers, and breaks ties by
`tie_name`. The built-in allocator shuffles agents, and compares identifiers.

Where our allocator deliberately differs from the built-in one, the model follows ours:

- A quota applies along the whole path of a role: a limit bounds all descendants, and a guarantee
  also serves frameworks of descendants in the first stage. The built-in looks at the role alone.
- Among equal shares, the client whose framework had its last turn longest ago, in any role, is
  served first; a new framework counts as having just had a turn (`Sorter`). The roles of one
  framework follow each other one turn apart. The built-in counts how often each node of the tree
  was served, from zero, so that a framework that keeps reregistering is always first.
- Holdings count towards a role's share as soon as they are known. The built-in waits for the
  framework to be added.
- The order is recomputed after each offer. The built-in keeps the order from before an agent's
  first offer for the rest of that agent.
- A shared volume counts once in the share of each client that holds it. The built-in counts it
  once at every node of the tree, so that two holders in a role count once for the role.
- A weight takes effect at once. The built-in keeps the old weight of a role that has no frameworks
  of its own while there are some below it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from tests.differential.resources import Bag, Quantities, covers, minus, plus

Client: TypeAlias = tuple[int, str]
Key: TypeAlias = tuple[int, str, int]
Offers: TypeAlias = dict[Key, Bag]
Minimum: TypeAlias = Sequence[Mapping[str, int]]


@dataclass
class Agent:
    """An agent; its free resources are those that `Model.held` does not list."""

    total: Bag
    hostname: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    capabilities: frozenset[str] = frozenset()
    active: bool = True

    @property
    def has_gpus(self) -> bool:
        return any(resource.name == "gpus" for resource in self.total)


@dataclass
class Framework:
    """A framework; `minimum` replaces the cluster's minimum for the roles it names.

    gang: number of tasks of a CPU each that it starts at once; 0: it states no gang.
    """

    roles: set[str]
    suppressed: set[str] = field(default_factory=set)
    capabilities: frozenset[str] = frozenset()
    minimum: Mapping[str, Minimum] = field(default_factory=dict)
    active: bool = True
    gang: int = 0


@dataclass
class Quota:
    """The guarantee and the limit of a role."""

    guarantees: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)


@dataclass
class Filter:
    """A framework's refusal, with its time and duration."""

    key: Key
    refused: Bag
    since_ms: int
    refuse_ms: int

    def is_in_force(self, now_ms: int, interval_ms: int) -> bool:
        """Whether it has not expired; it always covers the next cycle (MESOS-4302)."""
        age_ms = now_ms - self.since_ms
        return age_ms < self.refuse_ms or age_ms <= interval_ms


@dataclass
class Model:
    """The cluster's state, to which the rules are applied."""

    interval_ms: int = 1000
    fairness_excluded: frozenset[str] = frozenset()
    filter_gpus: bool = True
    region: str = ""
    minimum: Minimum = field(default_factory=list)
    tie_name: Callable[[int, str], str | int] = lambda framework, role: framework

    now_ms: int = 0
    paused: bool = False
    whitelist: frozenset[str] | None = None
    agents: dict[int, Agent] = field(default_factory=dict)
    frameworks: dict[int, Framework] = field(default_factory=dict)
    weights: dict[str, Fraction] = field(default_factory=dict)
    quotas: dict[str, Quota] = field(default_factory=dict)
    held: Offers = field(default_factory=dict)
    offered: Offers = field(default_factory=dict)
    turns: list[set[Client]] = field(default_factory=list)
    came: dict[int, int] = field(default_factory=dict)
    served: dict[Client, int] = field(default_factory=dict)
    served_now: list[Client] = field(default_factory=list)
    filters: list[Filter] = field(default_factory=list)
    excluded: set[Key] = field(default_factory=set)

    # Queries.

    def tracked_clients(self) -> list[Client]:
        """Frameworks in the roles to which they subscribe, or in which they hold something."""
        return list(self.served)

    def live_clients(self) -> list[Client]:
        """Clients that may be offered something."""
        return [
            (number, role)
            for number, framework in self.frameworks.items()
            for role in sorted(framework.roles - framework.suppressed)
            if framework.active
        ]

    def held_on(self, agent: int) -> Bag:
        result: Bag = {}
        for key, bag in self.held.items():
            if key[2] == agent:
                result = plus(result, bag)
        return result

    def free(self, agent: int) -> Bag:
        """Resources that no framework holds; shared ones are always completely free."""
        total = self.agents[agent].total
        shared = {resource: amount for resource, amount in total.items() if resource.shared}
        return plus(minus(minus(total, shared), self.held_on(agent)), shared)

    # Agents.

    def add_agent(self, number: int, agent: Agent) -> None:
        self.agents[number] = agent

    def update_agent(self, number: int, agent: Agent) -> None:
        """Update an agent; a change of attributes removes all filters on it."""
        if agent.attributes != self.agents[number].attributes:
            self._drop_filters(lambda key: key[2] == number)
        self.agents[number] = agent

    def remove_agent(self, number: int) -> None:
        del self.agents[number]
        self._drop_filters(lambda key: key[2] == number)
        self.excluded = {key for key in self.excluded if key[2] != number}
        self._drop_held(lambda key: key[2] == number)

    # Frameworks.

    def add_framework(self, number: int, framework: Framework) -> None:
        self.frameworks[number] = framework
        self.came[number] = len(self.turns)
        for role in framework.roles:
            self.served.setdefault((number, role), 0)

    def update_framework(
        self,
        number: int,
        roles: Iterable[str],
        suppressed: Iterable[str],
        capabilities: frozenset[str],
        minimum: Mapping[str, Minimum],
        gang: int = 0,
    ) -> None:
        """Update a framework; a role that is left or no longer suppressed loses its filters."""
        framework = self.frameworks[number]
        left = framework.roles - set(roles)
        revived = framework.suppressed - set(suppressed)
        self._drop_filters(lambda key: key[0] == number and key[1] in left | revived)
        self.excluded = {key for key in self.excluded if key[0] != number or key[1] not in left}
        framework.roles, framework.suppressed = set(roles), set(suppressed)
        framework.capabilities, framework.minimum = capabilities, minimum
        framework.gang = gang
        for role in framework.roles:
            self.served.setdefault((number, role), 0)
        self._forget_idle()

    def remove_framework(self, number: int) -> None:
        del self.frameworks[number]
        self._drop_filters(lambda key: key[0] == number)
        self.excluded = {key for key in self.excluded if key[0] != number}
        self._drop_held(lambda key: key[0] == number)

    def activate_framework(self, number: int, active: bool) -> None:
        self.frameworks[number].active = active
        if not active:
            self._drop_filters(lambda key: key[0] == number)

    def suppress(self, number: int, roles: Iterable[str]) -> None:
        """Stop offers in these roles, or in all if none is named; filters stay."""
        framework = self.frameworks[number]
        framework.suppressed |= set(roles) or framework.roles

    def revive(self, number: int, roles: Iterable[str]) -> None:
        framework = self.frameworks[number]
        named = set(roles) or framework.roles
        framework.suppressed -= named
        self._drop_filters(lambda key: key[0] == number and key[1] in named)

    # Resources.

    def hold(self, key: Key, bag: Bag) -> None:
        """Book resources in use."""
        self.served.setdefault(key[:2], 0)
        self.held[key] = plus(self.held.get(key, {}), bag)
        self._forget_idle()

    def offer(self, key: Key, bag: Bag) -> None:
        """Book an offer, or an addition to one."""
        self.held[key] = plus(self.held.get(key, {}), bag)
        self.offered[key] = plus(self.offered.get(key, {}), bag)

    def withdraw(self, key: Key, bag: Bag) -> None:
        """Take back a decision, or part of it, that did not become an offer."""
        self.held[key] = minus(self.held[key], bag)
        self.offered[key] = minus(self.offered[key], bag)
        self._forget_idle()

    def use(self, key: Key, bag: Bag) -> None:
        """Start tasks: what they use is no longer on offer."""
        self.offered[key] = minus(self.offered.get(key, {}), bag)
        self._forget_idle()

    def release(self, key: Key, bag: Bag, refuse_ms: int | None = None, *, used: bool) -> None:
        """Take back holdings, and record the refusal.

        used: take first what is in use, because a task ended; else what is on offer, because it was
            declined. Only active frameworks get filters, in the roles to which they subscribe.
        """
        offered = self.offered.get(key, {})
        in_use = minus(self.held[key], offered)
        self.offered[key] = minus(offered, minus(bag, in_use) if used else bag)
        self.held[key] = minus(self.held[key], bag)
        framework = self.frameworks.get(key[0])
        if refuse_ms and framework and framework.active and key[1] in framework.roles:
            self.filters.append(Filter(key, dict(bag), self.now_ms, refuse_ms))
        self._forget_idle()

    def convert(self, agent: int, consumed: Bag, converted: Bag, key: Key | None = None) -> None:
        """Convert an agent's resources, held by a client or free, into others.

        The result is on offer if all of the input was.
        """
        if key is not None:
            offered = self.offered.get(key, {})
            whole = covers(offered, consumed)
            turn = self.served[key[:2]]
            self.release(key, consumed, used=not whole)
            self.served.setdefault(key[:2], turn)  # the framework may have held nothing meanwhile
            self.held[key] = plus(self.held.get(key, {}), converted)
            if whole:
                self.offered[key] = plus(self.offered.get(key, {}), converted)
        self.agents[agent].total = plus(minus(self.agents[agent].total, consumed), converted)
        self._forget_idle()

    # The cluster.

    def set_quota(self, role: str, quota: Quota) -> None:
        """Set a role's quota; one without amounts removes it."""
        self.quotas[role] = quota
        if not quota.guarantees and not quota.limits:
            del self.quotas[role]

    def cycle(self, candidates: Iterable[int] | None = None) -> Offers:
        """Offer free resources on these agents, or on all, and book the offers."""
        from tests.differential.cycle import Cycle

        self._expire_filters()
        if self.paused:
            return {}
        return Cycle(self, self.agents if candidates is None else candidates).run()

    def adopt(self, offers: Offers, candidates: Iterable[int] | None = None) -> None:
        """Book the offers of another policy; AssertionError if one breaks a rule.

        No policy may leave resources free that a client may be offered.
        """
        from tests.differential.cycle import Cycle

        self._expire_filters()
        assert not (self.paused and offers), "offers while the allocator is paused"
        if not self.paused:
            Cycle(self, self.agents if candidates is None else candidates).adopt(offers)

    def is_filtered(self, key: Key, offer: Bag) -> bool:
        """Whether an active filter covers all of an offer."""
        return any(each.key == key and covers(each.refused, offer) for each in self.filters)

    def _expire_filters(self) -> None:
        now_ms, interval_ms = self.now_ms, self.interval_ms
        self.filters = [each for each in self.filters if each.is_in_force(now_ms, interval_ms)]

    def _drop_filters(self, which: Callable[[Key], bool]) -> None:
        self.filters = [each for each in self.filters if not which(each.key)]

    def _drop_held(self, which: Callable[[Key], bool]) -> None:
        self.held = {key: bag for key, bag in self.held.items() if not which(key)}
        self.offered = {key: bag for key, bag in self.offered.items() if not which(key)}
        self._forget_idle()

    def _forget_idle(self) -> None:
        """Forget clients that are not subscribed and hold nothing."""
        self.held = {key: bag for key, bag in self.held.items() if bag}
        self.offered = {key: bag for key, bag in self.offered.items() if bag}
        holding = {key[:2] for key in self.held}
        self.served = {
            client: turn
            for client, turn in self.served.items()
            if client in holding
            or (client[0] in self.frameworks and client[1] in self.frameworks[client[0]].roles)
        }

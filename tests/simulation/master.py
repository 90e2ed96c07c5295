"""An honest cluster: agents, frameworks and tasks that come and go, and their true holdings.

It reports events to the module's brain, and checks each offer against its own record of holdings,
which shares no code with the books of the brain or the sidecar.
"""

import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from allocator.core import GANG_LABEL
from tests.simulation.amounts import Amounts, add, contains, parse, subtract, total, write
from tests.simulation.world import Held, World

ROLES = ("eng", "eng/ml", "ops", "*", "batch")
_AGENTS_MAX, _FRAMEWORKS_MAX = 10, 8
_ASK = re.compile(r"ask (\S+) to leave (\S+)")


@dataclass
class Agent:
    """The capacity of an agent."""

    total: Amounts
    active: bool = True
    unavailable: bool = False


@dataclass
class Framework:
    """A framework's role or roles; `gang`: number of tasks that it starts at once, 0 if not."""

    roles: set[str]
    suppressed: set[str] = field(default_factory=set)
    active: bool = True
    gang: int = 0


class Master(World[Amounts]):
    """A cluster over the terms of several masters."""

    INITIALIZE = (
        "initialize minimum=cpus:0.01|mem:32 interval=300 fallback-after=500 slice-decisions=7"
    )

    def __init__(self, chance: random.Random, tell: Callable[[str], list[str]]) -> None:
        """Start empty; the brain receives lines."""
        super().__init__(tell)
        self.agents: dict[str, Agent] = {}
        self.frameworks: dict[str, Framework] = {}
        self.tasks: list[Held[Amounts]] = []
        self.limits: dict[str, Amounts] = {}
        self.allowed: set[str] | None = None
        self._chance = chance
        self._names = 0
        self._paused = False

    def read(self, text: str) -> Amounts:
        return parse(text)

    def write(self, amounts: Amounts) -> str:
        return write(amounts)

    # Effects of the brain.

    def on_other(self, line: str) -> None:
        if found := _ASK.fullmatch(line):
            assert self.agents[found[2]].unavailable, line

    def on_offer(self, offer: Held[Amounts]) -> None:
        agent, framework = self.agents[offer.agent], self.frameworks[offer.framework]
        assert agent.active, "offered on an agent that is not active"
        assert self._allows(offer.agent), "offered on an agent that is not on the whitelist"
        assert framework.active, "offered to a framework that is not active"
        assert offer.role in framework.roles, "offered in a role that is not its own"
        assert offer.role not in framework.suppressed, "offered to who wants none"
        assert not self._paused, "offered within a bracket"
        assert offer.amounts, "an empty offer"
        for name in offer.amounts:
            reserved = name[name.find("(") + 1 : -1] if "(" in name else ""
            inside = offer.role == reserved or offer.role.startswith(reserved + "/")
            assert not reserved or inside, f"{name} offered in {offer.role}"
        # The central invariant: holdings never exceed the capacity.
        together = self.held_on(offer.agent)
        assert contains(agent.total, together), f"{offer}: {together} are held in all"
        self._check_limit(offer)

    def _check_limit(self, offer: Held[Amounts]) -> None:
        top = offer.role.partition("/")[0]
        consumed = self._consumed(top)
        for name, most in self.limits.get(top, {}).items():
            gained = offer.amounts.get(name, 0)
            amount = consumed.get(name, 0)
            assert isinstance(gained, int)
            assert isinstance(amount, int)
            assert isinstance(most, int)
            assert not gained or amount <= most, f"{top}: {amount} of {name}, limited to {most}"

    def _consumed(self, top: str) -> Amounts:
        """What a role and its descendants hold, plus reservations to them."""

        def inside(role: str) -> bool:
            return role == top or role.startswith(top + "/")

        result: Amounts = {}
        for held in (*self.offers, *self.tasks):
            if inside(held.role):
                for name, amount in held.amounts.items():
                    if isinstance(amount, int) and "(" not in name:
                        result = add(result, {name: amount})
        for agent in self.agents.values():
            for name, amount in agent.total.items():
                bare, _, reserved = name.partition("(")
                if isinstance(amount, int) and reserved and inside(reserved[:-1]):
                    result = add(result, {bare: amount})
        return result

    # The true state.

    def held(self) -> Iterator[Held[Amounts]]:
        """All offers and tasks."""
        yield from self.offers
        yield from self.tasks

    def held_on(self, agent: str) -> Amounts:
        """Holdings on an agent."""
        return total(each.amounts for each in self.held() if each.agent == agent)

    def by_holder(self) -> dict[tuple[str, str, str], Amounts]:
        """Holdings of each framework, by role and agent."""
        result: dict[tuple[str, str, str], Amounts] = {}
        for each in self.held():
            key = each.agent, each.framework, each.role
            result[key] = add(result.get(key, {}), each.amounts)
        return result

    def _allows(self, agent: str) -> bool:
        return self.allowed is None or agent in self.allowed

    # Terms of masters.

    def begin(self) -> None:
        """Start a master: running tasks are reported again, outstanding offers are lost."""
        self.offers.clear()
        self._paused = False
        self._tell(self.INITIALIZE)
        self.allowed = None
        self.limits = {}
        for framework in self.frameworks.values():
            framework.active, framework.suppressed = True, set()
        # The registry holds quotas and the number of agents; agents and frameworks reregister in
        # random order.
        self._tell("recover agents=0")
        back: list[tuple[str, str]] = [("agent", name) for name in self.agents]
        back += [("framework", name) for name in self.frameworks]
        self._chance.shuffle(back)
        for kind, name in back:
            if kind == "agent":
                self._tell_agent(name)
            else:
                self._tell_framework(name)

    def _tell_agent(self, name: str) -> None:
        agent = self.agents[name]
        agent.active, agent.unavailable = True, False
        used = "".join(
            f" used.{framework}@{role}={write(amounts)}"
            for (at, framework, role), amounts in sorted(self.by_holder().items())
            if at == name
        )
        self._tell(f"add-agent {name} total={write(agent.total)}{used}")

    def _tell_framework(self, name: str) -> None:
        framework, labels = self.frameworks[name], ""
        if framework.gang:
            # One label only: the order of several in a message is not determined.
            labels = f" label.{GANG_LABEL}=tasks:{framework.gang}"
        self._tell(f"add-framework {name} roles={','.join(sorted(framework.roles))}{labels}")

    # Events of the world.

    def act(self) -> None:
        """Play one random event."""
        before = self.facts
        while self.facts == before:  # an event that is not possible now does not count
            self._chance.choices(list(_ACTIONS), list(_ACTIONS.values()))[0](self)

    def rest(self) -> None:
        """Remove what blocks offers, so that an audit sees a session at rest."""
        self._tell("resume")
        self._paused = False
        for name, framework in self.frameworks.items():
            if not framework.active:
                framework.active = True
                self._tell(f"activate-framework {name}")
            framework.suppressed.clear()
            self._tell(f"revive {name}")
        for name, agent in self.agents.items():
            if not agent.active:
                agent.active = True
                self._tell(f"activate-agent {name}")

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _add_agent(self) -> None:
        if len(self.agents) >= _AGENTS_MAX:
            return
        name, cpus = self._name("a"), self._chance.choice((2, 4, 8, 16))
        ports = ";ports:[1-20]" if self._chance.random() < 0.5 else ""
        self.agents[name] = Agent(parse(f"cpus:{cpus};mem:{cpus * 1024}{ports}"))
        self._tell_agent(name)

    def _remove_agent(self) -> None:
        if len(self.agents) < 3:
            return
        name = self._pick(self.agents)
        gone = [each for each in self.held() if each.agent == name]
        del self.agents[name]
        self.offers = [each for each in self.offers if each.agent != name]
        self.tasks = [each for each in self.tasks if each.agent != name]
        self._tell(f"remove-agent {name}")
        # The master recovers these resources although the agent is gone.
        for each in gone[:2]:
            self._release(each, allocated=True)

    def _grow_agent(self) -> None:
        if self.agents:
            name = self._pick(self.agents)
            self.agents[name].total = add(self.agents[name].total, {"cpus": 1000, "mem": 512_000})
            self._tell(f"update-agent {name} total={write(self.agents[name].total)}")

    def _toggle_agent(self) -> None:
        if self.agents:
            name = self._pick(self.agents)
            agent = self.agents[name]
            agent.active = not agent.active
            self._tell(f"{'' if agent.active else 'de'}activate-agent {name}")
            if not agent.active:
                self._rescind([each for each in self.offers if each.agent == name])

    def _plan_maintenance(self) -> None:
        if self.agents:
            name = self._pick(self.agents)
            agent = self.agents[name]
            agent.unavailable = not agent.unavailable
            self._tell(f"unavailable {name}" + (" 5000+60000" if agent.unavailable else ""))

    def _add_framework(self) -> None:
        if len(self.frameworks) < _FRAMEWORKS_MAX:
            name = self._name("f")
            roles = set(self._chance.sample(ROLES, self._chance.randint(1, 2)))
            gang = self._chance.choice((0, 0, 0, 2, 5, 12))
            self.frameworks[name] = Framework(roles, gang=gang)
            self._tell_framework(name)

    def _remove_framework(self) -> None:
        if len(self.frameworks) > 2:
            name = self._pick(self.frameworks)
            for each in [each for each in self.held() if each.framework == name]:
                ran = each in self.tasks
                self._forget(each)
                self._release(each, allocated=ran)
            del self.frameworks[name]
            self._tell(f"remove-framework {name}")

    def _toggle_framework(self) -> None:
        if self.frameworks:
            name = self._pick(self.frameworks)
            framework = self.frameworks[name]
            framework.active = not framework.active
            self._tell(f"{'' if framework.active else 'de'}activate-framework {name}")
            if not framework.active:
                self._rescind([each for each in self.offers if each.framework == name])

    def _suppress(self) -> None:
        if self.frameworks:
            name = self._pick(self.frameworks)
            roles = {self._chance.choice(sorted(self.frameworks[name].roles))}
            self.frameworks[name].suppressed |= roles
            self._tell(f"suppress {name} roles={','.join(sorted(roles))}")

    def _revive(self) -> None:
        if self.frameworks:
            name = self._pick(self.frameworks)
            self.frameworks[name].suppressed.clear()
            self._tell(f"revive {name} roles={','.join(sorted(self.frameworks[name].roles))}")

    def _accept(self) -> None:
        if not self.offers:
            return
        offer = self.offers.pop(self._chance.randrange(len(self.offers)))
        used: Amounts = {}
        for name, amount in sorted(offer.amounts.items()):
            part: int | frozenset[int]
            if isinstance(amount, int):
                part = amount if self._chance.random() < 0.4 else amount // 3
            else:
                part = frozenset(sorted(amount)[: self._chance.randint(0, len(amount))])
            if part:
                used[name] = part
        rest = subtract(offer.amounts, used)
        if used:
            task = Held(offer.framework, offer.role, offer.agent, used)
            self.tasks.append(task)
            self._tell(f"transition {task.agent} @{task.role}={write(used)}")
        if rest:
            self._release(Held(offer.framework, offer.role, offer.agent, rest), refuse=True)

    def _decline(self) -> None:
        if self.offers:
            offer = self.offers.pop(self._chance.randrange(len(self.offers)))
            self._release(offer, refuse=True)

    def _finish(self) -> None:
        if self.tasks:
            self._release(self.tasks.pop(self._chance.randrange(len(self.tasks))), allocated=True)

    def _reserve_in_offer(self) -> None:
        """A framework reserves a CPU of an offer for its role."""
        offers = [each for each in self.offers if contains(each.amounts, {"cpus": 1000})]
        offers = [each for each in offers if each.role != "*"]
        if offers:
            offer = self._chance.choice(offers)
            after = f"cpus({offer.role})"
            self.convert(offer, f"cpus:1->{after}:1")
            agent = self.agents[offer.agent]
            for owner in (offer, agent):
                before = owner.amounts if isinstance(owner, Held) else owner.total
                now = add(subtract(before, {"cpus": 1000}), {after: 1000})
                if isinstance(owner, Held):
                    owner.amounts = now
                else:
                    owner.total = now

    def _operate_on_free(self) -> None:
        """An operator reserves or unreserves free resources."""
        name = self._pick(self.agents) if self.agents else ""
        if not name:
            return
        agent, role = (
            self.agents[name],
            self._chance.choice([each for each in ROLES if each != "*"]),
        )
        pair = ["cpus", f"cpus({role})"]
        self._chance.shuffle(pair)
        # The random choice may exceed what is free; the brain must reject it then.
        free = subtract(agent.total, self.held_on(name))
        possible = contains(free, {pair[0]: 1000})
        lines = self._tell(f"convert-free {name} {pair[0]}:1->{pair[1]}:1")
        refused = any(line.startswith("refused") for line in lines)
        assert refused != possible, f"{pair} on {name}, where {free} is free: {lines}"
        if possible:
            agent.total = add(subtract(agent.total, {pair[0]: 1000}), {pair[1]: 1000})

    def _set_quota(self) -> None:
        role = self._chance.choice(("eng", "ops", "batch"))
        if self._chance.random() < 0.4:
            self.limits.pop(role, None)
            self._tell(f"quota {role}")
            return
        guarantee, limit = self._chance.randint(0, 3), self._chance.randint(3, 20)
        self.limits[role] = {"cpus": limit * 1000}
        self._tell(f"quota {role} guarantee=cpus:{guarantee} limit=cpus:{limit}")

    def _set_weights(self) -> None:
        self._tell(f"weights {self._chance.choice(ROLES)}={self._chance.choice((0.5, 1, 2, 3))}")

    def _set_whitelist(self) -> None:
        if self._chance.random() < 0.7 or not self.agents:
            self.allowed = None
            self._tell("whitelist *")
        else:
            self.allowed = set(
                self._chance.sample(sorted(self.agents), (len(self.agents) + 1) // 2)
            )
            self._tell(f"whitelist {' '.join(sorted(self.allowed))}")

    def _bracket(self) -> None:
        self._paused = not self._paused
        self._tell("pause" if self._paused else "resume")

    def _rescind(self, offers: list[Held[Amounts]]) -> None:
        for offer in offers:
            self._forget(offer)
            self._release(offer)

    def _forget(self, held: Held[Amounts]) -> None:
        for those in (self.offers, self.tasks):
            with suppress(ValueError):
                those.remove(held)

    def _release(
        self, held: Held[Amounts], *, refuse: bool = False, allocated: bool = False
    ) -> None:
        refuse_ms = self._chance.choice((-1, 100, 5000, 5000, 60_000)) if refuse else -1
        self.give_back(held, refuse_ms, allocated=allocated)

    def _pick(self, names: dict[str, Agent] | dict[str, Framework]) -> str:
        return self._chance.choice(sorted(names))


_ACTIONS: dict[Callable[[Master], None], int] = {
    Master._accept: 30,
    Master._decline: 30,
    Master._finish: 25,
    Master._reserve_in_offer: 2,
    Master._operate_on_free: 2,
    Master._suppress: 3,
    Master._revive: 5,
    Master._add_framework: 3,
    Master._remove_framework: 1,
    Master._toggle_framework: 2,
    Master._add_agent: 3,
    Master._remove_agent: 1,
    Master._grow_agent: 1,
    Master._toggle_agent: 2,
    Master._plan_maintenance: 1,
    Master._set_quota: 1,
    Master._set_weights: 1,
    Master._set_whitelist: 1,
    Master._bracket: 2,
}
"""Events with their relative frequencies."""

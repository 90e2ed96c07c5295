"""Random histories: each event is a verb and a number that seeds all its choices.

So a history is a short list, and any sublist is a valid history, too. Roles, agents and amounts
are few, so that ties, exact fits, refusals and exhausted agents are common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any, TypeVar

from allocator.core import Options, PolicySpec
from tests.differential.model import Agent, Framework, Key, Quota
from tests.differential.pair import BUILT_IN, Pair, Returned, whole
from tests.differential.resources import Bag, Resource

ROLES = ("*", "a", "a/x", "a/x/y", "a/z", "b", "b/x", "c/x")
PATHS = (*ROLES, "c")
FRAMEWORKS, AGENTS = 5, 4
USUAL = (
    (Resource("cpus"), (0, 1, 2, 2, 4, 4, 8)),
    (Resource("mem"), (0, 1, 2, 4, 4, 8, 16)),
    (Resource("gpus"), (0, 0, 0, 0, 1, 2)),
    (Resource("ports", scalar=False), (0, 0, 1, 3)),
)
SPECIAL = (
    Resource("cpus", ("a",)),
    Resource("cpus", ("a/x",)),
    Resource("cpus", ("b",)),
    Resource("mem", ("a", "a/x")),
    Resource("mem", ("b", "b/x")),
    Resource("mem", ("c",)),
    Resource("ports", ("a",), scalar=False),
    Resource("cpus", revocable=True),
    Resource("mem", revocable=True),
    Resource("disk"),
    Resource("disk", disk="mount", whole=True),
    Resource("disk", ("a",), disk="volume", whole=True),
    Resource("disk", ("a",), disk="volume", whole=True, shared=True),
    Resource("disk", ("b/x",), disk="volume", whole=True, shared=True),
)
VOLUME = 4000
CAPABILITIES = (
    "GPU_RESOURCES",
    "REGION_AWARE",
    "REVOCABLE_RESOURCES",
    "SHARED_RESOURCES",
    "RESERVATION_REFINEMENT",
)
AGENT_CAPABILITIES = (
    ("MULTI_ROLE", "HIERARCHICAL_ROLE"),
    ("MULTI_ROLE", "HIERARCHICAL_ROLE"),
    ("MULTI_ROLE", "HIERARCHICAL_ROLE"),
    ("MULTI_ROLE",),
    ("HIERARCHICAL_ROLE",),
    (),
)
MINIMUMS: tuple[tuple[dict[str, int], ...], ...] = (
    (),
    ({"cpus": 1000}, {"mem": 2000}),
    ({"cpus": 10, "mem": 32},),
)
LATER_MS = (0, 1, 999, 1000, 1000, 5000)
REFUSE_MS = (None, 0, 1, 1000, 5000, 60_000)
POLICIES = ("drf", "ps-dsf", "rps-dsf", "tsf", "bf-drf", "choosy", "asset")
SELECTIONS = ("", "random", "round_robin", "listed", "joint")

Item = TypeVar("Item")


class History:
    """A small cluster for random events; `told` is their log, one line per event.

    offers: number of offers so far.
    """

    def __init__(self, seed: int, *, special: bool, any_policy: bool = False) -> None:
        """Start a cluster drawn from a seed, with plain resources only or with all kinds.

        any_policy: draw a policy, too, instead of using that of the built-in allocator.
        """
        self.random = Random(seed)
        self.special, self.gangs = special, any_policy
        policy = self.a_policy() if any_policy else BUILT_IN
        options = Options(
            fairness_excluded=self.one(frozenset(), frozenset(), frozenset({"mem"})),
            filter_gpus=self.chance(0.5),
            region=self.one("", "near"),
            minimum=self.one(*MINIMUMS),
        )
        self.pair = Pair(PATHS, options, policy, gangs=self.gangs)
        self.model = self.pair.model
        self.told = [f"{policy}", f"{options}"]
        self.offers = 0
        for number in range(1, self.random.randint(2, FRAMEWORKS) + 1):
            self.tell("add_framework", number, self.a_framework(active=True))
        for number in range(1, self.random.randint(1, AGENTS) + 1):
            usual = frozenset(AGENT_CAPABILITIES[0])
            self.tell("add_agent", number, Agent(self.a_capacity(), "host-1", capabilities=usual))

    def play(self, verb: str, seed: int) -> None:
        """Apply an event, if it is possible now."""
        self.random = Random(seed)
        getattr(self, verb)()

    # Random choices.

    def one(self, *items: Item) -> Item:
        return self.random.choice(items)

    def some(self, items: Sequence[Item], most: int) -> list[Item]:
        return self.random.sample(items, self.random.randint(0, min(most, len(items))))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def a_policy(self) -> PolicySpec:
        return PolicySpec(
            self.one(*POLICIES), selection=self.one(*SELECTIONS), flat=self.chance(0.5)
        )

    def an_agent(self) -> int:
        return self.random.randint(1, AGENTS)

    def a_framework_number(self) -> int:
        return self.random.randint(1, FRAMEWORKS)

    def a_capacity(self) -> Bag:
        units = {resource: self.one(*amounts) for resource, amounts in USUAL}
        bag = {resource: 1000 * amount for resource, amount in units.items() if amount}
        if self.special and self.chance(0.6):
            for resource in self.some(SPECIAL, 4):
                bag[resource] = VOLUME if resource.whole else 1000 * self.random.randint(1, 3)
        return bag

    def a_minimum(self) -> tuple[dict[str, int], ...]:
        return self.one(*MINIMUMS)

    def a_framework(self, *, active: bool) -> Framework:
        roles = sorted(self.random.sample(ROLES, self.random.randint(1, 3)))
        has = set(self.some(CAPABILITIES if self.special else CAPABILITIES[:2], len(CAPABILITIES)))
        if len(roles) > 1 or self.chance(0.5):
            has.add("MULTI_ROLE")
        own = {role: self.a_minimum() for role in self.some(roles, 1)} if self.special else {}
        return Framework(
            roles=set(roles),
            suppressed=set(self.some(roles, 1)) if self.chance(0.3) else set(),
            capabilities=frozenset(has),
            minimum=own,
            active=active,
            gang=self.one(0, 0, 2, 3) if self.gangs else 0,
        )

    def a_quota(self) -> tuple[str, Quota]:
        """Draw a role and a quota; guarantees only for top-level roles and divisible resources."""
        role = self.one(*PATHS)
        limits = {name: self.random.randint(0, 8) for name in self.some(("cpus", "mem", "disk"), 3)}
        guarantees = {name: self.random.randint(0, 6) for name in self.some(("cpus", "mem"), 2)}
        if "/" in role:
            guarantees = {}
        return role, Quota(
            {name: 1000 * min(n, limits.get(name, n)) for name, n in guarantees.items()},
            {name: 1000 * n for name, n in limits.items()},
        )

    def a_key(self) -> Key | None:
        """A framework in one of its roles, and an agent."""
        clients = [(f, r) for f, each in self.model.frameworks.items() for r in sorted(each.roles)]
        if not clients or not self.model.agents:
            return None
        return (*self.one(*clients), self.one(*self.model.agents))

    def a_held_key(self) -> Key | None:
        return self.one(*sorted(self.model.held)) if self.model.held else None

    def tell(self, verb: str, *arguments: Any) -> None:
        """Log an event, and apply it to both."""
        self.told.append(f"{verb}{arguments}")
        getattr(self.pair, verb)(*arguments)
        self.pair.check()

    # Agents.

    def add_or_update_agent(self) -> None:
        number = self.an_agent()
        agent = Agent(
            self.a_capacity(),
            self.one("host-1", "host-2"),
            self.one({}, {}, {"rack": "r1"}),
            self.one("", "", "near", "far"),
            frozenset(self.one(*AGENT_CAPABILITIES)),
            self.chance(0.8),
        )
        before = self.model.agents.get(number)
        if before is None:
            self.tell("add_agent", number, agent)
            return
        held = self.model.held_on(number)
        kept = {each: n for each, n in before.total.items() if each.whole and each in held}
        agent.active = before.active
        agent.total = {**agent.total, **kept} if self.chance(0.5) else before.total
        self.tell("update_agent", number, agent)

    def remove_agent(self) -> None:
        number = self.an_agent()
        if number in self.model.agents:
            self.tell("remove_agent", number)

    def activate_agent(self) -> None:
        number = self.an_agent()
        if number in self.model.agents:
            self.tell("activate_agent", number, self.chance(0.7))

    def set_whitelist(self) -> None:
        self.tell("set_whitelist", self.one(None, None, frozenset({"host-1"})))

    # Frameworks.

    def add_or_update_framework(self) -> None:
        number = self.a_framework_number()
        verb = "update_framework" if number in self.model.frameworks else "add_framework"
        self.tell(verb, number, self.a_framework(active=self.chance(0.8)))

    def remove_framework(self) -> None:
        number = self.a_framework_number()
        if number in self.model.frameworks:
            self.tell("remove_framework", number)

    def activate_framework(self) -> None:
        number = self.a_framework_number()
        if number in self.model.frameworks:
            self.tell("activate_framework", number, self.chance(0.7))

    def drop_out_and_return(self) -> None:
        """Let a framework drop out and return; it releases most holdings before or meanwhile.

        It disconnects, or leaves all of its roles. Refusals from before its return must not count,
        even if it still holds something in the role on another agent.
        """
        clients = sorted(key[:2] for key in self.model.held if key[0] in self.model.frameworks)
        several = [each for each in clients if clients.count(each) > 1]
        number = self.one(*several)[0] if several else self.a_framework_number()
        framework = self.model.frameworks.get(number)
        if framework is None:
            return
        leaves, first = self.chance(0.5), self.chance(0.5)
        back = replace(framework)
        if first:
            self._decline_most(number)
        if leaves:
            self.tell("update_framework", number, replace(back, roles=set(), suppressed=set()))
        else:
            self.tell("activate_framework", number, False)
        if not first:
            self._decline_most(number)
        if leaves:
            self.tell("update_framework", number, back)
        else:
            self.tell("activate_framework", number, True)
        self._advance()
        self._cycle()

    def _decline_most(self, number: int) -> None:
        """Decline all that a framework holds, except for one role on one agent."""
        keys = sorted(key for key in self.model.held if key[0] == number)
        if len(keys) > 1:
            keys.remove(self.one(*keys))
        if keys:
            self._give_back(*((key, 1, 60_000) for key in keys))

    def suppress_or_revive(self) -> None:
        number = self.a_framework_number()
        if number in self.model.frameworks:
            own = sorted(self.model.frameworks[number].roles)
            self.tell(self.one("suppress", "revive", "revive"), number, set(self.some(own, 2)))

    def exclude(self) -> None:
        key = self.a_key()
        if key:
            self.tell("exclude", key, self.chance(0.6))

    def set_weight(self) -> None:
        weight = Fraction(self.one("1", "2", "3", "1/2", "3/2"))
        self.tell("set_weights", {self.one(*PATHS): weight})

    def set_policy(self) -> None:
        self.tell("set_policy", self.a_policy())

    def set_quota(self) -> None:
        self.tell("set_quota", *self.a_quota())

    # Resources.

    def hold(self) -> None:
        """Book resources in use, possibly of a framework that is not known yet."""
        key = self.a_framework_number(), self.one(*ROLES), self.an_agent()
        if key[2] in self.model.agents:
            free = self.model.free(key[2])
            wanted = self.a_capacity().items()
            taken = {each: n for each, n in wanted if each in free or not each.whole}
            if taken:
                self.tell("hold", key, taken)

    def use(self) -> None:
        """Start tasks on part of several holdings, in one event."""
        keys = self.some(sorted(self.model.held), 3)
        if keys:
            self.tell("use", [(key, self._part(key, self.one(1, 1, 2, 0))) for key in keys])

    def give_back(self) -> None:
        """Decline offers or end tasks, in one event."""
        keys = self.some(sorted(self.model.held), 3)
        if keys:
            self._give_back(*((key, self.one(1, 1, 2, 0), self.one(*REFUSE_MS)) for key in keys))

    def _give_back(self, *rows: tuple[Key, int, int | None]) -> None:
        """Decline offers or end tasks: all of each holding, half or none."""
        self.tell(
            "release",
            [
                Returned(key, self._part(key, part), refuse_ms, self.chance(0.3))
                for key, part, refuse_ms in rows
            ],
        )

    def _part(self, key: Key, part: int) -> Bag:
        if not part:
            return {}
        held = self.model.held[key].items()
        return {each: n if each.whole else -(-n // part) for each, n in held}

    def convert_held(self) -> None:
        """Reserve, unreserve or remove part of what a framework holds."""
        key = self.a_held_key()
        if not key or key[1] == "*":
            return
        held, total = self.model.held[key], self.model.agents[key[2]].total
        parts = [each for each in held if self._may_convert(each) and each in total]
        if parts:
            before = self.one(*parts)
            amount = min(held[before], total[before])
            kept = self.chance(0.8)
            after = {self._converted(before, key[1]): amount} if kept else {}
            self.tell("convert", key[2], {before: amount}, after, key)

    def convert_free(self) -> None:
        """Reserve or unreserve free resources, as an operator."""
        agent, role = self.an_agent(), self.one(*PATHS[1:])
        free = self.model.free(agent) if agent in self.model.agents else {}
        parts = [each for each in free if self._may_convert(each)]
        if parts:
            before = self.one(*parts)
            after = {self._converted(before, role): free[before]}
            self.tell("convert", agent, {before: free[before]}, after)

    def _may_convert(self, resource: Resource) -> bool:
        return self.special and not resource.whole and not resource.revocable

    def _converted(self, resource: Resource, role: str) -> Resource:
        reservations = () if resource.reservations else (role,)
        return resource._replace(reservations=reservations)

    # Cycles.

    def cycle(self) -> None:
        """Run a cycle on all agents, or on some as after an event."""
        self._advance()
        if self.chance(0.1):
            self.tell("set_paused", True)
            self._cycle()
            self.tell("set_paused", False)
        self._cycle()

    def answer_and_cycle(self) -> None:
        """Use half of some holdings; decline, end or keep each holding; then run a cycle."""
        started = [key for key in sorted(self.model.held) if self.chance(0.4)]
        self.tell("use", [(key, self._part(key, 2)) for key in started])
        parts = {key: self.one(1, 1, 2, 0) for key in sorted(self.model.held)}
        self._give_back(*((key, part, self.one(*REFUSE_MS)) for key, part in parts.items()))
        self._advance()
        self._cycle()

    def decline_and_cycle(self) -> None:
        """Decline all holdings, then run a cycle."""
        refuse_ms = self.one(*REFUSE_MS)
        for key in sorted(self.model.held):
            self._give_back((key, 1, refuse_ms))
        self._advance()
        self._cycle()

    def _advance(self) -> None:
        later_ms = self.one(*LATER_MS)
        self.told.append(f"advance({later_ms})")
        self.pair.advance(later_ms)

    def _return_shared(self) -> None:
        """Release shared volumes of clients that could be offered another copy.

        Our allocator counts a second copy towards the share during the cycle that offers it, and
        not afterwards; the rules never count it.
        """
        live = set(self.model.live_clients())
        for key, bag in sorted(self.model.held.items()):
            copies = {resource: amount for resource, amount in bag.items() if resource.shared}
            if copies and key[:2] in live:
                self.tell("release", [Returned(key, copies, None, used=False)])

    def _cycle(self) -> None:
        wanted = None
        if self.chance(0.2):
            wanted = frozenset(self.some(range(1, AGENTS + 1), 3))
        self._return_shared()
        self.told.append(f"cycle({wanted})")
        fate = self._fate if self.chance(0.3) else whole
        self.offers += len(self.pair.cycle(wanted, fate))

    def _fate(self, bag: Bag) -> Bag | None:
        """Draw which part of a decision becomes an offer: all of it, some, or none."""
        if self.chance(0.2):
            return None
        return bag if self.chance(0.7) else {each: n for each, n in bag.items() if self.chance(0.5)}


VERBS: Mapping[str, int] = {
    "cycle": 3,
    "answer_and_cycle": 6,
    "decline_and_cycle": 4,
    "add_or_update_agent": 2,
    "remove_agent": 1,
    "activate_agent": 1,
    "set_whitelist": 1,
    "add_or_update_framework": 3,
    "remove_framework": 1,
    "activate_framework": 1,
    "drop_out_and_return": 2,
    "suppress_or_revive": 2,
    "exclude": 2,
    "set_weight": 2,
    "hold": 1,
    "use": 1,
    "give_back": 2,
}
"""Relative frequency of each event, plain resources only."""

SPECIAL_VERBS: Mapping[str, int] = {
    **VERBS,
    "set_quota": 3,
    "convert_held": 2,
    "convert_free": 2,
}

POLICY_VERBS: Mapping[str, int] = {
    **VERBS,
    "convert_held": 2,
    "convert_free": 2,
    "set_policy": 1,
}

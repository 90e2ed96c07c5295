"""One allocation cycle of the model: a guarantee stage and a fair-share stage.

Each stage visits agents, then roles, then their frameworks.
"""

from collections.abc import Iterable

from allocator.core import MILLI
from tests.differential.model import Agent, Client, Framework, Key, Model, Offers
from tests.differential.resources import (
    Bag,
    Quantities,
    Resource,
    covers,
    is_below,
    minus,
    path_of,
    plus,
    quantities,
    scalars,
    shrink,
)
from tests.differential.sorter import Sorter

GUARANTEED, USUAL = 1, 2


class Cycle:
    """State of a running cycle."""

    def __init__(self, model: Model, candidates: Iterable[int]) -> None:
        self.model = model
        self.agents = [number for number in sorted(candidates) if self._is_ready(number)]
        self.offers: Offers = {}
        self.shared_given: set[tuple[int, Resource]] = set()
        self.consumed = {role: self._consumed(role) for role in model.quotas}
        self.required: Quantities = {}
        for role in model.quotas:
            self.required = add(self.required, self._owed(role))
        self.available: Quantities = {}
        for number in model.agents:
            total = scalars(charged_part(model.agents[number].total))
            held = scalars(charged_part(model.held_on(number)))
            for name in total.keys() | held.keys():
                unheld = total.get(name, 0) - held.get(name, 0)
                self.available[name] = self.available.get(name, 0) + unheld

    def run(self) -> Offers:
        """Run the guarantee stage, then the fair-share stage."""
        for stage in (GUARANTEED, USUAL):
            for agent in self.agents:
                self._visit(stage, agent)
        self.model.served_now = []
        if self.offers:
            self.model.turns.append({key[:2] for key in self.offers})
        for key in self.offers:
            self.model.served[key[:2]] = len(self.model.turns)
        return self.offers

    def adopt(self, offers: Offers) -> None:
        """Book another policy's offers; check that all are permitted, and none more is possible."""
        live = self.model.live_clients()
        for key, offer in offers.items():
            assert key[2] in self.agents, f"{key}: the agent is not to be offered"
            assert key[:2] in live, f"{key}: the framework is not to be served in this role"
            assert self._may_meet(key), f"{key}: they may not meet"
            assert covers(self._reachable(key), offer), f"{key}: more than it may have"
            assert self._is_enough(key, offer), f"{key}: too little"
            assert not self.model.is_filtered(key, offer), f"{key}: refused before"
            self._give(key, offer, {}, {})
        self._check_gangs(offers)
        for agent in self.agents:
            for client in live:
                if self.model.frameworks[client[0]].gang:
                    continue  # it may be offered the whole gang, or nothing
                key = (*client, agent)
                rest = self._reachable(key) if self._may_meet(key) else {}
                barred = not self._is_enough(key, rest) or self.model.is_filtered(key, rest)
                assert barred, f"{key}: it might have had what is left"
        self.model.served_now = []

    def _check_gangs(self, offers: Offers) -> None:
        """A framework with a gang is offered room for all of its tasks, or nothing."""
        for client in {key[:2] for key in offers}:
            tasks = self.model.frameworks[client[0]].gang
            room = sum(
                scalars(offer).get("cpus", 0) // MILLI
                for key, offer in offers.items()
                if key[:2] == client
            )
            assert room >= tasks, f"{client}: room for {room} of {tasks} tasks"

    def _visit(self, stage: int, agent: int) -> None:
        """Offer an agent's free resources to frameworks in order of shares."""
        served = set()
        in_order = self._in_order(stage)
        while True:
            for client in in_order:
                if client not in served and self._try(stage, (*client, agent)):
                    break
            else:
                return
            served.add(client)
            in_order = self._in_order(stage)

    def _in_order(self, stage: int) -> list[Client]:
        sorter = Sorter(self.model)
        return [
            (framework, role)
            for role in sorter.roles()
            if stage == USUAL or self._owed_on_path(role)
            for framework in sorter.frameworks(role)
        ]

    def _is_ready(self, number: int) -> bool:
        agent, whitelist = self.model.agents.get(number), self.model.whitelist
        return (
            agent is not None
            and agent.active
            and (whitelist is None or agent.hostname in whitelist)
        )

    def _may_meet(self, key: Key) -> bool:
        """Whether constraints and capabilities permit a pair, regardless of free resources."""
        agent, framework = self.model.agents[key[2]], self.model.frameworks[key[0]]
        return (
            key not in self.model.excluded
            and not self._lacks_capability(framework, agent)
            and ("MULTI_ROLE" not in framework.capabilities or "MULTI_ROLE" in agent.capabilities)
            and ("/" not in key[1] or "HIERARCHICAL_ROLE" in agent.capabilities)
        )

    def _lacks_capability(self, framework: Framework, agent: Agent) -> bool:
        model, has = self.model, framework.capabilities
        remote = bool(model.region and agent.region and agent.region != model.region)
        gpus = model.filter_gpus and agent.has_gpus and "GPU_RESOURCES" not in has
        return gpus or (remote and "REGION_AWARE" not in has)

    def _reachable(self, key: Key) -> Bag:
        """Free resources of the agent that the framework may be offered in this role."""
        framework, role, agent = key
        has = self.model.frameworks[framework].capabilities

        def may_have(resource: Resource) -> bool:
            to = resource.reserved_to
            return (
                (not to or role == to or is_below(role, to))
                and (not resource.shared or "SHARED_RESOURCES" in has)
                and (not resource.shared or (agent, resource) not in self.shared_given)
                and (not resource.revocable or "REVOCABLE_RESOURCES" in has)
                and (len(resource.reservations) < 2 or "RESERVATION_REFINEMENT" in has)
            )

        free = self.model.free(agent)
        return {resource: amount for resource, amount in free.items() if may_have(resource)}

    def _try(self, stage: int, key: Key) -> bool:
        """Offer what the stage permits, unless it is below the minimum or refused."""
        if not self._may_meet(key):
            return False
        reachable = self._reachable(key)
        charged = charged_part(reachable)
        guaranteed: Bag = {}
        limits = self._limits_left(key[1], charged)
        if stage == GUARANTEED:
            guaranteed = shrink(shrink(charged, self._owed_on_path(key[1])), limits)
            if not guaranteed:
                return False
        more = shrink(minus(charged, guaranteed), subtract(limits, scalars(guaranteed)))
        if self.required:
            more = shrink(more, subtract(self.available, self.required))
        offer = plus(plus(minus(reachable, charged), guaranteed), more)
        if not self._is_enough(key, offer) or self.model.is_filtered(key, offer):
            return False
        self._give(key, offer, scalars(guaranteed), scalars(plus(guaranteed, more)))
        return True

    def _give(self, key: Key, offer: Bag, guaranteed: Quantities, charged: Quantities) -> None:
        self.offers[key] = plus(self.offers.get(key, {}), offer)
        self.model.offer(key, offer)
        self.model.served_now.append(key[:2])
        self.shared_given |= {(key[2], resource) for resource in offer if resource.shared}
        for role in path_of(key[1]):
            if role in self.consumed:
                self.consumed[role] = add(self.consumed[role], charged)
        self.required = subtract(self.required, guaranteed)
        self.available = subtract(self.available, charged)

    def _is_enough(self, key: Key, offer: Bag) -> bool:
        """Whether an offer reaches the minimum of this framework and role, or the global one."""
        minimum = self.model.frameworks[key[0]].minimum.get(key[1], self.model.minimum)
        has = quantities(offer)
        return bool(offer) and (
            not minimum
            or any(all(has.get(name, 0) >= n for name, n in row.items()) for row in minimum)
        )

    def _consumed(self, role: str) -> Quantities:
        """Amounts charged to a role's quota: reservations to its subtree, and other holdings."""
        result: Quantities = {}
        for agent in self.model.agents.values():
            for resource, amount in agent.total.items():
                to = resource.reserved_to
                if resource.scalar and to and (to == role or is_below(to, role)):
                    result = add(result, {resource.name: amount})
        for key, bag in self.model.held.items():
            if key[1] == role or is_below(key[1], role):
                charged = {
                    each: amount for each, amount in bag.items() if each.counts_against_quota
                }
                result = add(result, scalars(charged))
        return result

    def _owed(self, role: str) -> Quantities:
        return subtract(self.model.quotas[role].guarantees, self.consumed[role])

    def _owed_on_path(self, role: str) -> Quantities:
        """The unmet guarantees of the role and its ancestors."""
        result: Quantities = {}
        for above in path_of(role):
            if above in self.model.quotas:
                for name, amount in self._owed(above).items():
                    result[name] = max(result.get(name, 0), amount)
        return result

    def _limits_left(self, role: str, charged: Bag) -> Quantities:
        """Amounts of a bag, reduced to what the limits of the role and its ancestors leave."""
        result = scalars(charged)
        for above in path_of(role):
            if above in self.model.quotas:
                for name, limit in self.model.quotas[above].limits.items():
                    left = max(limit - self.consumed[above].get(name, 0), 0)
                    result[name] = min(result.get(name, 0), left)
        return result


def charged_part(bag: Bag) -> Bag:
    """The part of a bag that counts against quotas."""
    return {resource: amount for resource, amount in bag.items() if resource.counts_against_quota}


def add(left: Quantities, right: Quantities) -> Quantities:
    names = left.keys() | right.keys()
    return {name: left.get(name, 0) + right.get(name, 0) for name in sorted(names)}


def subtract(left: Quantities, right: Quantities) -> Quantities:
    """Subtract, and keep positive amounts."""
    rest = {name: amount - right.get(name, 0) for name, amount in left.items()}
    return {name: amount for name, amount in rest.items() if amount > 0}

"""Naive implementations of the fast code: plain loops over lists, straight from the definitions.

`fill` is progressive filling as `docs/explanation/filling.md` defines it. It draws the same
random numbers and writes scores in the same order of operations as the compiled loops, so that it
gives the same grants, including ties.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from allocator.core.numba.shared_bits import has_shared_bit
from allocator.core.snapshot import Snapshot
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER, OVERDUE, USUAL
from allocator.policies.proportional_fairness import prices
from tests.oracle_offers import Offer, Supply

MASK = 2**64 - 1


class SplitMix64:
    """The generator of Steele, Lea and Flood (OOPSLA 2014), fig. 17."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def word(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        return ((self.word() >> 32) * bound) >> 32


class Grant(NamedTuple):
    """One row of the grants; `special` by special kind."""

    client: int
    agent: int
    tasks: int
    amount: tuple[int, ...]
    special: tuple[tuple[int, int], ...] = ()


@dataclass
class Cluster:
    """A snapshot as lists, and the filling's changes to it."""

    snapshot: Snapshot
    grants: list[Grant] = field(default_factory=list)

    def __post_init__(self) -> None:
        s = self.snapshot
        self.resources = len(s.total)
        self.supply = Supply(s)
        self.stage = USUAL
        self.stood_back: set[int] = set()
        self.residual = s.free_by_column.tolist()
        self.held = s.held.tolist()
        self.demand = s.demand.tolist()
        self.known = [
            bool(flag) and any(needs)
            for flag, needs in zip(s.characterised, self.demand, strict=True)
        ]
        self.served = s.tree.served.tolist()
        self.holding = {(key >> 32, key % 2**32) for key in s.holder.tolist()}
        self.leaves = len(s.tree.client)
        self.root = len(s.tree.parent) - 1

    def children(self, node: int) -> list[int]:
        return [n for n, parent in enumerate(self.snapshot.tree.parent) if parent == node]

    def leaves_below(self, node: int) -> Iterator[int]:
        if node < self.leaves:
            yield node
        for child in self.children(node):
            yield from self.leaves_below(child)

    def upwards(self, node: int) -> Iterator[int]:
        while node >= 0:
            yield node
            node = int(self.snapshot.tree.parent[node])

    def counts_at(self, client: int, node: int) -> bool:
        """Whether a client's holdings count at a node."""
        leaf = int(self.snapshot.leaf_of_client[client])
        above = self.upwards(int(self.snapshot.parent_of_client[client]))
        return node in above or node == leaf

    def held_at(self, node: int, counts: Callable[[int], bool]) -> list[int]:
        """Holdings of the clients below a node, as far as they count."""
        clients = [c for c in range(len(self.held)) if counts(c) and self.counts_at(c, node)]
        return [sum(self.held[c][r] for c in clients) for r in range(self.resources)]

    def takes_part(self, client: int) -> bool:
        """Whether a client takes part in this stage."""
        if self.stage == OVERDUE:
            return bool(self.snapshot.overdue[client]) and client not in self.stood_back
        if self.stage == GUARANTEED:
            supply = self.supply
            return any(any(supply.owed[bound]) for bound in supply.chain(client))
        return self.stage == USUAL or self.known[client]

    def offer(self, client: int, agent: int) -> Offer | None:
        """The client's offer; None if it cannot be served."""
        if has_shared_bit(self.snapshot.excluded, agent, client):
            return None
        demand = self.demand[client] if self.known[client] else None
        return self.supply.offer(client, agent, demand, self.stage)

    def can_serve_client(self, client: int, agent: int) -> bool:
        return self.takes_part(client) and self.offer(client, agent) is not None

    def can_serve(self, node: int, agent: int) -> bool:
        """Whether the agent can serve a client below a node."""
        return any(
            self.can_serve_client(int(self.snapshot.tree.client[leaf]), agent)
            for leaf in self.leaves_below(node)
        )


@dataclass
class Criterion:
    """A criterion in terms of one client and one agent.

    counts_amounts: client -> whether its holdings count.
    count: each client's value in the counting column.
    denominator: agent -> one number per resource.
    count_denominator: of the counting column.
    additive: the parts are added up.
    priority: client -> factor of its weight.
    weight_power: power of all weights.
    """

    counts_amounts: Callable[[int], bool]
    denominator: Callable[[int], list[float]]
    count: list[float]
    gain: Callable[[int, int, bool], float] = lambda client, tasks, new: 0.0
    count_denominator: float = math.inf
    additive: bool = False
    priority: Callable[[int], float] = lambda client: 1.0
    preference: Callable[[int, int], float] = lambda client, agent: 1.0
    weight_power: float = 1.0


def all_clients(_client: int) -> bool:
    return True


def totals(cluster: Cluster) -> list[float]:
    """The whole cluster's amounts; infinite for resources that do not count or do not exist."""
    s = cluster.snapshot
    return [float(t) if c and t else math.inf for t, c in zip(s.total, s.counted, strict=True)]


def of_totals(cluster: Cluster, *, additive: bool = False) -> Criterion:
    """Holdings relative to the whole cluster."""
    total = totals(cluster)
    return Criterion(all_clients, lambda agent: total, [0.0] * len(cluster.held), additive=additive)


def of_prices(cluster: Cluster) -> Criterion:
    """Holdings at the prices of the fluid optimum."""
    price = prices(cluster.snapshot).tolist()
    at_price = [
        math.inf if t and not p else (t / p if t else 0.0)
        for t, p in zip(totals(cluster), price, strict=True)
    ]
    nothing = [0.0] * len(cluster.held)
    return Criterion(all_clients, lambda agent: at_price, nothing, additive=True)


def of_agent(cluster: Cluster, against: list[list[int]]) -> Criterion:
    """Holdings relative to the agent's capacity, or to its free resources."""
    s = cluster.snapshot
    counted, capacity = s.counted.tolist(), s.capacity.tolist()

    def on_agent(agent: int) -> list[float]:
        takes_part = [c and n > 0 for c, n in zip(counted, capacity[agent], strict=True)]
        return [
            float(n) if yes else math.inf for n, yes in zip(against[agent], takes_part, strict=True)
        ]

    return Criterion(all_clients, on_agent, [0.0] * len(cluster.held))


def of_tasks_alone(cluster: Cluster) -> Criterion:
    """Tasks relative to those that would run alone; holdings, if the demand is unknown."""
    total, clients = totals(cluster), range(len(cluster.held))
    alone = [max(tasks_alone(cluster, client), 1) for client in clients]
    whole = math.lcm(*(n for n, known in zip(alone, cluster.known, strict=True) if known))
    return Criterion(
        counts_amounts=lambda client: not cluster.known[client],
        denominator=lambda agent: total,
        count=[tasks_held(cluster, client) * (whole / alone[client]) for client in clients],
        gain=lambda client, given, new: given * (whole / alone[client]),
        count_denominator=float(whole),
    )


def of_counts(cluster: Cluster, unit: str) -> Criterion:
    """The number of agents or tasks; or holdings."""
    if unit == "dominant_share":
        return of_totals(cluster)
    infinite = [math.inf] * cluster.resources
    agents = cluster.snapshot.agents_held.tolist()
    by_task = [unit == "tasks" and known for known in cluster.known]
    tasks = [tasks_held(cluster, client) for client in range(len(cluster.held))]
    return Criterion(
        counts_amounts=lambda client: False,
        denominator=lambda agent: infinite,
        count=[float(t if b else a) for t, a, b in zip(tasks, agents, by_task, strict=True)],
        gain=lambda client, given, new: float(given if by_task[client] else new),
        count_denominator=1.0,
    )


CRITERIA: dict[str, Callable[[Cluster, str], Criterion]] = {
    "drf": lambda cluster, _: of_totals(cluster),
    "bf-drf": lambda cluster, _: of_totals(cluster),
    "asset": lambda cluster, _: of_totals(cluster, additive=True),
    "pf": lambda cluster, _: of_prices(cluster),
    "ceei": lambda cluster, _: of_prices(cluster),
    "ps-dsf": lambda cluster, _: of_agent(cluster, cluster.snapshot.capacity.tolist()),
    "rps-dsf": lambda cluster, _: of_agent(cluster, cluster.residual),
    "tsf": lambda cluster, _: of_tasks_alone(cluster),
    "choosy": of_counts,
}
"""Every criterion of the registry, spelled out: a function of a cluster and a parameter."""


def define(cluster: Cluster, name: str, unit: str = "agents") -> Criterion:
    """Spell out a criterion of the registry."""
    return CRITERIA[name](cluster, unit)


def tasks_held(cluster: Cluster, client: int) -> float:
    if not cluster.known[client]:
        return 0.0
    pairs = zip(cluster.held[client], cluster.demand[client], strict=True)
    return min(held / needed for held, needed in pairs if needed)


def tasks_alone(cluster: Cluster, client: int) -> int:
    if not cluster.known[client]:
        return 0
    needs = cluster.demand[client]
    return sum(
        min(c // n for c, n in zip(capacity, needs, strict=True) if n)
        for capacity in cluster.snapshot.capacity.tolist()
    )


class Filling:
    """One run of progressive filling; `others` decide below the nodes of scheme 1, 2, ..."""

    def __init__(
        self,
        snapshot: Snapshot,
        name: str,
        selection: str,
        seed: int,
        unit: str,
        others: tuple[str, ...] = (),
        changed: Callable[[Criterion], Criterion] = lambda criterion: criterion,
    ) -> None:
        self.cluster = Cluster(snapshot)
        self.criteria = [changed(define(self.cluster, name, unit))]
        self.criteria += [define(self.cluster, other) for other in others]
        self.selection = selection
        self.random = SplitMix64(seed)
        # Of every node, updated incrementally as the product does.
        self.counts = [self.count_at_nodes(criterion) for criterion in self.criteria]

    def count_at_nodes(self, criterion: Criterion) -> list[float]:
        snapshot, tree = self.cluster.snapshot, self.cluster.snapshot.tree
        result = [0.0] * len(tree.parent)
        for client, count in enumerate(criterion.count):
            result[int(snapshot.parent_of_client[client])] += count
        for node in range(len(tree.client), len(tree.parent) - 1):
            result[int(tree.parent[node])] += result[node]
        for leaf, client in enumerate(tree.client.tolist()):
            result[leaf] = criterion.count[client]
        return result

    def score(self, node: int, agent: int) -> float:
        tree = self.cluster.snapshot.tree
        scheme = int(tree.scheme[tree.parent[node]])
        criterion = self.criteria[scheme]
        weight, liked = float(tree.weight[node]) ** criterion.weight_power, 1.0
        if node < self.cluster.leaves:
            client = int(tree.client[node])
            weight *= criterion.priority(client)
            liked = criterion.preference(client, agent)
        measure = [
            *self.cluster.held_at(node, criterion.counts_amounts),
            self.counts[scheme][node],
        ]
        against = [*criterion.denominator(agent), criterion.count_denominator]
        parts = [
            0.0 if not m else (math.inf if not d else m / (d * liked * weight))
            for m, d in zip(measure, against, strict=True)
        ]
        if not criterion.additive:
            return max(parts)
        result = 0.0
        for part in parts:
            result += part
        return result

    def grant(self, leaf: int, agent: int) -> None:
        cluster = self.cluster
        client = int(cluster.snapshot.tree.client[leaf])
        offer = cluster.offer(client, agent)
        assert offer is not None
        tasks, known = offer.tasks, cluster.known[client]
        new = (agent, client) not in cluster.holding
        gains = [criterion.gain(client, tasks, new) for criterion in self.criteria]
        cluster.holding.add((agent, client))
        special = tuple(sorted(offer.special.items()))
        cluster.grants.append(Grant(client, agent, tasks, offer.plain, special))
        taken = cluster.supply.take(client, agent, offer, cluster.stage, known=known)
        for r, given in enumerate(taken):
            cluster.residual[agent][r] -= given
            cluster.held[client][r] += given
        if cluster.stage == OVERDUE:
            cluster.stood_back.add(client)
        turn = 1 + max(cluster.served)
        for node in cluster.upwards(leaf):
            cluster.served[node] = turn
            for count, gain in zip(self.counts, gains, strict=True):
                count[node] += gain

    def serve(self, agent: int) -> bool:
        """Serve the best client for an agent; returns whether the agent may have something left."""
        cluster = self.cluster
        node = cluster.root
        while node >= cluster.leaves:
            able = [n for n in cluster.children(node) if cluster.can_serve(n, agent)]
            if not able:
                return False
            node = min(able, key=lambda n: (self.score(n, agent), cluster.served[n], n))
        self.grant(node, agent)
        return bool(cluster.grants[-1].tasks) or not cluster.supply.is_empty(agent)

    def serve_best_pair(self) -> bool:
        """Serve the client with the smallest score anywhere; returns whether there was one."""
        cluster = self.cluster
        node, agent = cluster.root, -1
        while node >= cluster.leaves:
            best = []
            for child in cluster.children(node):
                able = [a for a in cluster.snapshot.agents.tolist() if cluster.can_serve(child, a)]
                if able:
                    least, at = min((self.score(child, a), a) for a in able)
                    best.append((least, cluster.served[child], child, at))
            if not best:
                return False
            _, _, node, agent = min(best)
        if self.selection == "best_fit":
            agent = self.nearest(node)
        self.grant(node, agent)
        return True

    def nearest(self, leaf: int) -> int:
        """The agent whose free amounts are closest in proportion to the leaf's needs."""
        cluster = self.cluster
        client = int(cluster.snapshot.tree.client[leaf])
        need = (cluster.demand if cluster.known[client] else cluster.held)[client]
        first = next((r for r, n in enumerate(need) if n), None)

        def distance(agent: int) -> float:
            free = cluster.supply.free[agent]
            if first is None:
                return 0.0
            if not free[first]:
                return math.inf
            result = 0.0
            for r, n in enumerate(need):
                if r != first:
                    result += abs(free[r] / free[first] - n / need[first])
            return result

        able = [a for a in cluster.snapshot.agents.tolist() if cluster.can_serve(leaf, a)]
        return min(able, key=lambda a: (distance(a), a))

    def run(self) -> list[Grant]:
        cluster = self.cluster
        stages = [USUAL]
        if cluster.snapshot.overdue[cluster.snapshot.tree.client].any():
            stages.insert(0, OVERDUE)
        if any(map(any, cluster.supply.owed)):
            stages.insert(0, GUARANTEED)
        if any(cluster.supply.special):
            stages.append(LEFT_OVER)
        for cluster.stage in stages:
            self.run_stage()
        return cluster.grants

    def run_stage(self) -> None:
        live = self.cluster.snapshot.agents.tolist()
        if self.selection in {"joint", "best_fit"}:
            while self.serve_best_pair():
                pass
        elif self.selection == "listed":
            for agent in live:
                while self.serve(agent):
                    pass
        elif self.selection == "random":
            while live:
                at = self.random.below(len(live))
                if not self.serve(live[at]):
                    live[at] = live[-1]
                    live.pop()
        else:
            while live:
                for i in range(len(live) - 1, 0, -1):
                    j = self.random.below(i + 1)
                    live[i], live[j] = live[j], live[i]
                live = [agent for agent in live if self.serve(agent)]


def fill(
    snapshot: Snapshot,
    name: str,
    selection: str,
    seed: int = 0,
    unit: str = "agents",
    others: tuple[str, ...] = (),
    changed: Callable[[Criterion], Criterion] = lambda criterion: criterion,
) -> list[Grant]:
    """Fill slowly: the grants of the policy `name` of the registry, in order.

    `changed` may give its criterion priorities, preferences, a power of the weights.
    """
    return Filling(snapshot, name, selection, seed, unit, others, changed).run()


def slow_rates(paths: Sequence[Sequence[int]], capacity: Sequence[float]) -> dict[int, Fraction]:
    """Max-min fair rates of transfers over links: raise all together, stop at full links; exact."""
    rate = dict.fromkeys(range(len(paths)), Fraction(0))
    grows = set(rate)
    while grows:
        steps = []
        for link, most in enumerate(capacity):
            count = sum(link in paths[f] for f in grows)
            if count:
                used = sum(rate[f] for f, path in enumerate(paths) if link in path)
                steps.append((Fraction(most) - used) / count)
        for f in grows:
            rate[f] += min(steps)
        full = {
            link
            for link, most in enumerate(capacity)
            if sum(rate[f] for f, path in enumerate(paths) if link in path) == most
        }
        grows -= {f for f in grows if full & set(paths[f])}
    return rate

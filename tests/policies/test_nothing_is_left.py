"""Properties of every cycle, in random worlds with all features together.

No grant is dropped; no resource stays free that a client could be offered; and waiting clients are
served. Whether a client could be offered something is computed from the master's view: amounts by
resource name, without the code of the filling.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, PolicySpec, SetBudget, SetCap, SetClaim, SetPause
from allocator.core.books.quota import with_outstanding
from allocator.core.books.state import State
from allocator.core.cycle import cycle as cycles
from allocator.core.cycle import derived
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.numba.shared_bits import has_shared_bit
from allocator.core.plans.plan_source import PlanSource
from allocator.core.snapshot import Bounds, Grants, Snapshot, Tier
from allocator.policies import POLICIES, SELECTIONS
from allocator.policies.filling.scene import scene_builder
from tests.tiers import long
from tests.world.world import World

PATIENCE = 3
FEW, MANY, A_CHUNK = 60, 2440, 305
ROLES = ("a", "b", "b/c", "d")
KINDS = (
    *("disk:1000", "disk:4000", "disk({}):1500", "disk({})[volume]:1000", "ports:8", "ports({}):4"),
    *("cpus({}):1.5", "cpus({}):3", "mem({}):1024", "cpus[revocable]:2", "gpus:2"),
    *("disk({})[volume][shared]:2048", "disk[mount]:3000"),
)
DEMANDS = (
    *(
        "cpus:1;mem:128",
        "cpus:0.5;mem:512",
        "cpus:2;mem:64",
        "cpus:0.01;mem:1",
        "cpus:1",
        "disk:500",
    ),
    *(
        "cpus:1;mem:128;disk:500",
        "cpus:1;mem:128;disk:2048",
        "cpus:1;mem:64;ports:1",
        "gpus:1;cpus:1",
    ),
)
MINIMUMS: tuple[list[str], ...] = (
    *(["cpus:2"], ["cpus:4"], ["cpus:1;mem:1024"], ["cpus:3", "mem:2048"], ["disk:1000"], []),
    *(["cpus:2;disk:1000"], ["mem:700;cpus:1", "ports:3"], ["cpus:100"]),
)
CAPS = (
    ("b", "principal", {"cpus": 3000, "ports": 2000}),
    ("b/c", "framework", {"cpus": 2000}),
    ("a", "user", {"mem": 1500_000, "disk": 2500_000}),
    ("b", "framework", {"cpus": 2500, "mem": 2000_000}),
    ("d", "principal", {"gpus": 1000, "cpus": 1000}),
    ("a", "principal", {"tasks": 2000}),
    ("b", "user", {"agents": 2000, "tasks": 5000}),
    ("b/c", "principal", {"agents": 1000}),
    ("d", "framework", {"agents": 2000, "tasks": 3000, "mem": 2000_000}),
)
CAPABILITIES = ("REVOCABLE_RESOURCES", "SHARED_RESOURCES", "GPU_RESOURCES")


def make(chance: random.Random, *, rules: bool) -> World:
    """Make a world; `rules`: with quotas."""
    spec = PolicySpec(
        chance.choice(list(POLICIES)),
        chance.choice(["", "", *SELECTIONS]),
        chance.choice(["characterised", "characterised", "oblivious"]),
        flat=chance.random() < 0.3,
    )
    settings: dict[str, Any] = {"outstanding_max": chance.choice([1.0, 1.0, 0.5, 0.25])}
    settings["patience_cycles"] = PATIENCE if not rules else chance.choice([0, PATIENCE])
    options: dict[str, Any] = {} if chance.random() < 0.6 else {"minimum": ()}
    world = World(spec, settings=settings, **options)
    world.allocator.plan_source = PlanSource(None, plans_here=chance.random() < 0.7)
    for _ in range(chance.randint(1, 5)):
        size = chance.choice([(3, 3000), (4, 4096), (8, 2048), (1, 8192)])
        more = chance.sample(KINDS, chance.choice([0, 0, 1, 2, 4]))
        has = ";".join(each.format(chance.choice(ROLES)) for each in more)
        world.agent(f"cpus:{size[0]};mem:{size[1]}" + (f";{has}" if has else ""))
    for _ in range(chance.randint(1, 5)):
        roles = chance.sample(ROLES, chance.choice([1, 1, 2]))
        labels = {DEMAND_LABEL: chance.choice(DEMANDS)} if chance.random() < 0.8 else {}
        least = {role: chance.choice(MINIMUMS) for role in roles if chance.random() < 0.5}
        capable = [each for each in CAPABILITIES if chance.random() < 0.5]
        number = len(world.frameworks)
        who: Any = {"principal": f"p{number % 2}", "user": f"u{number // 3}"}
        world.framework(*roles, labels=labels, minimum=least, capabilities=capable, **who)
    if len(world.allocator.state.agents) % 2:
        world.allocator.settings.half_life_ms = 60_000
        world.allocator.settings.usage_weight = 0.7
    if rules and chance.random() < 0.5:
        guarantee, limit = chance.choice([("", "cpus:2"), ("cpus:2", "cpus:5"), ("cpus:3", "")])
        world.quota(chance.choice("abd"), guarantee, limit)
    if rules:
        restrict(world)
    return world


def restrict(world: World) -> None:
    """Add caps, budgets that are used up within a cycle, or a paused role to some of the worlds."""
    allocator = world.allocator
    agents, frameworks = len(allocator.state.agents), len(allocator.state.frameworks)
    if agents % 3 == 0:
        allocator.step(SetBudget("b", {"cpus": 1}, "day", hard=frameworks % 2 == 0))
    if frameworks % 3 == 0:
        allocator.step(SetBudget("a", {"mem": 1}, "week"))
    if frameworks % 4 == 0:
        allocator.step(SetPause("d"))
    if (agents + frameworks) % 4 == 1:
        allocator.step(SetClaim("b", {"cpus": 4000, "ports": 2000}))
        allocator.step(SetClaim("b/c", {"mem": 1000_000}))
    if (agents + frameworks) % 3 == 0:
        for role, per, cap in CAPS[agents % 3 : agents + 4]:
            allocator.step(SetCap(role, per, cap))


@dataclass
class Seen:
    """A cycle: the free resources, the grants, and the state of clients before.

    `held` (C, K), `size` (C, R): what they held, and the size of a task.
    `on`: the pairs of a client and an agent's handle where it held something.
    """

    snapshot: Snapshot
    grants: Grants
    held: np.ndarray
    size: np.ndarray
    on: set[tuple[int, int]]


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Seen]]:
    """Add cycles to a list as they are committed."""
    seen: list[Seen] = []
    real = cycles.commit

    def noting(state, snapshot: Snapshot, grants: Grants, cycle: int):
        books, rows = state.ledger.books, state.ledger.rows()
        on = set(zip(books.client[rows].tolist(), books.agent[rows].tolist(), strict=True))
        held, size = books.client_held.T.copy(), state.clients.demand.copy()
        seen.append(Seen(snapshot, grants, held, size, on))
        return real(state, snapshot, grants, cycle)

    with monkeypatch.context() as patch:
        patch.setattr(cycles, "commit", noting)
        yield seen


def play(
    world: World, chance: random.Random, monkeypatch: pytest.MonkeyPatch, cycles_run: int
) -> Iterator[Seen]:
    """Run cycles, whose offers are partly used, refused or released."""
    with noted(monkeypatch) as seen:
        for _ in range(cycles_run):
            offers = world.cycle()
            yield from seen
            seen.clear()
            for offer in offers:
                answer = chance.random()
                if answer < 0.2:
                    world.use(offer)
                else:
                    world.decline(offer, refuse_s=100 if answer < 0.35 else -1)


def dropped(seen: Seen) -> list[tuple[int, int]]:
    """Pairs with a grant that did not become an offer."""
    merged, _, enough = cycles.offers_of(seen.snapshot, seen.grants)
    return [(int(merged.client[i]), int(merged.agent[i])) for i in np.flatnonzero(~enough)]


class Left:
    """Resources left by a cycle, by resource name."""

    def __init__(self, seen: Seen) -> None:
        grants, snapshot, specials = seen.grants, seen.snapshot, seen.snapshot.specials
        # Pairs that caps on tasks or agents bar after the grants are out.
        after = derived.with_counts(snapshot, grants)
        self.snapshot = replace(after, bounds=snapshot.bounds)
        self.columns = len(snapshot.total)
        self.free = snapshot.free.copy()
        np.subtract.at(self.free, grants.agent, grants.amount)
        self.special = np.zeros((len(snapshot.free), len(specials.kind)), np.int64)
        agent = np.repeat(np.arange(len(snapshot.free)), np.diff(specials.start))
        self.special[agent, specials.row] = specials.free
        self.before = self.special.copy()
        by = grants.client[grants.special_grant], grants.agent[grants.special_grant]
        np.subtract.at(self.special, (by[1], grants.special), grants.special_amount)
        pairs = zip(grants.client.tolist(), grants.agent.tolist(), strict=True)
        self.offered = {(client, agent) for client, agent in pairs}
        parts = zip(by[0].tolist(), by[1].tolist(), grants.special.tolist(), strict=True)
        self.given = set(parts)
        counted = derived.counted(snapshot, grants)
        self.bound_left = snapshot.bounds.left.copy()
        for client, amount in zip(grants.client.tolist(), counted, strict=True):
            for bound in self.bounds(client):
                self.bound_left[bound] -= amount
        if (counts := after.counts) is not None:
            its = slice(counts.first, counts.first + len(counts.bounded))
            self.bound_left[its] = after.bounds.left[its]

    def bounds(self, client: int) -> list[int]:
        bounds, found = self.snapshot.bounds, []
        bound = int(bounds.of_client[client])
        while bound >= 0:
            found.append(bound)
            bound = int(bounds.above[bound])
        return [*found, *(row for row in bounds.further[client].tolist() if row >= 0)]

    def has(self, bits: np.ndarray, row: int, client: int) -> bool:
        return bool(int(bits[row, client // 64]) >> client % 64 & 1)

    def is_out(self, client: int, agent: int) -> bool:
        """Whether something besides room may exclude the pair: exclusions, filters, quotas."""
        snapshot = self.snapshot
        if has_shared_bit(snapshot.excluded, agent, client):
            return True
        row = int(snapshot.filters.head[agent])
        while row >= 0:
            if snapshot.filters.client[row] == client:
                return True
            row = int(snapshot.filters.next[row])
        # A bound that is at least the free amount has no effect.
        most = self.free[agent].copy()
        np.add.at(most, snapshot.specials.column, self.special[agent])
        tight = any((self.bound_left[bound] < most).any() for bound in self.bounds(client))
        return tight or bool(snapshot.bounds.required.any())

    def amounts(self, client: int, agent: int) -> dict[str, np.ndarray]:
        """Resources left that the client may use, grouped by how a task may use them."""
        specials = self.snapshot.specials
        zeros = np.zeros((5, self.columns), np.int64)
        found = dict(zip(("open", "revocable", "shared", "reserved", "beside"), zeros, strict=True))
        found["open"] += self.free[agent]
        for kind in range(len(specials.kind)):
            if not self.has(specials.reach, kind, client):
                continue
            column, tier, left = (
                specials.column[kind],
                specials.tier[kind],
                self.special[agent, kind],
            )
            if tier == Tier.SHARED:
                mine = (client, agent, kind) in self.given
                found["shared"][column] += self.before[agent, kind] if mine else left
            elif tier == Tier.REVOCABLE:
                found["revocable"][column] += left
            elif tier < Tier.REVOCABLE:
                found["open"][column] += left
            if tier == Tier.RESERVED:
                found["reserved"][column] += left
            if not specials.bounded[kind]:
                found["beside"][column] += left
        return found

    def could_be_offered(self, client: int, agent: int) -> bool:
        """Whether more could be offered to a client; false in doubtful cases."""
        if self.is_out(client, agent):
            return False
        snapshot, have = self.snapshot, self.amounts(client, agent)
        if not (snapshot.characterised[client] and snapshot.demand[client].any()):
            everything = have["open"] + np.maximum(have["beside"] - have["reserved"], 0)
            more = (client, agent) in self.offered and bool(everything.any())
            return more or self.is_enough(client, everything)
        demand = snapshot.demand[client]
        needed = demand > 0
        room = np.where(needed, have["open"] // np.maximum(demand, 1), 0)
        other = np.where(needed, have["revocable"] // np.maximum(demand, 1), 0)
        unlimited = have["shared"] >= demand
        tasks = int(np.where(needed & ~unlimited, room + other, 10**6).min(initial=10**6))
        if (client, agent) in self.offered:
            consumes = bool((needed & ~unlimited).any())
            return bool(have["beside"].any()) or (tasks > 0 and consumes)
        kinds = snapshot.specials.whole & (self.special[agent] > 0)
        if needed[snapshot.specials.column[kinds]].any():
            tasks = min(tasks, 1)  # ignores whether others fit beside what is indivisible
        if not tasks:
            return False
        used = np.minimum(np.minimum(tasks, 100), room) * demand
        total = have["beside"] + np.maximum(used - have["reserved"], 0)
        return self.is_enough(client, total)

    def is_enough(self, client: int, amount: np.ndarray) -> bool:
        first, end = self.snapshot.minimum_rows[client].tolist()
        rows = self.snapshot.minimum[first:end]
        return bool(amount.any()) and (not len(rows) or bool((amount >= rows).all(axis=1).any()))

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs that could still be offered something."""
        return [
            (client, agent)
            for client in self.snapshot.tree.client.tolist()
            for agent in self.snapshot.agents.tolist()
            if self.could_be_offered(client, agent)
        ]


def over_caps(world: World, seen: Seen) -> list[tuple[str, str, str]]:
    """Caps over which a cycle granted more: role, holder and resource."""
    state, before, granted = world.allocator.state, Counter[Any](), Counter[Any]()
    counted = derived.counted(seen.snapshot, seen.grants)
    for row in np.flatnonzero(state.clients.framework).tolist():
        info = state.frameworks.info[int(state.clients.framework[row])]
        assert info is not None
        path = f"{state.roles.path[int(state.clients.role[row])]}/"
        for role, per in world.allocator.settings.caps:
            holder = info.framework_id if per == "framework" else getattr(info, per)
            if not path.startswith(f"{role}/"):
                continue
            for kind, amount in zip(state.space.kinds, seen.held[row].tolist(), strict=False):
                if kind and kind.scalar and not (kind.revocable or kind.shared or kind.rest):
                    before[role, per, holder, kind.name] += amount
            for column, name in enumerate(state.space.names):
                given = counted[seen.grants.client == row, column].sum()
                granted[role, per, holder, name] += int(given)
    return [
        (role, holder, name)
        for (role, per, holder, name), amount in granted.items()
        if amount and amount + before[role, per, holder, name] > _cap(world, role, per, name)
    ]


def over_counts(world: World, seen: Seen) -> list[tuple[str, str, str, str]]:
    """Caps on tasks or agents over which a cycle granted more: role, kind of holder, holder, what.

    What clients of a holder hold is counted task by task and agent by agent.
    """
    state, caps = world.allocator.state, world.allocator.settings.caps
    agents, tasks = dict[Any, tuple[set[int], set[int]]](), Counter[Any]()
    more, found = set[Any](), []
    for row in np.flatnonzero(state.clients.framework).tolist():
        info = state.frameworks.info[int(state.clients.framework[row])]
        assert info is not None
        had, has = _tasks(state, seen, row)
        on = {agent for client, agent in seen.on if client == row}
        gets = seen.snapshot.handle[seen.grants.agent[seen.grants.client == row]].tolist()
        path = f"{state.roles.path[int(state.clients.role[row])]}/"
        for role, per in caps:
            if path.startswith(f"{role}/"):
                key = role, per, info.framework_id if per == "framework" else getattr(info, per)
                old, new = agents.setdefault(key, (set(), set()))
                old.update(on)
                new.update(gets)
                tasks[key] += has
                more |= {key} if has > had else set()
    for key, (old, new) in agents.items():
        cap = caps[key[:2]].cap or {}
        if "agents" in cap and new - old and 1000 * len(old | new) > cap["agents"]:
            found.append((*key, "agents"))
        if "tasks" in cap and key in more and 1000 * tasks[key] > cap["tasks"]:
            found.append((*key, "tasks"))
    return found


def _tasks(state: State, seen: Seen, client: int) -> tuple[int, int]:
    """Tasks of a client before and after a cycle, by the resource that suffices for the most."""
    space, before, given = state.space, Counter[str](), Counter[str]()
    for kind, held in zip(space.kinds, seen.held[client].tolist(), strict=False):
        if kind and kind.scalar and not (kind.revocable or kind.shared or kind.rest):
            before[kind.name] += held
    counted = derived.counted(seen.snapshot, seen.grants)[seen.grants.client == client].sum(axis=0)
    given.update(dict(zip(space.names, counted.tolist(), strict=True)))
    needs = dict(zip(space.names, seen.size[client].tolist(), strict=True))
    scalar = dict(zip(space.names, space.scalar.tolist(), strict=True))
    needs = {name: need for name, need in needs.items() if need and scalar[name]}
    had = (-(-before[name] // need) for name, need in needs.items())
    has = (-(-(before[name] + given[name]) // need) for name, need in needs.items())
    return max(had, default=0), max(has, default=0)


def _cap(world: World, role: str, per: str, name: str) -> float:
    column = world.allocator.state.space.names.index(name)
    scalar = world.allocator.state.space.scalar[column]
    cap = world.allocator.settings.caps[role, per].cap or {}
    return float(cap[name]) if scalar and name in cap else float("inf")


def find_faults(numbers: Iterable[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Play worlds; list dropped grants, and resources left that could have been offered."""
    for number in numbers:
        chance = random.Random(number)
        world = make(chance, rules=True)
        for at, seen in enumerate(play(world, chance, monkeypatch, 4)):
            faults = {"dropped": dropped(seen), "left": Left(seen).pairs()}
            over = [*over_caps(world, seen), *over_counts(world, seen)]
            for what, pairs in {**faults, "over": over}.items():
                if pairs:
                    yield f"world {number}, cycle {at}: {what} {pairs}"


def cannot_be_offered(world: World, client: int) -> bool:
    """Whether `servable` may count a client as waiting although no offer can be made to it.

    It ignores that the first tasks of an offer may not share an indivisible disk, and that a
    framework may have less on offer than the minimum if it is not served in tasks.
    """
    snapshot = SnapshotBuilder().build(world.allocator.state, None)
    bounds, (first, end) = snapshot.bounds, snapshot.minimum_rows[client].tolist()
    own = [row for row in bounds.further[client].tolist() if row >= 0]
    if own and first < end and not snapshot.characterised[client]:
        within = snapshot.minimum[first:end] <= bounds.left[own].min(axis=0)
        if not within.all(axis=1).any():
            return True
    whole = snapshot.specials.column[snapshot.specials.whole]
    return bool(snapshot.opening[client] > 1 and snapshot.demand[client, whole].any())


def find_waiting(numbers: Iterable[int]) -> Iterator[str]:
    """Play worlds in which no framework accepts anything; returns clients that waited too long."""
    for number in numbers:
        chance = random.Random(number)
        world = make(chance, rules=False)
        clients = world.allocator.state.clients
        most = PATIENCE + 2 * int(clients.subscribed.sum())
        for _ in range(2 * most + 2):
            for offer in world.cycle():
                world.decline(offer)
            late = np.flatnonzero(clients.waited > most).tolist()
            late = [client for client in late if not cannot_be_offered(world, client)]
            if late:
                yield f"world {number}: {late} waited for more than {most} cycles"
                break


def test_all_that_is_granted_is_offered_and_nothing_is_left(monkeypatch):
    assert not [*find_faults(range(FEW), monkeypatch)]


WHOLE_ALONE = (236, 818, 1005)
"""Worlds where a framework's bound on outstanding offers equals an indivisible disk: plain disk on
the same agent must not be part of the same task.
"""


@pytest.mark.parametrize("numbers", [range(16), WHOLE_ALONE, *long(range(16, FEW))])
def test_waiting_clients_are_served(numbers):
    assert not [*find_waiting(numbers)]


SEVERAL_ROUNDS = (197, 1408, 2299, 4208)
"""Worlds with claims or caps on counts: the policy decides several times in a cycle. In the first
three, the rest of an agent, below a minimum, or a special disk may only join an offer that was made
before. In the last, a cap bars the task that makes an offer of a special disk.
"""


@pytest.mark.long
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, A_CHUNK))
def test_properties_hold_in_many_worlds(first, monkeypatch):
    assert not [*find_faults(range(first, first + A_CHUNK), monkeypatch)]
    assert not [*find_waiting(range(first, first + A_CHUNK // 3))]


@pytest.mark.parametrize("world", SEVERAL_ROUNDS)
def test_properties_hold_where_the_policy_decides_several_times(world, monkeypatch):
    assert not [*find_faults([world], monkeypatch)]


def one_task_each(patch: pytest.MonkeyPatch) -> None:
    """As if one task were always enough for an offer."""
    patch.setattr(Snapshot, "opening", property(lambda self: np.ones(len(self.demand), np.int64)))


def nothing_joins(patch: pytest.MonkeyPatch) -> None:
    """As if each grant were an offer by itself."""
    real = scene_builder._rule_of
    patch.setattr(
        scene_builder,
        "_rule_of",
        lambda *given, adds: real(*given, adds=adds)._replace(joins=adds),
    )


def caps_know_one_task(patch: pytest.MonkeyPatch) -> None:
    """As if the bound on outstanding offers allowed for a first task instead of a first offer."""

    def of_one_task(state: State, bounds: Bounds, _: np.ndarray) -> Bounds:
        return with_outstanding(state, bounds, state.clients.demand)

    patch.setattr("allocator.core.cycle.snapshot_builder.with_outstanding", of_one_task)


def caps_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """As if operators had set no caps."""
    patch.setattr(
        "allocator.core.cycle.snapshot_builder.with_caps", lambda _, bounds, *__: (bounds, None)
    )


@pytest.mark.parametrize(
    ("broken", "what"),
    [(one_task_each, "dropped"), (nothing_joins, "left"), (caps_are_ignored, "over")],
)
def test_each_property_finds_a_policy_that_violates_it(
    broken: Callable[[pytest.MonkeyPatch], None], what: str, monkeypatch
):
    with monkeypatch.context() as patch:
        broken(patch)
        faults = find_faults(range(40), monkeypatch)
        assert next((fault for fault in faults if f": {what} [" in fault), None)


@pytest.mark.parametrize("broken", [one_task_each, *long(caps_know_one_task)])
def test_a_policy_that_lets_a_client_wait_is_found_too(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch
):
    with monkeypatch.context() as patch:
        broken(patch)
        assert next(find_waiting(range(160)), None)

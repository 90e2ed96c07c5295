"""Gangs in random worlds with all features, and exact results in small ones."""

import random
from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    PolicySpec,
    Request,
    SetGang,
    parse_quantities,
)
from allocator.core.cycle.cycle import decisions_of
from allocator.core.snapshot import Tier
from allocator.policies import POLICIES
from tests.policies.test_nothing_is_left import DEMANDS, Seen, make, play
from tests.tiers import long
from tests.world.world import World

MODES = ("characterised", "oblivious")


def room(seen: Seen, client: int) -> int:
    """Whole tasks in a client's grants, agent by agent, by resource name.

    Of each resource a task has either revocable amounts only or none. Shared resources are not used
    up by a task.
    """
    snapshot, grants, specials = seen.snapshot, seen.grants, seen.snapshot.specials
    demand, tasks = snapshot.demand[client].tolist(), 0
    for agent in np.unique(grants.agent[grants.client == client]).tolist():
        rows = np.flatnonzero((grants.client == client) & (grants.agent == agent))
        has, revocable = grants.amount[rows].sum(axis=0).tolist(), [0] * len(demand)
        shared = set()
        for part in np.flatnonzero(np.isin(grants.special_grant, rows)).tolist():
            kind, amount = int(grants.special[part]), int(grants.special_amount[part])
            if specials.tier[kind] == Tier.REVOCABLE:
                revocable[int(specials.column[kind])] += amount
            elif specials.tier[kind] < Tier.REVOCABLE:
                has[int(specials.column[kind])] += amount
            elif specials.tier[kind] == Tier.SHARED and amount >= demand[specials.column[kind]]:
                shared.add(int(specials.column[kind]))
        columns = enumerate(zip(has, revocable, demand, strict=True))
        tasks += min(
            99 if at in shared else one // need + other // need
            for at, (one, other, need) in columns
            if need
        )
    return tasks


def requested(world: World, chance: random.Random) -> dict[int, list[tuple[str, int]]]:
    """Let some frameworks request unlike tasks, some of them for certain agents."""
    found = {}
    agents = [0, 0, 0, *world.agents, -1]
    for framework in world.frameworks:
        if chance.random() < 0.4:
            continue
        tasks = [(each, chance.choice(agents)) for each in chance.choices(DEMANDS, k=2)]
        tasks = [tasks[0], *chance.choices(tasks, k=chance.randint(1, 3))]
        needs = tuple(parse_quantities(each) for each, _ in tasks)
        names = {0: "", -1: "nowhere"}
        only = tuple(names.get(agent, f"agent-{agent}") for _, agent in tasks)
        world.tell(Request(framework, needs, agents=only))
        if len(set(tasks)) > 1 or tasks[0][1]:
            found[framework] = tasks
    return found


def has_room(seen: Seen, client: int, tasks: list[tuple[str, int]]) -> bool:
    """Whether some arrangement of unlike tasks fits into a client's grants."""
    snapshot, grants, specials = seen.snapshot, seen.grants, seen.snapshot.specials
    columns = range(len(snapshot.resources))
    left = dict[tuple[int, int, str], int]()  # of each agent and resource, by how it is used
    for row in np.flatnonzero(grants.client == client).tolist():
        agent = int(snapshot.handle[grants.agent[row]])
        for column in columns:
            key = agent, column, "usual"
            left[key] = left.get(key, 0) + int(grants.amount[row, column])
        for part in np.flatnonzero(grants.special_grant == row).tolist():
            kind = int(grants.special[part])
            tier = Tier(specials.tier[kind])
            how = {Tier.REVOCABLE: "revocable", Tier.SHARED: "shared"}.get(tier, "usual")
            key = agent, int(specials.column[kind]), how
            left[key] = left.get(key, 0) + int(grants.special_amount[part])
    agents = {agent for agent, _, _ in left}
    names = list(snapshot.resources)
    needs = [
        ({names.index(name): amount for name, amount in parse_quantities(text).items()}, only)
        for text, only in tasks
        if all(name in names for name in parse_quantities(text))
    ]
    if len(needs) < len(tasks):
        return False

    def fits(at: int) -> bool:
        if at == len(needs):
            return True
        amounts, only = needs[at]
        for agent in agents & {only} if only else agents:
            for ways in product(("shared", "usual", "revocable"), repeat=len(amounts)):
                taken = [
                    ((agent, column, how), amount)
                    for (column, amount), how in zip(amounts.items(), ways, strict=True)
                ]
                if any(left.get(key, 0) < amount for key, amount in taken):
                    continue
                for key, amount in taken:
                    left[key] -= amount * (key[2] != "shared")
                found = fits(at + 1)
                for key, amount in taken:
                    left[key] += amount * (key[2] != "shared")
                if found:
                    return True
        return False

    return fits(0)


def never_a_part_of_unlike_tasks(seed: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns how many gangs of unlike tasks were offered."""
    chance, offered = random.Random(seed), 0
    world = make(chance, rules=chance.random() < 0.5)
    tasks = requested(world, chance)
    for seen in play(world, chance, monkeypatch, 6):
        gangs = seen.snapshot.gangs
        if gangs is None:
            continue
        clients = world.allocator.state.clients
        for client in gangs.unlike:
            assert int(clients.framework[client]) in tasks
            if client in seen.grants.client:
                offered += 1
                assert has_room(seen, client, tasks[int(clients.framework[client])]), seed
        offered_together(world, seen)
    world.allocator.check()
    return offered


def never_a_part(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    world = make(chance, rules=chance.random() < 0.5)
    for role in chance.sample(("a", "b", "b/c", "d"), 2):
        world.allocator.step(SetGang(role, "", chance.randint(2, 6)))
    for seen in play(world, chance, monkeypatch, 6):
        gangs = seen.snapshot.gangs
        if gangs is None:
            continue
        for client, tasks in zip(gangs.client.tolist(), gangs.tasks.tolist(), strict=True):
            if client in seen.grants.client:
                assert room(seen, client) >= tasks, seed
        offered_together(world, seen)
    world.allocator.check()


def offered_together(world: World, seen: Seen) -> None:
    """The decisions for each gang are adjacent, and named as its own."""
    state, gangs = world.allocator.state, seen.snapshot.gangs
    assert gangs is not None
    made = decisions_of(state, seen.snapshot, seen.grants, cycle=1)
    clients = state.clients
    pairs = {(clients.framework[row], clients.role[row]) for row in gangs.client.tolist()}
    rows = [*zip(made.framework.tolist(), made.role.tolist(), strict=True)]
    together: list[range] = []
    for pair, run in groupby(range(len(rows)), rows.__getitem__):
        at = [*run]
        if pair in pairs:
            together.append(range(at[0], at[-1] + 1))
    assert [range(first, first + count) for first, count in made.gangs] == together
    assert len({rows[run[0]] for run in together}) == len(together)


OVERLAPPING = (41,)
"""Worlds where what comes before the turn of a gang overlaps with a gang placed earlier."""


@pytest.mark.parametrize(
    "seeds", [range(30), OVERLAPPING, *long(*(range(n, n + 30) for n in range(30, 600, 30)))]
)
def test_a_gang_is_never_offered_in_part(seeds, monkeypatch):
    for seed in seeds:
        never_a_part(seed, monkeypatch)


USED_UP = (116,)
"""A world where a gang has its turn on an agent whose reserved resources an earlier one used up."""


@pytest.mark.parametrize(
    "seeds", [range(8), USED_UP, *long(*(range(n, n + 30) for n in range(30, 600, 30)))]
)
def test_a_gang_of_unlike_tasks_is_never_offered_in_part(seeds, monkeypatch):
    offered = [never_a_part_of_unlike_tasks(seed, monkeypatch) for seed in seeds]
    assert any(offered)


@given(
    policy=st.sampled_from(list(POLICIES)),
    mode=st.sampled_from(MODES),
    sizes=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=4),
    demand=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    tasks=st.integers(2, 8),
)
def test_a_gang_alone_is_offered_exactly_if_it_fits(policy, mode, sizes, demand, tasks):
    """The sum of whole tasks over agents decides: tasks are alike, so no placement does better."""
    world = World(PolicySpec(policy, mode=mode), minimum=())
    for cpus, mem in sizes:
        world.agent(f"cpus:{cpus};mem:{mem}")
    label = f"cpus:{demand[0]};mem:{demand[1]}"
    world.framework("a", labels={DEMAND_LABEL: label, GANG_LABEL: f"tasks:{tasks}"})
    fits = sum(min(cpus // demand[0], mem // demand[1]) for cpus, mem in sizes)
    offers = world.cycle()
    assert bool(offers) == (fits >= tasks)
    if offers and mode == "characterised":
        given_cpus = int(world.allocator.state.held_by_column()[:, 0].max())
        assert given_cpus == 1000 * demand[0] * tasks, "no more than the gang"

"""The bound on a framework's outstanding offers, over all its roles."""

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, MILLI, PolicySpec, SetQuota
from allocator.core.cycle.cycle import BadGrantError, _check_bounds
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.snapshot import Grants
from allocator.policies import SELECTIONS, build
from tests.core.session import Session
from tests.world.nouns import Framework
from tests.world.world import World

ROLES = {role: f"role-{role}" for role in range(1, 6)}
AGENTS = 20
"""Of 1 CPU and 2 GiB each, so that a tenth of the cluster is two of them."""
TASK = {DEMAND_LABEL: "cpus:1;mem:2"}


def cluster(selection: str, mode: str, **settings) -> Session:
    session = Session(PolicySpec("drf", selection, mode), roles=ROLES, **settings)
    for agent in range(1, AGENTS + 1):
        session.agent(agent, 1, 2)
    return session


def offered(session: Session) -> dict[int, int]:
    """CPUs on offer by framework."""
    clients, books = session.state.clients, session.state.ledger.books
    found: dict[int, int] = {}
    for client in range(1, len(clients.framework)):
        framework = int(clients.framework[client])
        found[framework] = found.get(framework, 0) + int(books.client_offered[0, client]) // 1000
    return found


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_framework_in_five_roles_has_one_bound(selection, mode):
    session = cluster(selection, mode, outstanding_max=0.1)
    session.framework(1, *ROLES, labels=TASK)
    session.cycle(1000)
    assert offered(session)[1] == AGENTS // 10
    assert session.cycle(2000) == []


@pytest.mark.parametrize("selection", SELECTIONS)
def test_each_framework_has_a_bound_of_its_own(selection):
    session = cluster(selection, "oblivious", outstanding_max=0.1)
    session.framework(1, *ROLES)
    session.framework(2, 1)
    session.framework(3, 1, 2)
    session.cycle(1000)
    assert {framework: offered(session)[framework] for framework in (1, 2, 3)} == {1: 2, 2: 2, 3: 2}


@pytest.mark.parametrize("selection", SELECTIONS)
def test_limits_of_roles_hold_beside_it(selection):
    """Role 1 may have one agent in total; framework 1 has the rest of its bound elsewhere."""
    session = cluster(selection, "oblivious", outstanding_max=0.2)
    session.allocator.step(SetQuota("role-1", {}, {"cpus": 1000}))
    session.framework(1, 1, 2)
    session.framework(2, 1)
    offers = session.cycle(1000)
    assert sum(offer[1] == 1 for offer in offers) == 1
    assert offered(session)[1] == 4


def test_a_policy_that_passes_the_bound_is_found_out():
    session = cluster("listed", "oblivious", outstanding_max=0.1)
    session.framework(1, *ROLES)
    session.allocator.state.now_ms = 1000
    snapshot = SnapshotBuilder().build(session.state, None)
    free = cluster("listed", "oblivious")
    free.framework(1, *ROLES)
    too_much = build(PolicySpec("drf", "listed")).allocate(
        SnapshotBuilder().build(free.state, None), 1
    )
    assert isinstance(too_much, Grants)
    assert len(set(too_much.client.tolist())) == 5
    with pytest.raises(BadGrantError, match="limit"):
        _check_bounds(snapshot, too_much)


def on_offer(world: World, framework: Framework) -> dict[str, int]:
    """Outstanding amounts of a framework, in thousandths."""
    clients = world.allocator.state.clients
    rows = np.flatnonzero(clients.framework == framework.handle)
    state = world.allocator.state
    return state.space.named(state.offered_by_column()[rows].sum(axis=0))


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_a_hoarder_leaves_the_others_ports(mode):
    """Otherwise all frameworks after it would get CPUs and memory without ports."""
    world = World(PolicySpec("drf", "listed", mode), settings={"outstanding_max": 0.25})
    world.agent("cpus:16;mem:32768;ports:1000")
    hoarder = world.framework("a", labels={DEMAND_LABEL: "cpus:0.1;mem:8;ports:100"})
    world.cycle()
    world.cycle()
    assert on_offer(world, hoarder)["ports"] <= 250 * MILLI
    other = world.framework("b", labels={DEMAND_LABEL: "cpus:1;mem:512;ports:50"})
    world.cycle()
    assert on_offer(world, other)["ports"] > 0


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_gpus_are_not_cut(mode):
    """A fifth of four GPUs is 0.8 of one; it is granted one."""
    settings = {"outstanding_max": 0.2}
    world = World(PolicySpec("drf", "listed", mode), settings=settings)
    for _ in range(4):
        world.agent("cpus:4;mem:4096;gpus:1")
    labels = {DEMAND_LABEL: "cpus:0.5;mem:128;gpus:1"}
    framework = world.framework("a", labels=labels, capabilities={"GPU_RESOURCES"})
    world.cycle()
    assert on_offer(world, framework)["gpus"] == MILLI


def test_a_task_that_is_larger_than_the_bound_is_offered_one_at_a_time():
    world = World(PolicySpec("drf", mode="characterised"), settings={"outstanding_max": 0.1})
    for _ in range(4):
        world.agent("cpus:4;mem:4096")
    framework = world.framework("a", labels={DEMAND_LABEL: "cpus:3;mem:1024"})
    (offer,) = world.cycle()
    assert on_offer(world, framework) == {"cpus": 3 * MILLI, "mem": 1024 * MILLI}
    assert world.cycle() == []
    world.use(offer)
    assert len(world.cycle()) == 1


def test_the_tasks_that_reach_the_minimum_are_offered_together():
    """One task is within the bound, but below the minimum, so it would never be offered alone."""
    world = World(PolicySpec("drf", mode="characterised"), settings={"outstanding_max": 0.1})
    for _ in range(4):
        world.agent("cpus:4;mem:4096")
    labels = {DEMAND_LABEL: "cpus:1;mem:256"}
    framework = world.framework("a", labels=labels, minimum={"a": ["cpus:3"]})
    (offer,) = world.cycle()
    assert on_offer(world, framework) == {"cpus": 3 * MILLI, "mem": 768 * MILLI}
    assert world.cycle() == []
    world.use(offer)
    assert len(world.cycle()) == 1


def test_a_disk_that_is_given_whole_is_given():
    world = World(PolicySpec("drf"), settings={"outstanding_max": 0.1})
    for _ in range(2):
        world.agent("cpus:4;mem:4096;disk[mount]:1000")
    framework = world.framework("a")
    world.cycle()
    assert on_offer(world, framework)["disk"] == 1000 * MILLI

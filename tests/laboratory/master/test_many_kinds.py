"""With any number of objects a session continues: they are separate kinds, or part of the rest."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from allocator.core import Options, Reason, SessionLimits
from laboratory.frameworks.base import Identity, Task
from laboratory.master.emulated import EmulatedMaster
from laboratory.random_cluster import RandomScenario
from laboratory.random_cluster.checks import Inspector, differences, of_ledger
from laboratory.resources import (
    REFINEMENT,
    REVOCABLE,
    SHARED,
    AgentSpec,
    Resource,
    disk,
    reserved,
    volume,
)
from laboratory.workloads.play import play
from tests.laboratory.master.auditing import Audited
from tests.laboratory.master.books import of_state
from tests.laboratory.master.masters import run, wire_link

ANY = Options(minimum=())
CPUS, MEM, DISK = Resource("cpus"), Resource("mem"), Resource("disk")


@dataclass(eq=False)
class Taker:
    """Records its offers, and uses them forever or declines them."""

    role: str
    uses: bool = True
    refuse_ms: int = -1
    demand: dict[str, int] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset({REFINEMENT, REVOCABLE, SHARED})
    got: Counter[Resource] = field(default_factory=Counter)
    offers: list[dict[Resource, int]] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)

    @property
    def identity(self):
        return Identity(self.role, (self.role,), self.demand, capabilities=self.capabilities)

    def subscribed(self, master):
        self.master = master

    def offered(self, offers):
        for offer in offers:
            has = self.master.resources_of(offer.amount)
            self.offers.append(has)
            self.got.update(has)
            if self.uses:
                self.tasks += self.master.accept(offer, [offer.amount], self.refuse_ms)
            else:
                self.master.decline([offer], self.refuse_ms)

    def lost(self, tasks):
        assert not tasks


def master_of(link, *agents, names=("cpus", "mem", "disk")):
    """A master with agents of these resources, its session open, each offer inspected."""
    master = EmulatedMaster(link, names, ANY)
    inspector = Inspector(master)

    def look(offers):
        inspector(offers)
        assert inspector.wrong == []

    master.inspect(look)
    master.open()
    for number, has in enumerate(agents):
        master.add_agent(AgentSpec(f"host-{number}", {}, special=has))
    return master


def assert_books_agree(master, link):
    master.settle()
    now_ms = master.event_heap.now_ms
    link.allocator.check()
    ours, theirs = of_ledger(master.ledger, now_ms), of_state(link.allocator.state, now_ms)
    assert differences(ours, theirs) == []


OBJECTS = 10_000
SORTS = ("labels", "principals", "volumes", "providers", "disks")
AGENTS = 100


def one_of_many(sort, number):
    """An object that differs from the others only in its id."""
    match sort:
        case "labels":
            return reserved(CPUS, "a", labels=(("job", f"{number}"),))
        case "principals":
            return reserved(CPUS, "a", principal=f"user-{number}")
        case "volumes":
            return volume(reserved(DISK, "a"), f"volume-{number}")
        case "providers":
            return Resource("disk", provider=f"provider-{number}")
        case "disks":
            return disk("mount", f"/mnt/{number}")
    raise ValueError(sort)


@pytest.mark.parametrize(
    ("sort", "objects"),
    [
        *((sort, OBJECTS // 10) for sort in SORTS),
        *(pytest.param(sort, OBJECTS, marks=pytest.mark.long) for sort in SORTS),
    ],
)
def test_any_number_of_objects_of_one_kind_is_one_kind(sort, objects):
    """All are offered, used, released and offered again; then a new session starts.

    A tenth of the objects still exceeds the kinds of a session.
    """
    link = wire_link()
    numbers = range(objects)
    agents = [
        {one_of_many(sort, number): 1000 for number in numbers[first::AGENTS]}
        for first in range(AGENTS)
    ]
    master = master_of(link, *agents)
    taker = Taker("a")
    master.subscribe(taker)
    run(master, 1_000)
    kinds = len(link.allocator.state.space.kinds)
    assert kinds == 3 + (sort != "providers")
    assert taker.got == Counter({one_of_many(sort, number): 1000 for number in numbers})
    assert master.record.rejected == {}
    assert_books_agree(master, link)
    for task in taker.tasks[: AGENTS // 2]:
        master.end(task)
    link.cut()
    run(master, 3_000)
    assert master.record.resyncs == 1
    assert len(taker.offers) == AGENTS + AGENTS // 2
    assert len(link.allocator.state.space.kinds) == kinds
    assert_books_agree(master, link)


def test_part_of_many_objects_is_cut_from_few_of_them():
    """One task of 2.5 CPUs from providers of 1 each: two whole ones and half of a third."""
    link = wire_link(mode="characterised")
    agent = {Resource("cpus", provider=f"provider-{number}"): 1000 for number in range(4)}
    master = master_of(link, agent)
    taker = Taker("a", demand={"cpus": 2500})
    master.subscribe(taker)
    run(master, 10)
    assert sorted(taker.offers[0].values()) == [500, 1000, 1000]
    assert_books_agree(master, link)


ROLES = ("a", "b", "c", "d", "e")


def crowded_agent():
    """An agent with a reservation for each role, of each name, in each form."""
    has = {CPUS: 4000, MEM: 4000}
    for role in ROLES:
        has[reserved(CPUS, role)] = 1000
        has[reserved(MEM, role)] = 1000
        has[volume(reserved(DISK, role), "v")] = 1000
    return has


@pytest.mark.parametrize("kinds", [1, 2, 3, 4, 6, 8, 12, 512])
def test_with_few_kinds_everything_is_offered_to_the_role_of_its_reservation(kinds):
    """Every reserved resource is offered within few cycles, and only to its role.

    Resources are left out only if there is no kind left for their name.
    """
    link = wire_link(limits=SessionLimits(kinds=kinds))
    master = master_of(link, crowded_agent(), crowded_agent())
    takers = [Taker(role) for role in ROLES]
    for taker in takers:
        master.subscribe(taker)
    run(master, 15_000)
    assert len(link.allocator.state.space.kinds) <= kinds
    for taker in takers:
        for each, amount in (
            (reserved(CPUS, taker.role), 2000),
            (reserved(MEM, taker.role), 2000),
            (volume(reserved(DISK, taker.role), "v"), 2000),
        ):
            told = master.ledger.kinds.handle(each) >= 0
            assert told or kinds < 2 * 3
            assert taker.got[each] == (amount if told else 0)
    assert sum(taker.got[CPUS] for taker in takers) == 8000
    assert_books_agree(master, link)


NAMES = ("cpus", "disk")
"""Of four kinds two are plain, and two are the rest."""


@pytest.mark.parametrize("kept_from", [True, False])
def test_after_no_share_of_the_rest_a_minute_passes_to_the_next_offer(kept_from, monkeypatch):
    """Otherwise the first would be offered it forever, and its role never."""
    if not kept_from:
        monkeypatch.setattr("allocator.core.apply.holdings.REST_REFUSED_MS", -1)
    link = wire_link(limits=SessionLimits(kinds=4), patience_cycles=0)
    owned = reserved(DISK, "b")
    master = master_of(link, {CPUS: 1000, owned: 500}, names=NAMES)
    busy = Taker("b")
    master.subscribe(busy)
    run(master, 10)  # It gets everything, and has a share from now on.
    assert busy.got[owned] == 500
    master.add_agent(AgentSpec("other", {}, special={CPUS: 1000, reserved(DISK, "b"): 300}))
    first = Taker("a", uses=False)
    master.subscribe(first)
    run(master, 20_000)
    assert (busy.got[owned] == 800) == kept_from
    asked = master.record.outcomes[Reason.PARTIAL]
    assert asked == 1 if kept_from else asked > 10
    assert len(first.offers) > 10
    assert first.got[owned] == 0
    assert_books_agree(master, link)


def test_after_a_minute_or_a_revive_it_is_asked_again():
    link = wire_link(limits=SessionLimits(kinds=4))
    master = master_of(link, {reserved(DISK, "b"): 300}, names=NAMES)
    first = Taker("a")
    master.subscribe(first)

    def asked():
        return master.record.outcomes[Reason.NOTHING_AVAILABLE]

    run(master, 59_000)
    assert asked() == 1
    run(master, 61_500)
    assert asked() == 2
    master.revive(first)
    run(master, 63_500)
    assert asked() == 3
    assert first.offers == []
    assert_books_agree(master, link)


def test_more_of_the_rest_is_asked_for_at_once():
    """A framework that refused three may be offered part of later additions."""
    link = wire_link(limits=SessionLimits(kinds=4))
    master = master_of(link, {reserved(DISK, "b"): 300}, names=NAMES)
    first = Taker("a")
    master.subscribe(first)
    run(master, 5_000)
    master.add_provider(1, {reserved(DISK, "a"): 200})
    run(master, 8_000)
    assert first.got == {reserved(DISK, "a"): 200}
    assert_books_agree(master, link)


EXCUSED = {
    Reason.PARTIAL,
    Reason.NOTHING_AVAILABLE,
    Reason.BELOW_MINIMUM,
    Reason.LIMIT,
    Reason.HEADROOM,
    Reason.FILTERED,
}
"""The possible outcomes of a decision that names a rest."""


@pytest.mark.parametrize(
    ("kinds", "mode"),
    [
        (10, "oblivious"),
        (20, "characterised"),
        pytest.param(10, "characterised", marks=pytest.mark.long),
        pytest.param(13, "oblivious", marks=pytest.mark.long),
        pytest.param(13, "characterised", marks=pytest.mark.long),
        pytest.param(20, "oblivious", marks=pytest.mark.long),
    ],
)
def test_everything_at_once_with_few_kinds(kinds, mode):
    """No decision is refused, nothing is over-committed, and the books are equal kind by kind."""
    scenario = RandomScenario(3, duration_ms=20_000)
    link = wire_link("drf", mode, 3, limits=SessionLimits(kinds=kinds))
    audited = Audited(scenario, link, every_ms=490, until_ms=scenario.duration_ms)
    played = play(audited, link, tell_demand=True, options=scenario.options)
    assert scenario.inspector.wrong == []
    assert audited.compared > 15
    assert played.record.offers > 50
    assert played.record.resyncs == 0
    assert played.record.defects.keys() <= EXCUSED
    assert any(kind.rest for kind in played.master.ledger.kinds.kinds)

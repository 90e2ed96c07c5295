"""The demand learned for a framework, and the prior with which similar frameworks start."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddFramework,
    Allocator,
    Define,
    FrameworkInfo,
    Options,
    PolicySpec,
    Release,
    RemoveFramework,
    SetDemand,
    Settings,
    Transition,
)
from allocator.core.demand.demand_memory import DemandMemory, common_unit
from allocator.core.demand.topics import name_pattern
from allocator.policies import build
from tests.core.session import KINDS, Offer, Session

TASKS = PolicySpec("drf", mode="characterised")
DAY_MS = 24 * 3_600_000


def source(session: Session, framework: int, role: int = 1) -> tuple[str, dict[str, int]]:
    clients = session.state.clients
    client = clients.row(framework, role)
    named = session.state.space.named(clients.demand[client])
    return clients.demand_source[client], {name: amount // 1000 for name, amount in named.items()}


def job(session: Session, framework: int, name: str, **info: Any) -> None:
    """Add a framework."""
    known = FrameworkInfo(f"id-{framework}", name, **info)
    session.allocator.step(AddFramework(framework, known, (1,)))


def take(session: Session, offer: Offer, cpus: int, mem: int) -> None:
    """Use part of an offer; the master reports the rest as released first."""
    framework, role, agent, units = offer
    rest = {"cpus": units.get("cpus", 0) - cpus, "mem": units.get("mem", 0) - mem}
    if any(rest.values()):
        session.give_back(offer, 0, **rest)
    session.allocator.step(Transition(session.holdings(framework, role, agent, cpus, mem)))


def end(session: Session, offer: Offer, cpus: int, mem: int) -> None:
    """End a task."""
    back = session.holdings(*offer[:3], cpus, mem)
    session.allocator.step(Release(back, np.array([-1]), np.array([True])))


def taught(session: Session, name: str = "pi-1", framework: int = 1, **info: Any) -> None:
    """A job with executors of 2 CPUs and 3 units of memory came, started four, and left."""
    job(session, framework, name, **info)
    offer = next(each for each in session.cycle(session.state.now_ms) if each[0] == framework)
    take(session, offer, 8, 12)
    for _ in range(4):
        end(session, offer, 2, 3)
    session.allocator.step(RemoveFramework(framework))


def begun(**settings: Any) -> Session:
    session = Session(TASKS, **settings)
    session.agent(1, 9, 14)
    return session


# The initial demand.


def test_the_next_of_its_name_begins_with_what_one_job_took():
    session = begun()
    taught(session)
    job(session, 2, "pi-2")
    assert source(session, 2) == ("prior", {"cpus": 2, "mem": 3})
    assert session.cycle(1000) == [(2, 1, 1, {"cpus": 8, "mem": 12})]


@pytest.mark.parametrize(
    ("name", "role"), [("wordcount-1", 1), ("pi-2", 2)], ids=["another name", "another role"]
)
def test_frameworks_of_another_sort_begin_with_nothing(name: str, role: int):
    session = begun()
    taught(session)
    session.allocator.step(AddFramework(2, FrameworkInfo("id-2", name), (role,)))
    assert source(session, 2, role) == ("", {})


def test_stated_demands_precede_remembered_ones():
    session = begun()
    taught(session)
    session.allocator.step(SetDemand("a", "", {"cpus": 5000}))
    job(session, 2, "pi-2")
    assert source(session, 2) == ("operator", {"cpus": 5})
    session.allocator.step(SetDemand("a", "", None))
    assert source(session, 2) == ("prior", {"cpus": 2, "mem": 3})


@pytest.mark.parametrize("who", [{"principal": "spark"}, {"user": "ada"}])
def test_a_new_name_begins_with_what_three_jobs_of_its_principal_or_user_took(who: dict[str, str]):
    session = begun()
    for index, name in enumerate(("extract", "train", "report"), 1):
        taught(session, name, index, **who)
        job(session, 9, "new", **who)
        assert source(session, 9) == (("prior", {"cpus": 2, "mem": 3}) if index == 3 else ("", {}))
        session.allocator.step(RemoveFramework(9))
    job(session, 9, "new", principal="other", user="other")
    assert source(session, 9) == ("", {})


@pytest.mark.parametrize("settings", [{"priors_max": 0}, {"learn_demand": False}])
def test_nothing_is_remembered_where_that_is_turned_off(settings: dict[str, Any]):
    session = begun(**settings)
    taught(session)
    job(session, 2, "pi-2")
    assert source(session, 2) == ("", {})


@pytest.mark.parametrize(
    ("one", "other"),
    [("pi-1", "pi-22"), ("etl 2026-11-22 03:30", "etl 2027-01-01 00:00"), ("v1.2.3/7", "v2/1")],
)
def test_names_that_differ_in_numbers_are_of_one_sort(one: str, other: str):
    assert name_pattern(one) == name_pattern(other)
    assert name_pattern("pi") != name_pattern("pie")


# Whether the prior fits.


def test_an_acceptance_that_agrees_makes_it_the_frameworks_own():
    session = begun()
    taught(session)
    job(session, 2, "pi-2")
    (offer,) = session.cycle(1000)
    take(session, offer, 4, 6)
    assert source(session, 2) == ("learned", {"cpus": 2, "mem": 3})
    assert (session.state.memory.confirmed, session.state.memory.refuted) == (1, 0)


@pytest.mark.parametrize(("cpus", "mem"), [(1, 3), (8, 3), (3, 12)])
def test_an_acceptance_of_another_shape_ends_it(cpus: int, mem: int):
    session = begun()
    taught(session)
    job(session, 2, "pi-2")
    (offer,) = session.cycle(1000)
    take(session, offer, cpus, mem)
    assert source(session, 2) == ("", {})
    assert (session.state.memory.confirmed, session.state.memory.refuted) == (0, 1)


def test_a_framework_that_declines_a_prior_is_offered_all_that_is_free():
    session = begun(probe_after=2)
    taught(session)
    job(session, 2, "pi-2")
    for now_ms in (1000, 2000):
        (offer,) = session.cycle(now_ms)
        assert offer[3] == {"cpus": 8, "mem": 12}
        session.give_back(offer, 0)
    (offer,) = session.cycle(3000)
    assert offer[3] == {"cpus": 9, "mem": 14}
    take(session, offer, 6, 9)
    assert source(session, 2) == ("", {}), "it is three times the prior, but was declined before"


def test_a_framework_whose_prior_never_fits_is_offered_what_is_free_at_growing_intervals():
    session = begun(learn_patience_cycles=2)
    taught(session)
    session.allocator.step(SetDemand("b", "", {"cpus": 8000, "mem": 13_000}))
    session.framework(5, 2)
    (offer,) = session.cycle(1000)
    session.use(offer)  # the rest is less than one executor
    job(session, 2, "pi-2")
    offered = []
    for second in range(2, 16):
        offers = session.cycle(1000 * second)
        offered += [second] * len(offers)
        for each in offers:
            assert each[0] == 2
            assert each[3] == {"cpus": 1, "mem": 1}
            session.give_back(each, 0)
    # Probes after 2 cycles without an offer, then after 4 more, then after 8.
    assert offered == [4, 9]
    assert session.state.memory.probes == 2


@pytest.mark.parametrize("executor", [(4, 6), (4, 12), (1, 1)])
def test_a_job_that_has_changed_is_learnt_again(executor: tuple[int, int]):
    session = begun()
    for index in range(1, 4):
        taught(session, framework=index)
    for index in range(10, 13):
        job(session, index, f"pi-{index}")
        (offer,) = session.cycle(session.state.now_ms + 1)
        count = min(offer[3]["cpus"] // executor[0], offer[3]["mem"] // executor[1])
        take(session, offer, count * executor[0], count * executor[1])
        for _ in range(count):
            end(session, offer, *executor)
        session.allocator.step(RemoveFramework(index))
    job(session, 20, "pi-20")
    assert source(session, 20) == ("prior", {"cpus": executor[0], "mem": executor[1]})


sizes = st.tuples(st.integers(1, 8), st.integers(1, 8))


@given(
    prior=sizes,
    need=sizes,
    agents=st.lists(sizes, min_size=1, max_size=4),
    rival=st.none() | sizes,
    selection=st.sampled_from(["listed", "random", "joint"]),
)
def test_with_any_prior_a_framework_soon_gets_what_some_agent_has(
    prior, need, agents, rival, selection
):
    """The prior may be too large, too small or of another shape; patience and declines fix it."""
    policy = PolicySpec("drf", selection, "characterised")
    session = Session(policy, learn_after=1, probe_after=2, learn_patience_cycles=3)
    for index, has in enumerate(agents, 1):
        session.agent(index, *has)
    named = {"cpus": prior[0] * 1000, "mem": prior[1] * 1000}
    session.state.memory.teach(session.allocator.settings, ("a", "name", "pi-#"), named)
    if rival is not None:
        # Another framework first takes what it can, and keeps it.
        session.allocator.step(
            SetDemand("b", "", {"cpus": rival[0] * 1000, "mem": rival[1] * 1000})
        )
        session.framework(9, 2)
        for offer in session.cycle(1000):
            session.use(offer)
    free = (session.state.free // 1000).tolist()
    job(session, 1, "pi-1")
    assert source(session, 1)[0] == "prior"
    # 3 cycles of patience, a probe, and three more in which it declines offers that are too small.
    got = any(answer(session, 1000 * second, need) for second in range(2, 9))
    assert got == any(cpus >= need[0] and mem >= need[1] for cpus, mem, *_ in free[1:])
    session.allocator.check()


def answer(session: Session, now_ms: int, need: tuple[int, int]) -> bool:
    """Take the first offer that meets the need; decline the others."""
    got = False
    for offer in session.cycle(now_ms):
        units = offer[3]
        if offer[0] != 1:
            session.use(offer)
        elif not got and units.get("cpus", 0) >= need[0] and units.get("mem", 0) >= need[1]:
            take(session, offer, *need)
            got = True
        else:
            session.give_back(offer, 0)
    return got


# The size of a single task.


def test_several_tasks_in_one_offer_are_separated_by_the_shape_of_two():
    """6 CPUs and 9 of memory, then 4 and 6: the largest common task size is half of the second."""
    session = Session(TASKS, learn_after=2)
    session.agent(1, 20, 30)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.allocator.step(Transition(session.holdings(1, 1, 1, 6, 9)))
    session.allocator.step(Transition(session.holdings(1, 1, 1, 4, 6)))
    assert source(session, 1) == ("learned", {"cpus": 2, "mem": 3})
    session.give_back(offer, cpus=10, mem=15)
    # Offers are whole tasks, so others get the rest; and one task is always enough.
    job(session, 2, "other")
    session.allocator.step(SetDemand("a", "other", {"cpus": 8000, "mem": 12_000}))
    assert session.cycle(2000) == [
        (2, 1, 1, {"cpus": 8, "mem": 12}),
        (1, 1, 1, {"cpus": 2, "mem": 3}),
    ]


def test_a_task_that_ends_tells_the_size_of_those_that_came_together():
    session = Session(TASKS, learn_after=1)
    session.agent(1, 8, 12)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.use(offer)
    assert source(session, 1) == ("learned", {"cpus": 8, "mem": 12})
    end(session, offer, 2, 3)
    assert source(session, 1) == ("learned", {"cpus": 2, "mem": 3})
    assert session.cycle(2000) == [(1, 1, 1, {"cpus": 2, "mem": 3})]


def test_a_part_of_another_shape_that_ends_says_nothing():
    """An executor and its tasks end one by one; none of these sizes is the demand."""
    session = Session(TASKS, learn_after=1)
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.use(offer)
    for cpus, mem in ((1, 0), (1, 0), (2, 8)):
        end(session, offer, cpus, mem)
    assert source(session, 1) == ("learned", {"cpus": 4, "mem": 8})


def test_no_demand_is_learnt_from_tasks_beside_a_running_executor():
    """Where its executor runs, a task needs only CPUs; elsewhere it needs memory, too."""
    session = Session(TASKS, learn_after=1)
    session.agent(1, 8, 12)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.allocator.step(Transition(session.holdings(1, 1, 1, 2, 6)))
    assert source(session, 1) == ("learned", {"cpus": 2, "mem": 6})
    session.allocator.step(Transition(session.holdings(1, 1, 1, 1, 0)))
    assert source(session, 1) == ("", {})
    session.give_back(offer, 0, cpus=5, mem=6)
    assert session.cycle(2000) == [(1, 1, 1, {"cpus": 5, "mem": 6})]


def test_a_framework_with_too_large_a_learnt_demand_is_offered_what_is_free():
    session = Session(TASKS, learn_after=1, learn_patience_cycles=3)
    session.agent(1, 4, 6)
    session.framework(1)
    (offer,) = session.cycle(1000)
    take(session, offer, 3, 6)
    # A CPU and no memory is left: less than the first use, but enough for a further task.
    offers = [session.cycle(1000 * second) for second in range(2, 7)]
    assert offers == [[], [], [], [(1, 1, 1, {"cpus": 1})], []]
    assert session.state.memory.probes == 1
    session.use(offers[3][0])
    assert source(session, 1) == ("", {})


def test_a_framework_that_declined_its_learnt_demand_is_not_offered_less():
    session = Session(TASKS, learn_after=1, learn_patience_cycles=3)
    session.agent(1, 7, 12)
    session.framework(1)
    (offer,) = session.cycle(1000)
    take(session, offer, 3, 6)
    (offer,) = session.cycle(2000)
    assert offer[3] == {"cpus": 3, "mem": 6}
    session.give_back(offer, 60_000)
    assert [session.cycle(1000 * second) for second in range(3, 12)] == [[]] * 9
    assert session.state.memory.probes == 0


amounts = st.lists(st.integers(0, 50).map(lambda n: n * 100), min_size=2, max_size=4)


@given(amounts, st.integers(1, 9), st.integers(1, 9))
def test_the_common_unit_of_two_multiples_makes_both(unit: list[int], times: int, others: int):
    one, other = [n * times for n in unit], [n * others for n in unit]
    found = common_unit(one, other)
    if not any(unit):
        assert found is None
    elif found is None:
        assert sum(map(bool, unit)) == 1
        assert times % others
        assert others % times
    else:
        for whole in (one, other):
            parts = {a // b for a, b in zip(whole, found, strict=True) if b}
            assert len(parts) == 1
            assert [b * parts.copy().pop() for b in found] == whole
        assert all(a >= b for a, b in zip(found, unit, strict=True)), "it is the largest"


@given(amounts, amounts)
def test_amounts_of_different_shapes_have_no_common_unit(one: list[int], other: list[int]):
    found = common_unit(one, other)
    crossed = len(one) == len(other) and all(
        one[i] * other[j] == one[j] * other[i] for i in range(len(one)) for j in range(i)
    )
    assert found is None or (crossed and any(found))


# The priors: how many are kept, and for how long.

PI, BIG = {"cpus": 2000, "mem": 3000}, {"cpus": 9000, "mem": 3000}
TOPIC = ("a", "name", "pi-#")


def lessons(*given_ones: Mapping[str, int]) -> DemandMemory:
    memory = DemandMemory()
    for each in given_ones:
        memory.teach(Settings(), TOPIC, each)
    return memory


def test_a_prior_counts_after_the_configured_number_of_lessons():
    rules = Settings(learn_after=3)
    assert lessons(PI, PI).recall(rules, [TOPIC]) is None
    assert lessons(PI, PI, PI).recall(rules, [TOPIC]) == PI
    assert lessons(PI, BIG, PI, BIG, PI, BIG).recall(rules, [TOPIC]) is None


def test_a_lesson_that_disagrees_halves_what_many_built_up():
    rules = Settings(learn_after=3)
    memory = lessons(*[PI] * 50)
    assert memory.weight(rules, TOPIC) == 12
    memory.teach(rules, TOPIC, BIG)
    assert memory.weight(rules, TOPIC) == 6
    memory.teach(rules, TOPIC, BIG, times=5)  # 3, 1, nothing: then the other learned demands count
    assert memory.entries[TOPIC].amounts == BIG
    assert memory.weight(rules, TOPIC) == 3


def test_a_prior_fades_with_the_time_of_sessions_only():
    rules = Settings(learn_after=3, prior_half_life_ms=DAY_MS)
    memory = lessons(*[PI] * 12)
    memory.advance(5 * DAY_MS)  # time is relative to the first clock
    memory.advance(6 * DAY_MS)
    assert memory.weight(rules, TOPIC) == 6
    memory.begin_session()
    memory.advance(0)  # another master with another clock
    memory.advance(DAY_MS)
    assert memory.weight(rules, TOPIC) == 3
    assert memory.recall(rules, [TOPIC]) == PI
    memory.advance(2 * DAY_MS)
    assert memory.recall(rules, [TOPIC]) is None
    memory.advance(2000 * DAY_MS)
    assert memory.weight(rules, TOPIC) == 0


def test_the_oldest_topics_are_forgotten_first():
    rules = Settings(priors_max=2)
    memory = DemandMemory()
    for name in ("x", "y", "x", "z"):
        memory.teach(rules, ("a", "name", name), PI)
    assert [topic[2] for topic in memory.entries] == ["x", "z"]


vectors = st.sampled_from([PI, BIG, {"cpus": 4000, "mem": 6000}, {"cpus": 1000}, {"gpus": 1000}])


@given(st.lists(st.tuples(vectors, st.integers(1, 20), st.booleans())), st.integers(1, 5))
def test_equal_lessons_at_once_are_as_many_one_by_one(history, learn_after: int):
    rules = Settings(learn_after=learn_after)
    together, single = DemandMemory(), DemandMemory()
    for vector, times, one_task in history:
        together.teach(rules, TOPIC, vector, times=times, one_task=one_task)
        for _ in range(times):
            single.teach(rules, TOPIC, vector, one_task=one_task)
        assert together.entries == single.entries
        assert 0 < together.weight(rules, TOPIC) <= 4 * learn_after


# Which information survives which event.


def test_a_new_session_begins_with_what_the_one_before_learnt():
    session = begun()
    taught(session)
    fresh = Session(TASKS)
    fresh.allocator = successor(session.allocator)
    fresh.agent(1, 9, 14)
    job(fresh, 7, "pi-7")
    assert source(fresh, 7) == ("prior", {"cpus": 2, "mem": 3})
    fresh.allocator.check()


def successor(before: Allocator) -> Allocator:
    fresh = Allocator(build, before.settings)
    fresh.remember(before)
    fresh.step(Options())
    fresh.step(Define(kinds=KINDS, roles={1: "a"}))
    return fresh

"""Caps inside roles: what each framework, principal or user may hold, by every policy and mode.

`test_nothing_is_left` has them in its random worlds, with an oracle.
"""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    EventError,
    PlanningPolicy,
    PolicySpec,
    SetCap,
    UpdateFramework,
)
from allocator.core.books.caps import cap_table
from allocator.core.cycle.cycle import BadGrantError, _check_bounds
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.snapshot import UNBOUNDED
from allocator.policies import POLICIES, SELECTIONS, build
from tests.core.session import CPUS, MEM, Session
from tests.world.amounts import resources
from tests.world.world import World

ROLES = {1: "a", 2: "a/x", 3: "a/x/y", 4: "b"}
ONE = {DEMAND_LABEL: "cpus:1;mem:1"}
MODES = ("oblivious", "characterised")


def cluster(name: str = "drf", selection: str = "listed", mode: str = "characterised") -> Session:
    """Twelve agents with a CPU each, and no caps."""
    session = Session(PolicySpec(name, selection, mode), roles=ROLES)
    for agent in range(1, 13):
        session.world.agent("cpus:1;mem:1", handle=agent)
    return session


def cap(session: Session, role: str, per: str, cpus: int | None) -> None:
    session.allocator.step(SetCap(role, per, None if cpus is None else {"cpus": 1000 * cpus}))


def cap_counts(session: Session, role: str, per: str, **counts: int) -> None:
    """Cap numbers of tasks and of agents."""
    session.allocator.step(SetCap(role, per, {name: 1000 * most for name, most in counts.items()}))


def join(session: Session, framework: int, role: int, principal: str = "p", user: str = "u"):
    session.framework(framework, role, labels=ONE, principal=principal, user=user)


def got(session: Session) -> list[int]:
    """CPUs that each framework holds."""
    clients, held = session.state.clients, session.state.ledger.books.client_held[CPUS]
    found = np.zeros(1 + int(clients.framework.max()), np.int64)
    np.add.at(found, clients.framework, held)
    return (found[1:] // 1000).tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_no_framework_has_more_in_the_role_and_below_and_others_get_the_rest(name, mode):
    session = cluster(name, mode=mode)
    cap(session, "a", "framework", 1)
    for framework, role in enumerate((1, 2, 3, 4), 1):
        join(session, framework, role)
    session.cycle(1000)
    assert got(session) == [1, 1, 1, 9], "work-conserving"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_frameworks_of_a_principal_or_a_user_count_together(selection, mode):
    session = cluster(selection=selection, mode=mode)
    cap(session, "a", "principal", 3)
    cap(session, "a", "user", 5)
    cap(session, "b", "framework", 7)
    for framework, principal in enumerate(("p", "p", "q", ""), 1):
        join(session, framework, framework % 3 + 1, principal)
    join(session, 5, 4)
    session.cycle(1000)
    one, two, three, nameless, other = got(session)
    assert one + two <= 3
    assert one + two + three + nameless == 5
    assert other == 7, "of another role"


def test_caps_of_a_role_and_of_roles_above_it_all_hold():
    session = cluster()
    cap(session, "a", "framework", 4)
    cap(session, "a/x/y", "framework", 1)
    cap(session, "a/x", "principal", 3)
    join(session, 1, 1)
    join(session, 2, 2)
    join(session, 3, 3)
    session.cycle(1000)
    own, below, deep = got(session)
    assert (own, deep) == (4, 1)
    assert below + deep == 3


def test_a_framework_in_two_roles_below_a_cap_counts_once():
    session = cluster()
    cap(session, "a", "framework", 3)
    session.world.framework("a", "a/x", handle=1, labels=ONE)
    session.cycle(1000)
    assert got(session) == [3]


def test_released_resources_may_be_offered_again_and_more_after_a_change():
    session = cluster()
    cap(session, "a", "user", 2)
    join(session, 1, 1, user="u")
    join(session, 2, 1, user="v")
    offers = session.cycle(1000)
    assert got(session) == [2, 2]
    assert session.cycle(2000) == []
    mine = [offer for offer in offers if offer[0] == 1]
    session.give_back(mine[0])
    assert len(session.cycle(3000)) == 1
    cap(session, "a", "user", 3)
    session.cycle(4000)
    assert got(session) == [3, 3]
    cap(session, "a", "user", 1)
    session.give_back(mine[1])
    assert session.cycle(5000) == [], "two are still more than one"


def test_a_framework_that_subscribes_with_another_user_counts_for_that_one():
    session = cluster()
    cap(session, "a", "user", 2)
    join(session, 1, 1, user="u")
    join(session, 2, 1, user="u")
    session.cycle(1000)
    assert sum(got(session)) == 2
    info = session.state.frameworks.info[1]
    assert info is not None
    session.allocator.step(UpdateFramework(1, replace(info, user="v"), (1,)))
    session.cycle(2000)
    assert got(session) == [2, 2]


def test_reserved_resources_count_once_they_are_held_and_revocable_ones_never():
    world = World(PolicySpec("drf", mode="characterised"))
    agent = world.agent("cpus(a):2;cpus:4;cpus[revocable]:4")
    labels = {DEMAND_LABEL: "cpus:1"}
    framework = world.framework("a", labels=labels, capabilities={"REVOCABLE_RESOURCES"})
    world.tell(SetCap("a", "framework", {"cpus": 3000}))
    world.hold(framework, "a", agent, "cpus[revocable]:1")
    (offer,) = world.cycle()
    assert offer.resources == resources("cpus(a):2;cpus:3;cpus[revocable]:3")
    world.decline(offer)
    world.hold(framework, "a", agent, "cpus(a):2")
    (offer,) = world.cycle()
    assert offer.resources == resources("cpus:1;cpus[revocable]:3")


def test_a_policy_that_passes_a_cap_is_found_out():
    session, free = cluster(), cluster()
    for each in (session, free):
        join(each, 1, 1)
    cap(session, "a", "user", 2)
    snapshot = SnapshotBuilder().build(session.state, None)
    too_much = build(PolicySpec("drf", "listed", "characterised")).allocate(
        SnapshotBuilder().build(free.state, None), 1
    )
    with pytest.raises(BadGrantError, match="limit"):
        _check_bounds(snapshot, too_much)


def test_a_gang_starts_within_the_caps_or_not_at_all():
    session = cluster()
    cap(session, "a", "user", 5)
    session.framework(1, 1, labels={**ONE, GANG_LABEL: "tasks:4"}, user="u")
    session.framework(2, 1, labels={**ONE, GANG_LABEL: "tasks:3"}, user="u")
    join(session, 3, 4)
    session.cycle(1000)
    assert sorted(got(session)[:2]) in ([0, 3], [0, 4])


def test_a_gang_larger_than_a_cap_does_not_collect():
    session = cluster()
    session.allocator.settings.patience_cycles = 1
    cap(session, "a", "framework", 5)
    session.framework(1, 1, labels={**ONE, GANG_LABEL: "tasks:6"})
    for at in range(1, 6):
        session.cycle(1000 * at)
    assert got(session) == [0]
    assert not session.state.clients.collecting


def test_plans_and_forecasts_divide_caps_by_weight():
    session = cluster("cmmf")
    for framework, role in enumerate((1, 1, 2, 4), 1):
        join(session, framework, role, principal="p" if framework < 3 else "q")
    cap(session, "a", "principal", 4)
    cap(session, "a/x", "framework", 3)
    problem = session.allocator.problem()
    assert problem is not None
    framework = session.state.clients.framework[problem.client].tolist()
    limits = dict(zip(framework, problem.limit[:, CPUS].tolist(), strict=True))
    assert limits == {1: 2000, 2: 2000, 3: 3000, 4: UNBOUNDED}


def test_without_caps_there_is_nothing_to_walk():
    session = cluster()
    join(session, 1, 1)
    bounds = SnapshotBuilder().build(session.state, None).bounds
    assert bounds.further.shape[1] == len(bounds.above) == 0
    cap(session, "b", "user", 1)
    assert cap_table(session.state).rule == (), "no framework is in it"


def test_waiting_because_of_a_cap_is_counted_separately():
    assert not World(PolicySpec("drf")).allocator.capped().any(), "nothing is known yet"
    session = cluster()
    cap(session, "a", "user", 2)
    join(session, 1, 1)
    join(session, 2, 4)
    assert not session.allocator.capped().any()
    session.cycle(1000)
    capped = session.state.clients.framework[session.allocator.capped()].tolist()
    assert capped == [1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_no_framework_has_more_tasks_or_agents_and_others_get_the_rest(name, mode):
    session = cluster(name, mode=mode)
    cap_counts(session, "a", "framework", tasks=2)
    cap_counts(session, "b", "framework", agents=3)
    for framework, role in enumerate((1, 2, 4), 1):
        join(session, framework, role)
    session.world.framework("c", handle=4, labels=ONE)
    session.cycle(1000)
    assert got(session) == [2, 2, 3, 5], "work-conserving"


def wide(mode: str = "characterised", selection: str = "listed", name: str = "drf") -> Session:
    """Six agents with four CPUs each."""
    session = Session(PolicySpec(name, selection, mode), roles=ROLES)
    for agent in range(1, 7):
        session.world.agent("cpus:4;mem:4", handle=agent)
    return session


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_user_gets_all_of_the_agents_that_a_cap_allows(selection):
    session = wide(selection=selection)
    cap_counts(session, "a", "user", agents=2)
    join(session, 1, 1)
    join(session, 2, 2)
    offers = session.cycle(1000)
    assert sum(got(session)) == 8
    assert len({agent for *_, agent, _ in offers}) == 2
    session.give_back(offers[0])
    again = session.cycle(2000)
    assert {agent for *_, agent, _ in again} == {offers[0][2]}, "more on an agent it has"
    cap_counts(session, "a", "user", agents=1)
    session.give_back(again[0])
    assert sum(got(session)) < 8
    assert {agent for *_, agent, _ in session.cycle(3000)} <= {agent for *_, agent, _ in offers}


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_caps_on_agents_alone_leave_nothing_that_a_user_may_still_have(seed, selection):
    chance = random.Random(seed)
    session = Session(PolicySpec("drf", selection, "characterised"), roles=ROLES)
    for agent in range(1, 41):
        cpus, mem = chance.randint(1, 6), chance.randint(1, 6)
        session.world.agent(f"cpus:{cpus};mem:{mem}", handle=agent)
    needs = {framework: chance.randint(1, 3) for framework in range(1, 31)}
    users = {framework: chance.randint(1, 6) for framework in needs}
    for framework, cpus in needs.items():
        labels = {DEMAND_LABEL: f"cpus:{cpus};mem:1"}
        session.framework(framework, 1 + framework % 2, labels=labels, user=f"{users[framework]}")
    most = chance.randint(2, 4)
    cap_counts(session, "a", "user", agents=most)
    asked: list[int] = []
    for at in range(3):
        offers = session.cycle(1000 * (at + 1))
        on = {(users[framework], agent) for framework, agent in _held(session)}
        of_user = Counter(user for user, _ in on)
        assert max(of_user.values()) <= most
        free = session.state.free[:, [CPUS, MEM]] // 1000
        for framework, cpus in needs.items():
            for agent in np.flatnonzero((free >= (cpus, 1)).all(axis=1)).tolist():
                assert of_user[users[framework]] == most
                assert (users[framework], agent) not in on
        asked.append(len(offers))
        for offer in chance.sample(offers, len(offers) // 3):
            session.give_back(offer)
    assert all(asked)


def _held(session: Session) -> set[tuple[int, int]]:
    """Pairs of a framework and an agent on which it holds something."""
    books, rows = session.state.ledger.books, session.state.ledger.rows()
    framework = session.state.clients.framework[books.client[rows]]
    return set(zip(framework.tolist(), books.agent[rows].tolist(), strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_tasks_of_a_user_count_by_each_framework_s_own_demand(mode):
    session = wide(mode)
    cap_counts(session, "a", "user", tasks=5)
    labels = {DEMAND_LABEL: "cpus:2;mem:1"}
    session.framework(1, 1, labels=ONE, user="u")
    session.framework(2, 2, labels=labels, user="u")
    session.framework(3, 1, labels=labels, user="v")
    session.cycle(1000)
    one, two, other = got(session)
    if mode == "characterised":
        assert (one + two / 2, other) == (5, 10)
    assert one + -(-two // 2) <= 5 >= -(-other // 2)
    assert session.cycle(2000) == []


def test_a_framework_whose_demand_is_unknown_counts_no_tasks():
    session = wide()
    cap_counts(session, "a", "user", tasks=1)
    session.framework(1, 1, user="u")
    session.cycle(1000)
    assert got(session) == [24], "nothing bounds it"
    session = wide()
    cap_counts(session, "a", "user", agents=1)
    session.framework(1, 1, user="u")
    session.cycle(1000)
    assert got(session) == [4], "agents need no demand"


def test_a_gang_is_placed_on_as_many_agents_as_a_cap_allows():
    session = wide()
    cap_counts(session, "a", "framework", agents=2)
    session.framework(1, 1, labels={**ONE, GANG_LABEL: "tasks:8"})
    session.framework(2, 2, labels={**ONE, GANG_LABEL: "tasks:9"})
    session.cycle(1000)
    assert got(session) == [8, 0]
    session.allocator.settings.patience_cycles = 1
    for at in range(2, 6):
        session.cycle(1000 * at)
    assert not session.state.clients.collecting, "a cap on agents is not collected for"


def test_a_gang_of_more_tasks_than_a_cap_never_starts():
    session = wide()
    session.allocator.settings.patience_cycles = 1
    cap_counts(session, "a", "user", tasks=5)
    session.framework(1, 1, labels={**ONE, GANG_LABEL: "tasks:6"}, user="u")
    session.framework(2, 1, labels={**ONE, GANG_LABEL: "tasks:3"}, user="v")
    session.framework(3, 1, labels={**ONE, GANG_LABEL: "tasks:3"}, user="v")
    for at in range(1, 6):
        session.cycle(1000 * at)
    assert sorted(got(session)) == [0, 0, 3]
    assert not session.state.clients.collecting


def test_many_frameworks_that_share_a_cap_on_tasks_stay_within_it_and_others_get_the_rest():
    """The policy is asked again only a few times, and then without them."""
    session = Session(PolicySpec("drf", "listed", "oblivious"), roles=ROLES)
    for agent in range(1, 31):
        session.world.agent("cpus:3;mem:3", handle=agent)
    cap_counts(session, "a", "user", tasks=40)
    for framework in range(1, 21):
        labels = {DEMAND_LABEL: "cpus:2;mem:2"}
        session.framework(framework, 1 + framework % 2, labels=labels, user="u")
    join(session, 21, 4)
    session.cycle(1000)
    assert 20 < sum(-(-held // 2) for held in got(session)[:20]) <= 40
    assert sum(got(session)) == 90, "others get the rest"


def test_plans_divide_a_cap_on_tasks_by_weight():
    session = cluster("cmmf")
    join(session, 1, 1)
    session.framework(2, 1, labels={DEMAND_LABEL: "cpus:2;mem:1"}, user="u")
    cap_counts(session, "a", "user", tasks=5)
    problem = session.allocator.problem()
    assert problem is not None
    assert problem.limit[:, CPUS].tolist() == [2000, 4000]


def test_plans_count_a_cap_on_agents_as_what_fits_on_those_with_most_room():
    session = cluster("cmmf")
    for agent, cpus in ((13, 8), (14, 6)):
        session.world.agent(f"cpus:{cpus};mem:5", handle=agent)
    session.framework(1, 1, labels=ONE, user="u")
    session.framework(2, 1, labels={DEMAND_LABEL: "cpus:2;mem:1"}, user="u")
    session.framework(3, 4, user="v")
    cap_counts(session, "a", "user", agents=3)
    cap_counts(session, "b", "framework", agents=1)
    problem = session.allocator.problem()
    assert problem is not None
    # Of tasks of one CPU, 5 + 5 + 1 fit on three agents; of two CPUs, 4 + 3. Each may have half.
    assert problem.limit[:2, CPUS].tolist() == [6000, 8000]
    assert problem.limit[2, CPUS] == 8000, "its demand is unknown"


@pytest.mark.parametrize("name", ["cmmf", "quincy"])
def test_targets_of_plans_are_within_caps_on_tasks_and_agents(name):
    session = wide(name=name)
    join(session, 1, 1)
    join(session, 2, 4)
    session.world.framework("c", handle=3, labels=ONE)
    cap_counts(session, "a", "framework", tasks=3)
    cap_counts(session, "b", "framework", agents=1)
    problem, policy = session.allocator.problem(), build(PolicySpec(name, mode="characterised"))
    assert problem is not None
    assert isinstance(policy, PlanningPolicy)
    target = policy.plan(problem).target
    one, two, other = (3 * target[problem.client] / target[problem.client[0]]).tolist()
    assert (one, two) == pytest.approx((3, 4))
    assert other > 4


def test_waiting_because_of_a_limit_of_tasks_or_agents_is_counted_separately():
    session = cluster()
    cap_counts(session, "a", "framework", tasks=2)
    cap_counts(session, "b", "user", agents=3)
    join(session, 1, 1)
    join(session, 2, 4)
    session.world.framework("c", handle=3, labels=ONE)
    assert not session.allocator.capped().any()
    session.cycle(1000)
    capped = session.state.clients.framework[session.allocator.capped()].tolist()
    assert capped == [1, 2]


def test_bad_caps_are_refused():
    session = cluster()
    for rule, told in (
        (
            SetCap("a", "host", {"cpus": 1}),
            "'host' is not possible; give framework, principal",
        ),
        (SetCap("a//b", "user", {"cpus": 1}), "is not a role"),
        (SetCap("a", "user", {}), "is empty; name amounts"),
        (SetCap("a", "user", {"tasks": 1500}), "tasks: 1.5 is not possible; give a whole number"),
        (SetCap("a", "user", None), "there is no cap per user in role 'a'"),
    ):
        with pytest.raises(EventError, match=told):
            session.allocator.step(rule)

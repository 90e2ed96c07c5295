"""Shares that count the past: who used more comes later, until others have caught up."""

from itertools import pairwise

import pytest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    EventError,
    ForgetUsage,
    PolicySpec,
    RemoveFramework,
)
from allocator.core.events import SetQuota
from allocator.policies import POLICIES
from tests.core.session import Session

HALF_LIFE_S = 640
JOB_S = 64
"""A job holds the whole cluster for a tenth of a half-life."""
WHOLE = {DEMAND_LABEL: "cpus:8;mem:16"}


def cluster(name: str = "drf", weight: float = 1.0, half_life_s: int = HALF_LIFE_S) -> Session:
    session = Session(
        PolicySpec(name, "listed", "characterised"),
        half_life_ms=half_life_s * 1000,
        usage_weight=weight,
        patience_cycles=0,
    )
    session.agent(1, 8, 16)
    return session


class Jobs:
    """Jobs of the whole cluster, one after another."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.now_s = 1
        self.used_s: dict[int, int] = {}

    def play(self, jobs: int) -> list[int]:
        """Run jobs; returns whose they were."""
        return [self._job() for _ in range(jobs)]

    def _job(self) -> int:
        (offer,) = self.session.cycle(self.now_s * 1000)
        self.session.use(offer)
        self.now_s += JOB_S
        self.session.allocator.advance(self.now_s * 1000)
        self.session.give_back(offer)
        self.used_s[offer[0]] = self.used_s.get(offer[0], 0) + JOB_S
        return offer[0]


def test_two_who_always_want_all_alternate():
    session = cluster()
    session.framework(1, 1, labels=WHOLE)
    session.framework(2, 2, labels=WHOLE)
    whose = Jobs(session).play(40)
    assert all(one != other for one, other in pairwise(whose))


def catching_up(jobs_alone: int) -> int:
    """Jobs until the newcomer's average reaches that of the other one, by the definition."""
    q = 0.5 ** (JOB_S / HALF_LIFE_S)
    alone, newcomer, jobs = 1 - q**jobs_alone, 0.0, 0
    while newcomer < alone:
        alone, newcomer, jobs = alone * q, newcomer * q + 1 - q, jobs + 1
    return jobs


@pytest.mark.parametrize("name", POLICIES)
def test_a_quiet_client_is_served_first_until_it_has_caught_up(name):
    session = cluster(name)
    session.framework(1, 1, labels=WHOLE)
    jobs = Jobs(session)
    alone = 30  # three half-lives
    assert jobs.play(alone) == [1] * alone
    session.framework(2, 2, labels=WHOLE)
    whose = jobs.play(30)
    if session.allocator.planning_policy is not None:
        assert 1 in whose[:2], "a plan is about what is held"
        return
    behind = whose.index(1) if 1 in whose else len(whose)
    assert behind == catching_up(alone)


def test_gangs_have_their_turns_by_use_over_time():
    session = cluster()
    gang = {DEMAND_LABEL: "cpus:2;mem:4", GANG_LABEL: "tasks:4"}
    session.framework(1, 1, labels=gang)
    jobs = Jobs(session)
    assert jobs.play(30) == [1] * 30
    session.framework(2, 2, labels=gang)
    assert jobs.play(catching_up(30)) == [2] * catching_up(30)
    assert 1 in jobs.play(2)


@pytest.mark.parametrize("name", POLICIES)
def test_guarantees_and_limits_ignore_past_use(name):
    """The average of the first role is 7 CPUs: more than its guarantee, and than its limit."""
    session = cluster(name)
    session.framework(1, 1, labels=WHOLE)
    Jobs(session).play(30)
    session.allocator.step(RemoveFramework(1))
    session.allocator.step(SetQuota("a", {"cpus": 2000}, {"cpus": 6000}))
    for framework, role in ((2, 2), (3, 1)):
        session.framework(framework, role, labels={DEMAND_LABEL: "cpus:1;mem:1"})
    now_ms = session.state.now_ms

    def granted() -> dict[int, int]:
        found = {2: 0, 3: 0}
        for framework, _, _, units in session.cycle(now_ms):
            found[framework] += units["cpus"]
        return found

    first = granted()
    if session.allocator.planning_policy is None:
        assert first == {2: 6, 3: 2}, "its guarantee, although the other one used nothing"
    session.allocator.step(RemoveFramework(2))
    assert first[3] + granted()[3] == 6, "its limit, although it used more"


def test_only_what_is_held_counts_with_weight_0():
    session = cluster(weight=0.0)
    session.framework(1, 1, labels=WHOLE)
    jobs = Jobs(session)
    jobs.play(30)
    session.framework(2, 2, labels=WHOLE)
    assert set(jobs.play(2)) == {1, 2}


def test_a_role_keeps_the_past_of_frameworks_that_left():
    """Each Spark job is a framework of its own."""
    session = cluster()
    session.framework(1, 1, labels=WHOLE)
    jobs = Jobs(session)
    jobs.play(30)
    session.allocator.step(RemoveFramework(1))
    session.framework(2, 2, labels=WHOLE)
    session.framework(3, 1, labels=WHOLE)
    assert jobs.play(catching_up(30)) == [2] * catching_up(30)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(
    "event", [ForgetUsage(), ForgetUsage("a"), ForgetUsage("a", "f1")], ids=str
)
def test_what_is_forgotten_counts_no_more(event, left):
    """Of a framework that is there, and of one that left and whose role inherited it."""
    session = cluster()
    session.framework(1, 1, labels=WHOLE, framework_id="f1")
    jobs = Jobs(session)
    jobs.play(30)
    if left:
        session.allocator.step(RemoveFramework(1))
        session.framework(3, 1, labels=WHOLE)
    session.framework(2, 2, labels=WHOLE)
    session.allocator.step(event)
    assert all(one != other for one, other in pairwise(jobs.play(6)))


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (ForgetUsage("b"), "role: 'b' has no past use"),
        (ForgetUsage("a", "f2"), "framework_id: 'f2' has no past use"),
    ],
)
def test_forgetting_what_is_unknown_is_refused_and_changes_nothing(event, field):
    session = cluster()
    session.framework(1, 1, labels=WHOLE, framework_id="f1")
    jobs = Jobs(session)
    jobs.play(30)
    session.framework(2, 2, labels=WHOLE)
    with pytest.raises(EventError, match=field):
        session.allocator.step(event)
    assert jobs.play(catching_up(30)) == [2] * catching_up(30)
    with pytest.raises(EventError, match=r"half_life_s: no averages are kept; set fairness\."):
        cluster(half_life_s=0).allocator.step(ForgetUsage())


def test_forgetting_everything_is_refused_if_there_is_nothing():
    with pytest.raises(EventError, match="no client has past use yet"):
        cluster().allocator.step(ForgetUsage())


def test_a_role_is_forgotten_with_the_roles_below_it_only():
    event = ForgetUsage("eng")
    roles = ["eng", "eng/ads", "eng/ads/x", "engine", "ops/eng", "ops"]
    assert [role for role in roles if event.concerns(role, "f")] == roles[:3]


def test_a_new_session_continues_past_usage():
    session = cluster()
    session.framework(1, 1, labels=WHOLE)
    jobs = Jobs(session)
    jobs.play(30)
    before = session.allocator
    after = cluster()
    after.allocator.remember(before)
    after.framework(2, 2, labels=WHOLE)
    after.framework(1, 1, labels=WHOLE)
    following = Jobs(after)
    assert following.play(catching_up(30)) == [2] * catching_up(30)


def test_use_over_time_follows_weights():
    """In 40 half-lives of single tasks, within 1 %."""
    session = Session(
        PolicySpec("drf", "listed", "characterised"),
        half_life_ms=20_000,
        usage_weight=1.0,
        patience_cycles=0,
        roles={1: "a", 2: "b"},
    )
    session.agent(1, 12, 24)
    session.world.weights(a=1.0, b=3.0)
    for framework in (1, 2):
        session.framework(framework, framework, labels={DEMAND_LABEL: "cpus:1;mem:2"})
    running: list[tuple[int, tuple]] = []
    used = {1: 0, 2: 0}
    for second in range(1, 801):
        now_ms = second * 1000
        session.allocator.advance(now_ms)
        for _, offer in [each for each in running if each[0] <= second]:
            session.give_back(offer)
        running = [each for each in running if each[0] > second]
        for offer in session.cycle(now_ms):
            session.use(offer)
            running.append((second + 5, offer))
        for _, offer in running:
            used[offer[0]] += offer[3]["cpus"]
    assert used[2] / used[1] == pytest.approx(3, rel=0.01)

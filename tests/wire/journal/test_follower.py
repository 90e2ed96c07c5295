"""A follower of a sidecar's records has the same state as the sidecar, to the byte."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AdoptPlan,
    GiveAll,
    Grants,
    Plan,
    PlanningPolicy,
    Policy,
    PolicySpec,
    SetGang,
    SetPolicy,
    Settings,
)
from allocator.policies import POLICIES, build
from allocator.v1 import journal_pb2
from allocator.wire import JournalError, replay
from allocator.wire.journal.follower import Difference, Follower
from allocator.wire.journal.records import for_file
from laboratory.random_cluster import RandomScenario
from laboratory.workloads.play import play
from tests.laboratory.master.auditing import Audited
from tests.laboratory.master.masters import wire_link
from tests.tiers import EVERYTHING
from tests.wire.dialogue import POLICY, Module, declined
from tests.wire.journal.following import (
    Flaky,
    Followed,
    Meddled,
    beginning,
    changed,
    mark_of,
    never_asked,
    new_follower,
)

MODES = ("oblivious", "characterised")


QUICK = {
    ("drf", "oblivious", False),
    ("ps-dsf", "characterised", True),
    ("quincy", "oblivious", False),
}
LIFE_MS = 6_000 if EVERYTHING else 2_000
BELOW = {"a": "tsf:mode=characterised", "b/z": "ps-dsf"}


def specs() -> list:
    """Each policy in each mode, flat and by roles; a few of these in the first tier."""
    found = [pytest.param(PolicySpec("drf", subtrees=BELOW), id="subtrees")]
    for name, mode, flat in product(POLICIES, MODES, (False, True)):
        marks = [] if (name, mode, flat) in QUICK else [pytest.mark.long]
        spec = PolicySpec(name, mode=mode, flat=flat)
        label = f"{name}-{mode}-{'flat' if flat else 'roles'}"
        found.append(pytest.param(spec, marks=marks, id=label))
    return found


def random_life(
    spec: PolicySpec,
    seed: int,
    build_policy: Callable = build,
    *,
    duration_ms: int = LIFE_MS,
    gang: int = 2,
) -> Meddled:
    """Every feature of Mesos, on a sidecar that is followed from the beginning."""
    link = wire_link(spec.name, spec.mode, seed)
    settings = Settings(policy=spec, seed=seed, learn_after=1, probe_after=2)
    settings.patience_cycles, settings.collect_ms = 2, 2000
    settings.put(SetGang("a*", "", gang))
    followed = Meddled(settings, build_policy)
    followed.random = Random(seed)
    followed.join(new_follower(never_asked))
    link.sidecar = followed
    scenario = RandomScenario(seed, duration_ms=duration_ms, event_ms=100)
    audited = Audited(scenario, link, cut_every_ms=2_000, until_ms=duration_ms)
    record = play(audited, link, tell_demand=seed % 2 == 0).record
    followed.compare_rest()
    assert record.offers > 20
    assert followed.joined
    return followed


@pytest.mark.parametrize("spec", specs())
def test_a_follower_knows_the_same_after_each_record(spec):
    """So have followers that join later, with operators' changes, plans and unknown clients."""
    followed = random_life(spec, seed=10)
    assert followed.gangs
    assert followed.collected or spec != specs()[0]  # in most histories gangs collect
    planned = any(record.answered.HasField("first_plan") for record in followed.records)
    assert planned == isinstance(build(spec), PlanningPolicy)
    assert bool(followed.compared) == planned
    assert any(record.answered.grants.special for record in followed.records)


def test_requests_to_leave_agents_are_followed():
    preempting = PolicySpec("quincy", mode="characterised", parameters={"preempt": "on"})
    assert random_life(preempting, seed=22, duration_ms=3_000, gang=1).reclaims


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_long_life_is_followed(seed):
    """For any policy, with declared and with learned demands."""
    name = list(POLICIES)[seed % len(POLICIES)]
    spec = PolicySpec(name, mode=MODES[seed % 3 > 0], flat=seed % 4 == 0)
    random_life(spec, seed, duration_ms=20_000)


@pytest.mark.parametrize("name", ["drf", pytest.param("cmmf", marks=pytest.mark.long)])
def test_where_the_policy_fails_the_grants_of_the_substitute_are_followed(name):
    flaky = Flaky(Random(5), 0.3)
    followed = random_life(PolicySpec(name), 5, flaky.build)
    errors = {record.answered.policy_error for record in followed.records}
    assert len(errors) > 2, "it took too long, and granted too much"


def test_a_plan_is_kept_as_it_is_read():
    """Whatever types and empty shapes a user's policy gives its arrays."""
    followed = small()
    module = go_on(followed)
    clients = len(followed.allocator.state.clients.framework)
    allowed = np.ones((1, 1), np.uint64)
    group = np.zeros(3, np.int32)
    for price in (np.zeros((0, 0)), np.zeros((0, 2)), np.ones((1, 2), np.float32)):
        plan = Plan(np.ones(clients, np.int64), group, allowed, price)  # type: ignore[arg-type]
        followed.step(AdoptPlan(plan))
        assert followed.allocator.state.plan is not None
        module.batch(cycle=True)
    followed.step(AdoptPlan(replace(plan, part=np.zeros((0, 0)), leave=np.zeros(0, np.int32))))
    followed.step(AdoptPlan(replace(plan, part=np.ones((1, clients), np.float32))))


# One small session, one record of which is changed.


def small(build_policy=build, verify_every: int = 0) -> Followed:
    followed = Followed(Settings(policy=POLICY), build_policy)
    followed.join(new_follower(verify_every=verify_every))
    return followed


def go_on(followed: Followed, cycles: int = 4) -> Module:
    """A session in which offers are declined."""
    module = Module(followed).begin()  # type: ignore[arg-type]
    made = module.batch(cycle=True)
    for _ in range(cycles - 1):
        module.clock_ms += 5000  # no filter is active any more
        made = module.batch(module.all_offered(made), declined(made, 500), cycle=True)
    return module


@cache
def recorded() -> list[journal_pb2.JournalRecord]:
    followed = small()
    first = beginning(followed.sidecar)
    go_on(followed)
    return [*first, *followed.records]


def cycles() -> list[int]:
    """The positions of the records that hold decisions."""
    return [at for at, record in enumerate(recorded()) if record.answered.HasField("grants")]


def follow(
    records: list[journal_pb2.JournalRecord], follower: Follower | None = None
) -> list[Difference]:
    follower = follower or new_follower()
    return [each for record in records for each in follower.take(record)]


def with_grants(at: int, **columns) -> list[journal_pb2.JournalRecord]:
    """The records, with a change in the decisions of one cycle."""
    records = [
        journal_pb2.JournalRecord.FromString(each.SerializeToString()) for each in recorded()
    ]
    grants = records[at].answered.grants
    for name, (place, by, dtype) in columns.items():
        setattr(grants, name, changed(getattr(grants, name), place, by, dtype))
    return records


def test_the_records_have_something_to_follow():
    records = recorded()
    assert len(cycles()) == 4
    assert all(len(records[at].answered.grants.client) for at in cycles())
    assert follow(records) == []


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"agent": (0, 1, "<i4")}, "cannot be taken over: more granted than is free"),
        ({"agent": (0, 1 << 30, "<i4")}, "an agent that is not to be offered"),
        ({"client": (0, -(1 << 30), "<i4")}, "a client that takes no offers"),
        ({"client": (0, 1, "<i4"), "tasks": (0, 1, "<i8")}, "another answer|takes no offers"),
        ({"amount": (0, -1, "<i8")}, "another answer"),
        ({"amount": (0, 1 << 40, "<i8")}, "more granted than is free"),
    ],
)
def test_grants_that_were_changed_are_reported_and_their_books_are_given_up(columns, reason):
    at = cycles()[1]
    records, follower = with_grants(at, **columns), new_follower()
    assert follow(records[:at], follower) == []
    (difference,) = follower.take(records[at])
    assert follower.sidecar is None
    assert re.search(reason, difference.reason), difference.reason
    assert (difference.record, difference.session) == (at - 3, 1)
    with pytest.raises(JournalError, match="head is missing or incomplete"):
        follower.take(records[at + 1])


def test_missing_or_truncated_grants_are_reported():
    at = cycles()[1]
    cut = with_grants(at)
    cut[at].answered.grants.amount = cut[at].answered.grants.amount[:-1]
    (difference,) = follow(cut[: at + 1])
    assert "grants cannot be read" in difference.reason
    none = with_grants(at)
    none[at].answered.ClearField("grants")
    assert [each.reason for each in follow(none[: at + 1])] == ["no grants are recorded"]
    other = with_grants(at)
    other[at].answered.digest = b"12345678"
    assert [each.reason for each in follow(other[: at + 1])] == ["another answer"]
    events = with_grants(at)
    events[at - 1].request = events[at - 3].request  # a batch that comes twice
    assert [each.reason for each in follow(events[: at + 1])] == ["another answer"]
    (difference,) = follow([*recorded()[:at], recorded()[at + 1]])
    assert difference.record == at - 3


@given(st.sampled_from(["client", "agent", "tasks", "amount"]), st.data())
def test_damage_of_grants_is_reported_or_leaves_the_books_as_they_are(name, data):
    at = data.draw(st.sampled_from(cycles()))
    records = with_grants(at)
    grants = records[at].answered.grants
    column = bytearray(getattr(grants, name))
    column[data.draw(st.integers(0, len(column) - 1))] ^= data.draw(st.integers(1, 255))
    setattr(grants, name, bytes(column))
    damaged, whole = new_follower(), new_follower()
    assert follow(recorded()[: at + 1], whole) == []
    if follow(records[: at + 1], damaged) == []:
        assert name == "tasks", "only explanations speak of them"
        assert mark_of(damaged.sidecar) == mark_of(whole.sidecar)


def test_a_follower_that_gave_up_continues_from_a_checkpoint():
    followed = small()
    module = go_on(followed)
    follower = followed.followers.pop()
    with pytest.raises(JournalError):
        follower.take(journal_pb2.JournalRecord(session=9, opened=journal_pb2.JournalOpened()))
    assert follower.sidecar is None
    followed.join(follower)
    module.batch(cycle=True)
    followed.compare()


def test_a_change_that_is_refused_by_the_follower_only_is_reported():
    """As with a policy that is not installed there."""

    def without_tsf(spec: PolicySpec) -> Policy:
        if spec.name == "tsf":
            raise ValueError("name: there is no policy 'tsf'")
        return build(spec)

    followed = Followed(Settings(policy=POLICY))
    follower = followed.join(new_follower(without_tsf))
    with suppress(AssertionError):  # the marks differ
        followed.step(SetPolicy(PolicySpec("tsf")))
    (difference,) = followed.differences
    assert (difference.record, difference.session) == (1, 0)
    assert difference.reason == "an operator's setting is refused here"
    assert follower.sidecar is None


def test_a_checkpoint_in_the_middle_is_compared():
    followed = small()
    module = go_on(followed)
    (follower,) = followed.followers
    before = mark_of(follower.sidecar)
    for record in beginning(followed.sidecar, len(followed.records), file=2):
        assert follower.take(record) == ()
    module.batch(cycle=True)
    followed.compare()
    # Another state than that of the previous records: the follower continues from it.
    other = small()
    go_on(other)
    said = follow(beginning(other.sidecar, len(followed.records), file=3), follower)
    assert [(each.record, each.reason) for each in said] == [
        (len(followed.records), "another state")
    ]
    assert mark_of(follower.sidecar) == mark_of(other.sidecar) == before


def test_a_session_that_a_defect_ends_ends_the_same_way():
    """If the substitute fails, too, there are no decisions."""

    class Broken:
        def allocate(self, snapshot, seed) -> Grants:
            raise ZeroDivisionError

    followed = Followed(Settings(policy=POLICY), lambda _spec: Broken(), instead=Broken())
    followed.join(new_follower(never_asked))
    module = Module(followed).begin()  # type: ignore[arg-type]
    assert "ZeroDivisionError" in module.refused(cycle=True).message
    assert followed.records[-1].answered.failure == "ZeroDivisionError"
    module.say(module.client.batch(9000, (), cycle=True))
    Module(followed, "other", 2).begin()  # type: ignore[arg-type]


# Cycles that are decided again.


@pytest.mark.parametrize("every", [1, 3])
def test_repeated_decisions_are_equal(every):
    followed = small(verify_every=every)
    go_on(followed, 7)
    assert followed.followers[0].verified == 7 // every


class Greedy(GiveAll):
    """Another policy than the follower's, under the same name."""


@pytest.mark.parametrize(("every", "found"), [(0, 0), (1, 4), (2, 2)])
def test_a_planted_difference_is_found_and_changes_nothing(every, found):
    followed = small(lambda _spec: Greedy())
    first = beginning(followed.sidecar)
    go_on(followed)
    follower = new_follower(verify_every=every)
    differences = follow([*first, *followed.records], follower)
    assert len(differences) == found
    assert mark_of(follower.sidecar) == mark_of(followed.sidecar)
    for difference in differences:
        dissent = difference.dissent
        assert dissent is not None
        assert dissent.reason == "another decision"
        assert dissent.place in (0, 1), "of the two that each cycle has"
        assert dissent.told is not None
        assert dissent.own is not None
        assert dissent.told != dissent.own
        assert "framework" in str(dissent.told)


def test_grants_that_make_the_same_decisions_are_distinguished():
    """Here half of each agent was granted twice."""

    class Halves:
        def allocate(self, snapshot, seed) -> Grants:
            return twice(build(POLICY).allocate(snapshot, seed))

    def twice(grants: Grants) -> Grants:
        half = (grants.amount // 2).repeat(2, axis=0)
        client, agent, tasks = (
            each.repeat(2) for each in (grants.client, grants.agent, grants.tasks)
        )
        return Grants(client, agent, tasks, half)

    followed = small(lambda _spec: Halves(), verify_every=1)
    followed.compare = lambda: None  # type: ignore[method-assign]
    go_on(followed)
    assert {each.reason for each in followed.differences} == {
        "other grants make the same decisions"
    }
    assert mark_of(followed.followers[0].sidecar) == mark_of(followed.sidecar)


def test_a_policy_that_fails_only_here_is_reported():
    followed = small()
    first = beginning(followed.sidecar)
    go_on(followed)
    follower = new_follower(never_asked, verify_every=1)
    differences = follow([*first, *followed.records], follower)
    assert len(differences) == 4
    assert "the policy fails here only: AssertionError" in differences[0].reason
    assert mark_of(follower.sidecar) == mark_of(followed.sidecar)


# Streams and files.


def test_a_file_needs_less_and_replays():
    followed = small()
    first = beginning(followed.sidecar)
    go_on(followed)
    followed.step(SetPolicy(PolicySpec("tsf")))
    kept = [*first, *map(for_file, followed.records)]
    assert not any(record.answered.HasField("grants") for record in kept)
    assert sum(record.answered.HasField("grants") for record in followed.records) == 4
    said = [answer.response.SerializeToString() for answer in replay(kept, build)]
    assert said
    streamed = replay([*first, *followed.records], build)
    assert said == [answer.response.SerializeToString() for answer in streamed]

"""A sidecar whose records others follow: after each record all must have the same state."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from random import Random

import numpy as np

from allocator.core import (
    AdoptPlan,
    Allocator,
    Detached,
    EventError,
    Grants,
    Ints,
    PlanningPolicy,
    PlanProblem,
    Policy,
    PolicySpec,
    SessionLimits,
    SetBudget,
    SetCap,
    SetClaim,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetGang,
    SetLimit,
    SetPause,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
    Snapshot,
    Trail,
)
from allocator.core.checkpoint import to_columns
from allocator.policies import build, substitute
from allocator.rule_kinds import PER
from allocator.v1 import journal_pb2
from allocator.wire import OperatorEvent, WireError
from allocator.wire.journal.checkpoint import Mark, head, mark
from allocator.wire.journal.follower import Difference, Follower
from allocator.wire.journal.recorder import Recorder
from allocator.wire.journal.records import start_record
from allocator.wire.session.sidecar import Answer, Sidecar
from tests.wire.dialogue import WELCOME
from tests.wire.strategies import same


def mark_of(sidecar: Sidecar | None) -> Mark:
    assert sidecar is not None
    return mark(to_columns(sidecar.kept()))


def beginning(
    sidecar: Sidecar, records_before: int = 0, file: int = 1
) -> list[journal_pb2.JournalRecord]:
    """The start of a follower: the whole current state."""
    start = start_record(
        sidecar.allocator.settings,
        SessionLimits(),
        sidecar.welcome,
        sessions_before=sidecar.sessions_begun,
        records_before=records_before,
        file=file,
    )
    return list(head(start, Detached(sidecar.kept()).value))


def with_trail(*arguments, **options) -> Allocator:
    return Allocator(*arguments, trail=Trail(), **options)


def new_follower(build_policy=build, verify_every: int = 0) -> Follower:
    return Follower(build_policy, substitute(), verify_every=verify_every, make=with_trail)


class Undecided:
    """A policy that a follower must not call."""

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        raise AssertionError("a follower asks no policy")


class Mute:
    """A planning policy of which a follower must not call anything."""

    def __init__(self, policy: PlanningPolicy) -> None:
        self.about_holders = policy.about_holders

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        raise AssertionError("a follower asks no policy")

    def plan(self, problem):
        raise AssertionError("a follower makes no plan")

    def stands(self, before, now):
        raise AssertionError("a follower makes no plan")


def never_asked(spec: PolicySpec) -> Policy:
    """Build policies that fail if a follower calls them."""
    policy = build(spec)
    return Mute(policy) if isinstance(policy, PlanningPolicy) else Undecided()


class Flaky:
    """Policies that fail at random, or make invalid grants."""

    def __init__(self, random: Random, often: float) -> None:
        self.random, self.often = random, often

    def build(self, spec: PolicySpec) -> Policy:
        policy, flaky = build(spec), self

        class Failing:
            def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
                if flaky.random.random() < flaky.often:
                    raise TimeoutError("it takes too long")
                grants = policy.allocate(snapshot, seed)
                if len(grants) and flaky.random.random() < flaky.often:
                    grants.amount[0] += snapshot.total
                return grants

        class Planning(Failing):
            about_holders = getattr(policy, "about_holders", False)
            plan = getattr(policy, "plan", None)
            stands = getattr(policy, "stands", None)

        return Planning() if isinstance(policy, PlanningPolicy) else Failing()


class Followed:
    """A sidecar with followers in place of a `Sidecar`: all get the same input and are compared.

    `followers`: the first from the beginning; others join later, each at a checkpoint.
    `records`: all written records.
    """

    def __init__(
        self,
        settings: Settings,
        build_policy: Callable[[PolicySpec], Policy] = build,
        welcome=WELCOME,
        instead: Policy | None = None,
    ) -> None:
        self.sidecar = Sidecar(
            lambda kept: with_trail(
                build_policy,
                kept,
                substitute=instead or substitute(),
                first_plan=self.first_plan,
            ),
            settings,
            welcome,
        )
        self.recorder = Recorder(self.sidecar, self._write)
        self.records: list[journal_pb2.JournalRecord] = []
        self.differences: list[Difference] = []
        self.followers: list[Follower] = []

    def first_plan(self, policy: PlanningPolicy, agents: Ints | None) -> AdoptPlan | None:
        """The plan that a first cycle waits for."""
        return None

    @property
    def allocator(self) -> Allocator:
        return self.sidecar.allocator

    def _write(self, record: journal_pb2.JournalRecord) -> None:
        copied = journal_pb2.JournalRecord.FromString(record.SerializeToString())
        self.records.append(copied)
        for follower in self.followers:
            self.differences += follower.take(copied)

    def join(self, follower: Follower) -> Follower:
        for record in beginning(self.sidecar, len(self.records)):
            self.differences += follower.take(record)
        self.followers.append(follower)
        return follower

    def compare(self) -> None:
        assert not self.differences
        expected = mark_of(self.sidecar)
        for follower in self.followers:
            assert mark_of(follower.sidecar) == expected

    # The interface of a sidecar.

    def open(self) -> int:
        number = self.recorder.open()
        self.compare()
        return number

    def receive(self, number: int, data: bytes) -> list[Answer]:
        answers = self.recorder.receive(number, data)
        self.compare()
        return answers

    def close(self, number: int, error: WireError | None = None) -> list[Answer]:
        answers = self.recorder.close(number, error)
        self.compare()
        return answers

    def step(self, event: OperatorEvent) -> None:
        with suppress(EventError):
            self.recorder.step(event)
        self.compare()

    def look(self) -> None:
        """As earlier versions recorded it: a refresh of the data from which scores are computed."""
        self.recorder._write(journal_pb2.JournalRecord(looked=journal_pb2.JournalLooked()))
        self.allocator.preview()
        self.compare()

    def compare_rest(self) -> None:
        """State outside checkpoints, of a follower from the beginning: counts and trails.

        Metrics and explanations are made of these.
        """
        follower = self.followers[0].sidecar
        assert follower is not None
        assert follower.counts == self.sidecar.counts
        ours, theirs = self.allocator.trail, follower.allocator.trail
        assert ours is not None
        assert theirs is not None
        assert len(ours.events) == len(theirs.events)
        assert len(ours.cycles) == len(theirs.cycles)
        for one, other in zip(ours.cycles, theirs.cycles, strict=True):
            for name in type(one).__slots__:
                mine, its = (getattr(each, name) for each in (one, other))
                if name == "seen" and mine is not None:
                    mine, its = mine.snapshot(), its.snapshot()
                assert same(mine, its), name


class Meddled(Followed):
    """A sidecar in which operators change settings, and plans arrive, at any moment."""

    random = Random(0)
    plans = 0
    compared = 0
    joined = 0
    reclaims = 0
    gangs = 0
    collected = 0

    def first_plan(self, policy: PlanningPolicy, agents: Ints | None) -> AdoptPlan | None:
        return self.a_plan(self.allocator) if self.random.random() < 0.5 else None

    def receive(self, number: int, data: bytes) -> list[Answer]:
        answers = super().receive(number, data)
        self.gangs += len(self.allocator.state.clients.gangs)
        collecting = self.allocator.state.clients.collecting.values()
        self.collected += sum(len(each.agent) for each in collecting)
        for _, response in answers:
            self.reclaims += len(response.decisions.reclaims.framework)
        if self.random.random() < 0.2:
            name = self.random.choice(sorted(self._meddling()))
            self._meddling()[name]()
        return answers

    def _meddling(self) -> Mapping[str, Callable[[], object]]:
        return {
            "change": lambda: self.step(self.random.choice(list(self._changes()))),
            "look": self.look,
            "plan": self._adopt,
            "unknown_client": self._unknown_client,
            "join": self._join,
        }

    def _changes(self) -> Iterator[OperatorEvent]:
        role, random = self.random.choice(("a", "a/x", "b", "b*", "")), self.random
        amount = 1000 * random.randint(0, 20)
        yield SetDemand(
            role, "", random.choice((None, {}, {"cpus": amount + 1})), random.random() < 0.5
        )
        yield SetConstraint(role, "tenant-1*", random.choice((None, "rack=r1", "no such thing;;=")))
        yield SetLimit(role or "c", random.choice((None, {"cpus": amount, "mem": 64_000 * amount})))
        from_ms = self.allocator.state.now_ms + random.randint(1, 20_000)
        host = f"host-{random.randint(0, 7)}"
        yield SetDrain(host, random.random() < 0.5, random.choice((0, from_ms)))
        yield SetWeight(role, "tenant-*", random.choice((None, 0.5, 3.0)))
        yield SetGang(role, "tenant-*", random.choice((None, 1, 2, 5)))
        hours = {"cpus": random.choice((5, 1_000_000, 1_000_000))}
        yield SetBudget(role, random.choice((None, hours)), "day", hard=random.random() < 0.3)
        if role:
            yield SetPause(role, random.random() < 0.3)
            yield SetClaim(role, random.choice((None, {"cpus": amount})))
            counts = {"tasks": random.choice((2000, 9000)), "agents": random.choice((1000, 3000))}
            cap = random.choice((None, {"cpus": amount}, counts))
            yield SetCap(role, random.choice(PER), cap)
        yield SetShadow(random.choice((None, PolicySpec("tsf", mode="characterised"))))
        settings = self.allocator.settings.copied()
        yield SetPolicy(settings.policy)
        yield SetPolicy(PolicySpec("nonesuch"))
        settings.patience_cycles = random.choice((0, 2, 60))
        settings.outstanding_max = random.choice((0.3, 1.0))
        settings.learn_patience_cycles = random.choice((1, 30))
        settings.half_life_ms = {0: 0, 2: 500, 60: 60_000}[settings.patience_cycles]
        settings.usage_weight = settings.outstanding_max
        yield settings

    def _adopt(self) -> None:
        """Adopt a plan that was computed beside the cycles."""
        plan = self.a_plan(self.allocator)
        if plan is not None:
            self.step(plan)

    def a_plan(self, allocator: Allocator) -> AdoptPlan | None:
        problem = allocator.problem() if allocator.planning_policy else None
        self._compare_problems(problem)
        if problem is None:
            return None
        try:
            planned = allocator.fresh(problem.rows(), allocator.plan_for(problem).plan)
        except Exception:  # noqa: BLE001 - a policy may find no plan.
            return None
        self.plans += 1
        return planned

    def _compare_problems(self, problem: PlanProblem | None) -> None:
        """An observer plans for the same problem, also in the middle of a message."""
        follower = self.followers[0]
        follower.begin_waiting()
        assert follower.sidecar is not None
        if problem is not None:
            assert same(problem, follower.sidecar.allocator.problem())
            self.compared += 1

    def _unknown_client(self) -> None:
        number = self.open()
        super().receive(number, self.random.randbytes(self.random.randint(0, 9)))
        super().receive(number, b"")
        self.close(number)

    def _join(self) -> None:
        """Another follower joins; if there are several, the oldest leaves."""
        if len(self.followers) > 2:
            del self.followers[1]
        self.join(new_follower(verify_every=self.random.choice((0, 1, 3))))
        self.joined += 1
        self.compare()


def changed(array: bytes, place: int, by: int, dtype: str = "<i4") -> bytes:
    """Change one number of an array."""
    numbers = np.frombuffer(array, dtype).copy()
    numbers[place] += by
    return numbers.tobytes()

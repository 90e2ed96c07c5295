"""The long experiments: every policy, a storm of faults, a hostile sidecar."""

import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from allocator.policies import MODES, POLICIES
from tests.cluster.framework import Framework, keep
from tests.cluster.framework_behaviours import Steward, fickle, refuse, work
from tests.cluster.hostile import HostileProcess
from tests.cluster.mesos import Mesos
from tests.cluster.processes import rest, until
from tests.cluster.sent import offers_sent
from tests.cluster.world import RESOURCES, Sampler, World, run

FINE_STATES = {"STAGED", "STAGING", "STARTING", "RUNNING", "FINISHED"}
"""Bad ends of a task whose agent was not lost and that was not killed."""

INTERVAL_S = 1.0
WITNESS = "cpus(witness):0.5;mem(witness):64"
PREFIX = "allocator/sidecar/"


def freeze(world: World, frameworks: list[Framework], within_s: float = 120.0) -> None:
    """Compare all books while the frameworks keep their offers, then let them continue."""
    manners = [framework.manner for framework in frameworks]
    for framework in frameworks:
        framework.manner = keep
    try:
        world.wait_for_agreement(within_s)
    finally:
        for framework, manner in zip(frameworks, manners, strict=True):
            framework.manner = manner
            framework.decline_all()
            framework.call("REVIVE")


def lost_tasks(frameworks: list[Framework]) -> dict[str, list[str]]:
    """Tasks that reached a bad end without a cause."""
    return {
        task: states
        for framework in frameworks
        for task, states in framework.tasks.items()
        if not set(states) <= FINE_STATES
    }


def unanswered(frameworks: list[Framework]) -> list[str]:
    """Tasks without any state after half a minute."""
    try:
        until(lambda: not any(each.states()["STAGED"] for each in frameworks), 30, "tasks start")
    except AssertionError:
        return [task for each in frameworks for task, states in each.tasks.items() if not states]
    return []


def told(metrics: dict[str, float], prefix: str) -> Counter[str]:
    """The counters below a prefix: iterates over those that are not zero, and looks up any."""
    return Counter(
        {
            name.removeprefix(PREFIX + prefix): int(value)
            for name, value in sorted(metrics.items())
            if name.startswith(PREFIX + prefix) and value
        }
    )


# Every policy.


@dataclass
class PolicyFigures:
    """The results of one policy."""

    policy: str
    mode: str
    tasks: int = 0
    offers: int = 0
    executed: int = 0
    seconds: float = 0.0


def try_policies(mesos: Mesos, seconds: float = 6.0) -> list[PolicyFigures]:
    """Run frameworks and `mesos-execute` under each policy and mode; all books agree after each."""
    figures = []
    with World(mesos, agents=2) as world, Sampler(world.operator) as sampler:
        world.sidecar.set_demand("cpus:0.5;mem:64", "eng")
        manner = work(0.5, 64, 3, at_once=3)
        frameworks = [
            world.framework("long", "eng", manner=manner),
            world.framework("second", "ads", manner=manner),
        ]
        for name, mode in itertools.product(POLICIES, MODES):
            figures.append(_try_policy(world, frameworks, name, mode, seconds))
        world.check_master()
        assert not sampler.found, sampler.found[:5]
        assert not lost_tasks(frameworks)
        assert not [each.errors for each in frameworks if each.errors]
    return figures


def _try_policy(
    world: World, frameworks: list[Framework], name: str, mode: str, seconds: float
) -> PolicyFigures:
    begun_s = time.monotonic()
    figures = PolicyFigures(name, mode)
    world.sidecar.set_policy(name, mode)
    before = [(len(each.tasks), each.counts["offers"]) for each in frameworks]
    decided = world.operator.metrics()[PREFIX + "outcomes/offered"]
    child = world.execute(f"{name}-{mode}", "echo done", resources="cpus:0.1;mem:32")
    rest(seconds)
    assert "TASK_FINISHED" in run(child)
    figures.executed = 1
    figures.tasks = sum(len(each.tasks) for each in frameworks) - sum(row[0] for row in before)
    figures.offers = sum(each.counts["offers"] for each in frameworks)
    figures.offers -= sum(row[1] for row in before)
    assert figures.tasks > 0
    freeze(world, frameworks)
    policy = world.sidecar.status().policy
    assert (policy.name, policy.mode) == (name, mode)
    assert world.operator.metrics()[PREFIX + "outcomes/offered"] > decided, "the sidecar decides"
    figures.seconds = time.monotonic() - begun_s
    return figures


# A storm of faults.


@dataclass
class Fault:
    """One fault, and its effects on frameworks.

    gap_s: the longest time without any offer, from before the fault until the module has a session
        again.
    first_s: from the fault to the next offer.
    back_s: from the return of the sidecar to a session.
    """

    kind: str
    gap_s: float
    first_s: float
    back_s: float


@dataclass
class StormFigures:
    """The results of a storm."""

    faults: list[Fault] = field(default_factory=list)
    usual_gap_s: float = 0.0
    states: Counter[str] = field(default_factory=Counter)
    offers: int = 0
    samples: int = 0
    metrics: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: float = 0.0


def offer_times(frameworks: list[Framework]) -> list[float]:
    return sorted(moment for each in frameworks for moment in list(each.offered_at))


def longest_gap(times: list[float], first: float, last: float) -> float:
    """The longest time without an offer between two moments, in seconds."""
    return longest_gaps(times, first, last)[0]


def longest_gaps(times: list[float], first: float, last: float, count: int = 8) -> list[float]:
    """The longest times without an offer between two moments, the longest first."""
    inside = [first, *(each for each in times if first < each < last), last]
    gaps = sorted((after - before for before, after in itertools.pairwise(inside)), reverse=True)
    return [round(gap, 3) for gap in gaps[:count]]


def storm(mesos: Mesos, rounds: int, seed: int = 1, fallback_after_ms: int = 500) -> StormFigures:
    """Kill, stop and restart the sidecar while frameworks work.

    After each fault the sidecar's books, which begin with a snapshot of the module's, are compared
    with the master's state.
    """
    chance, figures, begun_s = random.Random(seed), StormFigures(), time.monotonic()
    parameters = {"fallback_after_ms": str(fallback_after_ms)}
    with World(mesos, agents=4, parameters=parameters) as world:
        assert world.master is not None
        pid = world.master.pid
        frameworks = [
            world.framework("pulse", "pulse", manner=refuse()),
            world.framework("one", "eng", "eng/ads", manner=fickle(1, 0.4, 64, 8, at_once=4)),
            world.framework("two", "ads", manner=work(0.3, 48, 6, at_once=4)),
        ]
        with Sampler(world.operator) as sampler:
            time.sleep(5)
            now_s = time.monotonic()
            figures.usual_gap_s = longest_gap(offer_times(frameworks), now_s - 4, now_s)
            for number in range(rounds):
                kind = ("kill", "stop", "restart")[number % 3]
                figures.faults.append(_fault(world, frameworks, kind, chance))
                world.check_master()
                assert not sampler.found, sampler.found[:5]
                freeze(world, frameworks)
            missing = unanswered(frameworks)
            assert not missing, missing
        figures.samples = sampler.samples
        assert not sampler.found, sampler.found[:5]
        assert not sampler.failures, sampler.failures[:5]
        assert world.master.pid == pid
        lost = lost_tasks(frameworks)
        assert not lost, lost
        figures.states = sum((each.states() for each in frameworks), Counter())
        figures.offers = sum(each.counts["offers"] for each in frameworks)
        metrics = world.operator.metrics()
        figures.metrics = {name: told(metrics, name) for name in ("outcomes/", "ends/")}
        figures.metrics["module"] = told(metrics, "")
    figures.seconds = time.monotonic() - begun_s
    return figures


def _fault(world: World, frameworks: list[Framework], kind: str, chance: random.Random) -> Fault:
    """Inject one fault under a random policy, and wait for recovery."""
    world.sidecar.set_policy(chance.choice(sorted(POLICIES)), chance.choice(MODES))
    time.sleep(2 * INTERVAL_S + chance.random())
    sessions = world.operator.metrics()[PREFIX + "sessions"]
    began_s = time.monotonic()
    if kind == "stop":
        world.sidecar.freeze()
        time.sleep(chance.choice((0.3, 1.5, 2.5, 5.0)))
        world.sidecar.thaw()
    else:
        if kind == "kill":
            world.sidecar.crash()
        else:
            world.sidecar.stop()
        time.sleep(chance.choice((0.0, 0.5, 2.5)))
        world.sidecar.start()
        until(
            lambda: world.operator.metrics()[PREFIX + "sessions"] > sessions, 60, "a session", 0.05
        )
    healed_s = time.monotonic()
    world.wait_connected()
    time.sleep(2 * INTERVAL_S)
    ended_s = time.monotonic()
    times = offer_times(frameworks)
    after = [each for each in times if each > began_s]
    return Fault(
        kind,
        gap_s=longest_gap(times, began_s - INTERVAL_S, ended_s),
        first_s=(after[0] if after else ended_s) - began_s,
        back_s=max(0.0, ended_s - 2 * INTERVAL_S - healed_s),
    )


# A hostile sidecar.


@dataclass
class HostileFigures:
    """The effects of a hostile sidecar on frameworks.

    gaps_s: the longest times in which the master sent no offers, the longest first.
    seen_gaps_s: the same as frameworks saw it.
    usual_gaps_s: as `gaps_s`, for the time before, without a sidecar, when the module decided
        itself.
    """

    seconds: float = 0.0
    streams: int = 0
    rows: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    ends: dict[str, int] = field(default_factory=dict)
    breaker_trips: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    offers: int = 0
    usual_gaps_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    seen_gaps_s: list[float] = field(default_factory=list)
    samples: int = 0


def be_hostile(mesos: Mesos, seconds: float, seed: int = 1) -> HostileFigures:
    """Answer a master with nonsense while frameworks reserve, make volumes and run tasks.

    Afterwards a real sidecar must find the module's books consistent.
    """
    figures = HostileFigures()
    parameters = {
        "fallback_after_ms": "300",
        "answer_deadline_ms": "1500",
        "bad_decisions_max": "20000",
        "breaker_pause_ms": "3000",
    }
    with World(
        mesos,
        agents=3,
        interval="300ms",
        sidecar=False,
        parameters=parameters,
        # Completed frameworks and tasks would make each query of the master's state slower.
        flags={"max_completed_tasks_per_framework": "5"},
        agent_flags={"resources": f"{RESOURCES};{WITNESS}"},
    ) as world:
        stewards = [Steward(seed + number) for number in range(3)]
        roles = (("eng",), ("ads",), ("eng/web", "ads"))
        frameworks = [
            world.framework(f"steward-{number}", *each, manner=steward)
            for number, (steward, each) in enumerate(zip(stewards, roles, strict=True))
        ]
        frameworks.append(world.framework("worker", "ops", manner=work(0.3, 48, 5, at_once=3)))
        # The others may hold or refuse everything for a while. A framework with resources of its
        # own and short refusals shows for how long there were no offers at all.
        frameworks.append(world.framework("witness", "witness", manner=refuse(0.0)))
        with Sampler(world.operator) as sampler:
            time.sleep(5)
            alone_s = time.time()
            time.sleep(min(seconds, 120) / 4)
            begun_s = time.monotonic()
            figures.usual_gaps_s = longest_gaps(_sent(world), alone_s, time.time())
            with HostileProcess(world.sidecar.target, seed) as hostile:
                assert world.master is not None
                # Its log grows long; reading all of it would slow the frameworks down.
                while time.monotonic() - begun_s < seconds and world.master.alive:
                    time.sleep(2)
                    assert not sampler.found, sampler.found[:5]
                now_s, past_s = time.time(), time.monotonic() - begun_s
                world.check_master()
                _take_hostile_figures(figures, world, hostile)
            figures.seconds = time.monotonic() - begun_s
            figures.gaps_s = longest_gaps(_sent(world), now_s - past_s, now_s)
            figures.seen_gaps_s = longest_gaps(offer_times(frameworks), begun_s, begun_s + past_s)
            world.sidecar.start()
            world.wait_connected(90)
            freeze(world, frameworks)
        assert not sampler.found, sampler.found[:5]
        figures.samples = sampler.samples
        figures.operations = dict(sum((each.done for each in stewards), Counter()))
        figures.states = sum((each.states() for each in frameworks), Counter())
        figures.offers = sum(each.counts["offers"] for each in frameworks)
    return figures


def _sent(world: World) -> list[float]:
    assert world.master is not None
    return offers_sent(world.master.said())


def _take_hostile_figures(figures: HostileFigures, world: World, hostile: HostileProcess) -> None:
    metrics: dict[str, Any] = world.operator.metrics()
    said = hostile.figures()
    figures.streams, figures.rows, figures.answers = said.streams, said.rows, said.answers
    figures.outcomes = told(metrics, "outcomes/")
    figures.ends = told(metrics, "ends/")
    figures.breaker_trips = int(metrics[PREFIX + "breaker_trips"])

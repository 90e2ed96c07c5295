"""A recorded day: its workload is extracted from events, and played again under another policy."""

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from allocator import policies
from allocator.core import (
    GANG_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    Exclude,
    FrameworkInfo,
    Kind,
    PolicySpec,
    RemoveFramework,
    Request,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetGang,
    SetLimit,
    SetQuota,
    Settings,
    SetWeights,
)
from laboratory.experiments.what_if import as_recorded, greedy, play_day
from laboratory.frameworks.base import Identity
from laboratory.frameworks.batch import BatchJob, Manner, Work
from laboratory.links.base import DirectLink
from laboratory.master.ledger import Quota
from laboratory.resources import AgentSpec
from laboratory.workloads.play import play
from laboratory.workloads.recorded_day import Day, DayRecorder, watched
from laboratory.workloads.scenario import JobStage
from laboratory.workloads.traces import Arrival, Replay

SMALL = AgentSpec("small", {"cpus": 4000, "mem": 4_096_000}, {"rack": "a"})
LARGE = AgentSpec("large", {"cpus": 8000, "mem": 8_192_000}, {"rack": "b"})
SPARK = {"cpus": 1000, "mem": 1_024_000}
BATCH = {"cpus": 3000, "mem": 512_000}

SCENARIO = Replay(
    ("cpus", "mem"),
    ((0, SMALL), (0, LARGE)),
    (
        Arrival(0, "spark-1", "spark", SPARK, tuple(range(20_000, 50_000, 1_500))),
        Arrival(5_000, "batch-1", "batch", BATCH, (31_000, 32_000, 33_000)),
        Arrival(0, "late", "spark", SPARK, (150_000,)),
        Arrival(9_000, "spark-2", "spark", SPARK, (7_000,) * 6, allowed={"rack": frozenset("b")}),
    ),
)


class WatchedLink(DirectLink):
    """Forwards the input of its allocators to a recorder."""

    def __init__(self, recorder: DayRecorder, settings: Settings) -> None:
        self._make = watched(recorder)
        super().__init__(policies.build, settings)

    def _fresh(self) -> Allocator:
        return self._make(self._build, self._settings, substitute=policies.substitute())


def record(scenario, settings: Settings | None = None, **how) -> Day:
    recorder = DayRecorder()
    link = WatchedLink(recorder, settings or Settings(PolicySpec("drf")))
    play(scenario, link, tell_demand=False, **how)
    return recorder.finish()


@pytest.fixture(scope="module")
def day() -> Day:
    return record(SCENARIO)


def test_rules_of_operators_and_events_about_several_are_no_facts_of_one_agent():
    recorder = DayRecorder()
    allocator = watched(recorder)(policies.build, Settings(PolicySpec("drf")))
    allocator.step(Define({0: Kind("gpus")}, {1: "eng"}))
    allocator.step(AddAgent(1, AgentInfo("id-1", hostname="small"), {0: 4000}))
    allocator.step(AddFramework(1, FrameworkInfo("id-2", name="s"), (1,)))
    pair = np.array([1])
    excluded = Exclude(pair, pair, pair, np.array([True]))
    limit, demand = SetLimit("eng", {"cpus": 1000}), SetDemand("", "s", {"cpus": 1000})
    for event in (SetDrain("small"), limit, demand, excluded):
        allocator.step(event)
    watched(recorder)(policies.build, Settings(PolicySpec("drf")))  # the session is over
    day = recorder.finish()
    assert [agent.hostname for agent in day.agents.values()] == ["small"]
    assert "gpus" in day.kinds


def test_gangs_are_recorded_whether_stated_or_set_and_unlike_ones_count_as_single_tasks():
    recorder = DayRecorder()
    allocator = watched(recorder)(policies.build, Settings(PolicySpec("drf")))
    allocator.step(Define({0: Kind("cpus")}, {1: "eng"}))
    allocator.step(AddAgent(1, AgentInfo("id-1"), {0: 4000}))
    labels = {"stated": {GANG_LABEL: "tasks:3"}, "one": {GANG_LABEL: "tasks:1"}}
    for handle, name in enumerate(("stated", "set", "unlike", "one", "none"), 1):
        info = FrameworkInfo(name, name=name, labels=labels.get(name, {}))
        allocator.step(AddFramework(handle, info, (1,)))
    allocator.step(SetGang("eng", "set", 4))
    allocator.step(Request(3, ({"cpus": 1000}, {"cpus": 2000})))
    allocator.step(RemoveFramework(2))
    day = recorder.finish()
    gangs = {name: each.gang for name, each in day.frameworks.items()}
    assert gangs == {"stated": 3, "set": 4, "unlike": 0, "one": 1, "none": 0}


def needs(day: Day) -> Counter[tuple[str, int, int]]:
    return Counter((ran.role, ran.need["cpus"], ran.need["mem"]) for ran in day.ran)


NEEDS = Counter(
    (arrival.role, arrival.need["cpus"], arrival.need["mem"])
    for arrival in SCENARIO.arrivals
    for _ in arrival.durations_ms
)


def test_every_task_is_found_with_what_it_needed(day):
    """Which of several equal tasks ended is unknown, but their total run time is known."""
    assert needs(day) == NEEDS
    for arrival in SCENARIO.arrivals:
        ran = [each for each in day.ran if day.frameworks[each.framework].name == arrival.name]
        together_ms = sum(each.end_ms - each.start_ms for each in ran)
        if arrival.name == "late":  # the master closes without reporting the very last end
            assert day.unfinished == 1
            assert together_ms < 150_000
        else:
            assert together_ms == sum(arrival.durations_ms), arrival.name
    assert {agent.hostname: agent.capacity for agent in day.agents.values()} == {
        "small": SMALL.capacity,
        "large": LARGE.capacity,
    }


def test_which_agents_a_framework_may_use_is_found(day):
    allowed = {framework.name: framework.allowed for framework in day.frameworks.values()}
    (large,) = (each.agent_id for each in day.agents.values() if each.hostname == "large")
    assert allowed == {
        "spark-1": {},
        "batch-1": {},
        "late": {},
        "spark-2": {"spark": frozenset({large})},
    }


def test_a_task_is_wanted_since_its_framework_came_or_declined_what_would_have_held_it(day):
    names = {framework.framework_id: framework for framework in day.frameworks.values()}
    for ran in day.ran:
        assert names[ran.framework].came_ms <= ran.wanted_ms <= ran.start_ms
    # All tasks of these frameworks are wanted from the beginning, and they decline only offers that
    # do not fit one.
    assert all(ran.wanted_ms == names[ran.framework].came_ms for ran in day.ran)


def test_a_day_is_the_same_when_it_is_played_under_its_own_policy(day):
    recorded, played = as_recorded(day), play_day(day, PolicySpec("drf"), "again")
    assert played.unfinished == ""
    assert played.tasks == recorded.tasks == len(day.ran)
    assert played.used == pytest.approx(recorded.used, abs=0.05)
    assert played.wait_mean_s == pytest.approx(recorded.wait_mean_s, rel=0.1)
    assert played.role_share == pytest.approx(recorded.role_share, abs=0.05)


def test_quotas_and_weights_are_played_too(day):
    """With a limit for Spark, the tasks of batch wait less."""
    limit = Quota(limits={"cpus": 6000})
    bounded = replace(day, quotas=[(day.begin_ms, "spark", limit)])
    usual = play_day(day, PolicySpec("drf"), "usual")
    other = play_day(bounded, PolicySpec("drf"), "Spark bounded")
    assert other.role_wait_s["batch"] < usual.role_wait_s["batch"]
    assert other.role_share["spark"] < usual.role_share["spark"]
    assert other.tasks == usual.tasks


def test_another_policy_is_distinguished(day):
    """In whole tasks the large agent is kept for those that need it."""
    told = replace(day, frameworks={k: replace(f) for k, f in day.frameworks.items()})
    for framework in told.frameworks.values():
        framework.demand = BATCH if framework.name == "batch-1" else SPARK
    usual = play_day(told, PolicySpec("drf"), "usual")
    other = play_day(told, PolicySpec("rps-dsf", mode="characterised"), "rps-dsf")
    assert other.tasks == usual.tasks
    assert other != replace(usual, name="rps-dsf")


class WithSetbacks:
    """A scenario in which an agent is lost and returns, with a session that ends in between."""

    kinds, agents, jobs = SCENARIO.kinds, SCENARIO.agents, SCENARIO.jobs

    def begin(self, stage: JobStage) -> None:
        master = stage.master
        SCENARIO.begin(stage)
        stage.at(12_345, lambda: master.remove_agent(1))
        stage.at(15_000, self._come_back)
        stage.at(17_000, master.session.open)
        self._master = master

    def _come_back(self) -> None:
        self._master.add_agent(SMALL)


def test_tasks_repeated_by_a_new_session_continue():
    day = record(WithSetbacks())
    lost = Counter(ran.role for ran in day.ran if ran.end_ms == 12_345)
    assert lost, "nothing ran on the agent that was lost"
    # Lost tasks ran again. The break of the session ended or started none.
    assert sum(needs(day).values()) == sum(NEEDS.values()) + sum(lost.values())
    assert not [ran for ran in day.ran if 17_000 in {ran.start_ms, ran.end_ms}]
    assert play_day(day, PolicySpec("ps-dsf"), "again").tasks == len(day.ran)


# Frameworks that keep whole offers, and settings made before a journal starts.


class Greedy:
    """A framework keeps whole offers of both agents, and states what one of its tasks needs."""

    kinds, agents, jobs = SCENARIO.kinds, SCENARIO.agents, 1

    def begin(self, stage: JobStage) -> None:
        identity = Identity("greedy", ("greedy",), SPARK)
        work = [Work(SPARK, (20_000,) * 24)]
        left = partial(stage.ended, "greedy")
        stage.submit(BatchJob(identity, work, Manner(greedy=True), lambda _cancelled: left()))


def test_greedy_frameworks_are_found_and_are_greedy_again():
    day = record(Greedy())
    ((who, need),) = greedy(day).items()
    assert (day.frameworks[who[0]].name, need) == ("greedy", SPARK)
    assert {ran.need["cpus"] for ran in day.ran} == {4000, 8000}, "whole agents"
    whole = play_day(day, PolicySpec("drf"), "again")
    # Twelve at a time; each piece counts as the number of tasks that ran side by side in it.
    assert whole.tasks == 12
    assert whole.used["cpus"] == pytest.approx(1.0, abs=0.1)
    told = play_day(day, PolicySpec("drf", mode="characterised"), "whole tasks")
    assert told.tasks == 12
    assert told.unfinished == ""


def test_frameworks_that_return_a_rest_are_not_greedy(day):
    assert greedy(day) == {}
    told = replace(day, frameworks={k: replace(f) for k, f in day.frameworks.items()})
    (spark,) = (each for each in told.frameworks.values() if each.name == "spark-1")
    spark.demand = {"cpus": 500, "mem": 512_000}
    assert greedy(told) == {}, "it ran task by task in what it took"


def test_quotas_and_weights_that_were_set_before_the_journal_begins_are_known():
    before = Allocator(policies.build, Settings(PolicySpec("drf")))
    before.advance(5_000)
    before.step(Define({}, {1: "eng"}))
    before.step(SetQuota("eng", {"cpus": 2000}, {}))
    before.step(SetWeights({"eng": 3.0}))
    recorder = DayRecorder()
    after = watched(recorder)(policies.build, Settings(PolicySpec("drf")))
    after.resume(before.kept())
    day = recorder.finish()
    assert day.quotas == [(5_000, "eng", Quota({"cpus": 2000}, {}))]
    assert day.weights == [(5_000, {"eng": 3.0})]


def test_an_operators_constraint_is_played_by_its_effect(day):
    """The agents that are played lack the attributes that it refers to."""
    assert day.settings is not None
    settings = day.settings.copied()
    settings.put(SetConstraint("spark", "", "rack in (a, b)"))
    bounded = replace(day, settings=settings)
    assert play_day(bounded, PolicySpec("drf"), "again").tasks == len(day.ran)

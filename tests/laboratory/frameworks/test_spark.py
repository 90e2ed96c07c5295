"""Spark's two modes on Mesos answer offers as its sources do."""

from dataclasses import replace

import pytest

from allocator.core import Revive
from laboratory.frameworks.spark import (
    CoarseSpark,
    DynamicAllocation,
    FineSpark,
    SparkSettings,
    Stages,
)
from laboratory.resources import AgentSpec, Reservation, Resource
from tests.laboratory.frameworks.test_frameworks import WHOLE, offer, refusals, used
from tests.laboratory.master.masters import Listener, master_for, run

MIB = 1000
SMALL = SparkSettings(executor_cores=1, executor_memory_mib=640)  # plus 384 of overhead


@pytest.fixture
def link():
    return Listener()


def coarse(settings=SMALL, stages=((9000,) * 8,), left=lambda: None, **times):
    return CoarseSpark(settings.identity("s", "r"), settings, stages, left, **times)


def fine(settings=SMALL, stages=((9000,) * 8,), left=lambda: None):
    return FineSpark(settings.identity("s", "r"), settings, stages, left)


# Settings.


@pytest.mark.parametrize(
    ("memory", "overhead", "whole"),
    [(1024, None, 1408), (3840, None, 4224), (8192, None, 9011), (1024, 100, 1124)],
)
def test_the_overhead_is_a_tenth_and_at_least_384_unless_it_is_set(memory, overhead, whole):
    settings = SparkSettings(executor_memory_mib=memory, memory_overhead_mib=overhead)
    assert settings.memory == whole * MIB


def test_the_maximum_is_a_whole_number_of_executors():
    assert SparkSettings(executor_cores=3, cores_max=8).maximum == 6
    assert SparkSettings(cores_max=8).maximum == 8
    assert SparkSettings(executor_cores=3).maximum is None


def test_spark_registers_in_one_role_without_labels_and_for_gpus_if_it_may_have_some():
    identity = replace(SMALL, gpus_max=2).identity("pi", "r")
    assert identity.announced == {"GPU_RESOURCES"}
    assert identity.labels() == {}
    assert SMALL.identity("pi", "r").announced == frozenset()


# Coarse-grained mode.


def test_an_executor_without_a_number_of_cores_takes_all_of_an_offer(link):
    master = master_for(link)
    framework = coarse(SparkSettings(executor_memory_mib=640, cores_max=6))
    master.subscribe(framework)
    offer(link, master, WHOLE)
    assert used(link) == [[[4000, 1024 * MIB]]]
    run(master, 2000)
    other = master.add_agent(AgentSpec("other", {"cpus": 4000, "mem": 8_192_000}))
    offer(link, master, WHOLE, agent=other)
    assert used(link)[1:] == [[[2000, 1024 * MIB]]], "the rest up to spark.cores.max"


def test_executors_are_placed_round_robin_while_any_fits(link):
    master = master_for(link)
    master.add_agent(AgentSpec("other", {"cpus": 4000, "mem": 2_100_000}))
    framework = coarse()
    master.subscribe(framework)
    link.script = [[(1, 1, 1, WHOLE), (1, 1, 2, (4000, 2_100_000))]]
    run(master, 20)
    assert sorted(task.agent for task in framework.executors) == [1, 1, 1, 1, 2, 2]


def test_filters_of_spark_and_their_durations(link):
    master = master_for(link)
    settings = replace(SMALL, cores_max=2, constraints={"zone": frozenset({"a", "b"})})
    near = master.add_agent(AgentSpec("near", {"cpus": 4000, "mem": 8_192_000}, {"zone": "b"}))
    master.subscribe(coarse(settings, ((60_000,) * 8,)))
    offer(link, master, WHOLE)  # no such attribute
    offer(link, master, (500, 8_192_000), agent=near)  # too small
    offer(link, master, (2500, 2_048_000), agent=near)  # two executors, and a rest
    offer(link, master, (1000, 1_024_000), agent=near)  # it has all its cores
    assert refusals(link) == [120.0, 5.0, 5.0, 120.0]
    refusals_set = replace(settings, reject_ms=7000, reject_at_maximum_ms=9000)
    assert (refusals_set.refuse_unmet_ms, refusals_set.refuse_at_maximum_ms) == (7000, 9000)


@pytest.mark.parametrize(
    ("values", "zone", "accepted"),
    [({"a"}, "a", True), ({"a"}, "b", False), (set(), "b", True), (set(), None, False)],
)
def test_constraints_name_values_or_ask_that_the_attribute_is_there(values, zone, accepted):
    settings = SparkSettings(constraints={"zone": frozenset(values)})
    assert settings.accepts({} if zone is None else {"zone": zone}) is accepted


def test_a_fixed_port_means_one_executor_an_agent(link):
    master = master_for(link)
    master.subscribe(coarse(replace(SMALL, fixed_port=True)))
    offer(link, master, (2000, 2_048_000))
    offer(link, master, (2000, 2_048_000))
    assert used(link) == [[[1000, 1_024_000]]]
    assert master.record.declines == 1


def test_gpus_are_taken_as_far_as_they_may_and_executors_start_without():
    link = Listener()
    master = master_for(link)
    gpus = {Resource("gpus"): 3000}
    agent = master.add_agent(AgentSpec("gpu", {"cpus": 4000, "mem": 8_192_000}, special=gpus))
    framework = coarse(replace(SMALL, gpus_max=2, cores_max=3))
    master.subscribe(framework)
    master.open()
    there = master.row({Resource("cpus"): 4000, Resource("mem"): 8_192_000, Resource("gpus"): 1000})
    framework.offered([made(master, framework, agent, there)])
    assert sorted(executor.gpus for executor in framework.executors.values()) == [0, 0, 1]


def test_resources_reserved_for_its_role_are_used_like_others():
    link = Listener()
    master = master_for(link)
    reserved = Resource("cpus", reservations=(Reservation("r", static=True),))
    spec = AgentSpec("mixed", {"cpus": 1000, "mem": 8_192_000}, special={reserved: 1000})
    agent = master.add_agent(spec)
    framework = coarse(replace(SMALL, executor_cores=2))
    master.subscribe(framework)
    whole = master.row({Resource("cpus"): 1000, Resource("mem"): 8_192_000, reserved: 1000})
    framework.offered([made(master, framework, agent, whole)])
    (task,) = framework.executors
    assert master.resources_of(task.amount)[reserved] == 1000


def made(master, framework, agent, amount):
    """Book an offer, as if it had been decided."""
    from laboratory.frameworks.base import Offer

    member = master.member(framework)
    (role,) = master.ledger.frameworks[member.handle].roles
    one = Offer(member.handle, role, agent, amount)
    master.ledger.offer(member.handle, (role, agent), amount)
    member.offers[one] = None
    return one


def test_an_executor_that_ends_revives_offers_while_the_job_stops_too(link):
    left = []
    master = master_for(link)
    times = {"start_ms": 500, "stop_ms": (1000, 2000)}
    master.subscribe(
        coarse(
            replace(SMALL, cores_max=2),
            ((1000, 1000),),
            lambda: left.append(master.event_heap.now_ms),
            **times,
        )
    )
    offer(link, master, WHOLE)
    run(master, 20_000)
    assert left == [1010 + 500 + 1000 + 2000]
    assert [m for m in link.messages if isinstance(m, Revive)] == [Revive(1, (1,))] * 2


def test_the_driver_waits_no_longer_than_its_timeout_for_executors(link):
    left = []
    master = master_for(link)
    framework = coarse(
        replace(SMALL, cores_max=1),
        ((1000,),),
        lambda: left.append(master.event_heap.now_ms),
        stop_ms=(60_000,),
    )
    master.subscribe(framework)
    offer(link, master, WHOLE)
    run(master, 90_000)
    assert left == [1010 + 1000 + 10_000]
    assert not master.members


def test_while_it_stops_it_declines_for_the_default_time(link):
    master = master_for(link)
    master.subscribe(coarse(replace(SMALL, cores_max=1), ((1000,),), stop_ms=(5000,)))
    offer(link, master, (1000, 1_024_000))
    run(master, 3000)
    offer(link, master, (1000, 1_024_000))
    assert refusals(link) == [5.0]


# Dynamic allocation.


def test_dynamic_allocation_doubles_its_requests_and_declines_the_rest(link):
    master = master_for(link)
    framework = coarse(replace(SMALL, dynamic=DynamicAllocation()), ((60_000,) * 6,))
    master.subscribe(framework)
    targets = []
    for second in range(6):
        targets.append(framework.target)
        run(master, 1000 * (second + 1) + 5)
    assert targets == [0, 1, 3, 6, 6, 6]
    framework.target = 0
    offer(link, master, WHOLE)
    assert refusals(link) == [5.0]


def test_idle_executors_are_given_up_down_to_the_least(link):
    master = master_for(link)
    dynamic = DynamicAllocation(least=1, idle_ms=5000)
    framework = coarse(replace(SMALL, dynamic=dynamic), ((1000, 1000, 30_000),))
    master.subscribe(framework)
    run(master, 3100)
    offer(link, master, WHOLE)
    assert len(framework.executors) == 3
    run(master, 20_000)
    assert len(framework.executors) == 1
    assert framework.target == 1


# Fine-grained mode.


def test_the_first_task_on_an_agent_brings_the_executor_and_later_ones_take_a_core(link):
    master = master_for(link)
    framework = fine()
    master.subscribe(framework)
    offer(link, master, (3000, 4_096_000))
    offer(link, master, (1000, 0))
    assert used(link) == [[[3000, 1_024_000]], [[1000, 0]]]
    assert (len(framework.executors), len(framework.tasks)) == (1, 3)


def test_without_room_for_an_executor_and_a_task_it_declines(link):
    master = master_for(link)
    master.subscribe(fine())
    offer(link, master, (1900, 4_096_000))
    offer(link, master, (3000, 1_000_000))
    assert (used(link), refusals(link)) == ([], [5.0, 5.0])


def test_the_rest_of_a_used_offer_is_refused_for_a_second(link):
    left = []
    master = master_for(link)
    framework = fine(SMALL, ((1000,), (1000,)), lambda: left.append(master.event_heap.now_ms))
    master.subscribe(framework)
    offer(link, master, WHOLE)
    assert refusals(link) == [1.0]
    run(master, 2500)
    assert [m for m in link.messages if isinstance(m, Revive)] == [Revive(1, (1,))]
    offer(link, master, (1000, 0))
    run(master, 9000)
    assert len(left) == 1
    assert not master.members


# Agents that are lost.


@pytest.mark.parametrize("mode", [coarse, fine])
def test_tasks_of_a_lost_agent_run_again(link, mode):
    left = []
    master = master_for(link)
    framework = mode(SMALL, ((9000,) * 3,), lambda: left.append(True))
    master.subscribe(framework)
    offer(link, master, WHOLE)
    master.remove_agent(1)
    assert len(framework.stages.waiting) == 3
    agent = master.add_agent(AgentSpec("again", {"cpus": 4000, "mem": 8_192_000}))
    offer(link, master, WHOLE, agent=agent)
    run(master, 40_000)
    assert left == [True]


@pytest.mark.parametrize("mode", [coarse, fine])
def test_a_job_without_tasks_leaves(link, mode):
    left = []
    master = master_for(link)
    master.subscribe(mode(SMALL, ((), ()), lambda: left.append(True)))
    run(master, 1000)
    assert left == [True]


def test_a_stage_waits_for_the_one_before():
    stages = Stages([[1, 2], [], [3]])
    assert [stages.take(), stages.take(), stages.waiting] == [1, 2, []]
    assert (stages.finish(), stages.finish(), stages.waiting) == (False, True, [3])
    stages.lose([stages.take()])
    assert (stages.waiting, stages.running, stages.done) == ([3], 0, False)

"""The models of frameworks answer offers as the schedulers that they represent."""

import pytest

from allocator.core import Release, Revive, Suppress, Transition
from laboratory.frameworks.base import Identity, fit
from laboratory.frameworks.batch import BatchJob, Manner, TaskQueue, Work
from laboratory.frameworks.spark_of_paper import Job, SparkJob
from laboratory.resources import AgentSpec
from tests.laboratory.master.masters import Listener, master_for, run

WHOLE = (4000, 8_192_000)
NEED = {"cpus": 1000, "mem": 1_024_000}


@pytest.fixture
def link():
    return Listener()


def offer(link, master, amount, agent=1, framework=1):
    """Make the sidecar decide this in its next cycle, and let the framework answer."""
    run(master, master.event_heap.now_ms)
    link.script = [[(framework, 1, agent, amount)]]
    run(master, (master.event_heap.now_ms // 1000 + 1) * 1000 + 10)
    master.send()


def refusals(link):
    """The refusal duration of each released row, in s."""
    rows = [m for m in link.messages if isinstance(m, Release) and not m.allocated.any()]
    return [ms / 1000 for release in rows for ms in release.refuse_ms.tolist()]


def used(link):
    return [m.used.amount.tolist() for m in link.messages if isinstance(m, Transition)]


def test_a_need_fits_as_often_as_its_scarcest_resource():
    assert fit((4000, 9000, 5), (1000, 4000, 0)) == 2


def test_an_identity_puts_demand_and_constraint_on_labels():
    identity = Identity("f", ("r",), NEED, {"zone": frozenset({"b", "a"})})
    assert identity.labels() == {
        "allocator.demand": "cpus:1;mem:1024",
        "allocator.constraint": "zone=a|b",
    }
    assert Identity("f", ("r",)).labels() == {}


# Task queues.


def queue_of(count, **options):
    return TaskQueue(Identity("q", ("r",)), NEED, [1000 * (n + 1) for n in range(count)], **options)


def test_a_task_queue_takes_what_fits_and_refuses_the_rest(link):
    master = master_for(link)
    master.subscribe(queue_of(9))
    offer(link, master, WHOLE)
    assert used(link) == [[[4000, 4_096_000]]]
    assert refusals(link) == [5.0]
    assert not [m for m in link.messages if isinstance(m, Suppress)]


def test_a_task_queue_with_nothing_to_do_suppresses_offers(link):
    master = master_for(link)
    master.subscribe(queue_of(2))
    offer(link, master, WHOLE)
    assert used(link) == [[[2000, 2_048_000]]]
    assert Suppress(1, (1,)) in link.messages


def test_a_task_queue_leaves_after_its_last_task(link):
    left = []
    master = master_for(link)
    master.subscribe(queue_of(2, left=lambda: left.append(master.event_heap.now_ms)))
    offer(link, master, WHOLE)
    run(master, 5000)
    assert left == [1010 + 2000]
    assert master.ledger.used == [0, 0]
    assert not master.members


def test_a_task_that_is_lost_is_run_again(link):
    master = master_for(link)
    framework = queue_of(1)
    master.subscribe(framework)
    offer(link, master, WHOLE)
    master.remove_agent(1)
    master.send()
    (queue,) = framework._waiting.values()
    assert [task.lasts_ms for _, task in queue] == [1000]
    assert Revive(1, (1,)) in link.messages
    run(master, 9000)
    assert master.members


def test_lost_tasks_of_a_gang_start_again_without_a_whole_gang(link):
    master = master_for(link)
    master.add_agent(AgentSpec("other", {"cpus": 4000, "mem": 8_192_000}))
    job = BatchJob(Identity("g", ("r",)), [Work(NEED, (60_000, 60_000))], Manner(gang=2))
    master.subscribe(job)
    one = 1000, 1_024_000
    offer(link, master, one)
    assert not job.running
    offer(link, master, one, agent=2)
    assert sorted(task.agent for task in job.running) == [1, 2]
    master.remove_agent(1)
    assert job.waits
    offer(link, master, one, agent=2)
    assert [task.agent for task in job.running] == [2, 2]
    assert not job.waits


def test_an_offer_too_small_for_a_task_is_declined(link):
    master = master_for(link)
    master.subscribe(queue_of(1))
    offer(link, master, (900, 8_192_000))
    assert used(link) == []
    assert refusals(link) == [5.0]
    assert master.record.declines == 1


# Spark.


def spark(*stages, slots=1, most=64, start_ms=0, stop_ms=(0,), left=lambda: None):
    job = Job(NEED, slots, most, tuple(map(tuple, stages)), start_ms, stop_ms)
    return SparkJob(Identity("s", ("r",)), job, left)


def test_spark_takes_whole_executors_up_to_its_maximum(link):
    master = master_for(link)
    framework = spark([9000] * 8, most=3)
    master.subscribe(framework)
    offer(link, master, WHOLE)
    assert used(link) == [[[3000, 3_072_000]]]
    assert len(framework.executors) == 3


def test_spark_declines_for_two_minutes_at_its_maximum_and_for_five_seconds_before(link):
    master = master_for(link)
    master.subscribe(spark([60_000] * 8, most=1))
    offer(link, master, (900, 900_000))
    offer(link, master, (2000, 2_048_000))
    offer(link, master, (2000, 2_048_000))
    assert refusals(link) == [5.0, 5.0, 120.0]  # too small; the rest of the accepted; at maximum


def test_spark_spreads_executors_over_the_offers_at_hand():
    link = Listener()
    master = master_for(link)
    master.add_agent(AgentSpec("other", {"cpus": 4000, "mem": 8_192_000}))
    framework = spark([9000] * 8, most=3)
    master.subscribe(framework)
    link.script = [[(1, 1, 1, WHOLE), (1, 1, 2, WHOLE)]]
    run(master, 20)
    assert sorted(task.agent for task in framework.executors) == [1, 1, 2]


def test_executors_pull_tasks_and_the_job_ends_with_the_last(link):
    left = []
    master = master_for(link)
    tasks = [1000, 1000, 1000, 4000, 1000]
    master.subscribe(spark(tasks, most=2, left=lambda: left.append(master.event_heap.now_ms)))
    offer(link, master, WHOLE)
    run(master, 20_000)
    # Two at a time: the first two end after 1 s, the third after 2 s, the fourth after 1 + 4 s.
    assert left == [1010 + 1000 + 4000]


def test_a_stage_begins_when_the_one_before_is_complete(link):
    left = []
    master = master_for(link)
    master.subscribe(
        spark([1000, 3000], [500, 500], most=2, left=lambda: left.append(master.event_heap.now_ms))
    )
    offer(link, master, WHOLE)
    run(master, 20_000)
    assert left == [1010 + 3000 + 500]


def test_executors_with_more_slots_run_more_tasks_at_once(link):
    left = []
    master = master_for(link)
    framework = spark(
        [1000] * 4, slots=2, most=1, left=lambda: left.append(master.event_heap.now_ms)
    )
    master.subscribe(framework)
    offer(link, master, WHOLE)
    run(master, 20_000)
    assert left == [1010 + 2000]


def test_an_executor_takes_no_task_before_it_has_started(link):
    left = []
    master = master_for(link)
    framework = spark([1000], start_ms=2500, left=lambda: left.append(master.event_heap.now_ms))
    master.subscribe(framework)
    offer(link, master, (1000, 1_024_000))
    run(master, 20_000)
    assert left == [1010 + 2500 + 1000]


def test_executors_end_one_by_one_after_the_job_and_then_the_framework_leaves(link):
    left = []
    master = master_for(link)
    framework = spark(
        [1000, 1000], most=2, stop_ms=(0, 1500), left=lambda: left.append(master.event_heap.now_ms)
    )
    master.subscribe(framework)
    offer(link, master, WHOLE)
    run(master, 2100)
    assert master.ledger.used == [1000, 1_024_000]
    run(master, 9000)
    assert left == [1010 + 1000 + 1500]
    assert not master.members


def test_tasks_of_a_lost_executor_are_done_by_another(link):
    left = []
    master = master_for(link)
    framework = spark([3000, 3000], most=1, left=lambda: left.append(master.event_heap.now_ms))
    master.subscribe(framework)
    offer(link, master, (1000, 1_024_000))
    run(master, 2000)
    master.remove_agent(1)
    master.add_agent(AgentSpec("again", {"cpus": 4000, "mem": 8_192_000}))
    offer(link, master, (1000, 1_024_000))
    started_ms = master.event_heap.now_ms
    run(master, 30_000)
    assert left == [started_ms + 6000]

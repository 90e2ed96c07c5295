"""Schedulers of a cluster with a network: the defining properties of each, on small clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from laboratory.network import cluster as cluster_module
from laboratory.network.cluster import ClusterRun, empty_slots, fair_shares
from laboratory.network.schedulers import DELAY_S, MARGIN, FlowScheduler, QueueScheduler
from laboratory.network.topology import Topology, even_racks
from laboratory.network.workflow import (
    JOB_INPUT,
    JobKind,
    JobPlan,
    Need,
    TaskState,
    WorkflowStage,
    WorkflowTask,
    draw_job,
    make_input,
)
from laboratory.papers.quincy.runs import SCHEDULERS, make_scheduler
from tests.tiers import examples

# Disks of 1 GB/s, cards of 0.5, uplinks of 0.25.
SIX = Topology(even_racks(6, 2), 1.0, 0.5, 0.25)


class Board:
    """Computers on which tests place tasks, and which a scheduler decides about."""

    def __init__(self, scheduler, jobs, topology=SIX):
        self.scheduler, self.slots = scheduler, empty_slots(topology, jobs)
        self.tasks = []

    def wait(self, job, at, gb=1.0, since_s=0.0):
        """Add a waiting task whose data is on a computer."""
        read = make_input(self.slots.topology, np.array([at]), np.array([gb]))
        task = WorkflowTask(len(self.tasks), job, 0, 0, read, 1.0, since_s)
        self.tasks.append(task)
        self.slots.waiting[job] += 1
        self.scheduler.ready([task])
        return task

    def run(self, job, computer, at=None, since_s=0.0, gb=1.0):
        """Start a task."""
        task = self.wait(job, computer if at is None else at, gb, since_s)
        self.begin(task, computer, since_s)
        return task

    def begin(self, task, computer, now_s):
        task.waited_s += now_s - task.since_s
        task.state, task.computer, task.since_s = TaskState.RUNNING, computer, now_s
        self.slots.on[computer] = task
        self.slots.running[task.job][task] = None
        self.slots.waiting[task.job] -= 1
        self.scheduler.begun(task)

    def end(self, task):
        task.state = TaskState.DONE
        self.slots.on[task.computer] = None
        del self.slots.running[task.job][task]

    def decide(self, now_s=0.0):
        """Killed tasks, and computers of started tasks, by number."""
        decision = self.scheduler.decide(self.slots, now_s)
        return [task.number for task in decision.kill], {
            task.number: computer for task, computer in decision.start
        }


def job_of(*stages, at=(), name="job"):
    kind = JobKind(name, stages, len(at))
    times = tuple(np.full(stage.tasks, stage.compute_s) for stage in stages)
    return JobPlan(kind, np.array(at, np.int64), times)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 40))
def test_shares_are_what_dealing_one_by_one_gives(wanted, computers):
    dealt, left = [0] * len(wanted), computers
    while left and dealt != wanted:
        poorest = min(
            (j for j in range(len(wanted)) if dealt[j] < wanted[j]), key=lambda j: (dealt[j], j)
        )
        dealt[poorest] += 1
        left -= 1
    assert fair_shares(np.array(wanted), computers).tolist() == dealt


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.integers(0, 20),
)
def test_shares_take_nothing_from_who_runs_more(jobs, more):
    least = np.array([low for low, _ in jobs])
    wanted = least + np.array([waits for _, waits in jobs])
    computers = int(least.sum()) + more
    share = fair_shares(wanted, computers, least)
    assert (share >= least).all()
    assert (share <= wanted).all()
    assert share.sum() == min(computers, wanted.sum())
    # A job that could have more is at most one below a job that has more than its minimum.
    for poor in np.flatnonzero(share < wanted):
        assert (share[share > least] <= share[poor] + 1).all()


def test_a_job_alone_takes_what_arithmetic_says():
    # The task starts for 1 s, reads 2 GB at 1 GB/s from its own disk, and computes for 10 s.
    plan = job_of(WorkflowStage(1, 10.0, 0.0, (Need(JOB_INPUT, 2.0),)), at=[3])
    for name in SCHEDULERS:
        scheduler = FlowScheduler() if name.startswith("Q") else QueueScheduler(seed=1)
        outcome = ClusterRun(SIX, [plan], 1, scheduler).play()
        began = cluster_module.JOB_START_S + cluster_module.START_S
        assert outcome.job_s.tolist() == [pytest.approx(began + 2.0 + 10.0)]
        assert outcome.moved_gb.tolist() == [2.0, 0.0, 0.0]


def test_a_second_stage_reads_an_equal_part_from_each_task_of_the_first():
    # Three tasks on three computers of both racks; the one that runs there reads a third locally.
    first = WorkflowStage(3, 1.0, 0.0, (Need(JOB_INPUT, 0.5),))
    second = WorkflowStage(1, 1.0, 0.0, (Need(0, 3.0, from_all=True),))
    run = ClusterRun(SIX, [job_of(first, second, at=[1, 2, 5])], 1, FlowScheduler(preempts=True))
    outcome = run.play()
    assert outcome.moved_gb.sum() == pytest.approx(3 * 0.5 + 3.0)
    # 1 GB local, 1 GB from the rack, 1 GB across the core at 0.25 GB/s.
    assert outcome.moved_gb.tolist() == pytest.approx([2.5, 1.0, 1.0])
    assert outcome.makespan_s == pytest.approx(7 + (1 + 0.5 + 1) + (1 + 4 + 1))


# The greedy schedulers.


def test_g_serves_the_computer_s_own_queue_then_the_rack_s_then_any():
    board = Board(QueueScheduler(0), 1)
    far, near, own = board.wait(0, at=5), board.wait(0, at=1), board.wait(0, at=0)
    for computer in range(1, 6):
        board.slots.root[computer] = 0
    for task in (own, near, far):
        assert board.decide()[1] == {task.number: 0}
        board.begin(task, 0, 0.0)
        board.end(task)


def test_g_lets_one_job_take_all_and_gf_does_not():
    for fair, held in ((False, [6, 0]), (True, [3, 3])):
        board = Board(QueueScheduler(0, fair=fair), 2)
        for job in (0, 1):
            for at in range(6):
                board.wait(job, at)
        started = [board.tasks[number].job for number in board.decide()[1]]
        assert np.bincount(started, minlength=2).tolist() == held


def test_only_gfp_kills_what_is_above_the_share_and_the_latest_first():
    for preempts in (False, True):
        board = Board(QueueScheduler(0, fair=True, preempts=preempts), 2)
        running = [board.run(0, computer, since_s=float(computer)) for computer in range(6)]
        new = [board.wait(1, at) for at in range(6)]
        kill, start = board.decide(10.0)
        if preempts:
            assert kill == [task.number for task in running[3:]]
            assert start == {task.number: task.input.at[0] for task in new[3:]}
        else:
            assert (kill, start) == ([], {})


def test_with_gf_a_slot_sticks_to_its_job_and_with_gfh_another_may_take_it():
    """Both jobs run their share of three; a task of job 0 ends where job 1 has data."""
    for sticky, expected in ((False, 0), (True, None)):
        board = Board(QueueScheduler(0, fair=True, sticky=sticky), 2)
        tasks = [board.run(computer % 2, computer) for computer in range(6)]
        for job in (0, 1):
            board.wait(job, at=0)
        assert board.decide(0.0) == ([], {})
        board.end(tasks[0])
        jobs = [board.tasks[number].job for number in board.decide(1.0)[1]]
        assert jobs == ([] if expected is None else [expected])
        if sticky:  # after the delay the job is unblocked anyway
            late = board.decide(1.0 + DELAY_S)[1]
            assert [board.tasks[number].job for number in late] == [0]


def test_with_gfh_a_job_that_is_more_than_the_margin_below_its_share_is_unblocked_at_once():
    topology = Topology(even_racks(2 * MARGIN + 6, 2), 1.0, 0.5, 0.25)
    board = Board(QueueScheduler(0, fair=True, sticky=True), 1, topology)
    tasks = [board.run(0, computer) for computer in range(topology.computers)]
    waiting = [board.wait(0, at=0) for _ in range(topology.computers)]
    assert board.decide(0.0) == ([], {})
    for task in tasks[:MARGIN]:
        board.end(task)
    assert board.decide(1.0) == ([], {})
    board.end(tasks[MARGIN])
    # It continues until it has its share.
    assert len(board.decide(2.0)[1]) == MARGIN + 1
    assert waiting


# The Quincy schedulers.


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_q_places_at_the_least_cost(seed, count):
    """At most as many tasks as computers: all must run, and the cost is that of an assignment."""
    rng = np.random.default_rng(seed)
    board = Board(FlowScheduler(), 2)
    cost = np.zeros((count, 6))
    for row in range(count):
        at, gb = rng.integers(0, 6, 3), rng.integers(1, 9, 3).astype(float)
        read = make_input(SIX, at, gb)
        task = WorkflowTask(row, row % 2, 0, 0, read, 1.0, 0.0)
        board.tasks.append(task)
        board.slots.waiting[task.job] += 1
        board.scheduler.ready([task])
        for computer in range(6):
            in_rack = read.worst_in_rack(int(SIX.rack_of[computer]))
            bound = read.crossing(computer)
            if computer not in read.preferred_computers():
                preferred = SIX.rack_of[computer] in read.preferred_racks()
                bound = in_rack if preferred else read.worst()
            cost[row, computer] = bound.rack_gb + 2 * bound.core_gb
    rows, columns = linear_sum_assignment(cost)
    _, start = board.decide()
    assert sorted(start) == list(range(count))
    assert len(set(start.values())) == count
    truly = [board.tasks[n].input.crossing(c) for n, c in start.items()]
    # The actual traffic is within the bounds that were minimised.
    assert sum(t.rack_gb + 2 * t.core_gb for t in truly) <= cost[rows, columns].sum() + 1e-6


@pytest.mark.long
@pytest.mark.parametrize("name", ["Q", "QP"])
def test_without_fairness_a_task_waits_for_its_computer_until_waiting_costs_more_than_data(name):
    """More tasks than computers; 4 GB from the neighbour cost 4, the cost of waiting 8 s."""
    board = Board(make_scheduler(name, 0), 2)
    for computer in range(5):
        board.slots.root[computer] = 1
    for _ in range(2):
        board.wait(0, at=4, gb=4.0)
    assert len(board.decide(0.0)[1]) == 1  # at least one task of each job
    board = Board(make_scheduler(name, 0), 2)
    for computer in range(4):
        board.slots.root[computer] = 1
    board.run(0, 4, since_s=-100.0)
    for _ in range(2):
        board.wait(0, at=4, gb=4.0)
    assert board.decide(7.9)[1] == {}
    assert len(board.decide(8.1)[1]) == 1


def test_qp_moves_a_task_to_its_data_if_that_costs_less_than_the_work_that_is_lost():
    # 3 GB across the core cost 6: worth moving after 5 s of work, not after 7.
    for since, moved in ((5.0, True), (7.0, False)):
        board = Board(FlowScheduler(preempts=True), 1)
        task = board.run(0, computer=0, at=5, gb=3.0)
        kill, start = board.decide(since)
        assert kill == ([task.number] if moved else [])
        assert start == ({task.number: 5} if moved else {})


def test_qfp_kills_what_has_run_for_the_shortest_time():
    board = Board(FlowScheduler(fair=True, preempts=True), 2)
    for computer in range(6):
        board.run(0, computer, since_s=-10.0 * computer)
    for _ in range(6):
        board.wait(1, at=0)
    kill, start = board.decide(1.0)
    assert sorted(kill) == [0, 1, 2]
    assert sorted(start.values()) == [0, 1, 2]


def test_qf_gives_others_what_is_left_where_it_may_not_kill():
    board = Board(FlowScheduler(fair=True), 3)
    for computer in range(4):
        board.run(0, computer)
    for job in (0, 1, 2):
        for at in range(6):
            board.wait(job, at)
    kill, start = board.decide(1.0)
    assert kill == []
    assert sorted(board.tasks[number].job for number in start) == [1, 2]


class Watched:
    """A scheduler, and its decisions."""

    def __init__(self, inner):
        self.inner, self.held, self.kills = inner, [], 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def decide(self, slots, now_s):
        decision = self.inner.decide(slots, now_s)
        held = slots.held
        for task in decision.kill:
            held[task.job] -= 1
        for task, _ in decision.start:
            held[task.job] += 1
        self.held.append((held, slots.held + slots.waiting, slots.for_tasks))
        self.kills += len(decision.kill)
        return decision


def random_jobs(seed, jobs):
    rng = np.random.default_rng(seed)
    plans = []
    for _ in range(jobs):
        parts = int(rng.integers(1, 9))
        first = WorkflowStage(
            parts, float(rng.uniform(1, 9)), 0.3, (Need(JOB_INPUT, rng.uniform(0.1, 3)),)
        )
        needs = (Need(0, rng.uniform(0.1, 3), from_all=True), Need(JOB_INPUT, 0.5))
        second = WorkflowStage(parts, float(rng.uniform(1, 9)), 0.3, needs)
        plans.append(draw_job(JobKind("any", (first, second), parts), SIX, rng))
    return plans


@examples(4, 12)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(list(SCHEDULERS)))
def test_all_jobs_end_no_byte_is_lost_and_shares_are_kept(seed, jobs, name):
    plans = random_jobs(seed, jobs)
    scheduler = Watched(make_scheduler(name, seed))
    run = ClusterRun(SIX, plans, 2, scheduler)
    outcome = run.play()
    wanted = sum(
        stage.tasks * sum(need.gb for need in stage.needs)
        for plan in plans
        for stage in plan.kind.stages
    )
    assert np.isfinite(outcome.job_s).all()
    assert len(run.transfers) == 0
    if outcome.killed:
        assert outcome.moved_gb.sum() >= wanted - 1e-6
    else:
        assert outcome.moved_gb.sum() == pytest.approx(wanted)
    if "P" not in name:
        assert scheduler.kills == 0
    for held, wants, computers in scheduler.held:
        assert (held <= wants).all()
        if "F" in name and "P" in name and name.startswith("Q"):
            assert held.tolist() == fair_shares(wants, computers).tolist()
        if name.startswith("GFP") and "H" not in name:
            assert held.tolist() == fair_shares(wants, computers).tolist()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_same_seed_gives_the_same_run(name):
    plans = random_jobs(5, 3)
    one, other = (ClusterRun(SIX, plans, 2, make_scheduler(name, 3)).play() for _ in range(2))
    assert one.job_s.tolist() == other.job_s.tolist()
    assert one.moved_gb.tolist() == other.moved_gb.tolist()


def test_a_scheduler_that_starts_nothing_is_found_out():
    class Idle(QueueScheduler):
        def decide(self, slots, now_s):
            return type(super().decide(slots, now_s))()

    plan = job_of(WorkflowStage(1, 1.0, 0.0, (Need(JOB_INPUT, 1.0),)), at=[0])
    with pytest.raises(RuntimeError, match="nothing runs, and tasks wait"):
        ClusterRun(SIX, [plan], 1, Idle(0)).play()

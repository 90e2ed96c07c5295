"""Section V of Kesidis et al.: each modelling choice is a parameter with the expected effect."""

from dataclasses import replace

import pytest

from laboratory.experiments.claims import ClaimCase, run_case
from laboratory.frameworks.spark_of_paper import Habits, Job, executors_of
from laboratory.papers.kesidis import sensitivity as paper
from laboratory.papers.report import Row, TableCell
from laboratory.resources import AgentSpec
from laboratory.workloads.play import play
from laboratory.workloads.spark_experiment import (
    HETEROGENEOUS,
    Drivers,
    Experiment,
    JobQueue,
    experiment,
)
from tests.laboratory.master.masters import wire_link

NEED = (1000, 1000)


def spark_job(**habits):
    """A job of twelve tasks of 10 s in executors of one CPU."""
    stages = ((10_000,) * 12,)
    return Job({"cpus": 1000, "mem": 1000}, 1, 64, stages, habits=Habits(**habits))


def played(*jobs, cpus=4000, agents=1, mode="oblivious"):
    cluster = tuple((0, AgentSpec(f"a{n}", {"cpus": cpus, "mem": 8000})) for n in range(agents))
    queues = tuple(JobQueue(f"q{n}", f"r{n}", (job,)) for n, job in enumerate(jobs))
    return play(Experiment(cluster, queues, (0,)), wire_link("drf", mode), tell_demand=True)


def test_one_executor_takes_the_need_or_all_the_cpus_or_the_whole_offer():
    offered = (4000, 9000)
    assert executors_of(offered, NEED, 2, spark_job()) == [(NEED, 1), (NEED, 1)]
    whole = executors_of(offered, NEED, 2, spark_job(whole_offers=True))
    assert whole == [(NEED, 1), ((3000, 8000), 1)]
    one = spark_job(one_per_agent=True)
    assert executors_of(offered, NEED, 1, one) == [((4000, 1000), 4)]
    both = spark_job(one_per_agent=True, whole_offers=True)
    assert executors_of(offered, NEED, 1, both) == [(offered, 4)]


def test_drivers_that_hold_whole_offers_leave_nothing_to_others():
    """Each needs four executors, and eight fit: side by side, or one after the other."""
    modest = replace(spark_job(), executors_max=4)
    greedy = replace(modest, habits=Habits(whole_offers=True))
    beside, after = (played(job, job, cpus=16_000) for job in (modest, greedy))
    assert max(used[0] for used in beside.record.used) == 8_000
    assert max(used[0] for used in after.record.used) == 16_000
    assert after.makespan_ms >= beside.makespan_ms + 29_000


def test_one_executor_an_agent_is_one_executor():
    run = played(spark_job(one_per_agent=True), agents=2)
    assert run.record.tasks == 2
    # Four slots on each of two agents: twelve tasks in two waves, the second half full.
    assert run.makespan_ms == pytest.approx(20_010)


def test_launches_are_bounded_by_round():
    run = played(spark_job(launches_max=1), cpus=8000)
    begins = [used[0] for used in run.record.used]
    assert begins[:3] == [0, 1000, 2000]


def test_executors_are_released_when_no_task_is_left_for_them():
    """A long task at the end: the others' executors do not wait for it."""
    stages = ((60_000, *(10_000,) * 3),)

    def held(release):
        job = replace(spark_job(release_idle=release), stages_ms=stages)
        record = played(job).record
        ends = [*record.time_ms[1:], record.time_ms[-1]]
        spans = zip(record.time_ms, ends, record.used, strict=True)
        return sum(used[0] * (end - begin) for begin, end, used in spans)

    assert held(release=False) == pytest.approx(4 * 60_000 * 1000, rel=0.01)
    assert held(release=True) == pytest.approx((60_000 + 3 * 10_000) * 1000, rel=0.01)


def test_hoarded_offers_come_back_later():
    """The second job gets its offer when the first releases what it cannot use."""
    full = replace(spark_job(), executors_max=1)
    at_once = played(full, spark_job(), cpus=4000)
    hoarding = replace(full, habits=Habits(hoard_ms=5_000))
    later = played(hoarding, spark_job(), cpus=4000)
    assert later.record.declines > 0
    assert at_once.makespan_ms <= later.makespan_ms


@pytest.mark.parametrize(
    ("part", "drivers"),
    [("start", Drivers(start=0.0)), ("stop", Drivers(stop=0.0)), ("gap", Drivers(gap=0.0))],
)
def test_times_of_drivers_are_scaled_and_nothing_else_changes(part, drivers):
    plain = experiment(0, jobs=2)
    other = experiment(0, jobs=2, drivers=drivers)
    gaps = {"gap": 0}.get(part, plain.gap_ms[0])
    assert other.gap_ms[0] == gaps
    one, two = (each.queues[0].jobs[0] for each in (plain, other))
    assert isinstance(one, Job)
    assert isinstance(two, Job)
    assert two.stages_ms == one.stages_ms
    assert (two.start_ms == 0) is (part == "start")
    assert (max(two.stop_ms) == 0) is (part == "stop")


@pytest.mark.parametrize("variation", paper.VARIATIONS, ids=lambda each: each.name)
@pytest.mark.long
def test_every_variation_changes_one_thing_and_plays_to_its_end(variation):
    wide, staged = paper.settings_of(variation)
    fields = ("drivers", "selection", "flat", "answer_ms", "interval_ms")
    plain = paper.settings_of(paper.VARIATIONS[0])[0]
    changed = [name for name in fields if getattr(wide, name) != getattr(plain, name)]
    assert len(changed) == (variation is not paper.VARIATIONS[0])
    assert wide.cluster is HETEROGENEOUS
    assert len(staged.cluster) == 3
    assert run_case((ClaimCase("ps-dsf", "oblivious", wide), 0), 0.1).makespan_s > 0


@pytest.mark.long
def test_the_report_judges_every_claim_under_every_choice(monkeypatch):
    monkeypatch.setattr(paper, "JOBS", 1)
    monkeypatch.setattr(paper, "STAGED_JOBS", 1)
    report = paper.sensitivity(trials=2, variations=paper.VARIATIONS[:2])
    assert [row.name for row in report.rows] == ["as it is", "executors start at once"]
    assert len(report.columns) == 9
    outcomes = {cell.outcome for row in report.rows for cell in row.cells}
    assert outcomes <= {"holds", "not shown", "contrary"}
    assert all(cell.half is not None for row in report.rows for cell in row.cells)


def test_the_summary_names_the_choices_under_which_it_is_otherwise():
    def row(name, *outcomes):
        return Row(name, tuple(TableCell(1.0, half=0.1, outcome=each) for each in outcomes))

    rows = [
        row("one", "holds", "holds", "not shown"),
        row("two", "contrary", "holds", "not shown"),
        row("three", "holds", "holds", "holds"),
        row("four", "not shown", "holds", "not shown"),
    ]
    assert paper.summary(("a", "b", "c"), rows) == (
        "'a' holds under 2 of 4 choices. Contrary: two. Not shown: four.",
        "'b' holds under every choice.",
        "'c' is not shown under 3 of 4 choices. Holds: three.",
    )

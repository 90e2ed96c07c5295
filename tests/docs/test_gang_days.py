"""Gangs of a recorded cluster: the rule, schedulers that know durations, and what is kept."""

import json
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import pytest

from allocator.explain import NextOffer
from laboratory.workloads.traces import Node, Pod
from tests.docs import docs_scripts

gangs = docs_scripts.load("gangs")
jobs = docs_scripts.load("gang_days_jobs")
days = docs_scripts.load("gang_days")

GPU = {"cpus": 1000, "gpus": 1000}


def pod(
    create_s: int, life_s: int = 60, need: dict[str, int] | None = None, qos: str = "LS"
) -> Pod:
    return Pod("p", need or GPU, frozenset(), qos, create_s, life_s)


def unit(*lasts_ms: int, cpus: int = 1000):
    return gangs.Unit(0, {"cpus": cpus}, lasts_ms)


# The rule.


def test_equal_pods_at_most_five_minutes_apart_are_a_gang():
    """It arrives with its last pod; the other pods are equal to none that is near."""
    pods = [pod(1_000), pod(1_100, qos="BE"), pod(1_300, life_s=90), pod(1_601)]
    found = jobs.jobs_of(pods, 1_000)
    assert [(job.arrives_ms, job.lasts_ms) for job in found] == [
        (100_000, (60_000,)),
        (300_000, (60_000, 90_000)),
        (601_000, (60_000,)),
    ]
    assert [job.is_gang for job in found] == [False, True, False]


def test_a_gang_has_at_most_eight_pods_and_durations_have_a_limit():
    found = jobs.jobs_of([pod(at, life_s=10**6) for at in range(9)], 0)
    assert [len(job.lasts_ms) for job in found] == [8, 1]
    assert {*found[0].lasts_ms} == {jobs.LIFE_S_MAX * 1000}


def test_a_gang_that_has_no_room_on_its_models_is_left_out():
    (job,) = jobs.jobs_of([pod(0), pod(1), pod(2)], 0)
    nodes = [Node("a", {"cpus": 9000, "gpus": 2000}, "T4"), Node("b", GPU, "P100")]
    assert jobs.can_run(job, nodes)
    assert not jobs.can_run(job, nodes[:1])
    assert not jobs.can_run(job._replace(models=frozenset({"T4"})), nodes)


# Schedulers that know all durations.


def test_a_plan_lets_a_task_overtake_only_if_it_delays_none():
    """Two agents, one in use until 10 s: a gang of two waits for it, a short task does not."""
    agents = [{"cpus": 1000}, {"cpus": 1000}]
    units = [(0, unit(10_000)), (0, unit(5_000, 5_000)), (0, unit(9_000)), (0, unit(11_000))]
    assert gangs.planned(agents, units) == [0, 10_000, 0, 15_000]


def test_no_schedule_ends_before_its_work_can_be_done():
    agents = [{"cpus": 2000}]
    assert gangs.least_end_ms(agents, [(7_000, unit(3_000))]) == 10_000
    # From 5 s on, 12 s of work for two tasks at once.
    late = [(0, unit(1_000)), (5_000, unit(4_000)), (5_000, unit(4_000)), (5_000, unit(4_000))]
    assert gangs.least_end_ms(agents, late) == 11_000


@pytest.mark.parametrize("seed", range(20))
def test_neither_queue_nor_plan_beats_the_bound(seed):
    chance = Random(seed)
    agents = [{"cpus": chance.randint(2, 4) * 1000} for _ in range(3)]
    units, now_ms = [], 0
    for number in range(30):
        now_ms += chance.randrange(4_000)
        size = chance.randint(1, 2) * 1000
        lasts_ms = [chance.randint(1, 9_000) for _ in range(chance.randint(1, 3))]
        units.append((now_ms, gangs.Unit(number, {"cpus": size}, lasts_ms)))
    least_ms = gangs.least_end_ms(agents, units)
    plan = gangs.planned(agents, units)
    queue, ends, _ = gangs.in_order(agents, [(when_ms, [each]) for when_ms, each in units])
    assert max(ends.values()) >= least_ms
    assert (
        max(at + max(each.lasts_ms) for at, (_, each) in zip(plan, units, strict=True)) >= least_ms
    )
    assert all(at >= when_ms for at, (when_ms, _) in zip(plan, units, strict=True))
    assert sum(plan) <= sum(queue.values())
    _fits(agents, units, plan)


def _fits(agents, units, plan) -> None:
    """No more is in use than all agents have, at any start."""
    total = sum(has["cpus"] for has in agents)
    for now_ms in plan:
        used = sum(
            each.need["cpus"] * sum(at <= now_ms < at + lasts_ms for lasts_ms in each.lasts_ms)
            for at, (_, each) in zip(plan, units, strict=True)
        )
        assert used <= total


# Figures.


def test_idle_gpus_count_while_a_gang_waits():
    """Of two GPUs, one is in use for the first hour; a gang of two waits for it from 30 min on."""
    hour = 3_600_000
    first = jobs.Job("LS", GPU, frozenset(), 0, (hour,), "one")
    gang = jobs.Job("LS", GPU, frozenset(), hour // 2, (hour, hour // 2), "one")
    never = first._replace(arrives_ms=hour)
    window = jobs.Window([Node("a", {"cpus": 9000, "gpus": 2000}, "T4")], [first, gang, never])
    found = days.measure(window, [0, hour, None])
    assert found == pytest.approx(
        {
            "wait_min": 30,
            "late_min": 30,
            "small_wait_min": (0 + 71 * 60) / 2,
            "idle_gpu_h": 0.5,
            "end_h": 72,
            "unstarted": 100 / 3,
        }
    )
    assert days.measure(window, [0, hour, hour])["end_h"] == 2


def test_nothing_that_was_played_beats_the_bound():
    for kept, ends in ((days.KEPT, "end_h"), (gangs.KEPT, "end_s")):
        rows = json.loads(kept.read_text("utf-8"))["rows"]
        for way, row in rows.items():
            assert row[ends]["mean"] >= rows["bound"][ends]["mean"], way
            for column in row:
                if "wait" in column or "stay" in column:
                    assert row[column]["mean"] >= rows["bound"][column]["mean"], (way, column)


def test_the_section_shows_what_is_kept():
    found = json.loads(days.KEPT.read_text("utf-8"))
    section = days.section()
    for way, text in days.WAYS.items():
        line, *each = (line for line in section.splitlines() if line.startswith(f"| {text} |"))
        cells = [cell.strip().split(" ±")[0] for cell in line.split("|")[2:-1]]
        means = [found["rows"][way][column]["mean"] for column in days.COLUMNS]
        assert [float(cell) for cell in cells] == pytest.approx(means, rel=1e-3)
        assert bool(each) == (way != "bound")
        for row in each:
            waits = [float(cell) for cell in row.split("|")[2:-1]]
            assert waits == [of_gangs for of_gangs, _ in found["waits_min"][way]]
            assert sum(waits) / found["windows"] == pytest.approx(means[0], abs=0.1)


def test_forecasts_are_counted_by_how_far_ahead_they_are():
    forecasts = docs_scripts.load("forecasts")
    judged = forecasts.Judged
    offered = [
        judged(500, 900, (400, 1_000), 500),
        judged(500, 900, (600, 1_000), 901),
        judged(1_000, -1, (2_000, 3_000), 1_500),
    ]
    rows = forecasts.binned(offered, (0, 1, 5))
    assert [[*row.values()] for row in rows] == [[0, 2, 0.5, 1, 0, 2], [1, 1, 0, 1, 1, 1]]
    assert forecasts.width(offered) == {"computed": 1.8, "corrected": 2.0}
    assert all(one < other for one, other in pairwise(days.EDGES_S))


def test_the_page_about_forecasts_shows_what_is_kept():
    forecasts = docs_scripts.load("forecasts")
    page = forecasts.page()
    for rows in (
        json.loads(forecasts.KEPT.read_text("utf-8"))["rows"],
        json.loads(days.KEPT.read_text("utf-8"))["forecasts"],
        json.loads(forecasts.MAPREDUCE.read_text("utf-8"))["rows"],
    ):
        count, held = (sum(row[at] for row in rows) for at in ("count", "corrected_p95"))
        (line, total) = (each for each in page.splitlines() if f" {count:,} |" in each)
        assert f"| {100 * held / count:.1f} |" in line
        assert total.startswith("| all |")
        assert 93 <= 100 * held / count <= 99


def test_a_forecast_of_an_earlier_window_corrects_later_ones():
    notes = docs_scripts.load("forecast_notes").Offered()

    class Job:
        identity = SimpleNamespace(principal="p")

    for window in range(6):
        job = Job()
        notes.expect(0, [(job, NextOffer(1_000, 2_000, "", 1_000))])
        notes.comes(job, 3_000)
        notes.end(10_000)
        assert len(notes.offered) == window + 1
    assert notes.offered[4].corrected == (1_000, 2_000)
    assert notes.offered[5] == (1_000, 2_000, (3_000, 3_000), 3_000)

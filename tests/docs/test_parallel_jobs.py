"""Jobs of a recorded parallel computer: the reader, schedulers without the allocator, figures."""

import json

import pytest

from tests.docs import docs_scripts

gangs = docs_scripts.load("gangs")
parallel = docs_scripts.load("parallel_jobs")

LOG = """\
; MaxProcs: 240
    2      100     7     60   40     60    -1   40     90    -1  1   3   1  -1 -1  1 -1 -1
    1        0     5    600  240    599    -1  240    900    -1  1   7   1  -1 -1  1 -1 -1
    3      110     0     -1    8 240379    -1    8 345600    -1 -1   5   1  -1 -1  1 -1 -1
    4      120    -1    300   10 299.70    -1   10    300    -1  1   5   1  -1 -1  1 -1 -1
"""


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return parallel.read(path)


def test_jobs_of_unknown_duration_are_left_out_and_the_others_sorted(jobs):
    first, second, third = jobs
    assert first == parallel.Logged(0, 5_000, 600_000, 240, 900_000, 7)
    assert (second.arrives_ms, third.arrives_ms) == (100_000, 120_000)


def test_each_job_is_a_gang_of_its_cpus(jobs):
    window = parallel.window(jobs)
    assert window.total() == {"cpus": 240_000}
    assert [len(job.lasts_ms) for job in window.jobs] == [240, 40, 10]
    assert [job.role for job in window.jobs] == ["user7", "user3", "user5"]
    assert len({job.kind for job in window.jobs}) == 3


def test_ways_without_the_allocator(jobs):
    assert parallel.alone(jobs, "recorded") == [5_000, 107_000, 119_000]
    for way in ("strict", "easy", "easy_limits"):
        assert parallel.alone(jobs, way) == [0, 600_000, 600_000]


def test_easy_backfilling_with_limits_does_not_rely_on_durations():
    """Half is in use until 10 s; a job behind a large one runs for 5 s, but may run for 20 s."""
    agents, half, all_of_it = [{"cpus": 2}], {"cpus": 1}, {"cpus": 2}
    units = [
        (0, gangs.Unit(0, half, [10_000], 15_000)),
        (1_000, gangs.Unit(1, all_of_it, [1_000], 1_000)),
        (2_000, gangs.Unit(2, half, [5_000], 20_000)),
    ]
    assert gangs.easy(agents, units) == [0, 10_000, 11_000]
    known = [(when_ms, unit._replace(limit_ms=0)) for when_ms, unit in units]
    assert gangs.easy(agents, known) == [0, 10_000, 2_000]
    enough = [*units[:2], (2_000, units[2][1]._replace(limit_ms=13_000))]
    assert gangs.easy(agents, enough) == [0, 10_000, 2_000], "the first may run until 15 s"


def test_slowdowns_are_bounded():
    assert parallel.slowdown(90_000, 10_000) == 10
    assert parallel.slowdown(90_000, 1_000) == 9.1
    assert parallel.slowdown(0, 1_000) == 1


def test_figures_are_of_the_week_of_arrival(jobs):
    late = jobs[2]._replace(arrives_ms=60 * 86_400_000)
    others = [jobs[0]._replace(arrives_ms=week * parallel.WEEK_MS) for week in range(1, 7)]
    every = [*jobs[:2], *others, late]
    starts = [job.arrives_ms + 60_000 for job in every[:-1]]
    weeks = parallel.measure(every, [*starts, None], late.arrives_ms + 600_000)
    assert [week["wait_min"] for week in weeks] == [1] * 7 + [10]
    assert [week["unstarted"] for week in weeks] == [0] * 7 + [100]
    assert weeks[0]["slowdown"] == pytest.approx((1.1 + 2) / 2)


def test_what_is_kept_is_of_all_ways():
    kept = json.loads(parallel.KEPT.read_text("utf-8"))
    assert set(kept["rows"]) == set(kept["waits_min"]) == set(parallel.WAYS)
    assert all(len(row) == parallel.WEEKS for row in kept["waits_min"].values())
    text = parallel.section()
    assert all(f"| {way} |" in text for way in parallel.WAYS.values())

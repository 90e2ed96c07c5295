"""The section about ways to start gangs: the simulated strict queue, and what was played."""

import json

from tests.docs import docs_scripts

gangs = docs_scripts.load("gangs")
SMALL = {"cpus": 1000}
BOTH = {"cpus": 1000, "gpus": 1000}


def test_nothing_overtakes_the_first_of_a_strict_queue():
    """Two CPUs, one in use until 10 s: a gang of two waits, and a task behind it, too."""
    first, gang, last = (
        gangs.Unit(number, SMALL, lasts_ms)
        for number, lasts_ms in enumerate([[10_000], [5_000, 7_000], [1_000]])
    )
    agents = [{"cpus": 1000}, {"cpus": 1000}]
    starts, ends, _ = gangs.in_order(agents, [(0, [first]), (1_000, [gang]), (2_000, [last])])
    assert starts == {0: 0, 1: 10_000, 2: 15_000}
    assert ends == {0: 10_000, 1: 17_000, 2: 16_000}


def test_tasks_without_gpus_use_agents_without_gpus_first():
    agents = [{"cpus": 1000, "gpus": 1000}, {"cpus": 1000}]
    units = [gangs.Unit(0, SMALL, [9_000]), gangs.Unit(0, BOTH, [4_000])]
    starts, ends, gpus = gangs.in_order(agents, [(0, units)])
    assert (starts, ends, gpus) == ({0: 0}, {0: 9_000}, 4_000)


def test_stated_gangs_wait_least():
    rows = json.loads(gangs.KEPT.read_text("utf-8"))["rows"]
    waits = {way: rows[way]["wait_s"]["mean"] for way in gangs.WAYS}
    for stated in ("collecting", "backfill"):
        assert waits[stated] < 0.6 * min(waits["strict"], waits["hoarding"])
    assert all(text in gangs.section() for text in gangs.WAYS.values())

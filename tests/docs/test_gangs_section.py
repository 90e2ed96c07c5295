"""The section about ways to start gangs: the simulated strict queue, and what was played."""

import json
from operator import le
from random import Random

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


def test_easy_backfilling_lets_a_task_overtake_only_if_the_first_is_not_delayed():
    """As above, but two tasks are behind the gang: one ends when the gang begins, one later."""
    units = [
        (when_ms, gangs.Unit(number, SMALL, lasts_ms))
        for number, (when_ms, lasts_ms) in enumerate(
            [(0, [10_000]), (1_000, [5_000, 7_000]), (2_000, [8_001]), (2_000, [8_000])]
        )
    ]
    agents = [{"cpus": 1000}, {"cpus": 1000}]
    assert gangs.easy(agents, units) == [0, 10_000, 15_000, 2_000]


def test_easy_backfilling_uses_what_the_first_leaves():
    """A long task may start at once where the gang does not need its agent."""
    units = [(0, gangs.Unit(0, SMALL, [10_000])), (0, gangs.Unit(1, SMALL, [10_000]))]
    units += [(0, gangs.Unit(2, {"cpus": 2000}, [1_000])), (0, gangs.Unit(3, SMALL, [50_000]))]
    assert gangs.easy([{"cpus": 2000}, {"cpus": 1000}], units) == [0, 0, 10_000, 0]


def test_easy_backfilling_never_uses_more_than_there_is():
    for seed in range(40):
        chance = Random(seed)
        agents = [{"cpus": 1000 * chance.randint(1, 4)} for _ in range(3)]
        when_ms = sorted(1000 * chance.randint(0, 40) for _ in range(20))
        lasts_ms = [
            [1000 * chance.randint(1, 9) for _ in range(chance.randint(1, 3))] for _ in when_ms
        ]
        units = [
            (arrives, gangs.Unit(number, SMALL, lasts))
            for number, (arrives, lasts) in enumerate(zip(when_ms, lasts_ms, strict=True))
        ]
        starts = gangs.easy(agents, units)
        assert all(map(le, when_ms, starts))
        for now_ms in starts:
            running = sum(
                at <= now_ms < at + each
                for at, lasts in zip(starts, lasts_ms, strict=True)
                for each in lasts
            )
            assert 1000 * running <= sum(each["cpus"] for each in agents)


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

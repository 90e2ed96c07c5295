"""Ways to start gangs: `python tools/docs/gangs.py [WAY ...]` plays `gpus_and_cpu_jobs.toml`.

It keeps the results in `data/which-policy/gangs.json`; `make docs` writes a section of the page
about policies from what is kept.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SCENARIO = HERE.parents[1] / "examples" / "scenarios" / "gpus_and_cpu_jobs.toml"
KEPT = HERE / "data" / "which-policy" / "gangs.json"

SEEDS = 5
GANGS, OTHERS = "training", "reports"

WAYS = {
    "hoarding": "frameworks keep offers for 30 s until they have enough",
    "strict": "strict queue",
    "collecting": "stated gangs, without backfill",
    "backfill": "stated gangs, with backfill",
    "easy": "EASY backfilling that knows all durations",
    "bound": "no schedule can do better",
}

COLUMNS = {
    "ended": "trainings ended (%)",
    "wait_s": "trainings wait (s)",
    "stay_s": "trainings take (s)",
    "others_wait_s": "CPU jobs wait (s)",
    "others_stay_s": "CPU jobs take (s)",
    "gpus": "GPUs in use (%)",
    "end_s": "last end (s)",
}

HEAD = """\
## Ways to start gangs

The workload `gpus_and_cpu_jobs.toml`, in which the trainings start four tasks at once, is played in
five ways, and compared with limits:

- *Frameworks keep offers*: they decline them after 30 s if they do not have enough.
- *Strict queue*: a simulated scheduler without the allocator. All tasks and gangs wait in one queue
  in the order in which their jobs arrived. Nothing starts before the first one, which keeps
  everything that becomes free. Tasks without GPUs use agents without GPUs first.
- *Stated gangs*: the frameworks state their gangs (`states_gang = true`), and the allocator
  [collects](modes.md#collecting) for them, without and with [backfill](modes.md#backfill).
- *EASY backfilling*: a simulated scheduler like the strict queue, but later tasks and gangs start
  before the first one if this does not delay it. It knows how long all tasks run. Both queues
  serve jobs in the order of their arrival, whereas the allocator shares by dominant shares.
- *No schedule can do better*: limits for any schedule, even of a scheduler that knows everything in
  advance. No job waits, each takes as long as its longest task, and the cluster needs time for the
  work of all jobs that arrive after any moment.

Allocators run `drf` in characterised mode. A job waits until its first task starts, or the
simulation ends, after {until_s:.0f} s. What a job takes, until its last task has ended, is the mean
of those that ended. Means over {seeds} seeds, with 95 % confidence intervals.

"""


def section(kept: Path = KEPT) -> str:
    """A section of the page about policies."""
    found = json.loads(kept.read_text("utf-8"))
    head = HEAD.format(seeds=found["seeds"], until_s=found["until_s"])
    return head + table(WAYS, COLUMNS, found["rows"])


def table(
    ways: Mapping[str, str],
    columns: Mapping[str, str],
    rows: Mapping[str, Mapping[str, Mapping[str, float | None]]],
) -> str:
    """A row for each way; `rows`: mean and half of the interval, by way and column."""
    lines = ["| way | " + " | ".join(columns.values()) + " |\n"]
    lines += ["|---|" + "---:|" * len(columns) + "\n"]
    for way, text in ways.items():
        cells = (_number(rows[way][column]) for column in columns)
        lines.append(f"| {text} | {' | '.join(cells)} |\n")
    return "".join(lines)


def each(ways: Mapping[str, str], figures: Mapping[str, Sequence[float]]) -> str:
    """A row for each way, and a numbered column for each of its figures."""
    count = len(figures[next(iter(ways))])
    head = "".join(f" {at + 1} |" for at in range(count))
    lines = [f"| way |{head}\n", "|---|" + "---:|" * count + "\n"]
    for way, text in ways.items():
        lines.append(f"| {text} | {' | '.join(f'{figure:g}' for figure in figures[way])} |\n")
    return "".join(lines)


def _number(cell: Mapping[str, float | None]) -> str:
    half = cell["half"]
    if half is None:
        return f"{cell['mean']:.4g}"
    return f"{cell['mean']:.4g} ± {half:.2g}" if half < 100 else f"{cell['mean']:.4g} ± {half:.0f}"


# A strict queue.


class Unit(NamedTuple):
    """Tasks that start together: the size of one, and how long each lasts.

    limit_ms: maximum duration, if a scheduler knows only this; 0: it knows all durations.
    """

    job: int
    need: Mapping[str, int]
    lasts_ms: Sequence[int]
    limit_ms: int = 0

    def known_ms(self, lasts_ms: int) -> int:
        return self.limit_ms or lasts_ms


def in_order(
    agents: Sequence[Mapping[str, int]], arrivals: Sequence[tuple[int, Sequence[Unit]]]
) -> tuple[dict[int, int], dict[int, int], int]:
    """Play a strict queue.

    `agents`: the capacity of each.
    `arrivals`: when each job arrives, ascending, and its units, in order.
    Returns by job when its first task starts and its last one ends; and GPU-milliseconds in use.
    """
    free = [dict(each) for each in agents]
    ends: list[tuple[int, int, int]] = []
    starts, last, used, number, now_ms = dict[int, int](), dict[int, int](), 0, 0, 0
    running: dict[int, Mapping[str, int]] = {}
    for arrives_ms, units in arrivals:
        now_ms = max(now_ms, arrives_ms)
        for unit in units:
            while (places := fit(free, unit)) is None or (ends and ends[0][0] <= now_ms):
                when_ms, task, agent = heappop(ends)
                now_ms = max(now_ms, when_ms)
                for name, amount in running.pop(task).items():
                    free[agent][name] += amount
            starts.setdefault(unit.job, now_ms)
            for agent, lasts_ms in zip(places, unit.lasts_ms, strict=True):
                for name, amount in unit.need.items():
                    free[agent][name] -= amount
                running[number] = unit.need
                heappush(ends, (now_ms + lasts_ms, number, agent))
                last[unit.job] = max(last.get(unit.job, 0), now_ms + lasts_ms)
                used += unit.need.get("gpus", 0) // 1000 * lasts_ms
                number += 1
    return starts, last, used


def fit(free: Sequence[Mapping[str, int]], unit: Unit) -> list[int] | None:
    """The agent of each task of a unit, by first fit; None: they do not fit."""
    places: list[int] = []
    order = list(range(len(free)))
    if "gpus" not in unit.need:
        order.sort(key=lambda at: "gpus" in free[at])
    for at in order:
        fits = min(free[at].get(name, 0) // amount for name, amount in unit.need.items())
        places += [at] * min(fits, len(unit.lasts_ms) - len(places))
        if len(places) == len(unit.lasts_ms):
            return places
    return None


# Schedulers that know all durations.


def least_end_ms(agents: Sequence[Mapping[str, int]], units: Sequence[tuple[int, Unit]]) -> float:
    """When the last task can end at the earliest, under any schedule.

    Each takes its time after it arrived; and all that arrive from some moment on need, of each
    resource, the whole cluster for their work.

    `units`: when each arrives, ascending, and what it is.
    """
    end_ms = float(max(arrives_ms + max(unit.lasts_ms) for arrives_ms, unit in units))
    for name in {name for has in agents for name in has}:
        total, work = sum(has.get(name, 0) for has in agents), 0
        for arrives_ms, unit in reversed(units):
            work += unit.need.get(name, 0) * sum(unit.lasts_ms)
            end_ms = max(end_ms, arrives_ms + work / total)
    return end_ms


class Reserved(NamedTuple):
    """An amount of an agent that is taken for a time."""

    need: Mapping[str, int]
    begin_ms: int
    end_ms: int


def planned(agents: Sequence[Mapping[str, int]], units: Sequence[tuple[int, Unit]]) -> list[int]:
    """Play conservative backfilling: when each unit starts.

    `units`: when each arrives, ascending, and what it is. In this order, each gets the earliest
    start that delays none before it.
    """
    taken: list[list[Reserved]] = [[] for _ in agents]
    starts = []
    for arrives_ms, unit in units:
        for each in taken:
            each[:] = [one for one in each if one.end_ms > arrives_ms]
        ends_ms = {one.end_ms for each in taken for one in each}
        for start_ms in sorted({arrives_ms, *ends_ms}):
            until_ms = start_ms + max(unit.lasts_ms)
            free = [
                _least_free(has, each, start_ms, until_ms)
                for has, each in zip(agents, taken, strict=True)
            ]
            if places := fit(free, unit):
                break
        else:
            raise ValueError(f"the tasks of job {unit.job} do not fit on the empty agents")
        starts.append(start_ms)
        for place, lasts_ms in zip(places, unit.lasts_ms, strict=True):
            taken[place].append(Reserved(unit.need, start_ms, start_ms + lasts_ms))
    return starts


def easy(agents: Sequence[Mapping[str, int]], units: Sequence[tuple[int, Unit]]) -> list[int]:
    """Play EASY backfilling: when each unit starts.

    `units`: when each arrives, ascending, and what it is. They start in this order, but later ones
    start before the first one that waits if this does not delay it (Lifka, "The ANL/IBM SP
    Scheduling System", JSSPP 1995).
    """
    ends = list[tuple[int, int, int, int]]()  # when, unit, agent, when as far as is known
    starts, waiting, arrived = [-1] * len(units), list[int](), 0
    now, now_ms = [dict(each) for each in agents], 0
    while arrived < len(units) or waiting:
        next_ms = [units[arrived][0]] if arrived < len(units) else []
        now_ms = min([*next_ms, ends[0][0]] if ends else next_ms)
        while ends and ends[0][0] <= now_ms:
            _, at, agent, _ = heappop(ends)
            _take(now, [agent], units[at][1], -1)
        while arrived < len(units) and units[arrived][0] <= now_ms:
            waiting.append(arrived)
            arrived += 1
        then, then_ms = list[dict[str, int]](), -1  # when the first one that waits begins
        failed = set[tuple[object, ...]]()
        for at in tuple(waiting):
            unit = units[at][1]
            alike = (*sorted(unit.need.items()), *map(unit.known_ms, unit.lasts_ms))
            places = None if alike in failed else fit(now, unit)
            if places and then:
                late = [
                    agent
                    for agent, lasts_ms in zip(places, unit.lasts_ms, strict=True)
                    if now_ms + unit.known_ms(lasts_ms) > then_ms
                ]
                _take(then, late, unit)
                if fit(then, units[waiting[0]][1]) is None:
                    _take(then, late, unit, -1)
                    places = None
            if places:
                _take(now, places, unit)
                for agent, lasts_ms in zip(places, unit.lasts_ms, strict=True):
                    known_ms = now_ms + unit.known_ms(lasts_ms)
                    heappush(ends, (now_ms + lasts_ms, at, agent, known_ms))
                waiting.remove(at)
                starts[at] = now_ms
            else:
                failed.add(alike)
                if not then:
                    then, then_ms = _when(now, ends, units, at)
    return starts


def _when(
    free: Sequence[Mapping[str, int]],
    ends: Sequence[tuple[int, int, int, int]],
    units: Sequence[tuple[int, Unit]],
    first: int,
) -> tuple[list[dict[str, int]], int]:
    """When a unit fits once tasks have ended, and what is free then."""
    then = [dict(each) for each in free]
    known = sorted((end_ms, at, agent) for _, at, agent, end_ms in ends)
    for end_ms, together in groupby(known, key=lambda each: each[0]):
        for _, at, agent in together:
            _take(then, [agent], units[at][1], -1)
        if fit(then, units[first][1]):
            return then, end_ms
    raise ValueError(f"the tasks of job {units[first][1].job} do not fit on the empty agents")


def _take(free: Sequence[dict[str, int]], places: Sequence[int], unit: Unit, sign: int = 1) -> None:
    """Take (or, with -1, return) a task of a unit on each of some agents."""
    for place in places:
        for name, amount in unit.need.items():
            free[place][name] -= sign * amount


def _least_free(
    has: Mapping[str, int], taken: Sequence[Reserved], begin_ms: int, end_ms: int
) -> dict[str, int]:
    """What of an agent is free during all of a time."""
    there = [one for one in taken if one.begin_ms < end_ms and one.end_ms > begin_ms]
    times = {begin_ms, *(one.begin_ms for one in there if one.begin_ms > begin_ms)}
    least = dict(has)
    for time_ms in times:
        now = [one.need for one in there if one.begin_ms <= time_ms < one.end_ms]
        for name, amount in has.items():
            left = amount - sum(need.get(name, 0) for need in now)
            least[name] = min(least[name], left)
    return least


# Playing.


class Drawn(NamedTuple):
    """A workload: capacities of agents; jobs in order, with their arrivals and their units."""

    agents: list[Mapping[str, int]]
    jobs: list[tuple[int, Any]]
    units: list[list[Unit]]


def _drawn(scenario: Any, seed: int) -> Drawn:  # noqa: ANN401
    from laboratory.scenarios.drawing import draw

    drawn = draw(scenario, seed)
    agents = [each.spec.capacity for each in drawn.agents]
    jobs = [(queue.arrives_ms, job) for queue in drawn.queues for job in queue.jobs]
    jobs.sort(key=lambda each: each[0])
    gang = {group.name: group.gang for group in scenario.frameworks}
    every = [
        [
            Unit(number, work.need, work.durations_ms[first : first + gang[job.group]])
            for work in _made(job).work
            for first in range(0, len(work.durations_ms), gang[job.group])
        ]
        for number, (_, job) in enumerate(jobs)
    ]
    return Drawn(agents, jobs, every)


def _strict(scenario: Any, seed: int) -> dict[str, float]:  # noqa: ANN401
    """A strict queue, whose jobs end however long it takes."""
    agents, jobs, every = drawn = _drawn(scenario, seed)
    arrivals = [(arrives_ms, units) for (arrives_ms, _), units in zip(jobs, every, strict=True)]
    return _measured(scenario, drawn, *in_order(agents, arrivals))


def _easy(scenario: Any, seed: int) -> dict[str, float]:  # noqa: ANN401
    """EASY backfilling, whose jobs end however long it takes."""
    agents, jobs, every = drawn = _drawn(scenario, seed)
    units = [(when_ms, unit) for (when_ms, _), its in zip(jobs, every, strict=True) for unit in its]
    starts, last, used = dict[int, int](), dict[int, int](), 0
    for (_, unit), at_ms in zip(units, easy(agents, units), strict=True):
        starts[unit.job] = min(starts.get(unit.job, at_ms), at_ms)
        last[unit.job] = max(last.get(unit.job, 0), at_ms + max(unit.lasts_ms))
        used += unit.need.get("gpus", 0) // 1000 * sum(unit.lasts_ms)
    return _measured(scenario, drawn, starts, last, used)


def _measured(
    scenario: Any,  # noqa: ANN401
    drawn: Drawn,
    starts: Mapping[int, int],
    last: Mapping[int, int],
    used: int,
) -> dict[str, float]:
    """Figures of a schedule: when each job's first task starts and its last one ends."""
    agents, jobs, _ = drawn
    until_ms = scenario.until_s * 1000
    gpus = sum(each.get("gpus", 0) for each in agents) // 1000
    end_ms = min(max(last.values()), until_ms)
    row = {"gpus": 100 * used / gpus / end_ms, "end_s": end_ms / 1000}
    for prefix, group in (("", GANGS), ("others_", OTHERS)):
        those = [at for at, (_, job) in enumerate(jobs) if job.group == group]
        row[f"{prefix}wait_s"] = sum(starts[at] - jobs[at][0] for at in those) / len(those) / 1000
        row[f"{prefix}stay_s"] = sum(last[at] - jobs[at][0] for at in those) / len(those) / 1000
        row[f"{prefix}ended"] = 100 * sum(last[at] <= until_ms for at in those) / len(those)
    return row


def _bound(scenario: Any, seed: int) -> dict[str, float]:  # noqa: ANN401
    """Limits of every schedule: no job waits, and all end at the earliest."""
    agents, jobs, every = _drawn(scenario, seed)
    units = [
        (arrives_ms, unit) for (arrives_ms, _), its in zip(jobs, every, strict=True) for unit in its
    ]
    end_ms = min(least_end_ms(agents, units), scenario.until_s * 1000)
    gpus = sum(each.get("gpus", 0) for each in agents)
    work = sum(unit.need.get("gpus", 0) * sum(unit.lasts_ms) for _, unit in units)
    row = {"gpus": 100 * work / gpus / end_ms, "end_s": end_ms / 1000}
    for prefix, group in (("", GANGS), ("others_", OTHERS)):
        longest = [
            max(max(unit.lasts_ms) for unit in its)
            for (_, job), its in zip(jobs, every, strict=True)
            if job.group == group
        ]
        stay_s = sum(longest) / len(longest) / 1000
        row |= {f"{prefix}wait_s": 0.0, f"{prefix}stay_s": stay_s, f"{prefix}ended": 100.0}
    return row


def _made(job: Any) -> Any:  # noqa: ANN401
    return job.make(lambda **_: None, lambda: None)


def _played(scenario: Any, way: str, seed: int) -> dict[str, float]:  # noqa: ANN401
    """One way on the emulated master."""
    from allocator.core import PolicySpec, Settings
    from laboratory.scenarios.running import ScenarioCell, run

    stated = way != "hoarding"
    groups = [
        each.model_copy(update={"states_gang": stated and each.gang > 1})
        for each in scenario.frameworks
    ]
    scenario = scenario.model_copy(update={"frameworks": groups})
    settings = Settings(policy=PolicySpec("drf", mode="characterised"), seed=seed)
    if way == "collecting":
        settings.priors_max = 0
    result = run(scenario, ScenarioCell("drf", "characterised", seed), settings)
    row = {"gpus": 100 * result.used["gpus"], "end_s": result.end_s}
    for group in result.groups:
        prefix = "" if group.group == GANGS else "others_"
        row[f"{prefix}wait_s"] = group.wait_mean_s
        row[f"{prefix}stay_s"] = group.stay_mean_s
        row[f"{prefix}ended"] = 100 * group.ended / group.jobs
    return row


def compute(ways: Sequence[str], note: Callable[[str], None] = print) -> None:
    """Play some ways, and keep what came out, with what is kept of the others."""
    from allocator.server.system import loop_cache

    loop_cache.prepare()
    from laboratory.reports.run_report import interval
    from laboratory.scenarios.schema import read

    scenario = read(SCENARIO)
    rows = json.loads(KEPT.read_text("utf-8"))["rows"]
    alone = {"strict": _strict, "easy": _easy, "bound": _bound}
    for way in ways:
        every = []
        for seed in range(SEEDS):
            played = alone[way](scenario, seed) if way in alone else _played(scenario, way, seed)
            note(f"{way} {seed}: {played}")
            every.append(played)
        rows[way] = {column: mean(interval([row[column] for row in every])) for column in COLUMNS}
        data = {"seeds": SEEDS, "until_s": scenario.until_s, "rows": rows}
        KEPT.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def mean(found: Any) -> dict[str, float | None]:  # noqa: ANN401
    """An interval as it is kept."""
    pair = {"mean": found.mean, "half": found.half}
    return {key: None if value != value else round(value, 3) for key, value in pair.items()}  # noqa: PLR0124


if __name__ == "__main__":
    compute(sys.argv[1:] or [*WAYS])

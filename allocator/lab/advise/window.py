"""The part of a day that is played: that in which most waits, for there policies differ."""

from dataclasses import replace

import numpy as np

from allocator.core import Floats
from allocator.lab.advise.measuring import TaskTable, amounts_at, table_of
from allocator.lab.workloads.recorded_day import Day, DayAgent, Ran

STEP_MS = 60_000
"""Parts begin at whole minutes of the day."""

SETTLE_MS = 10_000
"""What waited when a part begins is wanted so much later: first comes what ran already."""

WAITS_MS = 1_000
"""Whoever waits less than a cycle does not wait."""


def busiest(day: Day, hours: float) -> Day:
    """Cut a day down to so many hours, those in which most tasks wait; most run, where none does.

    hours: 0: the whole day.
    """
    length_ms = round(hours * 3_600_000)
    span_ms = day.end_ms - day.begin_ms
    if not 0 < length_ms < span_ms:
        return day
    table = table_of(day.ran, day.kinds, day.begin_ms)
    at_ms = np.arange(0, span_ms, STEP_MS, dtype=np.float64)
    runs = _each_minute(table, table.start, table.end, at_ms)
    late = table.rows(table.start - table.wanted >= WAITS_MS)
    waits = _each_minute(late, late.wanted, late.start, at_ms)
    # Those that run decide only where as many wait.
    weight = waits + runs / (runs.sum() + 1)
    steps = max(length_ms // STEP_MS, 1)
    sums = np.cumsum(np.concatenate([[0.0], weight]))
    first = int(np.argmax(sums[steps:] - sums[:-steps])) if len(sums) > steps else 0
    begin_ms = day.begin_ms + first * STEP_MS
    return cut(day, begin_ms, begin_ms + length_ms)


def _each_minute(table: TaskTable, begin: Floats, end: Floats, at_ms: Floats) -> Floats:
    """How many tasks did something, from its beginning to its end, in each minute, (S,)."""
    one = np.ones((len(table.wanted), 1))
    return amounts_at(one, begin - STEP_MS + 1, end, at_ms)[:, 0]


def cut(day: Day, begin_ms: int, end_ms: int) -> Day:
    """The part of a day from one moment to another.

    What ran at the beginning is wanted then, for as long as it still ran. What waited is wanted a
    little later, so that it takes nobody's place; that it waited before does not count.
    """
    agents = {
        name: _agent(agent, begin_ms, end_ms)
        for name, agent in day.agents.items()
        if agent.came_ms < end_ms and not 0 <= agent.left_ms <= begin_ms
    }
    ran = [
        _task(task, begin_ms)
        for task in day.ran
        if task.end_ms > begin_ms and task.wanted_ms < end_ms
    ]
    there = {task.framework for task in ran}
    frameworks = {
        name: replace(each, came_ms=max(each.came_ms, begin_ms))
        for name, each in day.frameworks.items()
        if name in there
    }
    return replace(
        day,
        begin_ms=begin_ms,
        end_ms=end_ms,
        agents=agents,
        frameworks=frameworks,
        ran=ran,
        quotas=[(max(at, begin_ms), role, quota) for at, role, quota in day.quotas if at < end_ms],
        weights=[(max(at, begin_ms), rest) for at, rest in day.weights if at < end_ms],
    )


def _agent(agent: DayAgent, begin_ms: int, end_ms: int) -> DayAgent:
    left_ms = agent.left_ms if agent.left_ms < end_ms else -1
    return replace(agent, came_ms=max(agent.came_ms, begin_ms), left_ms=left_ms)


def _task(task: Ran, begin_ms: int) -> Ran:
    if task.start_ms <= begin_ms:
        return replace(task, wanted_ms=begin_ms, start_ms=begin_ms)
    first_ms = begin_ms if task.wanted_ms >= begin_ms else begin_ms + SETTLE_MS
    return replace(task, wanted_ms=min(max(task.wanted_ms, first_ms), task.start_ms))

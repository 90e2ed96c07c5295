"""Journals as recorded days, and the part of a day to play: the one with most waiting tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from allocator import policies
from allocator.wire.journal.framing import JournalError, Torn, read_records
from allocator.wire.journal.replay import Replay
from laboratory.advise.measuring import count_at, table_of
from laboratory.workloads.recorded_day import Day, DayAgent, DayRecorder, Ran, watched

# The part of a day to play: the one with most waiting tasks, because policies differ there.

STEP_MS = 60_000
"""A part to play begins at a multiple of this."""

SETTLE_MS = 10_000
"""Delay for tasks that waited at the beginning of a part, so that running tasks come first."""

WAITS_MS = 1_000
"""A task that starts sooner than this does not count as waiting: allocation takes a cycle."""


def busiest(day: Day, hours: float) -> Day:
    """Cut a day down to the hours in which most tasks wait, or most run if none waits.

    hours: 0: the whole day.
    """
    length_ms = round(hours * 3_600_000)
    span_ms = day.end_ms - day.begin_ms
    if not 0 < length_ms < span_ms:
        return day
    table = table_of(day.ran, day.kinds, day.begin_ms)
    at_ms = np.arange(0, span_ms, STEP_MS, dtype=np.float64)
    # A task counts in each minute in which it runs or waits.
    runs = count_at(table.start - STEP_MS + 1, table.end, at_ms)
    late = table.rows(table.start - table.wanted >= WAITS_MS)
    waits = count_at(late.wanted - STEP_MS + 1, late.start, at_ms)
    # Running tasks only break ties between equal numbers of waiting ones.
    weight = waits + runs / (runs.sum() + 1)
    steps = max(length_ms // STEP_MS, 1)
    sums = np.cumsum(np.concatenate([[0.0], weight]))
    first = int(np.argmax(sums[steps:] - sums[:-steps])) if len(sums) > steps else 0
    begin_ms = day.begin_ms + first * STEP_MS
    return cut(day, begin_ms, begin_ms + length_ms)


def cut(day: Day, begin_ms: int, end_ms: int) -> Day:
    """The part of a day from one moment to another.

    Tasks running at its beginning are wanted then, for their remaining time. Tasks waiting then
    are wanted a little later, so that they do not get ahead; their earlier wait is not counted.
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


# Journals.


class NoDayError(ValueError):
    """A journal without a day to play; the message names it, the reason, and the remedy."""


@dataclass(slots=True)
class ReadDay:
    """A day, and notes about its journal.

    name: of the journal.
    day: all of it; `played`: the part to play.
    remarks: what was cut off or damaged.
    """

    name: str
    day: Day
    played: Day
    remarks: list[str] = field(default_factory=list)


def read_day(
    name: str,
    files: Sequence[Path],
    hours: float = 0.0,
    watch: Callable[[int], None] = lambda _records: None,
) -> ReadDay:
    """Read the files of one journal, older ones first.

    hours: how much of it to play, see `busiest`.
    watch: called with the number of records read so far.
    Raises NoDayError.
    """
    recorder = DayRecorder()
    player = Replay(policies.build, policies.substitute(), check=False, make=watched(recorder))
    remarks: list[str] = []
    for path in files:
        _read(path, player, remarks, watch)
    player.finish()
    day = recorder.finish()
    if not day.ran or day.settings is None:
        raise NoDayError("; ".join([f"{name}: {_why(day, player)}", *remarks]))
    return ReadDay(name, day, busiest(day, hours), remarks)


def _read(path: Path, player: Replay, remarks: list[str], watch: Callable[[int], None]) -> None:
    """Replay a file as far as possible."""

    def cut_off(torn: Torn) -> None:
        remarks.append(f"{path.name} is cut off at byte {torn.position}; the part before is used")

    try:
        with path.open("rb") as file:
            for record in read_records(file, cut_off):
                player.take(record)
                watch(player.found.records)
    except (OSError, JournalError, MemoryError) as error:
        told = str(error) or "it does not fit into memory"
        remarks.append(f"{path.name} is ignored after an error: {told}")


def _why(day: Day, player: Replay) -> str:
    """Return the reason why there is nothing to play."""
    if not player.found.records:
        return "no event is recorded; give a journal that a sidecar wrote while it served a master"
    if not day.frameworks:
        return "no framework registered in it; give a journal of a day with frameworks"
    count = len(day.frameworks)
    who = "framework" if count == 1 else "frameworks"
    return f"{count} {who} launched no task in it; give a journal of a day with tasks"

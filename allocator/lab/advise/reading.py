"""Journals as recorded days."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from allocator import policies
from allocator.lab.advise.window import busiest
from allocator.lab.workloads.recorded_day import Day, DayRecorder, watched
from allocator.wire.journal.framing import JournalError, Torn, read_records
from allocator.wire.journal.replay import Replay


class NoDayError(ValueError):
    """A journal of which no day can be made: which, why, and the mend."""


@dataclass(slots=True)
class ReadDay:
    """A day, and what is to be known of how it was read.

    name: of the journal.
    day: all of it; `played`: the part that is played.
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
    """Read the files of one journal, the older first.

    hours: how much of it is to be played, see `busiest`.
    watch: told how many records were read.
    Raises NoDayError.
    """
    recorder = DayRecorder()
    player = Replay(policies.build, policies.fallback(), check=False, make=watched(recorder))
    remarks: list[str] = []
    for path in files:
        _read(path, player, remarks, watch)
    player.finish()
    day = recorder.finish()
    if not day.ran or day.settings is None:
        raise NoDayError("; ".join([f"{name}: {_why(day, player)}", *remarks]))
    return ReadDay(name, day, busiest(day, hours), remarks)


def _read(path: Path, player: Replay, remarks: list[str], watch: Callable[[int], None]) -> None:
    """Replay a file, as far as it goes."""

    def cut_off(torn: Torn) -> None:
        remarks.append(f"{path.name} is cut off at byte {torn.position}; what is before it counts")

    try:
        with path.open("rb") as file:
            for record in read_records(file, cut_off):
                player.take(record)
                watch(player.found.records)
    except (OSError, JournalError, MemoryError) as error:
        told = str(error) or "it does not fit into memory"
        remarks.append(f"{path.name} is passed over from here on: {told}")


def _why(day: Day, player: Replay) -> str:
    """Why nothing can be played of what was read."""
    if not player.found.records:
        return "no event is recorded in it; give a journal that a sidecar wrote while it served"
    if not day.frameworks:
        return "no framework ever registered in it; give a journal of a day on which some did"
    count = len(day.frameworks)
    who = "framework" if count == 1 else "frameworks"
    return f"no task was launched in it, by {count} {who}; give a journal of a day with tasks"

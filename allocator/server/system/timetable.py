"""Evaluates schedules: when a scheduled rule is in force, and when that changes next.

Times of `every` are local times, in cron's syntax. Each local time occurs once a day: if clocks are
set forward and skip it, right after the gap; if they are set back and repeat it, the first time. An
occurrence lasts for its elapsed time, whatever clocks show at its end.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from allocator.near import suggestion
from allocator.wire.settings.schedule import Schedule

FOR_MAX_MS = 366 * 86_400_000

CHECKED_MAX = 60
"""Number of occurrences that are checked for overlaps; later ones that overlap count as one."""

CHAINED_MAX = 400
"""Maximum number of occurrences without a break that `window` joins."""

OPTIONS = ("from", "until", "every", "for", "tz")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - local times of any zone
_LAST = datetime(9900, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_UNITS_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


class ScheduleError(ValueError):
    """A schedule is invalid. `field`: ``from``, ``until``, ``every``, ``for`` or ``tz``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Window(NamedTuple):
    """A time in which a rule is in force, in milliseconds since 1970."""

    begin_ms: int
    end_ms: int
    """0: no end."""


def read(texts: Mapping[str, str], now_ms: int | None) -> Schedule | None:
    """Read a schedule in operators' syntax; None if all texts are empty. Raises ScheduleError.

    `texts`: by the names of the options, as `options` returns them.
    `now_ms`: the start of times such as ``+2h``; None: these are invalid.
    """
    from_, until, every, for_, zone = (texts.get(name, "") for name in OPTIONS)
    if not (from_ or until or every or for_):
        if zone:
            raise ScheduleError("tz", f"{zone!r}: give from, until or every, or leave out tz")
        return None
    zone = zone or "UTC"
    _zone(zone)
    now_ms = now_ms and now_ms // 1000 * 1000  # times are written in seconds
    begin_ms = moment_ms("from", from_, zone, now_ms)
    end_ms = moment_ms("until", until, zone, now_ms)
    for_ms = duration_ms("for", for_) if for_ else 0
    every = " ".join(every.split())
    if for_ms and not every:
        if until:
            raise ScheduleError("for", f"{for_!r}: does not go with until; leave one of them out")
        begin_ms = begin_ms or now_ms or 0
        if not begin_ms:
            raise ScheduleError("for", f"{for_!r}: counts from nothing; give from or every")
        end_ms, for_ms = begin_ms + for_ms, 0
    schedule = Schedule(begin_ms, end_ms, every, for_ms, zone)
    check(schedule)
    return schedule


def check(schedule: Schedule) -> None:
    begin_ms, end_ms, every, for_ms, zone = schedule
    for field, value in (("from", begin_ms), ("until", end_ms)):
        if not 0 <= value < _ms(_LAST):
            raise ScheduleError(field, f"{value}: give milliseconds from 1970 to 9899")
    _zone(zone)
    if end_ms and end_ms <= begin_ms:
        text = f"{written(end_ms, zone)}: is not after from, {written(begin_ms, zone)}; swap them"
        raise ScheduleError("until", text)
    if not every:
        if not (begin_ms or end_ms):
            raise ScheduleError("from", "is missing; give from, until or every")
        if for_ms:
            raise ScheduleError("for", "is how long each occurrence lasts; give every, or until")
        return
    if not for_ms:
        raise ScheduleError("for", f"is missing; say how long each {every!r} lasts, such as 10h")
    if not 60_000 <= for_ms <= FOR_MAX_MS:
        raise ScheduleError("for", f"{spelled(for_ms)}: give from 1m to {spelled(FOR_MAX_MS)}")
    _check_distances(every, for_ms)


def _check_distances(every: str, for_ms: int) -> None:
    """Reject occurrences that begin before the previous one is over, by local time."""
    if len(every.split()) != 5:
        text = "give minute, hour, day of month, month and day of week, as in '0 8 * * 1-5'"
        raise ScheduleError("every", f"{every!r}: {text}")
    for before, at in pairwise(_first_times(every)):
        if (at - before) // _MS < for_ms:
            text = f"{spelled(for_ms)}: is longer than from {before:%a %d %b %Y %H:%M} to"
            most = spelled((at - before) // _MS)
            raise ScheduleError("for", f"{text} {at:%a %d %b %Y %H:%M}; give at most {most}")


@lru_cache(maxsize=256)
def _first_times(every: str) -> tuple[datetime, ...]:
    """Return some consecutive local times. Raises ScheduleError."""
    try:
        found = tuple(islice(CronSim(every, _SOME_DAY), CHECKED_MAX))
    except CronSimError as error:
        text = "minute, hour, day of month, month, day of week, as in '0 8 * * 1-5'"
        raise ScheduleError("every", f"{every!r}: {str(error).lower()}; give {text}") from None
    if not found:
        raise ScheduleError("every", f"{every!r}: there is no such day; correct it")
    return found


def holds(schedule: Schedule, at_ms: int) -> bool:
    begin_ms, end_ms, every, for_ms, _ = schedule
    if at_ms < begin_ms or (end_ms and at_ms >= end_ms):
        return False
    if not every:
        return True
    begun_ms = next(_occurrences(schedule, at_ms - for_ms), None)
    return begun_ms is not None and begun_ms <= at_ms


def window(schedule: Schedule, at_ms: int) -> Window | None:
    """Return the first time in force that is not over at `at_ms`; None: never again.

    Occurrences without a break count as one.
    """
    begin_ms, end_ms, every, for_ms, _ = schedule
    if end_ms and at_ms >= end_ms:
        return None
    if not every:
        return Window(begin_ms, end_ms)
    times = _occurrences(schedule, at_ms - for_ms)
    first_ms = next(times, None)
    if first_ms is None or (end_ms and first_ms >= end_ms):
        return None
    last_ms = first_ms
    for count, next_ms in enumerate(times):
        if next_ms > last_ms + for_ms or count == CHAINED_MAX or (end_ms and next_ms >= end_ms):
            break
        last_ms = next_ms
    until_ms = last_ms + for_ms
    return Window(first_ms, min(until_ms, end_ms) if end_ms else until_ms)


def changes(schedule: Schedule, at_ms: int) -> Iterator[tuple[int, bool]]:
    """Yield each later time at which the rule begins (True) or ends, in order."""
    found = window(schedule, at_ms)
    while found is not None:
        if found.begin_ms > at_ms:
            yield found.begin_ms, True
        if not found.end_ms:
            return
        yield found.end_ms, False
        at_ms = found.end_ms
        found = window(schedule, at_ms)


def _occurrences(schedule: Schedule, after_ms: int) -> Iterator[int]:
    """Yield the times later than `after_ms` at which an occurrence begins, not before `from`."""
    after_ms = max(after_ms, schedule.from_ms - 1, 0)
    zone, last_ms = _zone(schedule.zone), -1
    # Start at the local time of that moment: earlier local times occurred before it.
    local = _at(after_ms, zone).replace(tzinfo=None)
    try:
        for each in CronSim(schedule.every, local):
            if each.year >= _LAST.year:
                return
            at_ms = _local_ms(each, zone)
            if at_ms > max(after_ms, last_ms):
                last_ms = at_ms
                yield at_ms
    except OverflowError:
        return


def _local_ms(local: datetime, zone: ZoneInfo) -> int:
    """When a local time occurs: the first of two times; right after the gap if it is skipped."""
    at_ms = _ms(local.replace(tzinfo=zone, fold=0))
    if _at(at_ms, zone).replace(tzinfo=None) == local:
        return at_ms
    # In a gap, `fold=0` is late by the length of the gap: search back for the gap's end.
    before = local.replace(tzinfo=zone, fold=0).utcoffset()
    after = local.replace(tzinfo=zone, fold=1).utcoffset()
    assert before is not None
    assert after is not None
    low_ms, high_ms = at_ms - (after - before) // _MS, at_ms
    while high_ms - low_ms > 1:  # the first moment of the new time
        middle_ms = (low_ms + high_ms) // 2
        new = _at(middle_ms, zone).utcoffset() == after
        low_ms, high_ms = (low_ms, middle_ms) if new else (middle_ms, high_ms)
    return high_ms


def written(at_ms: int, zone: str) -> str:
    """Format a time.

    >>> written(0, "Europe/Berlin")
    '1970-01-01T01:00:00+01:00'
    """
    return _at(at_ms, _zone(zone)).isoformat(timespec="seconds")


def in_words(schedule: Schedule) -> str:
    """Format a schedule in one line.

    >>> in_words(Schedule(every="0 8 * * 1-5", for_ms=36_000_000, zone="Europe/Berlin"))
    "every '0 8 * * 1-5' for 10h (Europe/Berlin)"
    """
    begin_ms, end_ms, every, for_ms, zone = schedule
    parts = [f"every {every!r} for {spelled(for_ms)}"] if every else []
    parts += [f"from {_short(begin_ms, zone)}"] if begin_ms else []
    parts += [f"until {_short(end_ms, zone)}"] if end_ms else []
    return f"{' '.join(parts)} ({zone})"


def _short(at_ms: int, zone: str) -> str:
    at = _at(at_ms, _zone(zone))
    return f"{at:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def shown(at_ms: int, zone: str) -> str:
    """Format a time for reading, with the zone's abbreviation.

    >>> shown(0, "Europe/Berlin")
    '1970-01-01 01:00 CET'
    """
    return f"{_short(at_ms, zone)} {_at(at_ms, _zone(zone)):%Z}"


def options(schedule: Schedule) -> dict[str, str]:
    """Format a schedule in operators' syntax, by the names of the options; inverse of `read`."""
    begin_ms, end_ms, every, for_ms, zone = schedule
    found = {
        "from": written(begin_ms, zone) if begin_ms else "",
        "until": written(end_ms, zone) if end_ms else "",
        "every": every,
        "for": spelled(for_ms) if for_ms else "",
        "tz": zone if zone != "UTC" else "",
    }
    return {name: text for name, text in found.items() if text}


def spelled(duration: int) -> str:
    """Format a duration in milliseconds; inverse of `duration_ms`.

    >>> spelled(36_000_000), spelled(5_400_000)
    ('10h', '1h30m')
    """
    parts, left = [], duration
    for unit, size in _UNITS_MS.items():
        if unit == "w":
            continue
        if count := left // size:
            parts.append(f"{count}{unit}")
        left %= size
    return "".join(parts) or "0s"


def duration_ms(field: str, text: str) -> int:
    """Read a duration such as ``90m`` or ``1h30m``. Raises ScheduleError.

    >>> duration_ms("for", "1h30m")
    5400000
    """
    if not re.fullmatch(r"(\d{1,9}[wdhms])+", text.strip()):
        raise ScheduleError(field, f"{text!r}: give a duration such as 10h, 90m or 1d12h")
    return sum(int(each[:-1]) * _UNITS_MS[each[-1]] for each in re.findall(r"\d+[wdhms]", text))


def moment_ms(field: str, text: str, zone: str, now_ms: int | None) -> int:
    """Read a time; 0 if the text is empty. Raises ScheduleError about this field.

    `now_ms`: the time to which ``+2h`` is relative; None: such texts are not allowed.
    """
    text = text.strip()
    if not text:
        return 0
    if text.startswith("+") and now_ms is not None:
        return now_ms + duration_ms(field, text[1:])
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        more = " or +2h" if now_ms is not None else ""
        mend = f"give a time such as 2026-12-24T18:00{more}"
        raise ScheduleError(field, f"{text!r}: {mend}") from None
    if not 1971 <= at.year < _LAST.year:
        raise ScheduleError(field, f"{text!r}: give a year from 1971 to {_LAST.year - 1}")
    return _ms(at) if at.tzinfo else _local_ms(at, _zone(zone))


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _zone(name: str) -> ZoneInfo:
    if name not in _zones():
        near = suggestion(name, _zones()) or "; give one such as Europe/Berlin"
        raise ScheduleError("tz", f"{name[:80]!r}: there is no such time zone{near}")
    return ZoneInfo(name)


def _at(at_ms: int, zone: ZoneInfo) -> datetime:
    return (_EPOCH + at_ms * _MS).astimezone(zone)


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // _MS

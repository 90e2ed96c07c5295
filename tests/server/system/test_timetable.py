"""Schedules in time, compared with a slow twin that looks at every minute in each zone."""

import random
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest

from allocator.server.system import timetable
from allocator.server.system.timetable import ScheduleError
from allocator.wire.settings.schedule import Schedule

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
MINUTE = timedelta(minutes=1)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def field(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin, end = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


def matches(every: str, at: datetime) -> bool:
    minute, hour, day, month, weekday = every.split()
    days = at.day in field(day, 1, 31)
    weekdays = at.isoweekday() % 7 in {each % 7 for each in field(weekday, 0, 7)}
    either = not (day.startswith("*") or weekday.startswith("*"))
    return (
        at.minute in field(minute, 0, 59)
        and at.hour in field(hour, 0, 23)
        and at.month in field(month, 1, 12)
        and ((days or weekdays) if either else (days and weekdays))
    )


def begins(every: str, zone: str, first_ms: int, minutes: int) -> list[int]:
    """Minute by minute: each local time once, and those that clocks skip right after."""
    found, info = [], ZoneInfo(zone)
    before = datetime.fromtimestamp(first_ms / 1000 - 60, UTC).astimezone(info).replace(tzinfo=None)
    for number in range(minutes):
        at_ms = first_ms + number * MINUTE_MS
        at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(info)
        local, times = at.replace(tzinfo=None, fold=0), []
        if not at.fold:
            skipped = before + MINUTE
            while skipped < local:
                times.append(skipped)
                skipped += MINUTE
            times.append(local)
        if any(matches(every, each) for each in times):
            found.append(at_ms)
        before = local
    return found


def holds(schedule: Schedule, begun: list[int], at_ms: int) -> bool:
    if at_ms < schedule.from_ms or (schedule.until_ms and at_ms >= schedule.until_ms):
        return False
    if not schedule.every:
        return True
    return any(each <= at_ms < each + schedule.for_ms for each in begun if each >= schedule.from_ms)


TURNS = {
    "Europe/Berlin": ("2026-03-29T01:00+00:00", "2026-10-25T01:00+00:00"),
    "America/New_York": ("2026-03-08T07:00+00:00", "2026-11-01T06:00+00:00"),
    "Australia/Lord_Howe": ("2026-10-03T15:30+00:00", "2026-04-04T15:00+00:00"),
    "America/Sao_Paulo": ("2018-11-04T03:00+00:00", "2018-02-18T02:00+00:00"),
    "Pacific/Apia": ("2011-12-30T10:00+00:00", "2012-03-31T14:00+00:00"),
    "UTC": ("2028-02-29T00:00+00:00", "2027-02-28T23:00+00:00"),
}
PATTERNS = (
    "30 2 * * *",
    "*/20 * * * *",
    "0 0 * * *",
    "15 1-3 * * *",
    "0 */2 * * 6,0",
    "45 23 29 2 *",
    "0 1 28-31 * 5",
    "0 12 1,31 * *",
)


def compare(zone: str, around: str, every: str, chance: random.Random) -> None:
    first_ms, minutes = ms(around) - 30 * HOUR_MS, 60 * 60
    begun = begins(every, zone, first_ms - 30 * HOUR_MS, minutes + 30 * 60)
    for_ms = chance.choice((1, 17, 60, 90, 1440)) * MINUTE_MS
    bounds = sorted(first_ms + chance.randrange(minutes) * MINUTE_MS for _ in range(2))
    from_ms, until_ms = (chance.choice((0, each)) for each in bounds)
    schedule = Schedule(from_ms, until_ms, every, for_ms, zone)
    at = [first_ms + number * MINUTE_MS for number in range(minutes)]
    twin = [holds(schedule, begun, each) for each in at]
    step = chance.choice((7, 11, 13))
    for each, expected in list(zip(at, twin, strict=True))[::step]:
        assert timetable.holds(schedule, each) == expected, (schedule, each)
    flips = [
        (later, now)
        for (_, was), (later, now) in pairwise(zip(at, twin, strict=True))
        if was != now
    ]
    found = takewhile(lambda one: one[0] <= at[-1], timetable.changes(schedule, at[0]))
    assert list(found) == flips, schedule


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe"])
def test_a_schedule_holds_as_in_the_twin_around_clock_changes(zone):
    chance = random.Random(zone)
    for around in TURNS[zone]:
        compare(zone, around, "15 1-3 * * *", chance)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("zone", TURNS)
def test_a_schedule_holds_as_in_the_twin_for_every_pattern(zone, seed):
    chance = random.Random(f"{zone} {seed}")
    for around in TURNS[zone]:
        for every in PATTERNS:
            compare(zone, around, every, chance)


def told(schedule: Schedule, after: str, most: int = 4) -> list[str]:
    found = islice(timetable.changes(schedule, ms(after)), most)
    return [timetable.shown(at_ms, schedule.zone) for at_ms, _ in found]


def test_a_skipped_time_occurs_right_after_and_a_repeated_one_once():
    nightly = Schedule(every="30 2 * * *", for_ms=HOUR_MS, zone="Europe/Berlin")
    assert told(nightly, "2026-03-28T12:00+00:00") == [
        "2026-03-29 03:00 CEST",
        "2026-03-29 04:00 CEST",
        "2026-03-30 02:30 CEST",
        "2026-03-30 03:30 CEST",
    ]
    assert told(nightly, "2026-10-24T12:00+00:00") == [
        "2026-10-25 02:30 CEST",
        "2026-10-25 02:30 CET",
        "2026-10-26 02:30 CET",
        "2026-10-26 03:30 CET",
    ]


def test_leap_days():
    yearly = Schedule(every="0 0 29 2 *", for_ms=24 * HOUR_MS)
    assert told(yearly, "2026-01-01T00:00+00:00") == [
        "2028-02-29 00:00 UTC",
        "2028-03-01 00:00 UTC",
        "2032-02-29 00:00 UTC",
        "2032-03-01 00:00 UTC",
    ]
    assert told(yearly, "2097-01-01T00:00+00:00", 1) == ["2104-02-29 00:00 UTC"]


@pytest.mark.parametrize(
    ("texts", "field", "text"),
    [
        ({"every": "0 8 * *", "for": "1h"}, "every", "'0 8 \\* \\*': give minute, hour, day"),
        ({"every": "0 25 * * *", "for": "1h"}, "every", "'0 25 .*: bad hour; give minute"),
        ({"every": "0 0 31 2 *", "for": "1h"}, "every", "'0 0 31 2 .*: bad day-of-month"),
        ({"every": "0 0 0 8 * *", "for": "1h"}, "every", "give minute, hour"),
        ({"every": "0 8 * * *"}, "for", "is missing; say how long each '0 8"),
        ({"every": "0 8 * * *", "for": "25h"}, "for", "1d1h: is longer .* give at most 1d"),
        ({"every": "0 8 * * *", "for": "8"}, "for", "'8': give a duration such as 10h"),
        ({"every": "0 8 * * *", "for": "59s"}, "for", "59s: give from 1m"),
        ({"from": "2026-01-02", "until": "2026-01-01"}, "until", "is not after from.*swap them"),
        ({"from": "2026-01-02", "tz": "Europe/Berln"}, "tz", "did you mean 'Europe/Berlin'"),
        ({"from": "2026-01-02", "tz": "../../etc/passwd"}, "tz", "no such time zone"),
        ({"from": "soon"}, "from", "'soon': give a time such as 2026-12-24T18:00"),
        ({"from": "0001-01-01"}, "from", "give a year from 1971 to"),
        ({"tz": "UTC"}, "tz", "give from, until or every"),
        ({"until": "2026-01-02", "for": "1h"}, "for", "does not go with until"),
        ({"for": "1h"}, "for", "give from or every"),
    ],
)
def test_nonsense_is_refused_with_the_fix(texts, field, text):
    with pytest.raises(ScheduleError, match=text) as caught:
        timetable.read(texts, None)
    assert caught.value.field == field


def test_written_values_are_read_back():
    now_ms = ms("2026-11-28T12:00+00:00")
    for texts in (
        {"from": "2026-12-24T18:00", "for": "12h", "tz": "Europe/Berlin"},
        {"every": "0  8 * * 1-5", "for": "1h30m", "until": "2027-01-01"},
        {"from": "+2h"},
        {"for": "2d"},
    ):
        schedule = timetable.read(texts, now_ms)
        assert schedule is not None
        assert timetable.read(timetable.options(schedule), None) == schedule
    assert timetable.read({"for": "2d"}, now_ms) == Schedule(now_ms, now_ms + 48 * HOUR_MS)
    assert timetable.read({}, now_ms) is None

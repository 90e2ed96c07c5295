"""Months, weeks and days of the calendar in UTC, in integers.

The algorithms are those of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years are
counted from March, so that a leap day is the last one. A day is a number, 0 for 1970-01-01.
"""

import re

PERIODS = ("month", "week", "day")

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_ERA = 400 * 365 + 97
"""Days in 400 years, after which the calendar repeats."""

_FIRST = 719_468
"""Days from 0000-03-01 to 1970-01-01."""

_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


def period_of(per: str, now_ms: int) -> tuple[int, int]:
    """The beginning and the end of the period that a time is in, in milliseconds since 1970.

    `per`: one of `PERIODS`.

    Examples
    --------
    >>> [write_day(each // DAY_MS) for each in period_of("month", 59 * DAY_MS - 1)]
    ['1970-02-01', '1970-03-01']
    """
    day = now_ms // DAY_MS
    first, last = day, day + 1
    if per == "week":
        first = day - (day + 3) % 7  # 1970-01-01 was a Thursday
        last = first + 7
    elif per == "month":
        year, month, of_month = _date(day)
        first = day - of_month + 1
        last = _number(year + month // 12, month % 12 + 1, 1)
    return first * DAY_MS, last * DAY_MS


def write_day(day: int) -> str:
    year, month, of_month = _date(day)
    return f"{year:04}-{month:02}-{of_month:02}"


def in_utc(at_ms: int) -> str:
    """Format a time in ms since 1970, to the minute.

    Examples
    --------
    >>> in_utc(1_795_000_000_000)
    '2026-11-18 11:06 UTC'
    """
    minutes = at_ms % DAY_MS // 60_000
    return f"{write_day(at_ms // DAY_MS)} {minutes // 60:02}:{minutes % 60:02} UTC"


def read_day(text: str) -> int:
    """Read a day as `write_day` writes it. Raises ValueError if there is none.

    Examples
    --------
    >>> read_day("2028-02-29")
    21243
    """
    found = _DAY.fullmatch(text)
    date = tuple(map(int, found.groups())) if found else (0, 0, 0)
    if not 1 <= date[1] <= 12 or _date(day := _number(*date)) != date:
        raise ValueError(text)
    return day


def _number(year: int, month: int, of_month: int) -> int:
    era, year = divmod(year - (month <= 2), 400)
    of_year = (153 * ((month - 3) % 12) + 2) // 5 + of_month - 1
    return era * _ERA + year * 365 + year // 4 - year // 100 + of_year - _FIRST


def _date(day: int) -> tuple[int, int, int]:
    era, day = divmod(day + _FIRST, _ERA)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    from_march = (5 * of_year + 2) // 153
    month = (from_march + 2) % 12 + 1
    return era * 400 + year + (month <= 2), month, of_year - (153 * from_march + 2) // 5 + 1

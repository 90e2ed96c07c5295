"""Scheduled rules: which are in force, what they change next, and the thread that follows them.

A scheduled rule replaces the rule for the same subject; of several in force, the one set last
applies. The core knows no calendar: it receives changes of settings when they are due. Only drains
are announced to it in advance, since tasks should end in time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from heapq import merge
from itertools import islice
from threading import Condition
from typing import NamedTuple

from allocator.core import SetDrain
from allocator.server.system import timetable
from allocator.server.system.lasting import LastingThread
from allocator.server.system.timetable import ScheduleError, Window
from allocator.wire.settings.overlay import KeptChange
from allocator.wire.settings.schedule import id_of

CALENDAR = "calendar"

BACK_MS = 3 * 3_600_000
"""If the clock is set back by at most this much, `Clock` stands still until it has caught up, as
cron does."""

LOOK_S = 30.0
"""Maximum time until the clock is read again, because it may have been set."""

ANSWER_S = 60.0
"""Maximum time for the core to change settings; then it is asked again."""


class Clock:
    """Milliseconds since 1970; stands still if the clock is set back by up to `BACK_MS`."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._last_ms = 0

    def now_ms(self) -> int:
        now_ms = int(self._now_s() * 1000)
        if not now_ms < self._last_ms <= now_ms + BACK_MS:
            self._last_ms = now_ms
        return self._last_ms


def for_core(rules: Iterable[KeptChange], at_ms: int) -> tuple[KeptChange, ...]:
    """Return the scheduled rules that the core has at a time, in order.

    These are the rules in force, and drains that begin later, with their time `SetDrain.from_ms`.
    """
    return tuple(filter(None, (_for_core(each, at_ms) for each in rules)))


def _for_core(rule: KeptChange, at_ms: int) -> KeptChange | None:
    if not isinstance(rule.change, SetDrain) or rule.change.takes_back:
        return rule if holds(rule, at_ms) else None
    found = window(rule, at_ms)
    if found is None:
        return None
    from_ms = found.begin_ms if found.begin_ms > at_ms else 0
    return rule._replace(change=replace(rule.change, from_ms=from_ms))


def holds(rule: KeptChange, at_ms: int) -> bool:
    """Return whether a scheduled rule is in force at a time."""
    assert rule.schedule is not None
    try:
        return timetable.holds(rule.schedule, at_ms)
    except ScheduleError:  # such as a time zone that is not known here
        return False


def window(rule: KeptChange, at_ms: int) -> Window | None:
    """Return the present or next time in which a rule is in force; None: never again."""
    assert rule.schedule is not None
    try:
        return timetable.window(rule.schedule, at_ms)
    except ScheduleError:
        return None


class Coming(NamedTuple):
    """The beginning or end of a rule."""

    at_ms: int
    begins: bool
    rule: KeptChange


def coming(rules: Iterable[KeptChange], at_ms: int, most: int) -> list[Coming]:
    each = (islice(_changes(rule, at_ms), most) for rule in rules)
    return list(islice(merge(*each, key=lambda one: one.at_ms), most))


def _changes(rule: KeptChange, at_ms: int) -> Iterator[Coming]:
    assert rule.schedule is not None
    try:
        for when_ms, begins in timetable.changes(rule.schedule, at_ms):
            yield Coming(when_ms, begins, rule)
    except ScheduleError:
        return


def about_rule(rule: KeptChange) -> str:
    assert rule.schedule is not None
    return f"{id_of(rule.key)}, {timetable.in_words(rule.schedule)}"


def window_in_words(rule: KeptChange, at_ms: int) -> str:
    assert rule.schedule is not None
    zone, found = rule.schedule.zone, window(rule, at_ms)
    if found is None:
        return "is over"
    until = f" until {timetable.shown(found.end_ms, zone)}" if found.end_ms else ""
    if found.begin_ms <= at_ms:
        return f"now{until}"
    return f"from {timetable.shown(found.begin_ms, zone)}{until}"


class CalendarThread:
    """Changes the core's settings when scheduled rules begin and end."""

    def __init__(
        self,
        clock: Clock,
        rules: Callable[[], tuple[KeptChange, ...]],
        is_due: Callable[[int], bool],
        follow: Callable[[], Future[None]],
    ) -> None:
        """Prepare; nothing runs yet.

        `rules`: returns all scheduled rules, on any thread.
        `is_due`: whether a change is due at a time, on any thread.
        `follow`: makes the changes that are due, on the core's thread.
        """
        self._clock = clock
        self._rules = rules
        self._is_due = is_due
        self._follow = follow
        self._changed = Condition()
        self._closing = self._looks_again = False
        self._thread = LastingThread("calendar", self._run)

    def start(self) -> None:
        self._thread.start()

    def look(self) -> None:
        """Evaluate the rules again, because they have changed."""
        with self._changed:
            self._looks_again = True
            self._changed.notify_all()

    def close(self, within_s: float = 5.0) -> None:
        """End; the core must still respond."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.end()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._looks_again = False
                if self._closing:
                    return
            now_ms = self._clock.now_ms()
            if self._is_due(now_ms):
                self._follow().result(ANSWER_S)
            first = coming(self._rules(), now_ms, 1)
            left_s = (first[0].at_ms - now_ms) / 1000 if first else LOOK_S
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._looks_again, min(left_s, LOOK_S)
                )

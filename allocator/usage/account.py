"""The account: a fold over the records that a sidecar follows.

Time is the master's clock, in milliseconds of UTC, as the records have it. The account's own time
only moves forward. While a session is up, each step of the clock counts what was held at its
beginning. Everything else is unknown: time without a session, and a step of more than `GAP_MS`.
Then the capacity counts as it was known last. Time before the account's own, as after a failover to
a master whose clock is behind, counts nothing.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from allocator.core import GAP_MS
from allocator.usage.buckets import BY, DAY_MS, HELD, HOUR_MS, Bucket, BucketError, Part
from allocator.usage.holdings import STEP_MS, Holdings, Names, Owner
from allocator.wire.session.sidecar import Sidecar
from allocator.wire.session.sidecar_session import SessionState

HOURS_KEPT = 8 * 24
DAYS_KEPT = 400


class Closed(NamedTuple):
    """A bucket that is over; `span_ms` is `HOUR_MS` or `DAY_MS`."""

    span_ms: int
    begin_ms: int
    bucket: Bucket


class Moment(NamedTuple):
    """An account at one moment, for other threads, and to go on from.

    `day`: without the hour that is not over.
    """

    now_ms: int
    capacity: dict[str, int]
    hour: Bucket
    day: Bucket

    def to_bytes(self) -> dict[str, bytes]:
        """Write it, in parts by name."""
        state = {"now_ms": self.now_ms, "capacity": self.capacity}
        text = json.dumps(state, sort_keys=True).encode()
        return {"state": text, "hour": self.hour.to_bytes(), "day": self.day.to_bytes()}

    @classmethod
    def from_bytes(cls, kept: Mapping[str, bytes]) -> "Moment":
        """Read it. Raises BucketError if it is broken."""
        try:
            state = json.loads(kept["state"])
            now_ms, capacity = int(state["now_ms"]), dict(state["capacity"])
        except (ValueError, KeyError, TypeError) as error:
            raise BucketError(f"{type(error).__name__}: {error}") from None
        return cls(now_ms, capacity, *(Bucket.from_bytes(kept[each]) for each in ("hour", "day")))


class Account:
    """The usage since it began, in hours and days.

    `now_ms`: up to here everything is accounted for; -1 before the first session.
    `hour`, `day`: those that are not over; the day without its hours that are not.
    `total`: of all hours that ended since this process began; by name only of roles.
    """

    def __init__(self, put: Callable[[Closed], None]) -> None:
        """Begin with nothing.

        `put`: takes hours and days that are over.
        """
        self.now_ms = -1
        self.hour, self.day, self.total = Bucket(), Bucket(), Bucket()
        self._put = put
        self._capacity: dict[str, int] = {}
        self._capacity_ms = self.now_ms  # up to here it is in the bucket
        self._holdings: Holdings | None = None

    # Following.

    def follow(self, sidecar: Sidecar | None) -> None:
        """Apply the changes of a record; call it after each."""
        session = None if sidecar is None else sidecar.session
        if sidecar is None or session is None or session.state is not SessionState.STREAMING:
            self._leave()
            return
        state, clock_ms = sidecar.allocator.state, session.clock_ms
        holdings = self._holdings
        if holdings is not None and holdings.state is state:
            self._pass(clock_ms)
            if holdings.is_of(state):
                holdings.follow()
                if holdings.has_other_capacity:
                    self._count_capacity()
                    holdings.read_capacity()
                    self._capacity = holdings.capacity
                return
        # Other books, or other kinds of resources in them.
        self._leave()
        if self.now_ms < 0:
            self.now_ms = self._capacity_ms = clock_ms
        self._pass(clock_ms)
        holdings = Holdings(state, self.now_ms, self._place, self._add)
        self._holdings, self._capacity = holdings, holdings.capacity

    def settle(self) -> None:
        """Bring the buckets up to now."""
        if self._holdings is not None:
            self._holdings.take_out()
        self._count_capacity()

    def reset(self) -> None:
        """Forget all so far, and start again at this moment."""
        self.settle()
        self.total.add_roles(self.hour)
        self.hour, self.day = Bucket(), Bucket()
        if self._holdings is not None:
            self._holdings.renew()

    def moment(self) -> Moment:
        """Bring the account up to date, and copy its unfinished part."""
        self.settle()
        return Moment(self.now_ms, self._capacity, self.hour.copied(), self.day.copied())

    def resume(self, kept: Moment) -> None:
        """Continue from a moment; holdings since then are unknown."""
        self._leave()
        self.now_ms = self._capacity_ms = kept.now_ms
        self._capacity, self.hour, self.day = kept.capacity, kept.hour, kept.day

    def _leave(self) -> None:
        if self._holdings is not None:
            self.settle()
            self._holdings.leave()
            self._holdings = None

    # Time.

    def _pass(self, clock_ms: int) -> None:
        """Let time pass up to a clock, if it is ahead."""
        if self._holdings is not None and clock_ms - self.now_ms > GAP_MS:
            self.settle()
            kept, self._holdings = self._holdings, None
            self._pass_unknown(clock_ms)
            kept.skip(self.now_ms)
            kept.renew()
            self._holdings = kept
            return
        if self._holdings is None:
            self._pass_unknown(clock_ms)
            return
        while clock_ms >= (end_ms := self.now_ms - self.now_ms % STEP_MS + STEP_MS):
            self._move(end_ms)
            self.settle()
            self._end_hour()
        self._move(clock_ms)

    def _move(self, now_ms: int) -> None:
        if now_ms > self.now_ms:
            self.now_ms = now_ms
            if self._holdings is not None:
                self._holdings.advance(now_ms)

    def _pass_unknown(self, clock_ms: int) -> None:
        """Let time pass during which holdings are unknown."""
        if clock_ms - self.now_ms > DAYS_KEPT * DAY_MS:
            # Nothing from before is kept: look at the last days alone.
            self._drop(clock_ms - DAYS_KEPT * DAY_MS)
        while clock_ms >= (end_ms := self.now_ms - self.now_ms % HOUR_MS + HOUR_MS):
            self._move(end_ms)
            self._count_capacity()
            self._end_hour()
        self._move(clock_ms)
        self._count_capacity()

    def _drop(self, now_ms: int) -> None:
        self.hour, self.day = Bucket(), Bucket()
        self.now_ms = self._capacity_ms = now_ms - now_ms % DAY_MS

    def _end_hour(self) -> None:
        """Close the spans that have ended."""
        if self.now_ms % HOUR_MS:
            return
        hour, self.hour = self.hour, Bucket()
        self.total.add_roles(hour)
        hour.close()
        self._put(Closed(HOUR_MS, self.now_ms - HOUR_MS, hour))
        self.day.add(hour)
        if self.now_ms % DAY_MS == 0:
            day, self.day = self.day, Bucket()
            day.close()
            self._put(Closed(DAY_MS, self.now_ms - DAY_MS, day))
        if self._holdings is not None:
            self._holdings.renew()

    # What the time came to.

    def _place(self, owner: Owner) -> Names:
        names = tuple(self.hour.place(by, name) for by, name in zip(BY, owner, strict=False))
        if names[1] == owner.framework:
            self.hour.titles[owner.framework] = owner.title
        return names

    def _add(self, names: Names, parts: list[dict[str, int]]) -> None:
        hour = self.hour
        for part, amounts in zip(HELD, parts, strict=True):
            for resource, amount in amounts.items():
                hour.parts[resource, part] += amount
                hour.parts[resource, Part.IDLE] -= amount
                for by, name in zip(BY, names, strict=True):
                    hour.held[by][name, resource, part] += amount

    def _count_capacity(self) -> None:
        """Count the capacity up to now; holdings are subtracted from idle amounts."""
        span_ms = self.now_ms - self._capacity_ms
        self._capacity_ms = self.now_ms
        self.hour.span_ms += span_ms
        part = Part.UNKNOWN if self._holdings is None else Part.IDLE
        for resource, amount in self._capacity.items():
            self.hour.parts[resource, part] += amount * span_ms

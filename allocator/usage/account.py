"""The account of usage: updated by each record of a sidecar.

Time is the master's clock, in milliseconds of UTC, as in the records. The account's own time only
moves forward; earlier times, as after a failover to a master whose clock is behind, are ignored.
During a session, each step of the clock counts what was held at its beginning. Time without a
session, and steps of more than `GAP_MS`, are *unknown*: they count the last known capacity.
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
    """A closed bucket; `span_ms` is `HOUR_MS` or `DAY_MS`."""

    span_ms: int
    begin_ms: int
    bucket: Bucket


class Moment(NamedTuple):
    """The account at one moment, for other threads, and to continue from.

    `day`: without the current hour.
    """

    now_ms: int
    capacity: dict[str, int]
    hour: Bucket
    day: Bucket

    def to_bytes(self) -> dict[str, bytes]:
        state = {"now_ms": self.now_ms, "capacity": self.capacity}
        text = json.dumps(state, sort_keys=True).encode()
        return {"state": text, "hour": self.hour.to_bytes(), "day": self.day.to_bytes()}

    @classmethod
    def from_bytes(cls, kept: Mapping[str, bytes]) -> "Moment":
        try:
            state = json.loads(kept["state"])
            now_ms, capacity = int(state["now_ms"]), dict(state["capacity"])
        except (ValueError, KeyError, TypeError) as error:
            raise BucketError(f"{type(error).__name__}: {error}") from None
        return cls(now_ms, capacity, *(Bucket.from_bytes(kept[each]) for each in ("hour", "day")))


class Account:
    """Usage since the account began, in hours and days.

    `now_ms`: the time up to which everything is counted; -1 before the first session.
    `hour`, `day`: the current ones; the day without the current hour.
    `total`: sum over all hours that ended since this process began; by name only for roles.
    """

    def __init__(self, put: Callable[[Closed], None]) -> None:
        """Start an empty account; `put`: receives closed hours and days."""
        self.now_ms = -1
        self.hour, self.day, self.total = Bucket(), Bucket(), Bucket()
        self._put = put
        self._capacity: dict[str, int] = {}
        self._capacity_ms = self.now_ms  # up to this time, capacity is in the bucket
        self._holdings: Holdings | None = None

    # Following.

    def follow(self, sidecar: Sidecar | None) -> None:
        """Apply the changes of a record; must be called after each record."""
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
        # These are other books, or their kinds of resources have changed.
        self._leave()
        if self.now_ms < 0:
            self.now_ms = self._capacity_ms = clock_ms
        self._pass(clock_ms)
        holdings = Holdings(state, self.now_ms, self._place, self._add)
        self._holdings, self._capacity = holdings, holdings.capacity

    def settle(self) -> None:
        if self._holdings is not None:
            self._holdings.take_out()
        self._count_capacity()

    def reset(self) -> None:
        self.settle()
        self.total.add_roles(self.hour)
        self.hour, self.day = Bucket(), Bucket()
        if self._holdings is not None:
            self._holdings.renew()

    def moment(self) -> Moment:
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
        if clock_ms - self.now_ms > DAYS_KEPT * DAY_MS:
            # Buckets before this time would not be kept.
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

    # Adding up usage.

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
        """Add the capacity up to now, as idle or unknown; idle amounts are reduced by `_add`."""
        span_ms = self.now_ms - self._capacity_ms
        self._capacity_ms = self.now_ms
        self.hour.span_ms += span_ms
        part = Part.UNKNOWN if self._holdings is None else Part.IDLE
        for resource, amount in self._capacity.items():
            self.hour.parts[resource, part] += amount * span_ms

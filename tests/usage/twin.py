"""A naive account of usage: visits all books after each record, and adds everything up."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np

from allocator.core import GAP_MS, Allocator, State
from allocator.usage.buckets import HOUR_MS, NOT_KNOWN, Bucket, Part
from allocator.wire.session.sidecar import Sidecar
from allocator.wire.session.sidecar_session import SessionState


class Session(NamedTuple):
    state: SessionState
    clock_ms: int


class Warped(NamedTuple):
    """A sidecar whose sessions have another clock."""

    allocator: Allocator
    session: Session | None


def warped(sidecar: Sidecar | None, warp) -> Any:
    """Give a sidecar other times; `warp` computes them from the session's number and clock."""
    if sidecar is None:
        return None
    session = sidecar.session
    if session is None:
        return Warped(sidecar.allocator, None)
    clock_ms = warp(sidecar.active, session.clock_ms)
    return Warped(sidecar.allocator, Session(session.state, clock_ms))


class _Seen(NamedTuple):
    held: Counter
    idle: Counter
    capacity: Counter
    state: State | None


class Twin:
    """Adds up amounts by the hour: by name, resource and part, and idle ones."""

    def __init__(self):
        self.now_ms = -1
        self.held: dict[int, Counter[Any]] = defaultdict(Counter)
        self.parts: dict[int, Counter[Any]] = defaultdict(Counter)
        self.capacity: dict[int, Counter[str]] = defaultdict(Counter)
        self._seen = _Seen(Counter(), Counter(), Counter(), None)

    def follow(self, sidecar: Warped | None) -> None:
        session = None if sidecar is None else sidecar.session
        if sidecar is None or session is None or session.state is not SessionState.STREAMING:
            self._seen = self._seen._replace(state=None)
            return
        state = sidecar.allocator.state
        if self.now_ms < 0:
            self.now_ms = session.clock_ms
        if session.clock_ms > self.now_ms:
            known = self._seen.state is state and session.clock_ms - self.now_ms <= GAP_MS
            self._pass(session.clock_ms, known=known)
        self._seen = look(state)

    def _pass(self, clock_ms: int, *, known: bool) -> None:
        while self.now_ms < clock_ms:
            hour = self.now_ms // HOUR_MS
            end_ms = min(clock_ms, (hour + 1) * HOUR_MS)
            span_ms = end_ms - self.now_ms
            for resource, amount in self._seen.capacity.items():
                self.capacity[hour][resource] += amount * span_ms
                if not known:
                    self.parts[hour][resource, Part.UNKNOWN] += amount * span_ms
            if known:
                for resource, amount in self._seen.idle.items():
                    self.parts[hour][resource, Part.IDLE] += amount * span_ms
                for (names, resource, part), amount in self._seen.held.items():
                    self.parts[hour][resource, part] += amount * span_ms
                    self.held[hour][names, resource, part] += amount * span_ms
            self.now_ms = end_ms


def look(state: State) -> _Seen:
    """Add up the current rows of the books."""
    books, kinds = state.ledger.books, state.space.kinds
    counted = [
        (handle, kind.name)
        for handle, kind in enumerate(kinds)
        if kind is not None and kind.scalar and not kind.shared
    ]
    held, idle, capacity = Counter[Any](), Counter[str](), Counter[str]()
    for agent in np.flatnonzero(state.agents.bound).tolist():
        for handle, name in counted:
            capacity[name] += int(state.agents.capacity[handle, agent])
            idle[name] += int(state.agents.capacity[handle, agent])
    for row in state.ledger.rows().tolist():
        client = int(books.client[row])
        info = state.frameworks.info[int(state.clients.framework[client])]
        role = state.roles.path[int(state.clients.role[client])]
        names = (role, NOT_KNOWN, NOT_KNOWN)
        if info is not None:
            names = (role, info.framework_id, info.principal)
        for handle, name in counted:
            offered = int(books.offered[handle, row])
            held[names, name, Part.OFFERED] += offered
            held[names, name, Part.USED] += int(books.held[handle, row]) - offered
            idle[name] -= int(books.held[handle, row])
    for name, amount in idle.items():  # of an agent that shrank, all that is held counts
        capacity[name] -= min(amount, 0)
        idle[name] = max(amount, 0)
    return _Seen(held, idle, capacity, state)


def compare(twin: Twin, hours: dict[int, Bucket]) -> None:
    """Compare every hour of an account (by its number) with this one's."""
    for hour in set(twin.parts) | set(hours):
        bucket = hours.get(hour, Bucket())
        assert +bucket.parts == +twin.parts[hour], hour
        assert not -bucket.parts, hour
        for place, by in enumerate(bucket.held):
            expected = Counter[Any]()
            for (names, resource, part), amount in twin.held[hour].items():
                expected[names[place], resource, part] += amount
            assert +bucket.held[by] == +expected, (hour, by)
        for resource, amount in twin.capacity[hour].items():
            assert sum(bucket.parts[resource, part] for part in Part) == amount

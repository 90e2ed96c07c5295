"""The trail: the recent history of cycles, to explain why a client got nothing.

A trail keeps the last cycles, each with the policy's input and grants, and the last events about
offers. It copies only data that changes later. No decision depends on it, and no checkpoint
contains it.
"""

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from allocator.core.books.state import State
from allocator.core.cycle.decisions import Decisions
from allocator.core.events import (
    AgentInfo,
    Event,
    FrameworkInfo,
    Moves,
    Outcomes,
    Release,
    Transition,
)
from allocator.core.filters.filter_arrays import excerpt
from allocator.core.numba.wide_tables import copied
from allocator.core.policy import PolicySpec
from allocator.core.snapshot import Bools, Filters, Floats, Grants, Ints, Snapshot

CYCLES_MAX = 256
"""Maximum number of cycles whose decisions are kept."""

SNAPSHOTS_MAX = 32
"""Maximum number of cycles, the latest, whose input is kept, too."""

BYTES_MAX = 32 * 2**20
"""Maximum size of all cycles together; the oldest are dropped first."""

SNAPSHOT_BYTES_MAX = 8 * 2**20
"""Maximum size of the input of one cycle; if it is larger, only the cycle's decisions are kept."""

EVENTS_MAX = 4096
EVENT_BYTES_MAX = 8 * 2**20

_AGENTS_NAMED = 256
"""Maximum number of agent names per cycle."""

_FILTERS_MAX = 512

_SHADOW_CELLS_MAX = 2**20
"""Maximum number of amounts in the filters that are copied for the shadow policy."""

_NO_ROWS = np.empty(0, np.int32)

_OFFER_EVENTS = (Moves, Outcomes, Release, Transition)


@dataclass(frozen=True, slots=True)
class Names:
    """The identities of clients' rows at one moment.

    `framework`, `role` (C,): handles; 0 if the row was free.
    `info`: by handle of the framework.
    `path`: by handle of the role; the books' own list, which only grows.
    """

    framework: Ints
    role: Ints
    info: tuple[FrameworkInfo | None, ...]
    path: Sequence[str]


@dataclass(slots=True)
class CycleRecord:
    """A past cycle; the trail drops its snapshot when it is no longer among the latest.

    `stamp`: increases with each cycle and event.
    `at_ms`: time by the host's clock.
    `whole`: whether it covered all agents.
    `candidates`: number of agents with free resources.
    `agents`: the first candidate agents.
    `seen`: the input of the policy, as it was before the cycle; None if not kept.
    `grants`: the policy's grants, including those too small for the client's minimum.
    `policy_error`: why the substitute decided; empty if the policy did.
    `nbytes`: memory that the record uses, without `seen`.
    `probed` (C,): clients whose demand was being probed; kept only for a shadow policy.
    """

    stamp: int
    number: int
    at_ms: int
    whole: bool
    candidates: int
    names: Names
    agents: tuple[AgentInfo | None, ...]
    seen: "Seen | None"
    grants: Grants
    decisions: Decisions
    policy: PolicySpec
    policy_error: str
    nbytes: int
    seed: int
    probed: Bools | None

    @property
    def snapshot(self) -> Snapshot | None:
        return self.seen.snapshot() if self.seen else None


class Seen(NamedTuple):
    """A policy's snapshot, with copies of the arrays that the books change later.

    `taken`: the snapshot; the arrays copied below have changed since.
    `filters`: the lists of filters may be missing; the bits in `Filters.covered` never are.
    `filters_kept`: whether the lists of filters are complete.
    `nbytes`: approximate memory of all this, in bytes.
    """

    taken: Snapshot
    agents_held: Ints | Floats
    excluding: Bools
    filters: Filters
    filters_kept: bool
    nbytes: int

    def snapshot(self) -> Snapshot:
        return replace(
            self.taken,
            agents_held=self.agents_held,
            excluding=self.excluding,
            filters=self.filters,
        )


class OfferEvent(NamedTuple):
    """An event about offers; `stamp`: as in `CycleRecord`."""

    stamp: int
    at_ms: int
    event: Moves | Outcomes | Release | Transition
    nbytes: int


class Trail:
    """Recent cycles and events about offers, the oldest first; bounded in bytes.

    `for_shadow`: the latest cycle with its input, if there is a shadow policy; the host takes it.
    `shadow_bytes_max`: maximum size of this input, set by the host; 0: keep none.
    """

    def __init__(self) -> None:
        self.cycles: deque[CycleRecord] = deque()
        self._bytes = 0
        self.events: deque[OfferEvent] = deque()
        self._event_bytes = 0
        self._stamp = 0
        self._names: tuple[tuple[int, int], Names] | None = None
        self.for_shadow: CycleRecord | None = None
        self.shadow_bytes_max = 0

    def see(self, state: State, snapshot: Snapshot) -> Seen | None:
        """Copy the parts of a cycle's input that the cycle will change; None: too large."""
        if state.settings.shadow is None or not self.shadow_bytes_max:
            return see(snapshot, nbytes_max=SNAPSHOT_BYTES_MAX)
        # In another mode, filters must be checked one by one, so keep more of them.
        cells = max(1, len(snapshot.filters.amount))
        filters_max = max(_FILTERS_MAX, _SHADOW_CELLS_MAX // cells)
        return see(snapshot, filters_max, max(SNAPSHOT_BYTES_MAX, self.shadow_bytes_max))

    def note(self, now_ms: int, event: Event | Moves) -> None:
        """Record an event, if it is about offers."""
        if not isinstance(event, _OFFER_EVENTS):  # most events
            return
        nbytes = _size_of(event)
        self._stamp += 1
        self.events.append(OfferEvent(self._stamp, now_ms, event, nbytes))
        self._event_bytes += nbytes
        while len(self.events) > EVENTS_MAX or self._event_bytes > EVENT_BYTES_MAX:
            self._event_bytes -= self.events.popleft().nbytes

    def keep(
        self,
        state: State,
        snapshot: Snapshot,
        seen: Seen | None,
        grants: Grants,
        decisions: Decisions,
        policy_error: str,
        *,
        seed: int,
        probed: Bools | None,
        whole: bool,
    ) -> None:
        """Record a cycle that was decided; `seen`: the input, copied before the cycle."""
        self._stamp += 1
        candidates, info = snapshot.agents, state.agents.info
        size = grants.amount.nbytes
        for group in decisions.groups:
            size += group.amount.nbytes
        record = CycleRecord(
            stamp=self._stamp,
            number=decisions.cycle,
            at_ms=state.now_ms,
            whole=whole,
            candidates=len(candidates),
            names=self.names(state),
            agents=tuple(
                [info[handle] for handle in snapshot.handle[candidates[:_AGENTS_NAMED]].tolist()]
            ),
            seen=seen,
            grants=grants,
            decisions=decisions,
            policy=state.settings.policy,
            policy_error=policy_error,
            nbytes=size,
            seed=seed,
            probed=probed,
        )
        if probed is not None:
            self.for_shadow = copy(record)
        if seen is not None and seen.nbytes > SNAPSHOT_BYTES_MAX:
            record.seen = None
        self.cycles.append(record)
        self._bytes += _size_of_record(record)
        if len(self.cycles) > SNAPSHOTS_MAX:
            old = self.cycles[-SNAPSHOTS_MAX - 1]
            self._bytes -= _size_of_record(old) - old.nbytes
            old.seen = None
        while len(self.cycles) > CYCLES_MAX or self._bytes > BYTES_MAX:
            self._bytes -= _size_of_record(self.cycles.popleft())

    def latest(self) -> tuple[CycleRecord, ...]:
        """Copy the records of all kept cycles, oldest first, for another thread."""
        return tuple(map(copy, self.cycles))

    def names(self, state: State) -> Names:
        version = state.clients.version, state.roles.version
        if self._names is None or self._names[0] != version:
            names = Names(
                framework=state.clients.framework.copy(),
                role=state.clients.role.copy(),
                info=tuple(state.frameworks.info),
                path=state.roles.path,
            )
            self._names = version, names
        return self._names[1]


def see(
    snapshot: Snapshot, filters_max: int = _FILTERS_MAX, nbytes_max: int = 2**62
) -> Seen | None:
    """Copy the parts of a snapshot that the books change later; None: it exceeds `nbytes_max`.

    `snapshot`: as it was at the start of the cycle.
    `filters_max`: if there are more filters, none are copied.
    """
    nbytes = _size_of_snapshot(snapshot)
    if nbytes > nbytes_max:
        return None
    filters = snapshot.filters
    # Usually a cycle covers few agents, and none of them has a filter.
    none = bool((filters.head[snapshot.agents] < 0).all())
    kept = None if none else excerpt(filters, snapshot.agents, filters_max)
    largest, covered = copied(filters.largest), copied(filters.covered)
    if kept is None:
        head = np.full(len(filters.head), -1, np.int32)
        lists = Filters(
            head, _NO_ROWS, _NO_ROWS, np.empty((len(filters.amount), 0), np.int64), *filters[4:]
        )
    else:
        lists = kept
    return Seen(
        snapshot,
        snapshot.agents_held.copy(),
        snapshot.excluding.copy(),
        lists._replace(largest=largest, covered=covered),
        none or kept is not None,
        nbytes,
    )


def _size_of_snapshot(snapshot: Snapshot) -> int:
    """Return the approximate size in bytes of the arrays that only the snapshot uses."""
    filters, bounds, plan = snapshot.filters, snapshot.bounds, snapshot.plan
    return (
        2 * snapshot.free.nbytes
        + (0 if plan is None else plan.held.nbytes + plan.agents_held.nbytes)
        + snapshot.held.nbytes
        + snapshot.agents_held.nbytes
        + snapshot.excluded.row.nbytes
        + snapshot.excluded.bits.nbytes
        + snapshot.holder.nbytes
        + bounds.left.nbytes
        + bounds.owed.nbytes
        + bounds.of_client.nbytes
        + bounds.further.nbytes
        + snapshot.tree.served.nbytes
        + filters.largest.nbytes
        + filters.covered.nbytes
    )


def _size_of_record(record: CycleRecord) -> int:
    return record.nbytes + (record.seen.nbytes if record.seen else 0)


def _size_of(event: Moves | Outcomes | Release | Transition) -> int:
    if isinstance(event, Outcomes):
        return event.reason.nbytes + event.amount.nbytes
    if isinstance(event, Moves):
        return event.holdings.amount.nbytes + 7 * event.what.nbytes
    holdings = event.used if isinstance(event, Transition) else event.released
    return holdings.amount.nbytes + 3 * holdings.framework.nbytes

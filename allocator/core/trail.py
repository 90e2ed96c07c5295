"""What happened lately, for whoever asks why somebody got nothing.

A trail keeps the last cycles, each with what the policy saw and gave, and the last events about
offers. It refers to what was made anyway, and copies only what the books go on to change. No
decision depends on it, and no checkpoint holds it.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from allocator.core.decisions import Decisions
from allocator.core.events import (
    AgentInfo,
    Event,
    FrameworkInfo,
    Outcomes,
    Release,
    Transition,
)
from allocator.core.filters.excerpt import excerpt
from allocator.core.policy import PolicySpec
from allocator.core.snapshot import Grants, Ints, Snapshot
from allocator.core.state import State

CYCLES_MAX = 256
"""Cycles of which the decisions are kept."""

SNAPSHOTS_MAX = 32
"""Of the latest of these what the policy saw is kept, too."""

BYTES_MAX = 32 * 2**20
"""What cycles take together; the oldest go first."""

SNAPSHOT_BYTES_MAX = 8 * 2**20
"""Of a cycle that saw more, only the decisions are kept."""

EVENTS_MAX = 4096
EVENT_BYTES_MAX = 8 * 2**20

_AGENTS_NAMED = 256
"""Of so many agents of a cycle it is kept what they were called then."""

_FILTERS_MAX = 512


@dataclass(frozen=True, slots=True)
class Names:
    """Whom the rows of clients meant at a moment.

    Attributes
    ----------
    framework, role : (C,) int64
        Handles; 0 where the row was free.
    info : tuple of FrameworkInfo or None
        By handle of the framework.
    path : tuple of str
        By handle of the role.
    """

    framework: Ints
    role: Ints
    info: tuple[FrameworkInfo | None, ...]
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CycleRecord:
    """A cycle that was run.

    Attributes
    ----------
    stamp : int
        Grows from event to cycle to event.
    number : int
    at_ms : int
        On the host's clock.
    whole : bool
        It was about all agents.
    candidates : int
        Agents with something to give.
    names : Names
    agents : tuple of AgentInfo or None
        The first candidate agents.
    snapshot : Snapshot or None
        What the policy saw, as it was before the cycle; None where it is not kept.
    filters_kept : bool
        Whether the snapshot's lists of filters are complete; its bits always are.
    bound_paths : tuple of str
        Roles that the first of the snapshot's bounds are for.
    grants : Grants
        What the policy gave, before what is below somebody's minimum was dropped.
    decisions : Decisions
    policy : PolicySpec
        What was to decide.
    policy_error : str
        Why the fallback decided; empty where the policy did.
    nbytes : int
        What is kept of it because of this record.
    """

    stamp: int
    number: int
    at_ms: int
    whole: bool
    candidates: int
    names: Names
    agents: tuple[AgentInfo | None, ...]
    snapshot: Snapshot | None
    filters_kept: bool
    bound_paths: tuple[str, ...]
    grants: Grants
    decisions: Decisions
    policy: PolicySpec
    policy_error: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class OfferEvent:
    """Something that became of offers.

    Attributes
    ----------
    stamp : int
        As in `CycleRecord`.
    at_ms : int
    event : Outcomes, Release or Transition
    nbytes : int
    """

    stamp: int
    at_ms: int
    event: Outcomes | Release | Transition
    nbytes: int


class Trail:
    """The last cycles and the last events about offers, the oldest first; bounded in bytes.

    Attributes
    ----------
    cycles : deque of CycleRecord
    events : deque of OfferEvent
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.cycles: deque[CycleRecord] = deque()
        self._bytes = 0
        self.events: deque[OfferEvent] = deque()
        self._event_bytes = 0
        self._stamp = 0
        self._names: tuple[tuple[int, int], Names] | None = None

    def note(self, now_ms: int, event: Event) -> None:
        """Keep an event that says what became of offers."""
        if not isinstance(event, Outcomes | Release | Transition):
            return
        nbytes = _size_of(event)
        self._stamp += 1
        self.events.append(OfferEvent(self._stamp, now_ms, event, nbytes))
        self._event_bytes += nbytes
        while len(self.events) > EVENTS_MAX or self._event_bytes > EVENT_BYTES_MAX:
            self._event_bytes -= self.events.popleft().nbytes

    def seen(self, snapshot: Snapshot) -> tuple[Snapshot | None, bool]:
        """Take what the policy sees, before the cycle changes the books.

        Returns
        -------
        (snapshot or None, bool)
            None where it is too large to be kept; whether its lists of filters are complete.
        """
        if _size_seen(snapshot) > SNAPSHOT_BYTES_MAX:
            return None, False
        return lasting(snapshot, _FILTERS_MAX)

    def keep(
        self,
        state: State,
        snapshot: Snapshot,
        seen: tuple[Snapshot | None, bool],
        grants: Grants,
        decisions: Decisions,
        policy_error: str,
        *,
        whole: bool,
        bound_paths: tuple[str, ...],
    ) -> None:
        """Keep a cycle that was decided; `seen` is what `seen` gave before."""
        named = snapshot.handle[snapshot.agents[:_AGENTS_NAMED]].tolist()
        size = _size_seen(snapshot) if seen[0] is not None else 0
        size += sum(group.amount.nbytes for group in decisions.groups) + grants.amount.nbytes
        self._stamp += 1
        record = CycleRecord(
            stamp=self._stamp,
            number=decisions.cycle,
            at_ms=state.now_ms,
            whole=whole,
            candidates=len(snapshot.agents),
            names=self.names(state),
            agents=tuple(state.agents.info[handle] for handle in named),
            snapshot=seen[0],
            filters_kept=seen[1],
            bound_paths=bound_paths,
            grants=grants,
            decisions=decisions,
            policy=state.settings.policy,
            policy_error=policy_error,
            nbytes=size,
        )
        self.cycles.append(record)
        self._bytes += size
        if len(self.cycles) > SNAPSHOTS_MAX:
            self._forget_snapshot(len(self.cycles) - SNAPSHOTS_MAX - 1)
        while len(self.cycles) > CYCLES_MAX or self._bytes > BYTES_MAX:
            self._bytes -= self.cycles.popleft().nbytes

    def names(self, state: State) -> Names:
        """Whom the rows of clients mean now."""
        version = state.clients.version, state.roles.version
        if self._names is None or self._names[0] != version:
            names = Names(
                framework=state.clients.framework.copy(),
                role=state.clients.role.copy(),
                info=tuple(state.frameworks.info),
                path=tuple(state.roles.path),
            )
            self._names = version, names
        return self._names[1]

    def _forget_snapshot(self, index: int) -> None:
        """Keep only the decisions of a cycle."""
        record = self.cycles[index]
        if record.snapshot is not None:
            size = record.nbytes - _size_seen(record.snapshot)
            self._bytes -= record.nbytes - size
            self.cycles[index] = replace(record, snapshot=None, nbytes=size)


def lasting(snapshot: Snapshot, filters_max: int) -> tuple[Snapshot, bool]:
    """Copy of a snapshot what the books go on to change.

    Parameters
    ----------
    snapshot : Snapshot
        As it was taken.
    filters_max : int
        So many filters are copied at most; the bits of what they cover always are.

    Returns
    -------
    (Snapshot, bool)
        Whether its lists of filters are complete.
    """
    filters = snapshot.filters
    kept = excerpt(filters, snapshot.agents, filters_max)
    if kept is None:
        nothing = np.empty(0, np.int32)
        kept = filters._replace(
            head=np.full_like(filters.head, -1),
            next=nothing,
            client=nothing,
            amount=np.empty((0, filters.amount.shape[1]), np.int64),
        )
        complete = False
    else:
        complete = True
    copied = replace(
        snapshot,
        agents_held=snapshot.agents_held.copy(),
        excluded=snapshot.excluded.copy(),
        filters=kept._replace(largest=filters.largest.copy(), covered=filters.covered.copy()),
    )
    return copied, complete


def _size_seen(snapshot: Snapshot) -> int:
    """Bytes of a snapshot that nothing else keeps, about."""
    filters = snapshot.filters
    arrays = (
        snapshot.free,
        snapshot.capacity,
        snapshot.held,
        snapshot.agents_held,
        snapshot.excluded,
        snapshot.holder,
        snapshot.handle,
        snapshot.bounds.left,
        snapshot.bounds.owed,
        snapshot.bounds.of_client,
        snapshot.tree.served,
        filters.largest,
        filters.covered,
    )
    return sum(array.nbytes for array in arrays)


def _size_of(event: Outcomes | Release | Transition) -> int:
    if isinstance(event, Outcomes):
        return event.reason.nbytes + event.amount.nbytes
    holdings = event.used if isinstance(event, Transition) else event.released
    return holdings.amount.nbytes + 3 * holdings.framework.nbytes

"""The master's end of the session: pending events, roles, snapshot, record, batches."""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from allocator.core import (
    AddAgent,
    AddFilters,
    AddFramework,
    Decisions,
    Define,
    Event,
    Exclude,
    FrameworkInfo,
    Hold,
    Holdings,
    Ints,
    Outcomes,
    Reason,
    Release,
    SetQuota,
    SetWeights,
    SetWhitelist,
    Transition,
)
from allocator.wire import ModuleFigures
from laboratory.frameworks.base import Identity
from laboratory.links.base import Batch, Link, LinkDownError, Opening
from laboratory.master.gates import GateVerdict
from laboratory.master.ledger import AgentRow, FrameworkRow, Ledger
from laboratory.resources import Amount, KindTable, lineage, minus, padded

# Events for the sidecar, in the order in which Mesos causes them.
#
# As in the module, releases and uses of offers are collected as rows of one event until another
# event is sent; then uses are sent first. Amounts are sent by kind, and kinds are defined before
# they are used.

Row = tuple[int, int, int, Amount]
"""Framework, role, agent, amount by resource."""


class Outbox:
    """Events pending for the sidecar.

    kinds: its first, plain kinds are columns of every event; others only of events that use them.
    """

    def __init__(self, kinds: KindTable) -> None:
        self._kinds = kinds
        self._defined = len(kinds)
        self._messages: list[Event] = []
        self._releases: list[tuple[Row, int, bool]] = []
        self._transitions: list[Row] = []
        self._verdicts: list[tuple[Reason, Amount]] = []
        self._first_decision = 0

    def __len__(self) -> int:
        pending = len(self._releases) + len(self._transitions) + len(self._verdicts)
        return len(self._messages) + pending

    def begin(self) -> None:
        """Begin a session: the snapshot defined all kinds that are bound."""
        self._defined = len(self._kinds)

    def by_kind(self, amount: Sequence[int]) -> Amount:
        """Convert a row of resources to kinds, and define new ones."""
        by_kind = self._kinds.by_kind(amount)
        # A kind must be defined before the first event that uses it.
        fresh = self._kinds.kinds[self._defined :]
        if fresh:
            self.add(Define(kinds=dict(enumerate(fresh, self._defined))))
            self._defined = len(self._kinds)
        return by_kind

    def sparse(self, amount: Sequence[int]) -> dict[int, int]:
        """Convert a row of resources to kinds, without zeros."""
        return {kind: value for kind, value in enumerate(self.by_kind(amount)) if value}

    def change(self, gone: Amount, made: Amount) -> tuple[dict[int, int], dict[int, int]]:
        """The amounts by kind that a conversion removes and adds, net."""
        gone, made = self.by_kind(gone), self.by_kind(made)
        net = enumerate(minus(made, gone))
        changes = {kind: value for kind, value in net if value}
        return (
            {kind: -value for kind, value in changes.items() if value < 0},
            {kind: value for kind, value in changes.items() if value > 0},
        )

    def holdings(self, rows: list[Row]) -> Holdings:
        return holdings([(*row[:3], self.by_kind(row[3])) for row in rows], self._kinds.usual)

    def add(self, event: Event) -> None:
        """Queue a separate event."""
        self._close()
        self._messages.append(event)

    def release(self, row: Row, *, refuse_ms: int = -1, used: bool = False) -> None:
        by_kind = (*row[:3], self.by_kind(row[3]))
        # Earlier outcomes must be sent before this release.
        if self._verdicts:
            self._close()
        self._releases.append((by_kind, refuse_ms, used))

    def transition(self, row: Row) -> None:
        by_kind = (*row[:3], self.by_kind(row[3]))
        if self._verdicts:
            self._close()
        self._transitions.append(by_kind)

    def outcome(self, decision: int, verdict: GateVerdict) -> None:
        by_kind = self.by_kind(verdict.amount) if verdict.reason == Reason.PARTIAL else ()
        following = self._first_decision + len(self._verdicts)
        # An event of outcomes must cover consecutive decisions, with no other rows in between.
        if self._releases or self._transitions or decision != following:
            self._close()
        if not self._verdicts:
            self._first_decision = decision
        self._verdicts.append((verdict.reason, by_kind))

    def drain(self) -> list[Event]:
        """Return everything queued, and clear the queue."""
        self._close()
        messages, self._messages = self._messages, []
        return messages

    def _close(self) -> None:
        """Turn collected rows into events."""
        # Uses before releases, as the module sends them.
        if self._transitions:
            self._messages.append(Transition(holdings(self._transitions, self._kinds.usual)))
            self._transitions = []
        if self._releases:
            rows, refuse_ms, used = zip(*self._releases, strict=True)
            self._messages.append(
                Release(
                    holdings(list(rows), self._kinds.usual),
                    np.array(refuse_ms, np.int64),
                    np.array(used, np.bool_),
                )
            )
            self._releases = []
        if self._verdicts:
            reasons = np.array([reason for reason, _ in self._verdicts], np.int64)
            partial = [by_kind for reason, by_kind in self._verdicts if reason == Reason.PARTIAL]
            kinds, amounts = columns(partial, self._kinds.usual)
            self._messages.append(Outcomes(self._first_decision, reasons, kinds, amounts))
            self._verdicts = []


def holdings(rows: list[Row], kinds: int) -> Holdings:
    """Turn rows by kind into columns: the first `kinds` kinds, and others that occur."""
    place = np.array([row[:3] for row in rows], np.int64).reshape(len(rows), 3)
    return Holdings(
        place[:, 0], place[:, 1], place[:, 2], *columns([row[3] for row in rows], kinds)
    )


def columns(amounts: list[Amount], kinds: int) -> tuple[Ints, Ints]:
    """Kinds (K,) and amounts (N, K): the first `kinds` kinds, and others that occur."""
    # Rows may differ in length: pad them with zeros.
    width = max(kinds, *map(len, amounts), 0)
    table = np.array([padded(amount, width) for amount in amounts], np.int64)
    table = table.reshape(len(amounts), width)
    some = (np.arange(width) < kinds) | table.any(axis=0)
    return np.flatnonzero(some), table[:, some]


# Handles of roles, kept for at least a session, and while they are in use.


class Handles:
    """Allocates and frees handles of one type."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self._free: list[int] = []

    def take(self) -> int:
        """Take the lowest free handle."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, handle: int) -> None:
        """Free a handle."""
        heapq.heappush(self._free, handle)


class Roles:
    """Paths of roles and their handles; ancestors are bound with their descendants.

    outbox: where bindings are announced.
    """

    def __init__(self, outbox: Outbox) -> None:
        self.handle: dict[str, int] = {}
        self.path: dict[int, str] = {}
        self._names: Counter[str] = Counter()
        self._handles = Handles()
        self._outbox = outbox

    def name(self, paths: Iterable[str]) -> tuple[int, ...]:
        """Handles of the paths, bound on first use; each call counts as one reference."""
        paths = tuple(paths)
        fresh = {}
        # A role is bound after its ancestors; all are defined in one event.
        for path in _with_ancestors(paths):
            if path not in self.handle:
                fresh[self._bind(path)] = path
            self._names[path] += 1
        if fresh:
            self._outbox.add(Define(roles=fresh))
        return tuple(self.handle[path] for path in paths)

    def forget(self, paths: Iterable[str]) -> None:
        """Drop one reference to each path; unreferenced ones are unbound with the next session."""
        for path in _with_ancestors(tuple(paths)):
            self._names[path] -= 1

    @property
    def idle(self) -> int:
        """The number of roles without a reference, which the next session frees."""
        return sum(not references for references in self._names.values())

    def begin(self) -> None:
        """Begin a session, with referenced roles only."""
        for path in [path for path in self.handle if not self._names[path]]:
            # A handle keeps its role within a session, so it can be freed only between sessions.
            handle = self.handle.pop(path)
            del self.path[handle], self._names[path]
            self._handles.give_back(handle)

    def _bind(self, path: str) -> int:
        handle = self._handles.take()
        self.handle[path] = handle
        self.path[handle] = path
        return handle


def _with_ancestors(paths: tuple[str, ...]) -> list[str]:
    """Every path after its ancestors; shared ancestors are repeated for each."""
    found = []
    for path in paths:
        found += lineage(path)
    return found


# The master's whole state as events, for the beginning of a session.


def agent_event(agent: int, row: AgentRow, capacity: Mapping[int, int]) -> AddAgent:
    """The announcement of an agent, with its capacity by kind."""
    start_ms, duration_ms = row.unavailable_ms or (-1, 0)
    return AddAgent(agent, row.info, capacity, row.active, start_ms, duration_ms)


def framework_info(identity: Identity, row: FrameworkRow) -> FrameworkInfo:
    return FrameworkInfo(
        framework_id=row.framework_id,
        name=identity.name,
        user=identity.user,
        principal=identity.principal,
        labels=identity.labels(),
        capabilities=row.capabilities,
        minimum=dict(row.minimum),
    )


def snapshot(
    ledger: Ledger,
    identities: Mapping[int, Identity],
    weights: Mapping[str, float],
    now_ms: int,
) -> tuple[Event, ...]:
    """All events, ordered so that everything is bound before it is used."""
    # Parent roles come first.
    paths = dict(sorted(ledger.path.items(), key=lambda item: item[1].count("/")))
    kinds = ledger.kinds
    events: list[Event] = []
    if weights:
        events.append(SetWeights(dict(weights)))
    events += [SetQuota(path, q.guarantees, q.limits) for path, q in ledger.quotas.items()]
    # Frameworks and agents, then holdings, filters and exclusions between them.
    for framework, row in ledger.frameworks.items():
        info = framework_info(identities[framework], row)
        suppressed = tuple(sorted(row.suppressed))
        events.append(
            AddFramework(framework, info, tuple(sorted(row.roles)), suppressed, active=row.active)
        )
    for agent, there in ledger.agents.items():
        capacity = enumerate(kinds.by_kind(there.capacity))
        has = {kind: amount for kind, amount in capacity if amount}
        events.append(agent_event(agent, there, has))
    held: list[Row] = [
        (framework, role, agent, kinds.by_kind(holding.both()))
        for framework, role, agent, holding in ledger.rows()
    ]
    if held:
        events.append(Hold(holdings(held, kinds.usual)))
    refused: list[tuple[Row, int]] = [
        ((framework, role, agent, kinds.by_kind(refusal.amount)), refusal.expires_ms)
        for framework, places in ledger.filters.items()
        for (role, agent), refusals in places.items()
        for refusal in refusals
        if refusal.expires_ms >= now_ms
    ]
    if refused:
        rows, expires_ms = zip(*refused, strict=True)
        events.append(AddFilters(holdings(list(rows), kinds.usual), np.array(expires_ms, np.int64)))
    excluded = [(f, *place) for f, places in ledger.excluded.items() for place in sorted(places)]
    if excluded:
        events.append(exclusions(excluded))
    if ledger.whitelist is not None:
        events.append(SetWhitelist(ledger.whitelist))
    return (Define(kinds=dict(enumerate(kinds.kinds)), roles=paths), *events)


def exclusions(places: list[tuple[int, int, int]], *, excluded: bool = True) -> Exclude:
    """Triples of framework, role and agent to exclude or readmit."""
    table = np.array(places, np.int64).reshape(len(places), 3)
    return Exclude(table[:, 0], table[:, 1], table[:, 2], np.full(len(places), excluded))


# The record of a run.


REJECTIONS_MAX = 10
"""Maximum number of rejected decisions that are described in words."""


@dataclass(slots=True)
class Record:
    """Everything recorded during a run.

    time_ms, used, total: used and total amounts from each moment at which one of them changed.
    latency_s: wall time from sending each batch with a cycle to the last of its decisions.
    outcomes: outcomes of all decisions.
    steady: outcomes of decisions that no event could outdate, because none occurred between the
        request and their arrival: all of them should be valid.
    rejections: the first steady decisions that were rejected, in words, at most REJECTIONS_MAX.
    waits_ms: from a framework's subscription to its first offer.
    fallbacks: offers that the master made without the sidecar.
    inverse_offers: how often a framework was asked to leave an agent.
    """

    time_ms: list[int] = field(default_factory=list)
    used: list[Amount] = field(default_factory=list)
    total: list[Amount] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    outcomes: Counter[Reason] = field(default_factory=Counter)
    steady: Counter[Reason] = field(default_factory=Counter)
    rejections: list[str] = field(default_factory=list)
    waits_ms: list[int] = field(default_factory=list)
    batches: int = 0
    events: int = 0
    offers: int = 0
    declines: int = 0
    tasks: int = 0
    operations: int = 0
    resyncs: int = 0
    fallbacks: int = 0
    inverse_offers: int = 0

    def note_steady(self, reason: Reason, in_words: Callable[[], str]) -> None:
        """Count a decision that no event could outdate; `in_words` describes it."""
        self.steady[reason] += 1
        rejected = reason not in {Reason.OFFERED, Reason.PARTIAL}
        if rejected and len(self.rejections) < REJECTIONS_MAX:
            self.rejections.append(in_words())

    def note_use(self, now_ms: int, used: Sequence[int], total: Sequence[int]) -> None:
        """Record the amounts in use from now on, if they have changed."""
        row, whole = tuple(used), tuple(total)
        if self.time_ms and self.used[-1] == row and self.total[-1] == whole:
            return
        if self.time_ms and self.time_ms[-1] == now_ms:
            self.used[-1], self.total[-1] = row, whole
            return
        self.time_ms.append(now_ms)
        self.used.append(row)
        self.total.append(whole)

    @property
    def rejected(self) -> Counter[Reason]:
        """Decisions that were not offered exactly as made, by reason."""
        return _without_offered(self.outcomes)

    @property
    def defects(self) -> Counter[Reason]:
        """Rejections among the steady decisions, by reason: defects of the sidecar."""
        return _without_offered(self.steady)


def _without_offered(outcomes: Counter[Reason]) -> Counter[Reason]:
    return Counter({r: n for r, n in outcomes.items() if r != Reason.OFFERED})


# The master's end of the session: sends batches, takes decisions, reconnects with a snapshot.

PAUSE_S = 0.1

FIGURES_MS = 5000
"""Minimum interval between the module's reports of its figures."""


class Session:
    """The consecutive sessions of one module.

    opening: makes the opening of a session that begins with a sequence number.
    patience_s: how long to retry opening a session, in wall time.
    """

    def __init__(
        self,
        link: Link,
        outbox: Outbox,
        record: Record,
        opening: Callable[[int], Opening],
        patience_s: float = 30.0,
    ) -> None:
        self.sequence = 0
        self.number = 0
        self._told_ms = -FIGURES_MS
        self._link = link
        self._outbox = outbox
        self._record = record
        self._opening = opening
        self.patience_s = patience_s

    def open(self) -> None:
        """Open a session; retries until patience runs out."""
        deadline_s = time.monotonic() + self.patience_s
        # The books, and so the snapshot, include the pending events.
        self._outbox.drain()
        self.number += 1
        while True:
            try:
                self._link.open(self._opening(self.sequence))
            except LinkDownError:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(PAUSE_S)
            else:
                return

    def send(self, clock_ms: int) -> None:
        """Send pending events without waiting; if the session breaks, open another."""
        batch = self._batch(clock_ms)
        try:
            self._link.send(batch)
        except LinkDownError:
            self._begin_again()

    def settle(self, clock_ms: int) -> None:
        """Send pending events, and wait until they are applied."""
        self.send(clock_ms)
        try:
            self._link.settle()
        except LinkDownError:
            self._begin_again()

    def exchange(self, clock_ms: int, agents: tuple[int, ...] = ()) -> Decisions:
        """Send pending events and run a cycle; if the session breaks, open another.

        agents: the agents of the cycle; empty: all.
        """
        while True:
            batch = self._batch(clock_ms, agents)
            begin_s = time.perf_counter()
            try:
                decisions = self._link.exchange(batch)
            except LinkDownError:
                # The batch's events are in the new snapshot; request only the cycle again.
                self._begin_again()
                continue
            self._record.latency_s.append(time.perf_counter() - begin_s)
            return decisions

    def _batch(self, clock_ms: int, agents: tuple[int, ...] = ()) -> Batch:
        messages = self._outbox.drain()
        self.sequence += 1
        self._record.batches += 1
        self._record.events += len(messages)
        return Batch(self.sequence, clock_ms, messages, agents, self._figures(clock_ms))

    def _figures(self, clock_ms: int) -> ModuleFigures | None:
        """Figures of the module, if they are due."""
        if clock_ms < self._told_ms + FIGURES_MS:
            return None
        self._told_ms = clock_ms
        record = self._record
        return ModuleFigures(
            cycles=len(record.latency_s),
            fallback_offers=record.fallbacks,
            attempts=self.number,
            sessions=self.number,
            resyncs=record.resyncs,
            outcomes={reason.name.lower(): n for reason, n in record.outcomes.items()},
        )

    def _begin_again(self) -> None:
        self._record.resyncs += 1
        self.open()

    def close(self) -> None:
        self._link.close()

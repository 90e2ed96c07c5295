"""Merges adjacent events of a batch before they are read.

A module may report each row as a separate event, which costs much more to read than one event with
many rows. Adjacent holds, transitions and releases of few rows, in any order, are therefore read
together as `Moves`: protobuf merges the rows of one type and the same kinds, and their order is
stored separately. Exclusions are merged only with each other. Adjacent agents with the same kinds
are read together as a list. Such a *run* has the same effect on the core as its events one by one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from allocator.core import Hold, Holdings, Move, Moves, Release
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire.codec.decode import READERS
from allocator.wire.codec.validation import reject

_Kinds: TypeAlias = list[int] | None

ROWS_FEW = 16
"""Maximum number of rows of an event to be merged; larger events are cheap enough on their own."""

CELLS_MAX = 2**18


class Run(NamedTuple):
    """Events that are read together.

    `start`, `length`: position in the batch of the first one, and their number.
    `name`: their field; empty if none is set.
    `message`: the message of a single event, or all of them merged.
    """

    start: int
    length: int
    name: str
    message: Any


_EMPTY: dict[str, Callable[[], Any]] = {
    "hold": types.Holdings,
    "transition": types.Holdings,
    "release": pb.Release,
}


class _Merged:
    """Merged events of one type with the same kinds; `message` repeats the kinds for each event."""

    def __init__(self, name: str, kinds: list[int]) -> None:
        self.name = name
        self.kinds = kinds
        self.message = _EMPTY[name]()
        self.merge = self.message.MergeFrom
        table = self.table()
        # Cached, because access to attributes of protobuf messages is slow.
        self._role, self._agent, self._amount = table.role, table.agent, table.amount
        self._released: tuple[Any, ...] = ()
        if name == "release":
            self._released = self.message.refuse_ms, self.message.allocated
        # Fill the columns, because a merge may replace a column that was always empty.
        for column in (self._role, self._agent, self._amount, *self._released):
            column.append(0)
            del column[:]
        self._rows = 0

    def table(self) -> types.Holdings:
        table: types.Holdings = self.message.released if self.name == "release" else self.message
        return table

    def fits(self, more: int) -> bool:
        """Whether all columns have grown by `more` entries since the last call."""
        self._rows = rows = self._rows + more
        for column in self._released:
            if len(column) != rows:
                return False
        same = len(self._role) == rows == len(self._agent)
        return same and len(self._amount) == rows * len(self.kinds)


_MOVES = {"hold": Move.HOLD, "transition": Move.USE, "release": Move.RELEASE}


class MoveRun:
    """Adjacent holds, transitions and releases of few rows.

    `start`: position of the first event in the batch.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.names: list[str] = []
        self._first: Any = None
        self._wrong = False
        self._merged: list[_Merged] = []
        self._which: dict[tuple[str, tuple[int, ...]], int] = {}
        self._latest = dict.fromkeys(_MOVES, -1)
        self._kinds = set[int]()
        self._rows = 0
        # For each event: the message that it is merged into, and its number of rows.
        self._into: list[int] = []
        self._sizes: list[int] = []

    @classmethod
    def of(cls, start: int, event: pb.Event) -> "MoveRun":
        run, name = cls(start), event.WhichOneof("event") or ""
        run.add(name, getattr(event, name))
        return run

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, message: Any) -> bool:  # noqa: ANN401
        """Add an event; False if it does not belong to this run, or there is no room."""
        which = self._latest.get(name)
        if which is None:
            return False
        table = message.released if name == "release" else message
        rows, kinds = len(table.framework), table.kind[:]
        if rows > ROWS_FEW:
            return False
        # Usually the kinds are those of the last event of this type.
        if which < 0 or self._merged[which].kinds != kinds:
            which = self._of_kinds(name, kinds, rows)
        if which < 0 or (self._rows + rows) * len(self._kinds) > CELLS_MAX:
            return False
        merged = self._merged[which]
        merged.merge(message)
        if not merged.fits(rows):
            self._wrong = True
        if not self.names:
            self._first = message
        self._rows += rows
        self._latest[name] = which
        self.names.append(name)
        self._into.append(which)
        self._sizes.append(rows)
        return True

    def _of_kinds(self, name: str, kinds: list[int], rows: int) -> int:
        """Return the message to merge an event into; -1 if the run would become too large."""
        key = name, tuple(kinds)
        which = self._which.get(key)
        if which is None:
            every = self._kinds.union(kinds)
            if (self._rows + rows) * len(every) > CELLS_MAX:
                return -1
            which = self._which[key] = len(self._merged)
            self._merged.append(_Merged(name, kinds))
            self._kinds = every
        return which

    def closed(self) -> "Run | MoveRun":
        if len(self.names) == 1 and self._rows <= 1:
            return Run(self.start, 1, self.names[0], self._first)
        return self

    def read(self) -> Moves:
        """Read all events. Raises `WireError` if one is invalid, without saying which."""
        if self._wrong:
            reject("", "columns of an event must have the same length")
        kinds = sorted(self._kinds)
        column = {kind: place for place, kind in enumerate(kinds)}
        into, event = (
            np.repeat(each, self._sizes) for each in (self._into, np.arange(len(self.names)))
        )
        count = len(event)
        # First the columns of all events, then those of releases.
        what, refuse_ms = np.empty(count, np.int64), np.full(count, -1, np.int64)
        allocated = np.zeros(count, np.bool_)
        who = np.empty((3, count), np.int64)
        amount = np.zeros((count, len(kinds)), np.int64)
        for which, merged in enumerate(self._merged):
            rows = np.flatnonzero(into == which)
            del merged.table().kind[len(merged.kinds) :]
            said = READERS[merged.name](merged.message)
            what[rows] = _MOVES[merged.name]
            if isinstance(said, Release):
                refuse_ms[rows], allocated[rows] = said.refuse_ms, said.allocated
                table = said.released
            else:
                table = said.holdings if isinstance(said, Hold) else said.used
            who[:, rows] = table.framework, table.role, table.agent
            places = np.array([column[kind] for kind in table.kind.tolist()], np.int64)
            amount[rows[:, None], places] = table.amount
        framework, role, agent = who
        holdings = Holdings(framework, role, agent, np.array(kinds, np.int64), amount)
        return Moves(what, holdings, refuse_ms, allocated, event)


def _exclusions_kinds(message: pb.Exclusions) -> _Kinds:
    rows = len(message.framework)
    same = rows == len(message.role) == len(message.agent) == len(message.excluded)
    return [] if same else None


def agent_kinds(message: types.Agent) -> _Kinds:
    capacity = message.capacity
    kinds = capacity.kind[:]
    return kinds if len(capacity.amount) == len(kinds) else None


class _Sort(NamedTuple):
    """How events of one type with the same kinds are merged.

    `kinds`: returns the kinds of a message; None if its columns have different lengths, so that it
        must be read (and rejected) on its own.
    `merge`: adds a message to the result of `empty`.
    """

    kinds: Callable[[Any], _Kinds]
    empty: Callable[[], Any]
    merge: Callable[[Any, Any], None]


_SORTS = {
    "exclusions": _Sort(_exclusions_kinds, pb.Exclusions, pb.Exclusions.MergeFrom),
    "add_agent": _Sort(agent_kinds, list, list.append),
}


class _Alike:
    """Adjacent events of one type with the same kinds."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._length = 0
        self._name = ""
        self._kinds: _Kinds = None
        self._first: Any = None
        self._merged: Any = None

    def add(self, name: str, message: Any) -> bool:  # noqa: ANN401
        if self._length and name != self._name:
            return False
        sort = _SORTS[name]
        kinds = sort.kinds(message)
        if kinds is None or (self._length and kinds != self._kinds):
            return False
        # Copy the first message only when a second one follows: most runs have one event.
        if not self._length:
            self._first, self._name, self._kinds = message, name, kinds
        else:
            if self._merged is None:
                self._merged = sort.empty()
                sort.merge(self._merged, self._first)
            sort.merge(self._merged, message)
        self._length += 1
        return True

    def closed(self) -> Run:
        return Run(self._start, self._length, self._name, self._merged or self._first)


_LAID_TOGETHER: dict[str, type[MoveRun | _Alike]] = {
    **dict.fromkeys(_MOVES, MoveRun),
    **dict.fromkeys(_SORTS, _Alike),
}


def runs(events: Iterable[Any]) -> Iterator[Run | MoveRun]:
    run: MoveRun | _Alike | None = None
    for index, event in enumerate(events):
        name = event.WhichOneof("event") or ""
        message = getattr(event, name, None)
        if run is not None:
            if run.add(name, message):
                continue
            yield run.closed()
            run = None
        # The event does not fit: start another run with it, or make it a separate run.
        begun = _LAID_TOGETHER[name](index) if name in _LAID_TOGETHER else None
        if begun is not None and begun.add(name, message):
            run = begun
        else:
            yield Run(index, 1, name, message)
    if run is not None:
        yield run.closed()

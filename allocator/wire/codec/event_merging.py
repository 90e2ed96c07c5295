"""Neighbouring events of a batch that are one event in columns.

A module that reports one row an event would cost the sidecar many times what the same rows cost in
columns. So rows of the same sort that follow each other are laid together before they are read;
protobuf's own merge of repeated fields does it. Agents that are added with amounts of the same
kinds have no columns to be laid into: they stay a list, which is read at once. What a run does to
the core is what its events do one after the other.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types

_Kinds: TypeAlias = list[int] | None


class Run(NamedTuple):
    """Events that are read together.

    `start`, `length`: which events of the batch.
    `name`: the field they stand in; empty where none is set.
    `message`: the only event's own message, or all of them together.
    """

    start: int
    length: int
    name: str
    message: Any


def _holdings_kinds(message: types.Holdings) -> _Kinds:
    """Kinds of holdings; None where the columns differ in length."""
    rows, kinds = len(message.framework), message.kind[:]
    if len(message.role) == rows == len(message.agent):
        return kinds if len(message.amount) == rows * len(kinds) else None
    return None


def _release_kinds(message: pb.Release) -> _Kinds:
    rows = len(message.refuse_ms)
    if rows == len(message.allocated) == len(message.released.framework):
        return _holdings_kinds(message.released)
    return None


def _exclusions_kinds(message: pb.Exclusions) -> _Kinds:
    rows = len(message.framework)
    same = rows == len(message.role) == len(message.agent) == len(message.excluded)
    return [] if same else None


def _agent_kinds(message: types.Agent) -> _Kinds:
    capacity = message.capacity
    kinds = capacity.kind[:]
    return kinds if len(capacity.amount) == len(kinds) else None


def _drop_kinds(message: types.Holdings, count: int) -> None:
    """Leave only the first kinds: a merge repeats them for each message."""
    del message.kind[count:]


class _Sort(NamedTuple):
    """How events of one sort are laid together.

    `kinds`: the kinds a message is about; None where its columns do not fit, so that it must be
        read, and refused, by itself.
    `tidy`: leaves the kinds of a merged message once.
    `merge`: adds a message to what `empty` made.
    """

    kinds: Callable[[Any], _Kinds]
    tidy: Callable[[Any, int], None]
    empty: Callable[[], Any]
    merge: Callable[[Any, Any], None] = lambda merged, message: merged.MergeFrom(message)


_SORTS = {
    "hold": _Sort(_holdings_kinds, _drop_kinds, types.Holdings),
    "transition": _Sort(_holdings_kinds, _drop_kinds, types.Holdings),
    "release": _Sort(
        _release_kinds, lambda message, count: _drop_kinds(message.released, count), pb.Release
    ),
    "exclusions": _Sort(_exclusions_kinds, lambda _message, _count: None, pb.Exclusions),
    "add_agent": _Sort(_agent_kinds, lambda _message, _count: None, list, list.append),
}


def runs(events: Iterable[Any]) -> Iterator[Run]:
    """Divide the events of a batch into runs, in their order."""
    start, count, name, kinds = 0, 0, "", None
    message: Any = None
    merged: Any = None
    for index, event in enumerate(events):
        # Mostly the sort of the event before, which is asked for more cheaply.
        its_name = name if name and event.HasField(name) else event.WhichOneof("event") or ""
        sort = _SORTS.get(its_name)
        its_message = getattr(event, its_name, None)
        its_kinds = sort.kinds(its_message) if sort else None
        # The same sort with the same kinds: one more event of this run. The first message is
        # copied only when a second one follows, for most runs are of one event.
        if count and sort and its_kinds is not None and its_name == name and its_kinds == kinds:
            if merged is None:
                merged = sort.empty()
                sort.merge(merged, message)
            sort.merge(merged, its_message)
            count += 1
            continue
        # Something else: this run is complete, and the next one begins.
        if count:
            yield _close(start, count, name, merged or message, kinds)
        start, count, name, kinds = index, 1, its_name, its_kinds
        message, merged = its_message, None
    # The last run.
    if count:
        yield _close(start, count, name, merged or message, kinds)


def _close(start: int, count: int, name: str, message: Any, kinds: _Kinds) -> Run:  # noqa: ANN401
    if count > 1:
        _SORTS[name].tidy(message, len(kinds or ()))
    return Run(start, count, name, message)

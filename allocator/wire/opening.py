"""The beginning of a session, read and written: who calls, and the whole state in chunks.

A snapshot is a sequence of events: `pack_snapshot` lays it into chunks, `read_snapshot` gives it
back.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from allocator.core import (
    AddAgent,
    AddFramework,
    Define,
    Event,
    Exclude,
    Hold,
    Holdings,
    Options,
    Refuse,
    SetQuota,
    SetWeights,
    SetWhitelist,
)
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import columns, encode, nouns
from allocator.wire.decode import READERS, read_bindings, read_filters
from allocator.wire.errors import WireError, refuse
from allocator.wire.kinds import write_kind
from allocator.wire.nouns import each, part

PROTOCOL_VERSION = 1

_Table = TypeVar("_Table", Holdings, Exclude)

CHUNK_BYTES_MAX = 2**20
"""A chunk is closed before it grows beyond this, a quarter of what gRPC reads by default."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who calls, and how its master set up its allocator."""

    master_id: str
    instance_id: str
    instance_started_us: int
    options: Options = field(default_factory=Options)
    mesos_version: str = ""
    module_version: str = ""


# The beginning of a session.


def read_hello(message: pb.Hello) -> Greeting:
    """Read who calls.

    Raises
    ------
    WireError
        VERSION where the module speaks another version, else VALUE.
    """
    if message.protocol_version != PROTOCOL_VERSION:
        spoken = f"is {message.protocol_version}; this sidecar speaks {PROTOCOL_VERSION}"
        code = pb.ErrorCode.ERROR_CODE_VERSION
        raise WireError(code, "protocol_version", f"{spoken}; install matching versions")
    if not message.HasField("options"):
        refuse("options", "is missing; say how the master set up its allocator")
    return Greeting(
        master_id=columns.text(message.master_id, "master_id"),
        instance_id=columns.text(message.instance_id, "instance_id", empty=False),
        instance_started_us=columns.integer(
            message.instance_started_us, 0, 2**62, "instance_started_us"
        ),
        options=part(message.options, _read_options, "options"),
        mesos_version=columns.text(message.mesos_version, "mesos_version"),
        module_version=columns.text(message.module_version, "module_version"),
    )


def _read_options(message: pb.AllocatorOptions) -> Options:
    interval = columns.time_ms(message.allocation_interval_ms, "allocation_interval_ms", least=1)
    return Options(
        allocation_interval_ms=interval,
        fairness_excluded=columns.texts(
            message.fairness_excluded_resource_names, "fairness_excluded_resource_names"
        ),
        filter_gpus=message.filter_gpu_resources,
        region=columns.text(message.domain.region, "domain.region"),
        minimum=tuple(each(message.minimum_any_of, nouns.read_quantities, "minimum_any_of")),
        recovery_timeout_ms=columns.time_ms(message.recovery_timeout_ms, "recovery_timeout_ms"),
        agent_recovery_factor=columns.number(
            message.agent_recovery_factor, "agent_recovery_factor", most=1.0
        ),
    )


def read_snapshot(message: pb.SnapshotChunk) -> Iterator[tuple[str, Event]]:
    """Read a chunk as events, each with the field it came from, in the order to apply them."""
    if message.kinds or message.roles:
        yield "", read_bindings(message)
    if message.weights:
        yield "", SetWeights(nouns.read_weights(message.weights))
    for index, quota in enumerate(message.quotas):
        field = f"quotas[{index}]"
        yield field, part(quota, nouns.read_quota, field)
    for index, framework in enumerate(message.frameworks):
        field = f"frameworks[{index}]"
        yield field, part(framework, READERS["add_framework"], field)
    for index, agent in enumerate(message.agents):
        field = f"agents[{index}]"
        yield field, part(agent, READERS["add_agent"], field)
    for field, read in _COLUMNS.items():
        if message.HasField(field):
            yield field, part(getattr(message, field), read, field)


_COLUMNS: dict[Any, Callable[[Any], Any]] = {
    "holdings": READERS["hold"],
    "filters": read_filters,
    "exclusions": READERS["exclusions"],
    "whitelist": READERS["whitelist"],
}


def write_hello(greeting: Greeting) -> pb.Hello:
    """Write who calls."""
    options = greeting.options
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        mesos_version=greeting.mesos_version,
        master_id=greeting.master_id,
        instance_id=greeting.instance_id,
        instance_started_us=greeting.instance_started_us,
        module_version=greeting.module_version,
        options=pb.AllocatorOptions(
            allocation_interval_ms=options.allocation_interval_ms,
            fairness_excluded_resource_names=sorted(options.fairness_excluded),
            filter_gpu_resources=options.filter_gpus,
            domain=types.Domain(region=options.region),
            minimum_any_of=map(nouns.write_quantities, options.minimum),
            recovery_timeout_ms=options.recovery_timeout_ms,
            agent_recovery_factor=options.agent_recovery_factor,
        ),
    )


def pack_snapshot(
    events: Iterable[Event],
    *,
    sequence: int,
    clock_ms: int,
    paused: bool = False,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> Iterator[pb.SnapshotChunk]:
    """Lay events into chunks, in their order; the final one says that it is the last.

    Parameters
    ----------
    events : iterable
        `Define` (without forgotten roles), `SetWeights`, `SetQuota`, `AddFramework`, `AddAgent`,
        `Hold`, `Refuse`, `Exclude`, `SetWhitelist`; in this order they make the fewest chunks.
    sequence : int
        Number of the state: the first batch has the next one.
    clock_ms : int
        The module's clock.
    paused : bool
    bytes_max : int
        No chunk is larger, except for a single noun that is.
    """
    chunk, size, last_field = pb.SnapshotChunk(), 0, 0
    for piece in _pieces(events, bytes_max):
        (descriptor, _), *more = piece.ListFields()
        field, single = descriptor.number, not descriptor.is_repeated
        assert not more
        bytes_more = piece.ByteSize()
        follows = last_field < field or (last_field == field and not single)
        if size and (not follows or size + bytes_more > bytes_max):
            yield chunk
            chunk, size = pb.SnapshotChunk(), 0
        chunk.MergeFrom(piece)
        size += bytes_more
        last_field = field
    chunk.last = True
    chunk.sequence = sequence
    chunk.clock_ms = clock_ms
    chunk.paused = paused
    yield chunk


def _pieces(events: Iterable[Event], bytes_max: int) -> Iterator[pb.SnapshotChunk]:
    """Break events into chunks of one noun, or of as many rows as fit."""
    for event in events:
        match event:
            case Define():
                assert not event.forgotten_roles
                for handle, kind in event.kinds.items():
                    yield pb.SnapshotChunk(kinds=[write_kind(handle, kind)])
                for role, path in event.roles.items():
                    yield pb.SnapshotChunk(roles=[types.Role(role=role, path=path)])
            case SetWeights():
                for weight in nouns.write_weights(event.weights):
                    yield pb.SnapshotChunk(weights=[weight])
            case SetQuota():
                yield pb.SnapshotChunk(quotas=[nouns.write_quota(event)])
            case AddFramework():
                yield pb.SnapshotChunk(frameworks=[encode.write_framework(event)])
            case AddAgent():
                yield pb.SnapshotChunk(agents=[encode.write_agent(event)])
            case SetWhitelist():
                yield pb.SnapshotChunk(whitelist=encode.write_whitelist(event))
            case Hold() | Refuse() | Exclude():
                yield from _row_pieces(event, bytes_max)
            case _:
                raise TypeError(f"a snapshot cannot hold {event}")


def _row_pieces(event: Hold | Refuse | Exclude, bytes_max: int) -> Iterator[pb.SnapshotChunk]:
    """Break columns into pieces that stay below the bound whatever the numbers are."""
    match event:
        case Hold():
            table: Holdings | Exclude = event.holdings
            kinds = len(event.holdings.kind)
        case Refuse():
            table, kinds = event.refused, len(event.refused.kind)
        case Exclude():
            table, kinds = event, 0
    # A handle takes at most 5 bytes, an amount or a time at most 8 (they are below 2**54).
    step = max(1, (bytes_max - 64 - 5 * kinds) // (3 * 5 + 8 * kinds + 8))
    for start in range(0, max(len(table.framework), 1), step):
        yield _write_rows(event, slice(start, start + step))


def _write_rows(event: Hold | Refuse | Exclude, rows: slice) -> pb.SnapshotChunk:
    match event:
        case Hold():
            some = _cut(event.holdings, rows)
            return pb.SnapshotChunk(holdings=nouns.write_holdings(some))
        case Refuse():
            refused = Refuse(_cut(event.refused, rows), event.expires_ms[rows])
            return pb.SnapshotChunk(filters=encode.write_filters(refused))
        case Exclude():
            pairs = _cut(event, rows)
            return pb.SnapshotChunk(
                exclusions=encode.write_exclusions(replace(pairs, excluded=event.excluded[rows]))
            )


def _cut(table: _Table, rows: slice) -> _Table:
    """Some rows of columns (framework, role, agent and, where there is one, amount)."""
    parts = {
        name: getattr(table, name)[rows]
        for name in ("framework", "role", "agent", "amount")
        if hasattr(table, name)
    }
    return replace(table, **parts)

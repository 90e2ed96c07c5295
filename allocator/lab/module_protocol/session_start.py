"""The beginning of a session as a module writes it: who calls, and the whole state in chunks.

A snapshot is a sequence of events: `pack_snapshot` lays it into chunks, the sidecar's
`read_snapshot` gives it back.
"""

from collections.abc import Iterable, Iterator

from allocator.core import (
    AddAgent,
    AddFramework,
    Define,
    Event,
    Exclude,
    Hold,
    Holdings,
    Refuse,
    SetQuota,
    SetWeights,
    SetWhitelist,
)
from allocator.lab.module_protocol import encode
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import PROTOCOL_VERSION, Greeting
from allocator.wire.codec import proto_types
from allocator.wire.codec.encode import BYTES_MAX
from allocator.wire.codec.kinds import write_kind

CHUNK_BYTES_MAX = 2**20
"""A chunk is closed before it grows beyond this, a quarter of what gRPC reads by default."""


def write_hello(greeting: Greeting) -> pb.Hello:
    """Write who calls."""
    options = greeting.options
    usual = greeting.message_bytes_max == BYTES_MAX
    return pb.Hello(
        protocol_version=PROTOCOL_VERSION,
        mesos_version=greeting.mesos_version,
        master_id=greeting.master_id,
        instance_id=greeting.instance_id,
        instance_started_us=greeting.instance_started_us,
        module_version=greeting.module_version,
        message_bytes_max=0 if usual else greeting.message_bytes_max,
        options=pb.AllocatorOptions(
            allocation_interval_ms=options.allocation_interval_ms,
            fairness_excluded_resource_names=sorted(options.fairness_excluded),
            filter_gpu_resources=options.filter_gpus,
            domain=types.Domain(region=options.region),
            minimum_any_of=map(proto_types.write_quantities, options.minimum),
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

    events: `Define`, `SetWeights`, `SetQuota`, `AddFramework`, `AddAgent`, `Hold`, `Refuse`,
        `Exclude`, `SetWhitelist`; in this order they make the fewest chunks.
    sequence: number of the state: the first batch has the next one.
    clock_ms: the module's clock.
    bytes_max: no chunk is larger, except for a single noun that is.
    """
    chunk, size, last_field = pb.SnapshotChunk(), 0, 0
    for piece in _pieces(events, bytes_max):
        # A piece has one field. The sidecar reads a chunk field by field, in their order, so a
        # piece that would have to be read before what is in the chunk begins another one.
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
                for handle, kind in event.kinds.items():
                    yield pb.SnapshotChunk(kinds=[write_kind(handle, kind)])
                for role, path in event.roles.items():
                    yield pb.SnapshotChunk(roles=[types.Role(role=role, path=path)])
            case SetWeights():
                for weight in proto_types.write_weights(event.weights):
                    yield pb.SnapshotChunk(weights=[weight])
            case SetQuota():
                yield pb.SnapshotChunk(quotas=[proto_types.write_quota(event)])
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
            some = event.holdings.cut(rows)
            return pb.SnapshotChunk(holdings=proto_types.write_holdings(some))
        case Refuse():
            refused = Refuse(event.refused.cut(rows), event.expires_ms[rows])
            return pb.SnapshotChunk(filters=encode.write_filters(refused))
        case Exclude():
            return pb.SnapshotChunk(exclusions=encode.write_exclusions(event.cut(rows)))

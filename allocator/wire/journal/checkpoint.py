"""Writes and reads a checkpoint as records of a journal.

A sidecar's state can also be written to a file of its own, a *snapshot*: the start of a journal,
then a batch that requests a cycle over all agents, and a digest of the answer. A replay of the file
thus verifies that the decisions are the same. The sidecar itself does not process that batch.
"""

import hashlib
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from allocator.core import Allocator, Policy, PolicySpec, Renamer, Settings
from allocator.core.checkpoint import (
    Array,
    CheckpointError,
    Column,
    Detached,
    fill,
    restore,
    to_columns,
    untouched,
)
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.journal.framing import HEADER, frame
from allocator.wire.journal.records import answered_record, read_start, request_record, start_record
from allocator.wire.session.sidecar import KeptState, Sidecar

VERSION = 3
"""Increased whenever an array changes its layout, because arrays are restored by their shape."""

_LENGTH = struct.Struct("<Q")
_PIECE = 1 << 20
_STRETCH = 1 << 16
_COMPRESSION = 1
"""Low, because most bytes are zeros, so that a higher level gains little."""


class Mark(NamedTuple):
    """Size (bytes before compression) and digest of a checkpoint; equal for equal checkpoints."""

    size: int
    digest: bytes


# Writing.


def _plain(root: Column) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a checkpoint before compression, in pieces of bounded size."""
    arrays: list[Array] = []
    message = journal_pb2.JournalCheckpoint(version=VERSION)
    _write_column(root, message.root, arrays)
    head = message.SerializeToString(deterministic=True)
    # First the description, preceded by its length, then the bytes of all arrays in order.
    yield _LENGTH.pack(len(head))
    yield head
    for array in arrays:
        if array.size:
            # Little-endian on all machines.
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            view = little.reshape(-1).data.cast("B")
            yield from (view[at : at + _PIECE] for at in range(0, len(view), _PIECE))


def _write_column(column: Column, message: journal_pb2.JournalColumn, arrays: list[Array]) -> None:
    message.kind = column.kind
    message.count = column.count
    message.texts.extend(column.texts)
    for array in column.arrays:
        dtype = array.dtype.newbyteorder("<").str
        message.arrays.append(journal_pb2.JournalArray(dtype=dtype, shape=array.shape))
        arrays.append(array)
    for part in column.parts:
        _write_column(part, message.parts.add(), arrays)


def head(start: journal_pb2.JournalRecord, kept: object) -> Iterator[journal_pb2.JournalRecord]:
    """Yield the first records of a file, lazily; until then `kept`, the state, must not change."""
    yield start
    yield from write_checkpoint(to_columns(kept))


def mark(root: Column) -> Mark:
    size, digest = 0, hashlib.blake2b(digest_size=16)
    for piece in _plain(root):
        size += len(piece)
        digest.update(piece)
    return Mark(size, digest.digest())


def write_checkpoint(root: Column) -> Iterator[journal_pb2.JournalRecord]:
    """Yield a checkpoint as records, lazily."""
    size, digest = 0, hashlib.blake2b(digest_size=16)
    compressor = zlib.compressobj(_COMPRESSION)
    waiting = bytearray()
    for piece in _plain(root):
        # The mark covers the bytes before compression.
        size += len(piece)
        digest.update(piece)
        waiting += compressor.compress(piece)
        if len(waiting) >= _PIECE:
            yield journal_pb2.JournalRecord(checkpoint_piece=bytes(waiting))
            waiting.clear()
    waiting += compressor.flush()
    yield journal_pb2.JournalRecord(checkpoint_piece=bytes(waiting))
    end = journal_pb2.JournalCheckpointEnd(bytes=size, digest=digest.digest())
    yield journal_pb2.JournalRecord(checkpoint_end=end)


def read_mark(end: journal_pb2.JournalCheckpointEnd) -> Mark:
    return Mark(end.bytes, end.digest)


# Reading.


class _Plain:
    """Decompresses a checkpoint, and returns it in portions of any size."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._chunks = _decompress(pieces)
        self._chunk = memoryview(b"")
        self._digest = hashlib.blake2b(digest_size=16)
        self.size = 0

    def fill(self, into: memoryview) -> None:
        at = 0
        while at < len(into):
            if not len(self._chunk):
                # The chunk is used up: take the next one.
                self._chunk = memoryview(next(self._chunks, b""))
                if not len(self._chunk):
                    raise CheckpointError("the checkpoint ends too early")
                self._digest.update(self._chunk)
            count = min(len(into) - at, len(self._chunk))
            into[at : at + count] = self._chunk[:count]
            self._chunk = self._chunk[count:]
            at += count
        self.size += at

    def mark(self) -> Mark:
        """Mark of the checkpoint, which must have been read completely."""
        if len(self._chunk) or next(self._chunks, b""):
            raise CheckpointError("the checkpoint has trailing data")
        return Mark(self.size, self._digest.digest())


def _decompress(pieces: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = zlib.decompressobj()
    for piece in pieces:
        rest = piece
        while rest:
            try:
                # Limit the bytes per step, whatever the compression ratio: a damaged file must not
                # exhaust memory.
                chunk = decompressor.decompress(rest, _PIECE)
            except zlib.error as error:
                raise CheckpointError(f"the checkpoint cannot be decompressed: {error}") from None
            rest = decompressor.unconsumed_tail
            if chunk:
                yield chunk
    # The end of the stream, which has its checksum, may be missing even if no bytes are.
    if not decompressor.eof:
        raise CheckpointError("the checkpoint ends too early")


def read_checkpoint(pieces: Iterable[bytes], end: Mark) -> Column:
    """Read a checkpoint from the contents of its records.

    Raises CheckpointError if it is invalid, of another version, or its mark differs from `end`.
    """
    plain = _Plain(pieces)
    length = bytearray(_LENGTH.size)
    plain.fill(memoryview(length))
    (size,) = _LENGTH.unpack(length)
    # Check before allocating: a damaged length must not exhaust memory.
    _check_size(size, end)
    head = bytearray(size)
    plain.fill(memoryview(head))
    try:
        message = journal_pb2.JournalCheckpoint.FromString(bytes(head))
    except DecodeError:
        raise CheckpointError("the checkpoint's description is malformed") from None
    if message.version != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {message.version}; {VERSION} can be read"
        )
    root = _read_column(message.root, plain, end)
    if plain.mark() != end:
        raise CheckpointError("the checkpoint is not what was written")
    return root


def _check_size(size: int, end: Mark) -> None:
    if size > end.size:
        raise CheckpointError(f"a part of {size} bytes is larger than the whole of {end.size}")


def _read_column(message: journal_pb2.JournalColumn, plain: _Plain, end: Mark) -> Column:
    # The arrays of a column were written before those of its parts, so read them first.
    arrays = [_read_array(array, plain, end) for array in message.arrays]
    return Column(
        kind=message.kind,
        count=message.count,
        texts=list(message.texts),
        arrays=arrays,
        parts=[_read_column(part, plain, end) for part in message.parts],
    )


def _read_array(message: journal_pb2.JournalArray, plain: _Plain, end: Mark) -> Array:
    try:
        dtype = np.dtype(message.dtype)
    except TypeError:
        raise CheckpointError(f"there is no type {message.dtype!r} of arrays") from None
    if dtype.kind not in "biuf":
        raise CheckpointError(f"arrays of {message.dtype!r} are not allowed in a checkpoint")
    _check_size(math.prod(message.shape) * dtype.itemsize, end)
    array = untouched(tuple(message.shape), dtype)
    into, read = array.reshape(-1).view(np.uint8), np.empty(_STRETCH, np.uint8)
    for begin in range(0, len(into), _STRETCH):
        stretch = into[begin : begin + _STRETCH]
        plain.fill(read[: len(stretch)].data)
        fill(stretch, read[: len(stretch)])
    return array.astype(dtype.newbyteorder("="), copy=False)


def write_snapshot(
    start: journal_pb2.JournalRecord,
    copied: Detached,
    build_policy: Callable[[PolicySpec], Policy],
    substitute: Policy | None = None,
    *,
    pseudonyms: bool = False,
) -> Iterator[bytes]:
    """Write a state as a snapshot, in pieces; on any thread.

    `start`: the record of the core's setup.
    `copied`: a copy of `Sidecar.kept`.
    `pseudonyms`: whether to replace names, see `allocator.core.checkpoint.renaming`.
    """
    settings, limits = read_start(start.start)

    def new_sidecar() -> Sidecar:
        return Sidecar(new_allocator, settings, start.start.welcome)

    def new_allocator(which: Settings) -> Allocator:
        return Allocator(build_policy, which, limits, substitute=substitute)

    column = copied.columns()
    if pseudonyms:
        state: KeptState = restore(column, new_sidecar().kept())
        renamer = Renamer.of(state[0][2])
        column, settings = to_columns(_renamed(renamer, state)), renamer.value(settings)
        start = start_record(
            settings,
            limits,
            start.start.welcome,
            sessions_before=start.start.sessions_before,
            file=start.start.file,
            records_before=start.start.records_before,
        )
    yield HEADER
    yield frame(start)
    for record in write_checkpoint(column):
        yield frame(record)
    sidecar = new_sidecar()
    sidecar.resume(column)
    yield from map(frame, _one_cycle_more(sidecar))


def _renamed(renamer: Renamer, kept: KeptState) -> KeptState:
    core, holder, last, sessions = kept
    peers = {number: (*rest, renamer.value(who)) for number, (*rest, who) in sessions.items()}
    return renamer.value(core), holder, last, peers


def _one_cycle_more(sidecar: Sidecar) -> Iterator[journal_pb2.JournalRecord]:
    """Request a cycle over all agents, as a module would, if there is a session."""
    session = sidecar.session
    if session is None:
        return
    batch = pb.EventBatch(sequence=session.sequence + 1, clock_ms=session.clock_ms, cycle=True)
    data = pb.SessionRequest(events=batch).SerializeToString(deterministic=True)
    failed, number = sidecar.counts.policy_errors, sidecar.active
    yield request_record(number, data)
    answers = sidecar.receive(number, data)
    counts = sidecar.counts
    error = counts.policy_error if counts.policy_errors > failed else ""
    yield answered_record(answers, error)

"""Reads the messages that begin a session at once, as a session does step by step."""

from collections.abc import Iterator

from allocator.core import Event
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting
from allocator.wire.codec.proto_types import part
from allocator.wire.session.session_start import parts_of, read_caller, read_options


def read_hello(message: pb.Hello) -> Greeting:
    return read_options(message, read_caller(message))


def read_snapshot(message: pb.SnapshotChunk) -> Iterator[tuple[str, Event]]:
    """Yield the events of a chunk, each with its field, in the order in which to apply them."""
    for place, said, read, _ in parts_of(message):
        yield place, part(said, read, place) if place else read(said)

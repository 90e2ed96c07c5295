r"""The framing of records in a journal file.

A file is a header and records. Each record is framed by its length and checksums, so that a reader
can distinguish a file that was cut off while it was written from a damaged one:

    "mesos-allocator journal\n"  version: 1 byte
    length: 4 bytes  crc32 of the length  crc32 of the body  body: a `JournalRecord`
    ...

Numbers are little-endian. A body is a serialised record, compressed by zstd if it starts with
zstd's magic bytes, with which no record starts. Each record is compressed separately, so that a
file that was cut off loses only its last record, and records can be copied between files.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from google.protobuf.message import DecodeError
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError, frame_content_size

from allocator.v1 import journal_pb2

MAGIC = b"mesos-allocator journal\n"
VERSION = 4
HEADER = MAGIC + bytes([VERSION])

RECORD_BYTES_MAX = 2**31 - 1
"""Maximum size of a record, as of all protobuf messages."""

_ZSTD = b"\x28\xb5\x2f\xfd"
"""zstd's magic bytes. At the start of a record they would be an unknown field."""

_LEVEL = 1
"""Low, because the core waits while a record is compressed, and a higher level gains little."""

_LENGTH = struct.Struct("<I")
_FRAME = struct.Struct("<III")


class JournalError(ValueError):
    """The file is not a journal, or is damaged."""


class Torn(NamedTuple):
    """A record that the file does not have completely, because the process ended while writing it.

    `position`: byte at which the record starts.
    """

    position: int
    length: int


class Framer:
    """Frames records, and compresses those that shrink; for one thread."""

    def __init__(self) -> None:
        self._compressor = ZstdCompressor(level=_LEVEL)

    def frame(self, record: journal_pb2.JournalRecord) -> bytes:
        plain = record.SerializeToString(deterministic=True)
        if record.HasField("checkpoint_piece"):  # compressed already
            return _framed(plain)
        packed = self._compressor.compress(plain)
        return _framed(packed if len(packed) < len(plain) else plain)


def frame(record: journal_pb2.JournalRecord) -> bytes:
    return _framed(record.SerializeToString(deterministic=True))


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), _length_checksum(len(body)), zlib.crc32(body)) + body


def _length_checksum(length: int) -> int:
    return zlib.crc32(_LENGTH.pack(length))


def read_records(
    file: BinaryIO, torn: Callable[[Torn], None] | None = None
) -> Iterator[journal_pb2.JournalRecord]:
    """Read the records of a file, up to where it was cut off, which is reported to `torn`.

    Raises JournalError if the file is not a journal of a readable version, or is damaged.
    """
    header = file.read(len(HEADER))
    if header[: len(MAGIC)] != MAGIC or header[-1] != VERSION or len(header) < len(HEADER):
        # If even the header was cut off, no record was lost.
        if HEADER.startswith(header):
            _tell(torn, 0, len(header))
            return
        if header[: len(MAGIC)] == MAGIC:
            raise JournalError(f"the journal has version {header[-1]}; {VERSION} can be read")
        raise JournalError("the file is not a journal")
    position = len(HEADER)
    while head := file.read(_FRAME.size):
        if len(head) < _FRAME.size:
            _tell(torn, position, len(head))
            return
        # The length has its own checksum, since with a wrong length the file would seem cut off.
        length, length_checksum, checksum = _FRAME.unpack(head)
        if _length_checksum(length) != length_checksum:
            raise JournalError(f"a record is damaged, at byte {position}")
        body = file.read(length)
        # The process ended while it wrote the last record.
        if len(body) < length:
            _tell(torn, position, len(head) + len(body))
            return
        if zlib.crc32(body) != checksum:
            raise JournalError(f"a record is damaged, at byte {position}")
        try:
            yield journal_pb2.JournalRecord.FromString(_plain(body))
        except (DecodeError, ZstdError):
            text = f"a record is malformed, though its checksum fits, at byte {position}"
            raise JournalError(text) from None
        position += len(head) + length


def _plain(body: bytes) -> bytes:
    """Decompress a body if it is compressed, up to the maximum size of a record."""
    if body[: len(_ZSTD)] != _ZSTD:
        return body
    size = frame_content_size(body)
    if not 0 <= size <= RECORD_BYTES_MAX:
        raise ZstdError(f"{size} bytes exceed the maximum of a record")
    return ZstdDecompressor().decompress(body)


def _tell(torn: Callable[[Torn], None] | None, position: int, length: int) -> None:
    if torn is not None:
        torn(Torn(position, length))

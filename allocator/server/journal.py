"""The journal on disk. Allocation never waits for it, and goes on without it."""

import os
from collections.abc import Callable
from pathlib import Path

import structlog

from allocator.v1 import journal_pb2
from allocator.wire.journal import HEADER, frame

_log = structlog.get_logger()


class Journal:
    """Records in a file of bounded size; the file before it is kept as ``<path>.1``.

    A journal that cannot be written is off until the next session begins: only from there on it
    could be replayed.

    Attributes
    ----------
    errors : int
        Times that it could not be written.
    """

    def __init__(
        self, path: Path, bytes_max: int, start: Callable[[], journal_pb2.JournalRecord]
    ) -> None:
        """Begin a file.

        Parameters
        ----------
        path : Path
        bytes_max : int
            A file that reached this size is followed by a new one.
        start : callable
            Makes the first record of a file.
        """
        self.errors = 0
        self._path = path
        self._bytes_max = bytes_max
        self._start = start
        self._file: int | None = None
        self._size = 0
        self._begin()

    @property
    def on(self) -> bool:
        """Whether records are being kept."""
        return self._file is not None

    def write(self, record: journal_pb2.JournalRecord) -> None:
        """Keep a record."""
        if not self.on and record.HasField("opened"):
            self._begin()
        if not self.on:
            return
        data = frame(record)
        if self._size > len(HEADER) and self._size + len(data) > self._bytes_max:
            self._begin()
        self._append(data)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _begin(self) -> None:
        """Keep the present file as the one before, and begin another."""
        self.close()
        try:
            if self._path.exists():
                self._path.replace(f"{self._path}.1")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o600)
        except OSError as error:
            self._fail(error)
            return
        self._size = 0
        self._append(HEADER + frame(self._start()))

    def _append(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            written = os.write(self._file, data)
        except OSError as error:
            self._fail(error)
            return
        self._size += written
        if written < len(data):
            self._fail(OSError(f"only {written} of {len(data)} bytes were written"))

    def _fail(self, error: OSError) -> None:
        self.errors += 1
        self.close()
        _log.error("journal off", path=str(self._path), error=str(error))

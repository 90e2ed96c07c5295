"""Writes the journal to files. Allocation waits for it only briefly, and continues if it fails.

The current file is PATH; earlier ones are PATH.1, PATH.2 and so on. Each start of the process also
begins a file. Files are removed by size and age, not by number, so that several restarts do not
remove the records of a crash.
"""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import structlog

from allocator.core import Detached, nbytes_of
from allocator.server.config.sections import JournalSection
from allocator.server.system.disk import create, lock, reason
from allocator.server.system.frozen import LARGE, frozen
from allocator.v1 import journal_pb2
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.framing import HEADER, Framer, frame

FILES_MAX = 1000
"""Maximum number of files of any size: each is renamed when another file begins."""


class Keeping(NamedTuple):
    """Limits on the files to keep.

    `files`: number of files that are kept at any size; more are kept while the total size is at
        most that of this number of full files. 1: only the current file.
    `keep_s`: files last written longer ago are removed; 0: never.
    """

    bytes_max: int
    files: int = 2
    keep_s: float = 0.0


def older_files(path: Path) -> list[Path]:
    """Files before the current one, newest first."""
    found = []
    for number in count(1):
        older = Path(f"{path}.{number}")
        if not os.path.lexists(older):
            break
        found.append(older)
    return found


def shift(path: Path) -> None:
    """Rename the current file to ``.1``, that one to ``.2``, and so on. Raises OSError."""
    names = [path, *older_files(path)]
    if os.path.lexists(path):
        for number in range(len(names), 0, -1):
            names[number - 1].replace(f"{path}.{number}")


def remove_old(path: Path, keeping: Keeping, now_s: float | None = None) -> None:
    """Remove the oldest files if they are too many, too large or too old. Raises OSError."""
    now_s = time.time() if now_s is None else now_s
    room = (keeping.files - 1) * keeping.bytes_max
    for number, older in enumerate(older_files(path), start=1):
        status = older.lstat()
        room -= status.st_size if stat.S_ISREG(status.st_mode) else 0
        crowded = number >= keeping.files and (room < 0 or keeping.files == 1)
        many = number >= max(keeping.files, FILES_MAX)
        stale = keeping.keep_s and now_s - status.st_mtime > keeping.keep_s
        if crowded or many or stale:
            older.unlink()


RETRY_S = 60.0
"""Time after a failure until the journal is started again."""

_SMALL = 1 << 20
"""Maximum size of a checkpoint's arrays for which no thread is started to write it."""

_COPY = 1 << 20

_log = structlog.get_logger()


class Head(NamedTuple):
    """The beginning of a file, or of a stream.

    `nbytes`: size of the arrays in the checkpoint.
    `pieces`: its records as bytes, made on demand; on any thread.
    """

    nbytes: int
    pieces: Iterator[bytes]


MakeHead: TypeAlias = Callable[[int, int], Head]
"""Copies the core's state as the beginning of a new file. Arguments: number of the file, and number
of records before it."""


class TakenError(OSError):
    """Another process writes to this journal."""


class _New(NamedTuple):
    """A new file in preparation, while the previous one is still written.

    `since`: offset in the previous file from which records are copied to the new one.
    `errors`: the journal's number of errors when this file was begun.
    """

    fd: int
    since: int
    errors: int


class Journal:
    """Records in files of bounded size; earlier files are ``<path>.1`` and so on.

    One process at a time writes them; it holds a lock on ``<path>.lock``.

    A file begins with a checkpoint. While the checkpoint is written, to ``<path>.new``, records are
    still written to the previous file; then they are copied to the new file, and removed from the
    previous one. So at any moment every record is in a file, and none is kept in memory. After a
    failure, an unnamed file takes the place of the previous one.

    `errors`: number of failures to write; after each, the journal is off for `RETRY_S`.
    """

    def __init__(
        self,
        path: Path,
        keeping: Keeping,
        head: MakeHead,
        *,
        compress: bool = True,
    ) -> None:
        """Start a file.

        `keeping`: a file that has reached the maximum size, and twice the size of its checkpoint,
            is followed by another one.
        `head`: makes the beginning of a file; called on the thread that calls `write`.
        `compress`: whether each record is compressed.
        """
        # A compressor belongs to one thread: here, to the one that calls `write`.
        self._frame = Framer().frame if compress else frame
        self.errors = 0
        self.failure: Exception | None = None
        self._path = path
        self._new_path = Path(f"{path}.new")
        self._keeping = keeping
        self._taken: int | None = None
        self._head = head
        # The thread that begins a file also changes `_file`, `_size` and related fields.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._file: int | None = None
        self._number = 0
        self._records = 0
        self._size = 0
        self._head_size = 0
        self._off_since_s = 0.0
        self._begin()

    @property
    def on(self) -> bool:
        return self._file is not None

    @property
    def size(self) -> int:
        return self._size

    def write(self, record: journal_pb2.JournalRecord) -> None:
        data = self._frame(record)
        # An answer must be in the same file as its request.
        if not record.HasField("answered") and (self._is_due() or self._is_full(len(data))):
            self._begin()
        with self._lock:
            self._append(data)
            self._records += 1

    def close(self) -> None:
        self._closing = True
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._close()
            if self._taken is not None:
                os.close(self._taken)
                self._taken = None

    def _is_due(self) -> bool:
        return not self.on and time.monotonic() - self._off_since_s >= RETRY_S

    def _is_full(self, more: int) -> bool:
        begun = self._thread is not None and self._thread.is_alive()
        full = self._size + more > max(self._keeping.bytes_max, 2 * self._head_size)
        return self.on and full and not begun and self._size > self._head_size

    # Beginning a file.

    def _take(self) -> None:
        """Lock the journal, unless this process has done so. Raises TakenError if another one has.

        A ``.new`` file was left by a process that was killed while it began a file. It is removed,
        or, if there is no other file, becomes the current one.
        """
        if self._taken is not None:
            return
        self._taken = lock(f"{self._path}.lock")
        if self._taken is None:
            text = "another process writes it; give each sidecar a journal.path of its own"
            raise TakenError(text)
        if os.path.lexists(self._path):
            self._new_path.unlink(missing_ok=True)
        elif os.path.lexists(self._new_path):
            self._new_path.replace(self._path)

    def _begin(self) -> None:
        """Start the next file: at once if that is quick, otherwise in a thread."""
        new: _New | None = None
        try:
            self._take()
            # Copy the state on the caller's thread, before it changes.
            head = self._head(self._number + 1, self._records)
            # Without a previous file, an unnamed one takes the records for now.
            if self._file is None:
                self._file = create(f"{self._path}.spool")
                Path(f"{self._path}.spool").unlink()
            new = _New(create(self._new_path), self._size, self.errors)
            if head.nbytes < _SMALL:
                self._write_new(new, head)
            else:
                work = partial(self._write_new, new, head)
                thread = threading.Thread(target=work, name="journal", daemon=True)
                thread.start()
                self._thread = thread
        except Exception as error:  # noqa: BLE001 - allocation continues after any error.
            self._give_up(new)
            self._fail(error)

    def _write_new(self, new: _New, head: Head) -> None:
        try:
            # Writing the checkpoint takes long and needs no lock.
            size = _write_all(new.fd, HEADER)
            for piece in head.pieces:
                if self._closing:
                    self._give_up(new)
                    return
                size += _write_all(new.fd, piece)
            # Then copy the records written meanwhile, in pieces, so that the core can get the lock.
            at = new.since
            while self._file != new.fd:
                with self._lock:
                    at = self._catch_up(new, at, size)
        except Exception as error:  # noqa: BLE001 - a thread has no caller.
            self._give_up(new)
            with self._lock:
                self._fail(error)

    def _catch_up(self, new: _New, at: int, head_size: int) -> int:
        """Copy some of the records written meanwhile; if none are left, switch to the new file."""
        if self._file is None or self.errors != new.errors:
            raise OSError("the previous file could not be written completely")
        data = os.pread(self._file, min(_COPY, self._size - at), at)
        at += _write_all(new.fd, data)
        # While the lock is held, no record can be added.
        if at == self._size:
            self._go_on_in(new, self._file, head_size)
        return at

    def _go_on_in(self, new: _New, before: int, head_size: int) -> None:
        """Switch to the new file, and remove the records that it contains from the previous one."""
        # Rename first: a replay skips records that are in both files.
        shift(self._path)
        self._new_path.replace(self._path)
        os.ftruncate(before, new.since)
        os.close(before)
        self._file = new.fd
        self._number += 1
        self._size += head_size - new.since
        self._head_size = head_size
        try:
            remove_old(self._path, self._keeping)
        except OSError as error:
            _log.warning("old journals cannot be removed", error=reason(error))

    def _give_up(self, new: _New | None) -> None:
        with suppress(OSError):
            if new is not None:
                os.close(new.fd)
                self._new_path.unlink(missing_ok=True)

    # Writing.

    def _append(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            self._size += _write_all(self._file, data)
        except OSError as error:
            self._fail(error)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self._size = 0

    def _fail(self, error: Exception) -> None:
        self.errors += 1
        self.failure = error
        self._close()
        self._off_since_s = time.monotonic()
        _log.error("journal off", path=str(self._path), error=reason(error), retry_s=RETRY_S)


def _write_all(file: int, data: bytes) -> int:
    rest = memoryview(data)
    while rest:
        # If the disk has room for a part only, the next write raises the error.
        rest = rest[os.write(file, rest) :]
    return len(data)


def head_of(
    start: journal_pb2.JournalRecord,
    kept: object,
    write: Callable[[journal_pb2.JournalRecord], bytes],
) -> Head:
    """Copy the core's state; large state is copied by a forked process, if possible.

    `start`, `kept`: the first record, and the state. `write`: converts each record to bytes.
    """
    nbytes = nbytes_of(kept)
    if nbytes >= LARGE:
        try:
            return Head(nbytes, frozen(lambda: map(write, head(start, kept))))
        except OSError as error:
            _log.warning("the core waits for a copy: no process", error=reason(error))
    return Head(nbytes, map(write, head(start, Detached(kept).value)))


def journal_of(
    section: JournalSection,
    now: Callable[[int, int], tuple[journal_pb2.JournalRecord, Any]],
) -> Journal | None:
    """Begin the configured journal, if any; `now`: returns a file's first record, and the state."""
    if not section.path:
        return None
    compress = section.compression == "zstd"
    keeping = Keeping(section.bytes_max, section.files, section.keep_days * 86_400)
    return Journal(
        Path(section.path),
        keeping,
        lambda file, records_before: head_of(*now(file, records_before), frame),
        compress=compress,
    )

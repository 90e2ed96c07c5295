"""Stores usage in a small SQLite database: hours, days, and unfinished buckets.

It is written in transactions, so that it stays consistent after a crash or a power cut.
"""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from allocator.server.system.disk import create
from allocator.usage.account import DAYS_KEPT, HOURS_KEPT, Closed
from allocator.usage.buckets import DAY_MS, HOUR_MS, Bucket, BucketError

VERSION = 1

NAME = "usage.sqlite3"

BUSY_S = 5.0

_TABLES = (
    "CREATE TABLE bucket (span_ms, begin_ms, content, PRIMARY KEY (span_ms, begin_ms))",
    "CREATE TABLE open (part PRIMARY KEY, content)",
)
"""The table `open` has the parts that `Moment.to_bytes` returns."""


class UsageError(RuntimeError):
    """A file cannot be used; the text says why."""


class UsageStore:
    """Closed buckets, and the rest of the account as last written; any thread may use it."""

    def __init__(self, path: Path | None = None) -> None:
        """Open the database, or create it; None: in memory, for this process only.

        Raises UsageError if it is damaged or of another version, OSError if it cannot be used now.
        """
        self.path = path
        self._lock = threading.Lock()
        if path is not None and path.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link", str(path))
        if path is not None and not path.exists():
            os.close(create(path))
        with _errors():
            self._database = sqlite3.connect(
                path or ":memory:", timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        database = self._database
        (found,) = database.execute("PRAGMA quick_check").fetchone()
        if found != "ok":
            raise UsageError(f"it is broken: {found}")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version or tables:
            if version != VERSION:
                raise UsageError(f"it has version {version}; {VERSION} can be read")
            return
        with self._transaction():
            for table in _TABLES:
                database.execute(table)
            database.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a transaction, which is on disk when the block has ended."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def write(self, closed: Iterable[Closed], rest: Mapping[str, bytes]) -> None:
        """Add closed buckets, remove those that are too old, and replace the rest.

        Raises OSError or UsageError; then nothing has changed.
        """
        closed = list(closed)
        rows = ((each.span_ms, each.begin_ms, each.bucket.to_bytes()) for each in closed)
        with self._lock, _errors(), self._transaction():
            self._database.executemany("REPLACE INTO bucket VALUES (?, ?, ?)", rows)
            for span_ms, kept in ((HOUR_MS, HOURS_KEPT), (DAY_MS, DAYS_KEPT)):
                newest = (each.begin_ms for each in closed if each.span_ms == span_ms)
                old_ms = max(newest, default=0) - kept * span_ms
                self._database.execute(
                    "DELETE FROM bucket WHERE span_ms = ? AND begin_ms <= ?", (span_ms, old_ms)
                )
            self._database.executemany("REPLACE INTO open VALUES (?, ?)", rest.items())

    def clear(self) -> None:
        """Remove everything. Raises OSError or UsageError."""
        with self._lock, _errors(), self._transaction():
            self._database.execute("DELETE FROM bucket")
            self._database.execute("DELETE FROM open")

    def rest(self) -> dict[str, bytes]:
        """Return the rest as last written, or nothing. Raises OSError or UsageError."""
        with self._lock, _errors():
            return dict(self._database.execute("SELECT part, content FROM open"))

    def read(self, span_ms: int, begin_ms: int, end_ms: int) -> Iterator[tuple[int, Bucket]]:
        """Yield the buckets that begin within a time span, each with its beginning, in order.

        Raises OSError or UsageError.
        """
        found = (
            "SELECT begin_ms, content FROM bucket WHERE span_ms = ? AND begin_ms >= ?"
            " AND begin_ms < ? ORDER BY begin_ms"
        )
        with self._lock, _errors():
            rows = self._database.execute(found, (span_ms, begin_ms, end_ms)).fetchall()
        with _errors():
            for begin, content in rows:
                yield begin, Bucket.from_bytes(content)


@contextmanager
def _errors() -> Iterator[None]:
    """Convert errors: OSError if a file cannot be used now, UsageError if it is damaged."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error)) from None
    except (sqlite3.Error, BucketError) as error:
        raise UsageError(f"it is broken: {error}") from None

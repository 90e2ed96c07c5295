"""The account of usage over time: follows the books, and is saved periodically."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from allocator.server.following.books import FollowedBooks
from allocator.server.following.usage_store import NAME, UsageError, UsageStore
from allocator.server.system.disk import reason, set_aside
from allocator.server.system.lasting import LastingThread
from allocator.usage.account import Account, Closed, Moment
from allocator.usage.buckets import Bucket, BucketError, Part
from allocator.usage.report import report
from allocator.v1 import admin_pb2 as pb

SAMPLE_S = 15.0

SAVE_S = 60.0
"""Interval at which usage is saved; after a crash, at most this much becomes unknown."""

BEGIN_S = 0.1

ANSWER_S = 30.0

_log = structlog.get_logger()


class Totals(NamedTuple):
    """Integrals since this process began to follow, including those of the same hour before."""

    parts: Counter[tuple[str, Part]]
    roles: Counter[tuple[str, str, Part]]


class UsageKeeper:
    """The account of usage, the store where it is saved, and answers to questions about it.

    `problem`: why usage is not saved; empty if it is.
    `totals`: for metrics; empty before the first session.
    """

    def __init__(self, books: FollowedBooks, directory: Callable[[], str | None]) -> None:
        """Start without an account.

        `directory`: returns where usage is saved. Empty: nowhere, so it ends with the process.
            None: unknown yet.
        """
        self.problem = ""
        self.totals = Totals(Counter(), Counter())
        self._books = books
        self._directory = directory
        self._store = UsageStore()
        # Closed buckets that the store does not have yet; on the books' thread only.
        self._closed: list[Closed] = []
        self._saving = threading.Lock()
        self._thread = LastingThread("usage", self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """Save usage, and end; the books must still answer."""
        self._thread.end()
        self._thread.join(within_s)

    # On any thread.

    def answer(self, request: pb.GetUsageRequest) -> pb.GetUsageResponse:
        """Report usage.

        Raises ValueError if the request names something unknown, OSError or UsageError if saved
            usage cannot be read.
        """
        response = report(self._store, self._save(), request)
        response.problem = self.problem
        return response

    def reset(self) -> None:
        """Forget all usage so far. Raises OSError or UsageError if that fails."""
        with self._saving:
            self._store.clear()
            self._books.ask(self._forget).result(ANSWER_S)
        self._save()

    # On its own thread.

    def _run(self) -> None:
        while (directory := self._directory()) is None:
            if self._thread.pause(BEGIN_S):
                return
        if self._books.account is None:
            self._begin(directory)
        saved_s = time.monotonic()
        while not self._thread.pause(SAMPLE_S):
            self.totals = self._books.ask(self._sum).result(ANSWER_S)
            if time.monotonic() - saved_s >= SAVE_S:
                self._save()
                saved_s = time.monotonic()
        self._save()

    def _begin(self, directory: str) -> None:
        account = Account(self._closed.append)
        if directory:
            path = Path(directory) / NAME
            try:
                self._store, kept = _open(path)
                if kept is not None:
                    account.resume(kept)
            except (OSError, UsageError) as error:
                self._tell(f"{path} cannot be used: {reason(error)}")
        self._books.ask(lambda: self._books.account_by(account)).result(ANSWER_S)

    def _save(self) -> Moment:
        """Save what is new; return the current account."""
        with self._saving:
            now, closed = self._books.ask(self._take).result(ANSWER_S)
            try:
                self._store.write(closed, now.to_bytes() if now.now_ms >= 0 else {})
            except (OSError, UsageError) as error:
                self._tell(f"{self._store.path} cannot be written: {reason(error)}")
            else:
                written = len(closed)
                self._books.ask(lambda: self._closed.__delitem__(slice(written))).result(ANSWER_S)
                if self._store.path is not None:
                    self._tell("")
            return now

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.error("usage is not saved", error=problem, retry_s=SAVE_S)
        elif self.problem and not problem:
            _log.info("usage is saved again")
        self.problem = problem

    # On the books' thread.

    def _take(self) -> tuple[Moment, list[Closed]]:
        account = self._books.account
        if account is None:
            return Moment(-1, {}, Bucket(), Bucket()), []
        return account.moment(), list(self._closed)

    def _forget(self) -> None:
        self._closed.clear()
        if self._books.account is not None:
            self._books.account.reset()

    def _sum(self) -> Totals:
        account = self._books.account
        if account is None or account.now_ms < 0:
            return self.totals
        account.settle()
        parts = account.total.parts + account.hour.parts
        return Totals(parts, account.total.held["role"] + account.hour.held["role"])


def _open(path: Path) -> tuple[UsageStore, Moment | None]:
    """Open the saved account; a damaged one is moved aside and logged. May raise OSError."""
    try:
        store = UsageStore(path)
        kept = store.rest()
        return store, Moment.from_bytes(kept) if kept else None
    except (UsageError, BucketError) as error:
        _log.error(
            "the saved usage account is damaged, and was set aside",
            file=str(path),
            error=str(error),
            set_aside=str(set_aside(path)),
        )
        return UsageStore(path), None

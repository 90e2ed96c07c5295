"""Books that follow the deciding process, record by record.

One thread reads the record stream; another one owns the books, applies records, and answers
questions between two records. Neither delays a decision.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

import structlog

from allocator.core import Allocator, Detached, Policy, PolicySpec, SessionLimits, Settings, Trail
from allocator.server.engine.commands import Commands, fulfil
from allocator.server.engine.feed import IDLE_S
from allocator.server.engine.sessions import SessionInfo, info_of
from allocator.server.following.planning import Planner
from allocator.server.following.relay import Branch, Relay
from allocator.server.following.shadow import Shadow
from allocator.server.system.lasting import LastingThread
from allocator.usage.account import Account
from allocator.v1 import journal_pb2
from allocator.v1 import records_pb2 as pb
from allocator.wire.codec.proto_types import write_fields
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.follower import Difference, Follower
from allocator.wire.journal.framing import JournalError
from allocator.wire.journal.records import start_record
from allocator.wire.session.sidecar import Sidecar
from allocator.wire.session.sidecar_session import SessionCounts

AGAIN_S = 0.5
"""Pause before the stream is opened again after its end. Each failure doubles it, up to
`again_max_s`."""

MESSAGES_MAX = 64
"""Maximum number of messages that wait for the books; further ones wait at the sender."""

TOLD_MAX = 20

STALE_S = 5.0
"""Time without a message after which the deciding process counts as gone."""

_T = TypeVar("_T")
_log = structlog.get_logger()

Connect = Callable[[], Iterator[pb.FollowResponse]]
"""Calls `Follow`. Raises ConnectionError if the stream cannot be opened, or ends."""


@dataclass
class Lag:
    """How far the books are behind the deciding process.

    `heard_s`: time of the last message, by the monotonic clock.
    `delay_s`: time from the writing of the latest records until they were in the books; the maximum
        of the values by the deciding process's clock and by this host's.
    `applied_s`: when the latest message was applied, by the monotonic clock.
    `busy_s`: processor time used for following.
    """

    restarts: int = -1
    connected: bool = False
    heard_s: float = field(default_factory=time.monotonic)
    delay_s: float = 0.0
    applied_s: float = field(default_factory=time.monotonic)
    busy_s: float = 0.0
    verified: int = 0
    differences: int = 0

    @property
    def behind_s(self) -> float:
        """The age of the books in seconds; a message should arrive every quarter of a second."""
        return self.delay_s + max(time.monotonic() - self.applied_s - IDLE_S, 0.0)


def read_counts(message: pb.Counts, counts: SessionCounts) -> None:
    for each in fields(counts):
        found = getattr(message, each.name)
        value = Counter(found) if isinstance(getattr(counts, each.name), Counter) else found
        setattr(counts, each.name, value)


class FollowedBooks:
    """The followed books, and the thread that owns them.

    `figures`, `settings`: the latest figures and settings of the deciding process; empty before the
        first message.
    `may_work`: set when the compiled loops are loaded; until then only empty books are followed.
    `planner`: makes plans; None if this process must not make any.
    `source`: the address that is followed; empty: the deciding process on this machine.
    `account`: counts usage over time, if set; see `account_by`.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        build_policy: Callable[[PolicySpec], Policy],
        build_apart: Callable[[PolicySpec], Policy],
        substitute: Policy | None,
        limits: SessionLimits,
        settings: Settings,
        verify_every: int = 0,
        source: Callable[[], str] = str,
        again_max_s: float = AGAIN_S,
    ) -> None:
        """Set up the books; following begins with `start`.

        `build_policy`: makes a policy for the books.
        `build_apart`: makes a policy that shares nothing with those of `build_policy`.
        `limits`, `settings`: of the empty books that are shown before the first checkpoint.
        `verify_every`: every nth cycle is decided again and compared; 0: none.
        `again_max_s`: maximum pause before the stream is opened again.
        """
        self.figures, self.settings = pb.Figures(), pb.SettingFigures()
        self.lag = Lag()
        self.may_work = threading.Event()
        self.shadow = Shadow(build_apart)
        self.planner: Planner | None = None
        self.relay = Relay()
        self.source = source
        self.account: Account | None = None
        self.session_limits = limits
        self._again_max_s = again_max_s
        self._connect = connect
        self._build_policy = build_policy
        self.build_apart = build_apart
        self.substitute = substitute
        self._verify_every = verify_every
        # `_following` takes records. `_shown` answers questions: the previous books until a
        # checkpoint is complete.
        self._following: Follower | None = None
        self._shown: Follower | None = None
        self._broken = False
        self._empty = Allocator(
            build_policy, settings, limits, substitute=substitute, trail=Trail()
        )
        self._position = -1  # nothing was received yet
        self._written_s = 0.0
        self._commands = Commands()
        self._room = threading.BoundedSemaphore(MESSAGES_MAX)
        # Questions about positions that the books have not reached: position, future, work.
        self._early: list[tuple[int, Future[Any], Callable[[], None]]] = []
        self._reader = LastingThread("record-reader", self._read)
        self._owner = threading.Thread(target=self._run, name="books", daemon=True)
        self._ending = False

    # On any thread.

    def start(self) -> None:
        self._owner.start()
        self._reader.start()

    def stop(self) -> None:
        """Answer pending questions, then end."""
        self._ending = True
        self._reader.end()
        self._commands.end()

    def ask(self, work: Callable[[], _T], after: int = -1) -> Future[_T]:
        """Do work between two records, when the books have reached a position."""
        future: Future[_T] = Future()
        self._commands.put(partial(self._ask, after, future, partial(fulfil, future, work)))
        return future

    def read(self, work: Callable[[], _T], within_s: float) -> _T:
        """Do work between two records, and return its result.

        Raises TimeoutError if the books are busy; work that has not begun then is cancelled.
        """
        future = self.ask(work)
        try:
            return future.result(within_s)
        except TimeoutError:
            future.cancel()
            raise

    @property
    def is_current(self) -> bool:
        return time.monotonic() - self.lag.heard_s < STALE_S

    def problem(self) -> str:
        """Return why these books are out of date; empty: they are current."""
        behind_s, whom = self.lag.behind_s, self.source() or "the deciding process"
        if not self.lag.connected:
            return f"not connected to {whom} for {behind_s:.0f} s"
        if not self.is_current:
            return f"{whom} has sent nothing for {time.monotonic() - self.lag.heard_s:.0f} s"
        return f"{behind_s:.0f} s behind {whom}" if behind_s > STALE_S else ""

    @property
    def position(self) -> int:
        return self._position

    @property
    def sidecar_id(self) -> str:
        return self.figures.sidecar_id

    def new_twin(self, policy: PolicySpec) -> Allocator:
        """Make an allocator for a copy of the books; it shares no policy with them."""
        settings = Settings(policy=policy)
        substitute = self.substitute
        return Allocator(
            self.build_apart, settings, self.session_limits, substitute=substitute, plans=True
        )

    # On the thread that owns the books; other threads read these by `ask`.

    @property
    def allocator(self) -> Allocator:
        """The session's allocator; without a session, an empty one."""
        # Another thread would get the allocator of a session that ends before its question's turn.
        assert self._owner.ident in {None, threading.get_ident()} or not self._owner.is_alive()
        sidecar = self._sidecar
        return self._empty if sidecar is None else sidecar.allocator

    @property
    def session(self) -> SessionInfo | None:
        sidecar = self._sidecar
        if sidecar is None or sidecar.session is None:
            return None
        return info_of(sidecar.session, sidecar.active, self.figures.peer)

    @property
    def counts(self) -> SessionCounts:
        return SessionCounts() if self._sidecar is None else self._sidecar.counts

    def whole(self, records_before: int = 0) -> tuple[journal_pb2.JournalRecord, Detached]:
        """Copy the state; return the first record of a journal, and the state.

        `records_before`: the number of earlier records that the journal should state.

        Raises LookupError before the first checkpoint, and while a message is half applied.
        """
        sidecar = self._sidecar
        if self._shown is None or sidecar is None:
            raise LookupError("there are no books yet; ask again")
        if self._shown.is_between:
            raise LookupError("no complete books: a cycle waits for its first plan; ask again")
        start = start_record(
            sidecar.allocator.settings,
            self.session_limits,
            sidecar.welcome,
            sessions_before=sidecar.sessions_begun,
            records_before=records_before,
        )
        return start, Detached(sidecar.kept())

    def branch(self) -> Branch:
        """Start feeding a follower of these books. Raises LookupError if they are incomplete."""
        follower = self._following
        if follower is None or follower.sidecar is None or self._position < 0:
            raise LookupError("this observer has no books yet; call again")
        start, copied = self.whole(self._position - (follower.waiting is not None))
        message = pb.FollowResponse(
            follows=True,
            position=self._position,
            counts=write_fields(follower.sidecar.counts, pb.Counts),
            figures=self.figures,
            settings=self.settings,
            written_s=self._written_s,
        )
        if follower.waiting is not None:
            message.records.append(follower.waiting.SerializeToString())
        pieces = (each.SerializeToString() for each in head(start, copied.value))
        branch = Branch(self.relay, pieces, message)
        self.relay.add(branch)
        return branch

    def account_by(self, account: Account) -> None:
        self.account = account
        if self._following is not None:
            self._account_for(self._following)

    @property
    def _sidecar(self) -> Sidecar | None:
        return self._shown.sidecar if self._shown else None

    def _ask(self, after: int, future: Future[Any], work: Callable[[], None]) -> None:
        if after > self._position:
            self._early = [each for each in self._early if not each[1].cancelled()]
            self._early.append((after, future, work))
        else:
            work()

    def _run(self) -> None:
        for work in self._commands.taken():
            try:
                work()
            except BaseException:  # noqa: BLE001 - the error is logged; the thread must continue.
                _log.exception("a command of the books failed")

    def _begin(self) -> None:
        """Expect a checkpoint; the previous books are shown until it is complete."""
        self._following = Follower(
            self._build_policy,
            self.substitute,
            verify_every=self._verify_every,
            make=lambda *args, **options: Allocator(*args, trail=Trail(), **options),
        )
        self._position = -1
        if self.planner is not None:
            self.planner.renew()
        self.relay.end()
        self.lag.restarts += 1

    def _apply(self, message: pb.FollowResponse) -> None:
        begun_s = time.thread_time()
        try:
            self._take(message)
            self.relay.write(message)
        except Exception as error:  # noqa: BLE001 - the record was not applied.
            self.relay.end()
            # Wait for the next checkpoint; the reader opens the stream again.
            self._following, self._position, self._broken = None, -1, True
            defect = None if isinstance(error, JournalError) else error
            _log.error(
                "the books cannot follow, and restart from a checkpoint",
                error=str(error),
                exc_info=defect,
            )
        finally:
            self._room.release()
        if message.HasField("figures"):
            self.figures = message.figures
        if message.HasField("settings"):
            self.settings = message.settings
        self.lag.busy_s += time.thread_time() - begun_s
        due = [work for after, _, work in self._early if after <= self._position]
        self._early = [each for each in self._early if each[0] > self._position]
        for work in due:
            work()

    def _take(self, message: pb.FollowResponse) -> None:
        follower = self._following
        if follower is None:
            return  # following was abandoned, and the message is from the old stream
        for data in message.records:
            record = journal_pb2.JournalRecord.FromString(data)
            for difference in follower.take(record):
                self._tell(difference)
            self._account_for(follower)
            if record.HasField("answered"):
                self.shadow.after_answers(self.allocator)
        if message.HasField("counts") and follower.sidecar is not None:
            read_counts(message.counts, follower.sidecar.counts)
            self._shown = follower
        if follower.sidecar is None and message.follows:
            raise JournalError("the books no longer match those of the deciding process")
        if message.follows:
            self._position, self._written_s = message.position, message.written_s
            self.lag.delay_s = max(time.time() - message.written_s, 0.0)
            self.lag.applied_s = time.monotonic()
        self.lag.verified = follower.verified
        if self.planner is not None and message.follows and self.may_work.is_set():
            self.planner.look(follower, self._position)

    def _account_for(self, follower: Follower) -> None:
        if self.account is not None:
            try:
                self.account.follow(follower.sidecar)
            except Exception:  # noqa: BLE001 - the books continue without the account.
                self.account = None
                _log.exception("usage cannot be computed; please report this")

    def _tell(self, difference: Difference) -> None:
        self.lag.differences += 1
        if self.lag.differences <= TOLD_MAX:
            _log.error(
                "a decision is not reproducible; please report this",
                record=difference.record,
                session=difference.session,
                why=difference.reason,
            )

    # On the thread that reads the stream.

    def _read(self) -> None:
        told, pause_s = "", AGAIN_S
        while not self._ending:
            try:
                self._broken = False
                for number, message in enumerate(self._connect()):
                    if not number:
                        self._commands.put(self._begin)
                    self.lag.heard_s, self.lag.connected = time.monotonic(), True
                    if message.follows:
                        told, pause_s = "", AGAIN_S
                    if message.records and message.follows:
                        self.may_work.wait()
                    self._room.acquire()
                    self._commands.put(partial(self._apply, message))
                    if self._broken:
                        break
            except (ConnectionError, JournalError) as error:
                if str(error) != told and not self._ending:  # log it once, not at each call
                    told = str(error)
                    whom = self.source() or "the deciding process"
                    _log.warning(f"{whom} cannot be followed", error=told)
            self.lag.connected = False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, self._again_max_s)

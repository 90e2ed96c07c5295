"""Replays a sidecar's journal: computes its answers again, and compares them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from allocator.core import Allocator, EventError, Policy, PolicySpec, Settings
from allocator.core.checkpoint import CheckpointError, to_columns
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.journal.checkpoint import Mark, mark, read_checkpoint, read_mark
from allocator.wire.journal.framing import JournalError
from allocator.wire.journal.records import (
    answered_record,
    read_closed,
    read_operator,
    read_plan,
    read_start,
)
from allocator.wire.session.sidecar import Answer, Sidecar
from allocator.wire.session.sidecar_session import SessionCounts, Steps


class Replayed(NamedTuple):
    """An answer of the replayed sidecar."""

    session: int
    response: pb.SessionResponse


@dataclass(slots=True)
class Found:
    """The results of a replay.

    `records`, `sessions`, `answers`, `cycles`, `decisions`: records that were replayed, sessions
        that began in them, and what resulted.
    `checked`, `differing`: records whose answers were compared with the recorded ones, and those
        that differed.
    `checkpoints`, `checkpoints_differing`: checkpoints of continuing files that were compared with
        the replayed state, and those that differed.
    `repeated`, `missing`: records that were in two files, and that are in none.
    `refused`: operators' changes that were rejected, as they were when recorded.
    `differences`: the first differences, as text.
    """

    records: int = 0
    sessions: int = 0
    answers: int = 0
    cycles: int = 0
    decisions: int = 0
    checked: int = 0
    differing: int = 0
    checkpoints: int = 0
    checkpoints_differing: int = 0
    repeated: int = 0
    missing: int = 0
    refused: int = 0
    differences: list[str] = field(default_factory=list)


DIFFERENCES_MAX = 20


def replay(
    records: Iterable[journal_pb2.JournalRecord],
    build_policy: Callable[[PolicySpec], Policy],
    substitute: Policy | None = None,
) -> Iterator[Replayed]:
    """Replay a journal (one file, or several consecutive ones) with a new sidecar; yield answers.

    `build_policy`: the sidecar's registry; `substitute`: decides if a policy fails.

    Raises JournalError if the records do not start with the core's setup, or a checkpoint is
        invalid.
    """
    player = Replay(build_policy, substitute)
    for record in records:
        yield from player.take(record)
    yield from player.finish()


class Replay:
    """A sidecar that replays journals, file by file, the oldest first."""

    def __init__(
        self,
        build_policy: Callable[[PolicySpec], Policy],
        substitute: Policy | None = None,
        *,
        check: bool = True,
        make: Callable[..., Allocator] = Allocator,
    ) -> None:
        """Start empty.

        `check`: whether to compare answers and states with the recorded ones.
        `make`: makes allocators; called like the class.
        """
        self.found = Found()
        self._make = make
        self._build_policy = build_policy
        self._substitute = substitute
        self._check = check
        self._sidecar: Sidecar | None = None
        self._sidecar_id = ""
        self._file = 0
        # The beginning of a file, as far as it has been read, is in `_start` and `_pieces`.
        self._done = 0  # number of this sidecar's records that were replayed, or are lost
        self._repeated = 0
        self._start: journal_pb2.JournalStart | None = None
        self._pieces: list[bytes] = []
        self._unchecked: list[Answer] = []
        self._request: journal_pb2.JournalRecord | None = None  # read, but not replayed yet
        self._is_deciding = False
        self._begun: Steps[list[Answer]] | None = None  # the same, replayed up to its cycle

    @property
    def sidecar(self) -> Sidecar | None:
        """The sidecar after the records so far; None: only a checkpoint can be continued from."""
        return self._sidecar

    @property
    def done(self) -> int:
        """Number of this sidecar's replayed or lost records, including a waiting request."""
        return self._done

    @property
    def waiting(self) -> journal_pb2.JournalRecord | None:
        """The last request, if its answer has not been read yet."""
        return self._request

    def forget(self) -> None:
        """Drop the state; the replay continues from the next checkpoint."""
        self._sidecar, self._request, self._begun, self._unchecked = None, None, None, []

    def take(self, record: journal_pb2.JournalRecord) -> list[Replayed]:
        """Apply a record; return the answers.

        A request waits for the next record, which may contain what cannot be recomputed. Call
        `finish` after the last record.

        Raises JournalError if the record does not fit; then continue with the next file, which has
            a checkpoint.
        """
        what = record.WhichOneof("record")
        answered = self.finish(record.answered)
        if what == "start":
            # A file starts with its start record, the pieces of a checkpoint, and the end of these.
            self._start, self._pieces = record.start, []
        elif what == "checkpoint_piece":
            self._pieces.append(record.checkpoint_piece)
        elif what == "checkpoint_end":
            self._begin(read_mark(record.checkpoint_end))
        elif self._sidecar is None or self._start is not None:
            raise JournalError("the journal's head is missing or incomplete")
        elif self._repeated:
            # The previous file had this record, too.
            self._repeated -= 1
            self.found.repeated += 1
        else:
            answered += self._replay(self._sidecar, record)
        return answered

    @property
    def has_begun_waiting(self) -> bool:
        return self._begun is not None

    def begin_waiting(self) -> bool:
        """Apply the events of the waiting request; return whether it has a cycle to decide."""
        record, sidecar = self._request, self._sidecar
        if record is not None and sidecar is not None and self._begun is None:
            steps = sidecar.receiving(record.session, record.request)
            try:
                next(steps)
            except StopIteration as end:
                self._begun, self._is_deciding = _done(end.value), False
            else:
                self._begun, self._is_deciding = steps, True
        return self._begun is not None and self._is_deciding

    def finish(self, answered: journal_pb2.JournalAnswered | None = None) -> list[Replayed]:
        """Apply the waiting request, if any; return the answers.

        The recorded answer has what cannot be recomputed: why the substitute decided, and which
        plan arrived while the request waited.
        """
        record, self._request = self._request, None
        if record is None or self._sidecar is None:
            return []
        return self._do(self._sidecar, record, answered)

    # The beginning of files.

    def _begin(self, end: Mark) -> None:
        """Continue with the file whose beginning is complete: from here, or from its checkpoint."""
        start, pieces = self._start, self._pieces
        if start is None:
            raise JournalError("the journal's head is missing or incomplete")
        self._start, self._pieces = None, []
        # A file of another sidecar is unrelated to what was replayed so far.
        sidecar = self._sidecar if start.sidecar_id == self._sidecar_id else None
        if sidecar is not None and start.file <= self._file:
            message = f"file {start.file} comes after file {self._file}; give the older ones first"
            raise JournalError(message)
        self._file = start.file
        if sidecar is not None and start.records_before <= self._done:
            # The file continues without a gap. Skip the records that were replayed already. If
            # there are none, both states are of the same moment, and must be equal.
            self._repeated = self._done - start.records_before
            if self._repeated or not self._check or self._is_same(sidecar, end):
                return
        elif sidecar is not None:
            # There is a gap, so only the checkpoint can be continued from.
            self.found.missing += start.records_before - self._done
        # Until the checkpoint is restored, there is no state to continue from.
        self._sidecar, self._unchecked = None, []
        self._sidecar = self._restore(start, pieces, end)
        self._sidecar_id = start.sidecar_id
        self._done = start.records_before
        self._repeated = 0

    def _is_same(self, sidecar: Sidecar, end: Mark) -> bool:
        self.found.checkpoints += 1
        if mark(to_columns(sidecar.kept())) == end:
            return True
        self.found.checkpoints_differing += 1
        self._tell(
            f"the state before record {self._done + 1} of sidecar {self._sidecar_id} differs"
        )
        return False

    def _restore(self, start: journal_pb2.JournalStart, pieces: list[bytes], end: Mark) -> Sidecar:
        settings, limits = read_start(start)

        def new_allocator(kept: Settings) -> Allocator:
            return self._make(self._build_policy, kept, limits, substitute=self._substitute)

        try:
            sidecar = Sidecar(new_allocator, settings, start.welcome)
            sidecar.resume(read_checkpoint(pieces, end))
        except CheckpointError as error:
            raise JournalError(str(error)) from None
        except ValueError as error:
            raise JournalError(f"its initial settings are invalid: {error}") from None
        return sidecar

    # Applying records.

    def _replay(self, sidecar: Sidecar, record: journal_pb2.JournalRecord) -> list[Replayed]:
        self._done += 1
        self.found.records += 1
        if record.HasField("answered"):
            self._compare(record)
            return []
        # The record of the previous answers is missing.
        if self._unchecked and self._check:
            self._differ("from the recording, which has none")
        if record.HasField("request"):
            self._request = record
            return []
        return self._do(sidecar, record)

    def _do(
        self,
        sidecar: Sidecar,
        record: journal_pb2.JournalRecord,
        answered: journal_pb2.JournalAnswered | None = None,
    ) -> list[Replayed]:
        counts = sidecar.counts
        before = counts.sessions_opened, counts.cycles, counts.decisions
        begun, self._begun = self._begun, None
        try:
            answers = _tell(sidecar, record, answered or journal_pb2.JournalAnswered(), begun)
        except EventError:
            self.found.refused += 1
            answers = []
        except JournalError:
            # The state is no longer reliable: wait for a file with a checkpoint.
            self._sidecar = None
            raise
        self._count(counts, before, len(answers))
        self._unchecked = answers
        return [Replayed(session, response) for session, response in answers]

    def _count(self, counts: SessionCounts, before: tuple[int, int, int], answers: int) -> None:
        found = self.found
        found.sessions += counts.sessions_opened - before[0]
        found.cycles += counts.cycles - before[1]
        found.decisions += counts.decisions - before[2]
        found.answers += answers

    def _compare(self, record: journal_pb2.JournalRecord) -> None:
        if not self._check:
            return
        self.found.checked += bool(self._unchecked)  # an empty answer proves nothing
        if answered_record(self._unchecked).answered.digest != record.answered.digest:
            self._differ("from what was answered then")
        self._unchecked = []

    def _differ(self, how: str) -> None:
        self.found.differing += 1
        place = f"record {self._done - 1} of sidecar {self._sidecar_id}"
        self._tell(f"the answer to {place}, {_in_words(self._unchecked)}, differs {how}")
        self._unchecked = []

    def _tell(self, what: str) -> None:
        if len(self.found.differences) < DIFFERENCES_MAX:
            self.found.differences.append(what)


def _done(answers: list[Answer]) -> Steps[list[Answer]]:
    yield from ()
    return answers


def _in_words(answers: list[Answer]) -> str:
    said = []
    for session, response in answers:
        what = response.WhichOneof("message") or "nothing"
        number = f" {response.decisions.sequence}" if what == "decisions" else ""
        said.append(f"{what}{number} in session {session}")
    return " and ".join(said) or "nothing"


def _tell(
    sidecar: Sidecar,
    record: journal_pb2.JournalRecord,
    answered: journal_pb2.JournalAnswered,
    begun: Steps[list[Answer]] | None,
) -> list[Answer]:
    """Apply a record, or the rest of a request that was begun. Raises EventError."""
    match record.WhichOneof("record"):
        case "opened":
            number = sidecar.open()
            if number != record.session:
                raise JournalError(f"session {record.session} begins where {number} is next")
        case "request":
            first = read_plan(answered.first_plan) if answered.HasField("first_plan") else None
            steps = begun or sidecar.receiving(record.session, record.request)
            return sidecar.finish(steps, answered.policy_error, first)
        case "closed":
            return sidecar.close(record.session, read_closed(record.closed))
        case "looked":
            sidecar.allocator.preview()
        case _:
            event = read_operator(record)
            if event is not None:
                sidecar.step(event)
    return []

"""Records all calls of a sidecar, so that they can be followed and replayed."""

from collections.abc import Callable

from allocator.core import AdoptPlan
from allocator.v1 import journal_pb2
from allocator.wire.codec.validation import WireError
from allocator.wire.journal.records import (
    answered_record,
    closed_record,
    for_file,
    opened_record,
    operator_record,
    request_record,
)
from allocator.wire.session.sidecar import Answer, Sidecar
from allocator.wire.settings.operator_settings import OperatorEvent


class Recorder:
    """Passes calls to the sidecar, and writes them as records to a stream and to files.

    In the stream, each request is followed by its answer, even an empty one, so that a follower
    need not wait for the next record. Rejected changes of operators, which have no effect, are
    written only to files.
    """

    def __init__(
        self,
        sidecar: Sidecar,
        stream: Callable[[journal_pb2.JournalRecord], None],
        file: Callable[[journal_pb2.JournalRecord], None] = lambda _record: None,
    ) -> None:
        """Start recording this sidecar.

        `stream`: receives records for followers.
        `file`: receives records for files, before they are applied: a record may start a new file,
            which begins with the state at that moment.
        """
        self.sidecar = sidecar
        self._stream = stream
        self._file = file

    def open(self) -> int:
        self._write(opened_record(self.sidecar.sessions_begun + 1))
        return self.sidecar.open()

    def receive(
        self, number: int, data: bytes, policy_error: str = "", first_plan: AdoptPlan | None = None
    ) -> list[Answer]:
        self._write(request_record(number, data))
        counts = self.sidecar.counts
        failed, cycles = counts.policy_errors, counts.cycles
        answers = self.sidecar.receive(number, data, policy_error, first_plan)
        error = counts.policy_error if counts.policy_errors > failed else ""
        if counts.cycles > cycles:
            allocator = self.sidecar.allocator
            first, decided = allocator.plan_source.began_with, allocator.decided
            grants = None if decided is None else decided.grants
            self._write(answered_record(answers, error, first, grants))
        else:
            failure = self._failure(number) if answers else ""
            self._write(answered_record(answers, failure=failure))
        return answers

    def close(self, number: int, error: WireError | None = None) -> list[Answer]:
        self._write(closed_record(number, error))
        answers = self.sidecar.close(number, error)
        if answers:
            self._write(answered_record(answers))
        return answers

    def step(self, event: OperatorEvent) -> None:
        """Apply an operator's event or a plan, as `Sidecar.step` does."""
        record = operator_record(event)
        self._file(record)
        self.sidecar.step(event)
        self._stream(record)

    def _write(self, record: journal_pb2.JournalRecord) -> None:
        self._file(for_file(record))
        self._stream(record)

    def _failure(self, number: int) -> str:
        session = self.sidecar.sessions.get(number)
        failure = None if session is None else session.failure
        return "" if failure is None else type(failure).__name__

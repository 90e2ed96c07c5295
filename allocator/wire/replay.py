"""What a sidecar answered, computed again from its journal."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from allocator.core import Allocator, EventError, Policy, PolicySpec, SetPolicy, Settings
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.errors import WireError
from allocator.wire.journal import JournalError, read_start
from allocator.wire.operator_settings import read_constraint, read_demand, read_policy
from allocator.wire.sidecar import Sidecar


class Replayed(NamedTuple):
    """An answer.

    Attributes
    ----------
    session : int
    response : SessionResponse
    """

    session: int
    response: pb.SessionResponse


def replay(
    records: Iterable[journal_pb2.JournalRecord],
    build_policy: Callable[[PolicySpec], Policy],
    fallback: Policy | None = None,
) -> Iterator[Replayed]:
    """Tell a new sidecar what a journal says, and give its answers.

    Parameters
    ----------
    records : iterable of JournalRecord
        Of one file, or of several that follow each other. Messages of sessions that began before
        the first record are passed over.
    build_policy : callable
        The registry that the sidecar had.
    fallback : Policy
        What decided where a policy could not.

    Raises
    ------
    JournalError
        Where the first record does not say how the core was set up.
    """
    sidecar: Sidecar | None = None
    sidecar_id = ""
    for record in records:
        what = record.WhichOneof("record")
        if what == "start":
            here = record.start.sidecar_id, record.start.sessions_before
            if sidecar is None or here != (sidecar_id, sidecar.sessions_begun):
                sidecar, sidecar_id = _begin(record.start, build_policy, fallback), here[0]
            continue
        if sidecar is None:
            raise JournalError("the journal does not say how it begins")
        for session, response in _tell(sidecar, record):
            yield Replayed(session, response)


def _begin(
    start: journal_pb2.JournalStart,
    build_policy: Callable[[PolicySpec], Policy],
    fallback: Policy | None,
) -> Sidecar:
    settings, limits = read_start(start)

    def new_allocator(kept: Settings) -> Allocator:
        return Allocator(build_policy, kept, limits, fallback=fallback)

    welcome = pb.Welcome(
        protocol_version=1, sidecar_version=start.sidecar_version, sidecar_id=start.sidecar_id
    )
    return Sidecar(new_allocator, settings, welcome, sessions_before=start.sessions_before)


def _tell(
    sidecar: Sidecar, record: journal_pb2.JournalRecord
) -> list[tuple[int, pb.SessionResponse]]:
    """Do what a record says was done."""
    match record.WhichOneof("record"):
        case "opened":
            number = sidecar.open()
            if number != record.session:
                raise JournalError(f"session {record.session} begins where {number} is next")
        case "request":
            return sidecar.receive(record.session, record.request)
        case "closed":
            code = record.closed.code
            error = WireError(code, "", "as the journal says") if code else None
            return sidecar.close(record.session, error)
        case "policy" | "demand" | "constraint":
            _operate(sidecar, record)
    return []


def _operate(sidecar: Sidecar, record: journal_pb2.JournalRecord) -> None:
    """Set what an operator set; what was refused then is refused again."""
    try:
        match record.WhichOneof("record"):
            case "policy":
                sidecar.operate(SetPolicy(read_policy(record.policy)))
            case "demand":
                sidecar.operate(read_demand(record.demand))
            case "constraint":
                sidecar.operate(read_constraint(record.constraint))
    except EventError:
        return

"""A state of a sidecar as a file of its own: a journal of one moment, and of one cycle more.

The file begins as every journal does. Behind that stands a batch that asks for a cycle over all
agents, and a digest of what is answered: so whoever replays the file finds out whether the same is
decided there. The sidecar that the state is of knows nothing of that batch.
"""

from collections.abc import Callable, Iterator

from allocator.core import Allocator, Detached, Policy, PolicySpec, Renamer, Settings
from allocator.core.checkpoint import to_columns
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.journal.checkpoint import write_checkpoint
from allocator.wire.journal.framing import HEADER, frame
from allocator.wire.journal.records import answered_record, read_start, request_record, start_record
from allocator.wire.session.sidecar import Kept, Sidecar


def write_snapshot(
    start: journal_pb2.JournalRecord,
    kept: Detached,
    build_policy: Callable[[PolicySpec], Policy],
    fallback: Policy | None = None,
    *,
    anonymise: bool = False,
) -> Iterator[bytes]:
    """Write a state, in pieces; any thread may.

    `start`: how the core was set up.
    `kept`: a copy of what `Sidecar.kept` gave, which nobody else uses.
    `fallback`: what decides where a policy cannot.
    `anonymise`: put pseudonyms in the place of names, see `allocator.core.checkpoint.renaming`.
    """
    settings, limits = read_start(start.start)
    state: Kept = kept.value
    if anonymise:
        renamer = Renamer.of(state[0][2])
        state, settings = _renamed(renamer, state), renamer.value(settings)
        start = start_record(
            settings,
            limits,
            start.start.welcome,
            sessions_before=start.start.sessions_before,
            file=start.start.file,
            records_before=start.start.records_before,
        )

    def new_allocator(which: Settings) -> Allocator:
        return Allocator(build_policy, which, limits, fallback=fallback)

    yield HEADER
    yield frame(start)
    column = to_columns(state)
    for record in write_checkpoint(column):
        yield frame(record)
    sidecar = Sidecar(new_allocator, settings, start.start.welcome)
    sidecar.resume(column)
    yield from map(frame, _one_cycle_more(sidecar))


def _renamed(renamer: Renamer, kept: Kept) -> Kept:
    """Rename what the core knows, and who the peers of sessions are."""
    core, holder, last, sessions = kept
    peers = {number: (*rest, renamer.value(who)) for number, (*rest, who) in sessions.items()}
    return renamer.value(core), holder, last, peers


def _one_cycle_more(sidecar: Sidecar) -> Iterator[journal_pb2.JournalRecord]:
    """Ask for a cycle over all agents as the module would, where one is in session."""
    session = sidecar.session
    if session is None:
        return
    batch = pb.EventBatch(sequence=session.sequence + 1, clock_ms=session.clock_ms, cycle=True)
    data = pb.SessionRequest(events=batch).SerializeToString(deterministic=True)
    failed, number = sidecar.counts.policy_errors, sidecar.active
    yield request_record(number, data)
    answers = sidecar.receive(number, data)
    counts = sidecar.counts
    error = counts.policy_error if counts.policy_errors > failed else ""
    yield answered_record(answers, error)

"""Processor time of following a session's records, relative to that of making its decisions.

python -m tests.bench.bench_following

A recorder writes the stream of a session into memory, from which a follower then reads it, in the
same process. The snapshot of the cluster is not counted. Cycles offer everything, and all of it is
released. The follower decides one of sixteen cycles again, to verify it.
"""

import itertools
import time
from collections.abc import Iterator

from allocator import policies
from allocator.core import Allocator, Decisions, SessionLimits, Settings, Trail
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, Sidecar
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.follower import Follower
from allocator.wire.journal.recorder import Recorder
from allocator.wire.journal.records import start_record
from laboratory.module_protocol import ModuleSession
from tests.bench.bench_events import WORKLOADS, cluster
from tests.world.rows import given_back, holdings_of, settled

EVENTS = {
    "tasks, a row an event": (1000, 100),
    "accepts, a row an event, by turns": (999, 100),
    "calls by turns": (1000, 60),
    "tasks in columns": (10_000, 40),
}
"""Number of events per batch, and of batches."""

CYCLES = 12

WELCOME = pb.Welcome(protocol_version=2, sidecar_id="bench", message_bytes_max=2**22, kinds_max=512)


class Recorded:
    """A session that is recorded; `took_s` is the processor time of deciding."""

    def __init__(self) -> None:
        self.took_s = 0.0
        limits = SessionLimits()
        sidecar = Sidecar(
            lambda settings: Allocator(policies.build, settings, limits), Settings(), WELCOME
        )
        start = start_record(sidecar.allocator.settings, limits, WELCOME)
        self.stream = [each.SerializeToString() for each in head(start, sidecar.kept())]
        self._recorder = Recorder(
            sidecar, lambda record: self.stream.append(record.SerializeToString())
        )
        self.client = ModuleSession(Greeting("bench", "bench", 1))
        self._number = self._recorder.open()
        self.tell(self.client.hello())
        for request in self.client.snapshot(cluster(), sequence=0, clock_ms=1):
            self.tell(request)
        self.took_s = 0.0
        self.begins = len(self.stream)

    def tell(self, request: pb.SessionRequest) -> Decisions | None:
        data, made = request.SerializeToString(), None
        begun_s = time.thread_time()
        answers = self._recorder.receive(self._number, data)
        self.took_s += time.thread_time() - begun_s
        for _, response in answers:
            answer = self.client.receive(response)
            made = answer if isinstance(answer, Decisions) else made
        return made


def followed_s(recorded: Recorded) -> float:
    """Follow the records; returns the processor time."""
    follower = Follower(
        policies.build,
        verify_every=16,
        make=lambda *args, **options: Allocator(*args, trail=Trail(), **options),
    )
    records: Iterator[bytes] = iter(recorded.stream)
    for data in itertools.islice(records, recorded.begins):
        follower.take(journal_pb2.JournalRecord.FromString(data))
    begun_s = time.thread_time()
    for data in records:
        differences = follower.take(journal_pb2.JournalRecord.FromString(data))
        assert not differences
    return time.thread_time() - begun_s


def play(name: str) -> Recorded:
    recorded = Recorded()
    client = recorded.client
    if name in EVENTS:
        size, count = EVENTS[name]
        for events in itertools.islice(WORKLOADS[name][0](size), count):
            recorded.tell(client.batch(1, events))
        return recorded
    for _ in range(CYCLES):
        made = recorded.tell(client.batch(1, (), cycle=True))
        assert made is not None
        recorded.tell(client.batch(1, (settled(made), given_back(holdings_of(made), 0))))
    return recorded


def main() -> None:
    """Measure each."""
    print("| what comes | deciding, s | following, s | ratio |")
    print("|---|---|---|---|")
    for name in (*EVENTS, "full cycles"):
        recorded = play(name)
        follows_s = followed_s(recorded)
        ratio = follows_s / recorded.took_s
        print(f"| {name} | {recorded.took_s:.2f} | {follows_s:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()

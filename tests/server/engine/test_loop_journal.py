"""The journal on disk: a replay gives the same bytes, and losing it stops nothing."""

import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from allocator.core import EventError, Outcomes, PolicySpec, SetConstraint, SetDemand, SetPolicy
from allocator.core.checkpoint import CheckpointError
from allocator.policies import build
from allocator.server.config import Config
from allocator.server.config.sections import JournalSection
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.journal_files import Head, Journal, Keeping
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import read_records, replay
from allocator.wire.journal.framing import frame
from allocator.wire.journal.records import answered_record, request_record
from allocator.wire.journal.replay import Replay
from tests.server.in_process import InProcess
from tests.tiers import EVERYTHING, long
from tests.wire.dialogue import declined


class Heard(InProcess):
    """A module that keeps every answer as bytes."""

    kept: list[tuple[int, bytes]]

    def batch(self, clock_ms: int, *events, cycle: bool = True):
        self.say(self.client.batch(clock_ms, events, cycle=cycle))
        answer = next(self.answers)
        self.kept.append((self.port.number, answer.SerializeToString()))
        return self.client.receive(answer)

    def all_offered(self, made) -> Outcomes:
        none = np.empty(0, np.int64)
        offered = np.full(len(made), pb.OUTCOME_REASON_OFFERED)
        return self.client.outcomes(offered, none, none.reshape(0, 0))


BEGINNING = ["start", "checkpoint_piece", "checkpoint_end"]


def journaled(path: Path) -> CoreLoop:
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    loop.start()
    return loop


def play(loop: CoreLoop) -> list[tuple[int, bytes]]:
    """Two sessions with operators' changes and invalid messages; returns all decisions received."""
    Heard.kept = []
    first = Heard(loop).begin()
    first.batch(10)
    loop.call(partial(loop.step, SetDemand("", "", {"cpus": 1000}))).result(60)
    loop.call(partial(loop.step, SetPolicy(PolicySpec("tsf", mode="characterised")))).result(60)
    with pytest.raises(EventError):
        loop.call(partial(loop.step, SetPolicy(PolicySpec("nonesuch")))).result(60)
    first.batch(20)
    first.batch(30, cycle=False)
    noisy = Heard(loop)
    loop.receive(noisy.port, b"noise")
    second = Heard(loop, "other", 2).begin()
    second.batch(10)
    loop.call(partial(loop.step, SetConstraint("", "spark", "ssd"))).result(60)
    second.batch(20)
    loop.close(second.port)
    third = Heard(loop, "older", 0).begin()
    third.batch(15)
    loop.stop()
    return Heard.kept


def records(*paths: Path) -> list[journal_pb2.JournalRecord]:
    kept: list[journal_pb2.JournalRecord] = []
    for path in paths:
        with path.open("rb") as file:
            kept += read_records(file)
    return kept


def decisions(replayed) -> list[tuple[int, bytes]]:
    return [
        (session, response.SerializeToString())
        for session, response in replayed
        if response.HasField("decisions")
    ]


def test_the_journal_gives_the_bytes_that_were_sent(tmp_path):
    path = tmp_path / "journal"
    heard = play(journaled(path))
    assert len(heard) == 6
    assert any(len(data) > 20 for _, data in heard), "something was decided"
    kept = records(path)
    assert decisions(replay(kept, build)) == heard
    assert decisions(replay(kept, build)) == heard
    assert path.stat().st_mode & 0o077 == 0, "names of frameworks are private"


def long_play(path: Path, batches: int) -> list[tuple[int, bytes]]:
    """Two sessions into minimal files, with operators' changes between them; returns the answers.

    All offers are declined, so that filters and learned demands exist.
    """
    section = JournalSection(path=str(path), files=10_000)
    loop = CoreLoop(Config(journal=section), build_policy=build)
    assert loop.journal is not None
    loop.journal._keeping = Keeping(1, 10_000)
    loop.start()
    Heard.kept = []
    for session in range(2):
        module = Heard(loop, f"instance-{session}", session + 1)
        module.begin()
        answer = module.batch(10)
        for batch in range(batches):
            events = [declined(answer, 500 * (batch % 3))] if len(answer) else []
            outcomes = [module.all_offered(answer)] if len(answer) else []
            answer = module.batch(1000 * (batch + 1), *outcomes, *events)
            if batch % 10 == 9:
                loop.call(
                    partial(loop.step, SetDemand("", f"s{batch}*", {"cpus": 100 * batch}))
                ).result(60)
                loop.call(
                    partial(loop.step, SetConstraint("eng", f"x{batch}*", f"a{batch}"))
                ).result(60)
        loop.call(partial(loop.step, SetPolicy(PolicySpec("tsf", mode="characterised")))).result(60)
    settings = loop.call(lambda: loop.allocator.settings).result(60)
    loop.stop()
    assert len(settings.demands) == batches // 10
    return Heard.kept


@pytest.mark.parametrize("forked", [True, *long(False)])
def test_any_suffix_of_the_files_replays(tmp_path, monkeypatch, forked):
    """Also for a session that spans several files, with earlier changes of operators."""
    if forked:
        monkeypatch.setattr("allocator.server.engine.journal_files.LARGE", 0)
    heard = long_play(tmp_path / "journal", 200 if EVERYTHING else 100)
    files = [tmp_path / "journal"]
    while (older := tmp_path / f"journal.{len(files)}").exists():
        files.append(older)
    files.reverse()
    assert len(files) > 3
    rest = len(heard)
    few = (0, len(files) // 2, len(files) - 1)
    for index in range(len(files)) if EVERYTHING else few:
        player = Replay(build)
        replayed = [answer for record in records(*files[index:]) for answer in player.take(record)]
        replayed += player.finish()
        said = decisions(replayed)
        assert said == heard[len(heard) - len(said) :], files[index]
        assert len(said) <= rest
        rest = len(said)
        found = player.found
        assert (found.differing, found.checkpoints_differing, found.missing) == (0, 0, 0)
        # one of them mentions the other
        assert 0 < found.checked <= found.answers <= found.checked + 1
        assert found.checkpoints == len(files) - index - 1, "each that follows was compared"
    assert rest < len(heard) / 3


def test_a_process_begins_a_file_of_its_own(tmp_path):
    path = tmp_path / "journal"
    journaled(path).stop()
    heard = play(journaled(path))
    first = records(tmp_path / "journal.1")
    assert [record.WhichOneof("record") for record in first] == BEGINNING
    assert decisions(replay(records(tmp_path / "journal.1", path), build)) == heard


def test_without_a_directory_the_sidecar_runs_without_a_journal(tmp_path):
    loop = journaled(tmp_path / "missing" / "journal")
    assert len(play(loop)) == 6
    assert loop.journal is not None
    assert loop.journal.errors >= 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_turns_the_journal_off(tmp_path):
    path = tmp_path / "journal"
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    journal = loop.journal
    assert journal is not None
    full = os.open("/dev/full", os.O_WRONLY)
    assert journal._file is not None
    os.dup2(full, journal._file)
    os.close(full)
    loop.start()
    assert len(play(loop)) == 6
    assert loop.journal is not None
    assert loop.journal.errors == 1


def nothing(file: int, before: int) -> Head:
    """The head of a file without the state of a core."""
    start = journal_pb2.JournalStart(sidecar_id="x", file=file, records_before=before)
    return Head(0, iter([frame(journal_pb2.JournalRecord(start=start))]))


def names_in(directory: Path) -> list[str]:
    """Files in the directory, without the lock."""
    return sorted(path.name for path in directory.iterdir() if path.name != "journal.lock")


def kinds(path: Path) -> list[str | None]:
    return [record.WhichOneof("record") for record in records(path)]


def test_the_journal_is_on_again_after_a_while(tmp_path, monkeypatch):
    path = tmp_path / "directory" / "journal"
    journal = Journal(path, Keeping(10_000), nothing)
    assert (journal.on, journal.errors) == (False, 1)
    path.parent.mkdir()
    journal.write(request_record(1, b"lost"))
    assert not journal.on
    monkeypatch.setattr("allocator.server.engine.journal_files.RETRY_S", 0.0)
    journal.write(answered_record([]))
    assert not journal.on, "it would not be known what was answered"
    journal.write(request_record(2, b"kept"))
    journal.close()
    assert kinds(path) == ["start", "request"]
    assert records(path)[0].start.records_before == 2, "those that were lost are counted"
    assert names_in(path.parent) == ["journal"]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_files_of_bounded_size_are_kept(tmp_path, count):
    path = tmp_path / "journal"
    journal = Journal(path, Keeping(1000, count), nothing, compress=False)
    for number in range(100):
        journal.write(request_record(1, b"x" * 80 + b"%d" % number))
        journal.write(answered_record([]))
    journal.close()
    names = ["journal", *(f"journal.{n}" for n in range(1, count))]
    assert names_in(tmp_path) == names
    assert all((tmp_path / name).stat().st_size <= 1050 for name in names)
    kept = records(*(tmp_path / name for name in reversed(names)))
    requests = [record.request for record in kept if record.HasField("request")]
    assert requests == [b"x" * 80 + b"%d" % n for n in range(100 - len(requests), 100)]
    assert len(requests) > 3 * count
    for name in names:
        assert kinds(tmp_path / name)[1] == "request", "an answer stands behind its question"


class Slow:
    """The head of a file, made by another thread on request."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.fail: Exception | None = None

    def head(self, file: int, before: int) -> Head:
        start = journal_pb2.JournalStart(sidecar_id="x", file=file, records_before=before)
        return Head(0 if file == 1 else 2**30, self._records(start))

    def _records(self, start: journal_pb2.JournalStart) -> Iterator[bytes]:
        assert start.file == 1 or self.go.wait(10)
        if start.file > 1 and self.fail is not None:
            raise self.fail
        yield frame(journal_pb2.JournalRecord(start=start))


def requests(*paths: Path) -> list[int]:
    kept = records(*paths)
    return [int(record.request) for record in kept if record.HasField("request")]


def test_records_are_kept_while_a_file_is_begun(tmp_path):
    """They are in the previous file, and finally in the new one, once."""
    path, slow = tmp_path / "journal", Slow()
    journal = Journal(path, Keeping(200, 3), slow.head)
    for number in range(50):
        journal.write(request_record(1, b"%d" % number))
    assert requests(path) == list(range(50))
    assert (tmp_path / "journal.new").exists()
    slow.go.set()
    assert journal._thread is not None
    journal._thread.join(60)
    for number in range(50, 53):
        journal.write(request_record(1, b"%d" % number))
    journal.close()
    # The last records may have started a third file, depending on timing.
    names = [path, tmp_path / "journal.1", tmp_path / "journal.2"]
    *before, second, first = [name for name in names if name.exists()]
    assert requests(first, second, *reversed(before)) == list(range(53))
    assert first.stat().st_size <= 200
    assert records(second)[0].start.records_before == len(requests(first))
    assert journal.errors == 0


def test_a_file_that_cannot_be_begun_turns_the_journal_off(tmp_path, monkeypatch):
    path, slow = tmp_path / "journal", Slow()
    slow.fail = CheckpointError("something new")
    journal = Journal(path, Keeping(200), slow.head)
    for number in range(30):
        journal.write(request_record(1, b"%d" % number))
    slow.go.set()
    assert journal._thread is not None
    journal._thread.join(60)
    assert (journal.on, journal.errors) == (False, 1)
    assert requests(path) == list(range(30)), "the file before is whole"
    slow.fail = None
    slow.go.clear()
    monkeypatch.setattr("allocator.server.engine.journal_files.RETRY_S", 0.0)
    for number in range(30, 40):
        journal.write(request_record(1, b"%d" % number))
    slow.go.set()
    journal._thread.join(60)
    journal.close()
    assert requests(tmp_path / "journal.1", path) == list(range(40))
    assert names_in(tmp_path) == ["journal", "journal.1"]


def test_the_end_of_a_process_waits_for_no_checkpoint(tmp_path):
    path, slow = tmp_path / "journal", Slow()
    journal = Journal(path, Keeping(200), slow.head)
    for number in range(30):
        journal.write(request_record(1, b"%d" % number))
    journal._closing = True
    slow.go.set()
    journal.close()
    assert requests(path) == list(range(30))
    assert names_in(tmp_path) == ["journal"]


@pytest.mark.parametrize("left", [["journal.new"], ["journal", "journal.new"]])
def test_files_of_a_killed_process_are_kept_or_put_aside(tmp_path, left):
    """The process was killed while it started a file: before its renaming, or half-way."""
    for name in left:
        (tmp_path / name).write_text(name)
    Journal(tmp_path / "journal", Keeping(1000), nothing).close()
    assert (tmp_path / "journal.1").read_text() == left[0]
    assert names_in(tmp_path) == ["journal", "journal.1"]

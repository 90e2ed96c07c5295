"""The journal on disk: what it keeps gives the same bytes again, and its loss stops nothing."""

import os
from pathlib import Path

import pytest

from allocator.core import EventError, PolicySpec, SetConstraint, SetDemand, SetPolicy
from allocator.policies import build
from allocator.server.config import Config
from allocator.server.config.sections import JournalSection
from allocator.server.core_loop import CoreLoop
from allocator.server.journal import Journal
from allocator.v1 import journal_pb2
from allocator.wire import read_records, replay
from allocator.wire.journal import opened_record, request_record
from tests.server.test_loop import InProcess


class Heard(InProcess):
    """A module that keeps every answer as bytes."""

    kept: list[tuple[int, bytes]]

    def batch(self, clock_ms: int, *, cycle: bool = True):
        self.say(self.client.batch(clock_ms, cycle=cycle))
        answer = next(self.answers)
        self.kept.append((self.port.number, answer.SerializeToString()))
        return self.client.receive(answer)


def journaled(path: Path) -> CoreLoop:
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    loop.start()
    return loop


def play(loop: CoreLoop) -> list[tuple[int, bytes]]:
    """Two sessions, operators in between, mistakes; gives all decisions that were heard."""
    Heard.kept = []
    first = Heard(loop).begin()
    first.batch(10)
    loop.operate(SetDemand("", "", {"cpus": 1000})).result(5)
    loop.operate(SetPolicy(PolicySpec("tsf", mode="characterised"))).result(5)
    with pytest.raises(EventError):
        loop.operate(SetPolicy(PolicySpec("nonesuch"))).result(5)
    first.batch(20)
    first.batch(30, cycle=False)
    stranger = Heard(loop)
    loop.receive(stranger.port, b"noise")
    second = Heard(loop, "other", 2).begin()
    second.batch(10)
    loop.operate(SetConstraint("", "spark", "ssd")).result(5)
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
    assert path.stat().st_mode & 0o077 == 0, "frameworks' names are nobody else's"


def test_a_journal_in_two_files_is_one(tmp_path):
    path = tmp_path / "journal"
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    assert loop._journal is not None
    loop._journal._bytes_max = 700
    loop.start()
    heard = play(loop)
    old, new = records(tmp_path / "journal.1"), records(path)
    assert new[0].HasField("start")
    whole = decisions(replay([*old, *new], build))
    assert whole
    assert heard[-len(whole) :] == whole
    assert path.stat().st_size <= 700
    assert loop.journal_errors == 0


def test_a_process_begins_a_file_of_its_own(tmp_path):
    path = tmp_path / "journal"
    journaled(path).stop()
    heard = play(journaled(path))
    assert len(records(tmp_path / "journal.1")) == 1
    assert decisions(replay(records(tmp_path / "journal.1", path), build)) == heard


def test_without_a_directory_the_sidecar_runs_without_a_journal(tmp_path):
    loop = journaled(tmp_path / "missing" / "journal")
    assert len(play(loop)) == 6
    assert loop.journal_errors >= 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_turns_the_journal_off(tmp_path):
    path = tmp_path / "journal"
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    journal = loop._journal
    assert journal is not None
    full = os.open("/dev/full", os.O_WRONLY)
    assert journal._file is not None
    os.dup2(full, journal._file)
    os.close(full)
    loop.start()
    assert len(play(loop)) == 6
    assert loop.journal_errors == 1


def start() -> journal_pb2.JournalRecord:
    return journal_pb2.JournalRecord(start=journal_pb2.JournalStart(sidecar_id="x"))


def test_the_journal_is_on_again_with_the_next_session(tmp_path):
    """Only from its beginning a session could be replayed."""
    path = tmp_path / "directory" / "journal"
    journal = Journal(path, 10_000, start)
    assert (journal.on, journal.errors) == (False, 1)
    path.parent.mkdir()
    journal.write(request_record(1, b"lost"))
    assert not journal.on
    journal.write(opened_record(2))
    journal.write(request_record(2, b"kept"))
    journal.close()
    assert [record.WhichOneof("record") for record in records(path)] == [
        "start",
        "opened",
        "request",
    ]


def test_two_files_of_bounded_size_are_kept(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path, 1000, start)
    for _ in range(100):
        journal.write(request_record(1, b"x" * 90))
    journal.close()
    assert sorted(os.listdir(tmp_path)) == ["journal", "journal.1"]  # noqa: PTH208
    assert all(file.stat().st_size <= 1000 for file in tmp_path.iterdir())
    assert len(records(tmp_path / "journal.1")) > 5

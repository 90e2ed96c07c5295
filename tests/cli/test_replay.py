"""`mesos-allocator replay`: its output on complete, truncated, damaged and invalid journals."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.v1 import journal_pb2
from allocator.wire.journal.framing import HEADER, MAGIC, frame, read_records
from allocator.wire.journal.records import answered_record
from tests.server.engine.test_loop_journal import long_play, names_in
from tests.tiers import long

BATCHES = 120


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> tuple[dict[str, bytes], int]:
    """The files of a journal by name, the oldest first, and the number of answers received."""
    directory = tmp_path_factory.mktemp("recorded")
    heard = long_play(directory / "journal", BATCHES)
    names = sorted(names_in(directory), key=age)
    return {name: (directory / name).read_bytes() for name in names}, len(heard)


def age(name: str) -> int:
    number = name.partition(".")[2]
    return -int(number) if number else 0


@pytest.fixture
def directory(recorded, tmp_path) -> Path:
    """A copy of the journal, to be damaged."""
    for name, data in recorded[0].items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def replay(*arguments: object):
    return CliRunner().invoke(app, ["replay", *map(str, arguments)])


def replay_json(*arguments: object, code: int = 0) -> dict:
    done = replay(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_a_directory_is_replayed_from_the_oldest_file(directory, recorded):
    (directory / "notes.txt").write_text("no journal")
    data = replay_json(directory)
    assert [Path(file["path"]).name for file in data["files"]] == list(recorded[0])
    assert [file["file"] for file in data["files"]] == list(range(1, len(recorded[0]) + 1))
    assert data["sessions"] == 2
    assert data["cycles"] == recorded[1] == 2 * (BATCHES + 1)
    assert data["decisions"] > 100
    assert data["checked"] > data["cycles"]
    assert (data["differing"], data["checkpoints_differing"], data["missing"]) == (0, 0, 0)
    assert data["checkpoints"] == len(recorded[0]) - 1 > 3


@pytest.mark.long
def test_as_a_process_it_says_so_in_words(directory):
    """Another process orders its sets differently, and must give the same results."""
    command = [sys.executable, "-m", "allocator", "replay", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    assert "all as recorded" in done.stdout
    assert f"cycles     {2 * (BATCHES + 1)}\n" in done.stdout


def test_later_files_alone_are_enough(directory, recorded):
    whole = replay_json(directory)
    names = list(recorded[0])
    later = replay_json(*(directory / name for name in names[2:]))
    assert 0 < later["cycles"] < whole["cycles"]
    gap = replay_json(directory / names[0], directory / names[2])
    between = whole["files"][1]["records"]
    assert gap["missing"] == between
    assert gap["differing"] == 0


@pytest.mark.parametrize("count", [1, *long(2, 3), 4])
def test_records_that_stand_in_two_files_count_once(directory, recorded, count):
    """A process that was killed between two steps may leave them with or without their answers."""
    first, second = list(recorded[0])[:2]
    more = list(read_records(io.BytesIO(recorded[0][second])))[3 : 3 + count]
    with (directory / first).open("ab") as file:
        file.write(b"".join(map(frame, more)))
    data = replay_json(directory)
    assert data["repeated"] == count
    assert data["differing"] == 0
    assert data["cycles"] == recorded[1]


def test_files_in_the_wrong_order_are_reported(directory, recorded):
    first, second = list(recorded[0])[:2]
    done = replay(directory / second, directory / first)
    assert done.exit_code == 1
    assert "file 1 comes after file 2; give the older ones first" in done.stderr


def test_a_torn_end_is_reported_and_is_no_failure(directory, recorded):
    last = list(recorded[0])[-1]
    data = recorded[0][last]
    (directory / last).write_bytes(data[:-3])
    found = replay_json(directory)["files"][-1]
    position = found["cut_off_at"]
    assert found["cut_off_bytes"] == len(data) - 3 - position > 0
    assert found["damage"] == ""
    assert f"at byte {position}: the process ended while writing" in replay(directory).stdout


def test_damage_is_reported_and_replay_continues_with_the_next_file(directory, recorded):
    name = list(recorded[0])[1]
    data = bytearray(recorded[0][name])
    data[len(data) // 2] ^= 1
    (directory / name).write_bytes(data)
    found = replay_json(directory, code=1)
    assert "a record is damaged, at byte " in found["files"][1]["damage"]
    assert [bool(file["damage"]) for file in found["files"]].count(True) == 1
    assert found["missing"] > 0
    assert found["differing"] == found["checkpoints_differing"] == 0
    assert found["cycles"] > recorded[1] / 2
    assert f"{name}: a record is damaged" in replay(directory).stderr


def rewritten(data: bytes, change) -> bytes:
    records = list(read_records(io.BytesIO(data)))
    change(records)
    return HEADER + b"".join(map(frame, records))


def test_answers_that_differ_are_reported(directory, recorded):
    name = next(iter(recorded[0]))

    def change(records: list[journal_pb2.JournalRecord]) -> None:
        answered = [record for record in records if record.HasField("answered")]
        nothing = answered_record(()).answered.digest
        answered = [each for each in answered if each.answered.digest != nothing]
        answered[3].answered.digest = b"12345678"

    (directory / name).write_bytes(rewritten(recorded[0][name], change))
    done = replay(directory)
    assert done.exit_code == 1
    assert "1 DIFFER" in done.stdout
    assert "decisions 3 in session 1, differs from what was answered then" in done.stderr
    assert replay_json(directory, code=1)["differing"] == 1
    assert replay_json(directory, "--no-check")["differing"] == 0


def test_a_state_that_differs_is_reported(directory, recorded):
    """A change is missing from the journal; from the next file on it is consistent."""
    first, second = list(recorded[0])[:2]

    def change(records: list[journal_pb2.JournalRecord]) -> None:
        index = next(i for i, record in enumerate(records) if record.HasField("change"))
        records[index] = journal_pb2.JournalRecord(looked=journal_pb2.JournalLooked())

    (directory / second).write_bytes(rewritten(recorded[0][second], change))
    assert replay_json(directory / first, directory / second)["differing"] == 0
    data = replay_json(directory, code=1)
    assert data["checkpoints_differing"] == 1
    assert data["checkpoints"] == len(recorded[0]) - 1
    assert "the state before record " in data["differences"][0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"something else altogether, and longer", "the file is not a journal"),
        (MAGIC + b"\x01", "the journal has version 1; 4 can be read"),
        (MAGIC + b"\x09", "the journal has version 9; 4 can be read"),
    ],
)
def test_another_file_is_refused(tmp_path, data, said):
    path = tmp_path / "file"
    path.write_bytes(data)
    done = replay(path)
    assert done.exit_code == 1
    assert f"error: {path}: {said}\n" in done.stderr


def test_nothing_to_replay_is_reported(tmp_path):
    done = replay(tmp_path)
    assert done.exit_code == 1
    assert f"no journal in {tmp_path}" in done.stderr
    assert replay(tmp_path / "missing").exit_code == 2
    assert replay().exit_code == 2

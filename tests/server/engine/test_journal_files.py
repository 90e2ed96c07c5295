"""Which files of a journal are kept, and which belong to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allocator.server.engine import journal_files as journal_module
from allocator.server.engine.journal_files import (
    FILES_MAX,
    Journal,
    Keeping,
    TakenError,
    remove_old,
    shift,
)
from allocator.v1 import admin_pb2, admin_pb2_grpc
from allocator.wire.journal.records import request_record
from tests.server.engine.test_loop_journal import kinds, names_in, nothing, requests
from tests.server.sidecar_process import SidecarProcess

DAY_S = 86_400


def test_starts_push_nothing_out(tmp_path):
    """Files left by a crash survive many starts, because all files together are small."""
    path = tmp_path / "journal"
    crashed = Journal(path, Keeping(100_000), nothing)
    crashed.write(request_record(1, b"4711"))
    crashed.close()
    for start in range(1, 20):
        Journal(path, Keeping(100_000), nothing).close()
        assert requests(tmp_path / f"journal.{start}") == [4711]
    assert len(names_in(tmp_path)) == 20


def put(path: Path, sizes: list[int], ages_s: list[float]) -> None:
    for number, (size, age_s) in enumerate(zip(sizes, ages_s, strict=True), start=1):
        older = Path(f"{path}.{number}")
        older.write_bytes(b"x" * size)
        os.utime(older, (10**9 - age_s, 10**9 - age_s))


@pytest.mark.parametrize(
    ("keeping", "sizes", "left"),
    [
        (Keeping(100, 3), [100, 100, 100], 2),
        (Keeping(100, 3), [100, 99, 1, 1], 3),
        (Keeping(100, 3), [500, 500, 1], 2),
        (Keeping(100, 3), [10] * 20, 20),
        (Keeping(100, 3), [10] * 21, 20),
        (Keeping(100, 1), [1], 0),
        (Keeping(100, 1), [0], 0),
    ],
)
def test_files_go_by_their_size(tmp_path, keeping, sizes, left):
    put(tmp_path / "journal", sizes, [0.0] * len(sizes))
    remove_old(tmp_path / "journal", keeping, 1e9)
    assert names_in(tmp_path) == sorted(f"journal.{n}" for n in range(1, left + 1))


@pytest.mark.parametrize(("days", "left"), [(0, 3), (10, 3), (5, 2), (1, 0)])
def test_files_go_by_their_age(tmp_path, days, left):
    put(tmp_path / "journal", [1, 1, 1], [2 * DAY_S, 3 * DAY_S, 9 * DAY_S])
    remove_old(tmp_path / "journal", Keeping(100, 3, days * DAY_S), 1e9)
    assert len(names_in(tmp_path)) == left


def test_files_without_content_are_not_kept_without_end(tmp_path):
    put(tmp_path / "journal", [0] * (FILES_MAX + 5), [0.0] * (FILES_MAX + 5))
    remove_old(tmp_path / "journal", Keeping(100, 3), 1e9)
    assert len(names_in(tmp_path)) == FILES_MAX - 1


def test_a_removed_file_does_not_end_the_journal(tmp_path):
    """Files behind the gap are renumbered, and keep their records."""
    path = tmp_path / "journal"
    for name in ("journal", "journal.1", "journal.3"):
        (tmp_path / name).write_text(name)
    shift(path)
    assert [(tmp_path / f"journal.{n}").read_text() for n in (1, 2, 3)] == [
        "journal",
        "journal.1",
        "journal.3",
    ]


def test_two_processes_do_not_write_one_journal(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    first = Journal(path, Keeping(100_000), nothing)
    first.write(request_record(1, b"1"))
    second = Journal(path, Keeping(100_000), nothing)
    assert (second.on, isinstance(second.failure, TakenError)) == (False, True)
    (tmp_path / "journal.new").write_text("what the first is beginning, say")
    monkeypatch.setattr(journal_module, "RETRY_S", 0.0)
    second.write(request_record(1, b"2"))
    assert (tmp_path / "journal.new").exists()
    first.write(request_record(1, b"3"))
    first.close()
    assert requests(path) == [1, 3]
    second.write(request_record(1, b"4"))
    second.close()
    assert (requests(tmp_path / "journal.1"), requests(path)) == ([1, 3], [4]), "its turn"


ENDS = """
import os, sys
from pathlib import Path
from allocator.server.engine.journal_files import Journal
from allocator.server.engine.journal_files import Keeping
from tests.server.engine.test_loop_journal import nothing

Journal(Path(sys.argv[1]), Keeping(1000), nothing)
os._exit(9)
"""


def test_the_lock_of_a_process_that_died_is_free(tmp_path):
    path = tmp_path / "journal"
    done = subprocess.run([sys.executable, "-c", ENDS, str(path)], check=False, timeout=100)
    assert done.returncode == 9
    journal = Journal(path, Keeping(1000), nothing)
    assert journal.on
    journal.close()


@pytest.mark.parametrize("name", ["journal", "journal.new", "journal.spool"])
def test_no_link_is_followed(tmp_path, name):
    """A user with write access to the directory cannot make the sidecar write to another file."""
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "other"
    other.write_text("somebody else's")
    (tmp_path / name).symlink_to(other)
    journal = Journal(tmp_path / "journal", Keeping(1000), nothing)
    assert journal.on
    journal.write(request_record(1, b"1"))
    journal.close()
    assert other.read_text() == "somebody else's"
    assert not (tmp_path / "journal").is_symlink()
    assert kinds(tmp_path / "journal") == ["start", "request"]


def test_a_lock_that_is_a_link_is_none(tmp_path):
    (tmp_path / "journal.lock").symlink_to(tmp_path / "elsewhere")
    journal = Journal(tmp_path / "journal", Keeping(1000), nothing)
    assert not journal.on
    assert not (tmp_path / "elsewhere").exists()


def test_a_sidecar_whose_journal_another_one_writes_serves_and_says_so(tmp_path):
    flags = (f"journal.path={tmp_path}/journal", "state.directory=-")
    with SidecarProcess(*flags) as first, SidecarProcess(*flags) as second:
        assert not first.said("journal off")
        (said,) = second.said("journal off")
        assert said["error"].startswith("another process writes it")
        with second.channel() as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            status = stub.GetStatus(admin_pb2.GetStatusRequest())
        assert "journal off" in {warning.what for warning in status.warnings}
        assert second.terminate() == 0
        assert first.terminate() == 0
    assert kinds(tmp_path / "journal")[0] == "start"
    assert not (tmp_path / "journal.1").exists()

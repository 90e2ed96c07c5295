"""Saving continues after any error, and a file that cannot be read now is left unchanged."""

import errno
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
import structlog

from allocator.core import Remembered, SessionLimits, Settings, State
from allocator.server.config import Config
from allocator.server.config.sections import JournalSection, StateSection
from allocator.server.operators import state_store
from allocator.server.operators.state_store import (
    HISTORY,
    LEARNT,
    SETTINGS,
    VERSION,
    StateDirectory,
    StateError,
    StateStore,
)
from allocator.server.system import disk, lasting
from allocator.server.system.lasting import LastingThread
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.learnt_demands import Learnt, copy_learnt


def named(path: Path) -> Config:
    return Config(state=StateSection(directory=str(path)))


def derived(path: Path) -> Config:
    return Config(journal=JournalSection(path=str(path / "journal")))


def learnt() -> Future[Learnt]:
    state = State(Settings(), SessionLimits())
    state.memory.entries["eng", "name", "job"] = Remembered({"cpus": 1000}, 1, 0)
    future: Future[Learnt] = Future()
    future.set_result(copy_learnt(state))
    return future


def until(holds: Callable[[], bool]) -> None:
    for _ in range(3000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it does not come about")


def test_the_state_store_continues_after_any_error(tmp_path, monkeypatch):
    """Learned demands are saved later, whatever error the core's answer was."""
    monkeypatch.setattr(lasting, "AGAIN_S", (0.01, 0.01))
    asked = []

    def ask() -> Future[Learnt]:
        asked.append(True)
        if len(asked) > 2:
            return learnt()
        future: Future[Learnt] = Future()
        future.set_exception(KeyError("something of the core"))
        return future

    kept = StateStore(StateDirectory(tmp_path), ask, 0.01)
    kept.start()
    until((tmp_path / LEARNT).exists)
    assert kept.await_kept(kept.settings_changed(pb.KeptSettings(), pb.KeptHistory()), 10) == ""
    kept.close()
    assert not kept._thread.is_alive()


def test_what_was_learnt_is_saved_at_once_on_request(tmp_path, monkeypatch):
    kept = StateStore(StateDirectory(tmp_path), learnt, 3600)
    kept.start()
    write, failures = kept.directory.write, [MemoryError("none left")]

    def fail(name: str, content: dict) -> None:
        if failures:
            raise failures.pop()
        write(name, content)

    monkeypatch.setattr(kept.directory, "write", fail)
    assert f"{LEARNT} cannot be written" in kept.save_learnt(10)
    assert not (tmp_path / LEARNT).exists()
    assert kept.save_learnt(10) == ""
    assert json.loads((tmp_path / LEARNT).read_text())["content"]["demands"]
    kept.close()


@pytest.mark.parametrize("file", [SETTINGS, HISTORY])
def test_a_failed_write_is_reported_and_retried(tmp_path, monkeypatch, file):
    monkeypatch.setattr(state_store, "RETRY_S", 0.01)
    kept = StateStore(StateDirectory(tmp_path), learnt, 3600)
    write, failures = kept.directory.write, [ValueError("odd"), MemoryError()]

    def fail(name: str, content: dict) -> None:
        if name == file and failures:
            raise failures.pop()
        write(name, content)

    monkeypatch.setattr(kept.directory, "write", fail)
    kept.start()
    number = kept.settings_changed(pb.KeptSettings(), pb.KeptHistory())
    assert f"{file} cannot be written" in kept.await_kept(number, 10)
    until(lambda: kept.await_kept(number, 0) == "")
    assert (kept.errors, kept.problem) == (2, "")
    kept.close()


def test_the_end_waits_for_no_core_that_does_not_answer(tmp_path):
    never: Future[Learnt] = Future()
    kept = StateStore(StateDirectory(tmp_path), lambda: never, 3600)
    kept.start()
    kept.close(0.5)
    assert not kept._thread.is_alive()
    assert never.cancelled()


def broken_now(number: int) -> Callable[..., bytes]:
    def read(path: Path, *_more: object, **_flags: object) -> bytes:
        raise OSError(number, os.strerror(number), str(path))

    return read


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EMFILE])
def test_a_file_that_cannot_be_read_now_is_left_alone(tmp_path, monkeypatch, number):
    (tmp_path / SETTINGS).write_text("whole")
    monkeypatch.setattr(state_store, "read_regular", broken_now(number), raising=False)
    monkeypatch.setattr(Path, "read_bytes", broken_now(number))
    with structlog.testing.capture_logs() as log:
        found = state_store.restore(derived(tmp_path))
    assert found.directory is None, "to write there would lose what it says"
    assert os.strerror(number) in found.problem
    assert [entry["log_level"] for entry in log] == ["warning"]
    with pytest.raises(StateError, match=r"fix it, set state\.directory to another"):
        state_store.restore(named(tmp_path))
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", SETTINGS]
    assert (tmp_path / SETTINGS).read_text() == "whole"
    StateDirectory(tmp_path).close()  # it is not in use


def put_link(path: Path) -> None:
    (path.parent / "whole").write_text("somebody else's")
    path.symlink_to(path.parent / "whole")


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, put_link, lambda at: at.symlink_to(at)])
def test_special_files_are_neither_waited_for_nor_followed(tmp_path, put):
    put(tmp_path / SETTINGS)
    assert state_store.restore(derived(tmp_path)).directory is None
    assert os.path.lexists(tmp_path / SETTINGS)


def test_a_link_in_the_place_of_a_new_file_is_not_followed(tmp_path):
    other = tmp_path / "other"
    other.write_text("somebody else's")
    directory = StateDirectory(tmp_path / "state")
    (tmp_path / "state" / f"{SETTINGS}.new").symlink_to(other)
    directory.write(SETTINGS, {"changes": []})
    directory.close()
    assert other.read_text() == "somebody else's"
    assert json.loads((tmp_path / "state" / SETTINGS).read_text())["version"] == VERSION


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="cannot be used"):
        StateDirectory(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("text", ["[" * 200_000, "9" * 10_000, "\0", '{"version": 1}'])
@pytest.mark.parametrize("file", [SETTINGS, HISTORY])
def test_broken_files_are_put_aside(tmp_path, text, file):
    (tmp_path / file).write_text(text)
    found = state_store.restore(named(tmp_path))
    assert found.directory is not None
    found.directory.close()
    (aside,) = tmp_path.glob(f"{file}.broken-*")
    assert aside.read_text() == text


def test_a_failed_thread_restarts_and_is_reported(monkeypatch):
    monkeypatch.setattr(lasting, "AGAIN_S", (0.01, 0.02))
    went, go = [], threading.Event()

    def work() -> None:
        went.append(True)
        if len(went) < 4:
            raise SystemExit("a plugin's, say")
        go.wait(10)

    thread = LastingThread("worker", work)
    with structlog.testing.capture_logs() as log:
        thread.start()
        until(lambda: len(went) == 4)
    assert [entry["thread"] for entry in log] == ["worker"] * 3
    assert ("worker", "SystemExit: a plugin's, say") in list(lasting.failures())
    go.set()
    thread.join(60)
    assert not thread.is_alive()


def test_at_the_end_a_thread_is_called_once_more_and_no_more_often(monkeypatch):
    monkeypatch.setattr(lasting, "AGAIN_S", (60.0, 60.0))
    went = []

    def work() -> None:
        went.append(True)
        raise ValueError

    thread = LastingThread("worker", work)
    thread.start()
    until(lambda: bool(went))
    thread.end()
    thread.join(60)
    assert (len(went), thread.is_alive()) == (2, False)


def test_files_without_an_end_are_not_read(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 101)
    with pytest.raises(OSError, match="has more than 100 bytes"):
        disk.read_regular(tmp_path / "large", 100)
    with pytest.raises(OSError, match="is not a regular file"):
        disk.read_regular("/dev/zero", 100)

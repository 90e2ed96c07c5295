"""A process never waits forever at its end, and errors outside the core do not end it."""

import errno
import gc
import os
import threading
import time
from pathlib import Path

import pytest
import structlog

from allocator.core.numba.compiled import interpret
from allocator.server.system import compilation, loop_cache
from allocator.server.system.compilation import Compilation
from tests.server.sidecar_process import GrpcModule, SidecarProcess

STUCK = """
import time
from pathlib import Path
from allocator.policies import Entry, build
from allocator.core import PolicySpec

class Stuck:
    def __init__(self):
        self._rest = build(PolicySpec("drf"))

    def allocate(self, snapshot, seed):
        if Path({go!r}).exists():
            Path({begun!r}).touch()
            time.sleep(3600)
        return self._rest.allocate(snapshot, seed)

POLICIES = {{"stuck": Entry(lambda spec: Stuck())}}
"""


@pytest.mark.long
def test_the_end_waits_for_no_long_cycle(tmp_path):
    """Here the core waits an hour for a user's policy."""
    go, begun = tmp_path / "go", tmp_path / "begun"
    plugin = tmp_path / "stuck.py"
    plugin.write_text(STUCK.format(go=str(go), begun=str(begun)))
    flags = (
        f"policy.plugins={plugin}",
        "policy.name=stuck",
        "policy.plugin_deadline_ms=600000",
        f"state.directory={tmp_path}/state",
        f"journal.path={tmp_path}/journal",
    )
    with SidecarProcess(*flags, compiled=True) as process, process.channel() as channel:
        module = GrpcModule(channel).begin()
        go.touch()
        module.say(module.client.batch(2000, (), cycle=True))
        while not begun.exists():
            assert process.alive
            time.sleep(0.01)
        assert process.terminate(within_s=100) == 0
        assert process.said("the core is busy, and is not waited for")
        assert process.said("done")
        module.leave()


@pytest.fixture
def compiling(monkeypatch):
    """A process whose children have ended, and that loads in no time."""
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(compilation, "load", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    found = Compilation(again_s=0.0)
    yield found
    found.stop()
    interpret(False)


def refused(number: int):
    def touch(path: Path, *_more: object, **_flags: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    return touch


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EROFS])
def test_a_cache_that_went_away_or_is_another_s_keeps_no_loops_from_use(
    compiling, monkeypatch, number, tmp_path
):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Path, "touch", refused(number))
    with structlog.testing.capture_logs() as log:
        compiling.look()
        compiling._loader.join(60)
    assert compiling.state == "compiled"
    assert log[0]["event"] == "the compiled loops cannot be kept"


def test_a_complete_cache_of_another_user_is_not_touched(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / loop_cache.COMPLETE).touch()
    monkeypatch.setattr(Path, "touch", refused(errno.EACCES))
    loop_cache.mark_complete()


def test_loops_that_cannot_be_loaded_are_tried_again(compiling, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    failures = [SystemExit("odd"), RuntimeError("can't start new thread")]

    def load() -> None:
        if failures:
            raise failures.pop()

    monkeypatch.setattr(compilation, "load", load)
    (tmp_path / loop_cache.COMPLETE).touch()
    for state in ("failed", "failed", "compiled"):
        compiling.look()
        compiling._loader.join(60)
        assert compiling.state == state


def test_no_thread_for_the_loops_is_no_end(compiling, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    compiling.look()
    assert (compiling.state, compiling.loads) == ("failed", False)

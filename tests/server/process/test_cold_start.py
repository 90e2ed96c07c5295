"""A sidecar whose loops are not compiled yet: it serves, compiles beside, and ends at once."""

import gc
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from allocator.core.numba.compiled import _Mode, interpret
from allocator.server.system import compilation, loop_cache
from allocator.server.system.compilation import PARTS, Compilation
from allocator.v1 import admin_pb2, admin_pb2_grpc
from tests.server.metrics.scraping import value
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.tiers import long

ROOT = Path(__file__).resolve().parents[3]


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def complete_cache() -> Path:
    """The tests' own cache, made complete."""
    subprocess.run([sys.executable, "-m", "allocator", "warm"], check=True, cwd=ROOT)
    loop_cache.prepare()
    return Path(os.environ["NUMBA_CACHE_DIR"])


@pytest.fixture
def cold(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("number", [signal.SIGTERM, *long(signal.SIGINT)])
def test_it_takes_sessions_before_anything_is_compiled_and_leaves_no_children(cold, number):
    with SidecarProcess(compiled=True) as sidecar, sidecar.channel() as channel:
        sidecar.await_said(
            "compiling the loops; until then they run interpreted, which decides the same, slowly"
        )
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) > 0
        found = sidecar.scraped()
        assert value(found, "compiled") == 0
        assert value(found, "compilation_progress") < 1
        ready = sidecar.page("/readyz")[1]
        assert re.fullmatch(rf"ok, interpreted, loops compiled [01] of {len(PARTS)}\n", ready)
        status = admin_pb2_grpc.AdminServiceStub(channel).GetStatus(admin_pb2.GetStatusRequest())
        assert status.loops_state == "compiling"
        assert status.loop_parts_compiled <= 1
        assert status.loop_parts == len(PARTS)
        children = children_of(sidecar.process.pid)
        assert len(children) == len(PARTS)
        assert sidecar.terminate(number) == 0
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


@pytest.mark.long
def test_compiled_loops_take_over_from_interpreted_ones(complete_cache, cold):
    """The children find their loops in the cache, so this takes no time."""
    shutil.copytree(complete_cache, cold / complete_cache.name)
    (cold / complete_cache.name / loop_cache.COMPLETE).unlink()
    with SidecarProcess(compiled=True) as sidecar, sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        first = module.batch(cycle=True)
        sidecar.await_said("the compiled loops have taken over")
        assert len(first) > 0
        assert value(sidecar.scraped(), "compiled") == 1
        assert sidecar.page("/readyz")[1] == "ok\n"
        status = admin_pb2_grpc.AdminServiceStub(channel).GetStatus(admin_pb2.GetStatusRequest())
        assert (status.loops_state, status.loop_parts_compiled) == ("compiled", len(PARTS))
        module.batch(cycle=True)
        assert sidecar.terminate() == 0
    assert (cold / complete_cache.name / loop_cache.COMPLETE).exists()


def done(work: Callable[[], None]) -> Future[None]:
    future: Future[None] = Future()
    work()
    future.set_result(None)
    return future


def test_a_collection_of_garbage_does_not_look_at_what_was_loaded(complete_cache):
    compiling = Compilation()
    try:
        compiling.start()
        while compiling.state in {"compiling", "loading"}:
            compiling.look(done)
            time.sleep(0.1)
        assert compiling.state == "compiled"
        assert gc.get_freeze_count() > len(gc.get_objects())
    finally:
        gc.unfreeze()
        compiling.stop()
        interpret(False)


def test_loops_that_cannot_be_compiled_go_on_interpreted(monkeypatch, cold):
    monkeypatch.setattr(
        compilation, "command_aside", lambda part: [sys.executable, "-c", "raise SystemExit(3)"]
    )
    loop_cache.prepare()
    compiling = Compilation()
    try:
        compiling.start()
        while compiling.state == "compiling":
            compiling.look(lambda work: pytest.fail("nothing was compiled"))
        assert compiling.state == "failed"
        assert compiling.progress.state == "failed"
        assert compiling.remark().startswith("interpreted, the loops could not be compiled")
        assert _Mode.interpreted
    finally:
        compiling.stop()
        interpret(False)


def test_what_could_not_be_compiled_is_tried_again(monkeypatch, cold):
    """As where no descriptor was left, for a while."""

    def exits(code: int) -> Callable[[str], list[str]]:
        return lambda _part: [sys.executable, "-c", f"raise SystemExit({code})"]

    monkeypatch.setattr(compilation, "command_aside", exits(3))
    monkeypatch.setattr(compilation, "_load_here", lambda: None)
    loop_cache.prepare()
    compiling = Compilation(again_s=0.0)
    try:
        compiling.start()
        while compiling.state == "compiling":
            compiling.look(done)
        assert compiling.state == "failed"
        monkeypatch.setattr(compilation, "command_aside", exits(0))
        while compiling.state != "compiled":
            compiling.look(done)
            time.sleep(0.01)
        assert not _Mode.interpreted
        assert compiling.done == len(PARTS)
    finally:
        gc.unfreeze()
        compiling.stop()
        interpret(False)


def test_a_port_that_is_taken_is_noticed_before_anything_is_compiled(cold):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "allocator", "serve", "--http-port", "0"]
        done = subprocess.run(
            [*command, "--listen", f"127.0.0.1:{port}"],
            capture_output=True,
            check=False,
            text=True,
            cwd=ROOT,
        )
    assert done.returncode == 1
    assert "cannot start" in done.stderr
    assert "compiling" not in done.stderr


def test_without_a_writable_cache_a_private_one_is_used(tmp_path, monkeypatch):
    """A file where the directory should be keeps even root from writing."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    note = loop_cache.prepare()
    directory = Path(os.environ["NUMBA_CACHE_DIR"])
    try:
        assert str(directory.parent) in note
        assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(directory.parent)


def test_a_private_cache_is_removed_at_the_end(tmp_path):
    (tmp_path / "file").touch()
    program = (
        "import os; from allocator.server.system import loop_cache as cache;"
        " cache.prepare(); print(os.environ['NUMBA_CACHE_DIR'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")},
    )
    assert not Path(done.stdout.strip()).parent.exists()


def test_a_missing_home_is_no_obstacle(tmp_path):
    """As for a service without one, in an installation that it cannot write."""
    package = tmp_path / "allocator"
    shutil.copytree(ROOT / "allocator", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").touch()
    program = (
        "import os; from allocator.server.system import loop_cache as cache;"
        " print(cache.prepare(), os.environ['NUMBA_CACHE_DIR'])"
    )
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**environment, "HOME": "/dev/null/nowhere", "PYTHONPATH": str(tmp_path)},
    )
    assert "/dev/null/nowhere/.cache/mesos-allocator cannot be written" in done.stdout

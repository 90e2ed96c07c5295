"""Until its loops are loaded, a sidecar says so, refuses sessions, and stops at once on SIGTERM."""

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
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from allocator.core.numba.compiled import interpret
from allocator.server.system import compilation, loop_cache
from allocator.server.system.compilation import PARTS, Compilation
from allocator.v1 import admin_pb2, admin_pb2_grpc
from tests.server.metrics.scraping import value
from tests.server.processes import children_of
from tests.server.sidecar_process import READY_S, GrpcModule, SidecarProcess, await_true
from tests.tiers import long

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def complete_cache() -> Path:
    """The tests' own cache, marked as complete."""
    subprocess.run([sys.executable, "-m", "allocator", "warm"], check=True, cwd=ROOT)
    loop_cache.prepare()
    return Path(os.environ["NUMBA_CACHE_DIR"])


@pytest.fixture
def cold(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    return tmp_path / "cache"


def status_of(channel: grpc.Channel) -> admin_pb2.GetStatusResponse:
    return admin_pb2_grpc.AdminServiceStub(channel).GetStatus(admin_pb2.GetStatusRequest())


def health_of(channel: grpc.Channel) -> int:
    health: Any = health_pb2_grpc.HealthStub(channel)
    return health.Check(health_pb2.HealthCheckRequest()).status


def refusal(channel: grpc.Channel) -> str:
    """The reason for refusing sessions."""
    with pytest.raises(grpc.RpcError) as refused:
        GrpcModule(channel).begin()
    error: Any = refused.value
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    return error.details()


@pytest.mark.parametrize("number", [signal.SIGTERM, *long(signal.SIGINT)])
def test_until_its_loops_are_compiled_it_says_so_takes_no_session_and_ends_at_once(cold, number):
    with SidecarProcess(until="listening", compiled=True) as sidecar, sidecar.channel() as channel:
        assert sidecar.page("/healthz") == (200, "ok\n")
        progress = rf"compiling \(about a minute, once\): [01] of {len(PARTS)} parts done after"
        code, text = sidecar.page("/readyz")
        assert code == 503
        assert re.fullmatch(rf"{progress} \d+ s\n", text)
        assert re.match(progress, refusal(channel))
        assert health_of(channel) == health_pb2.HealthCheckResponse.NOT_SERVING
        found = sidecar.scraped()
        assert value(found, "compiled") == 0
        assert value(found, "compilation_progress") < 1
        status = status_of(channel)
        assert (status.loops_state, status.loop_parts) == ("compiling", len(PARTS))
        assert status.loop_parts_compiled <= 1
        assert status.sessions == 0
        assert status.warnings[0].what == "starting"
        assert re.search(progress, status.warnings[0].text)
        assert sidecar.said("compiling the loops (about a minute, once)")
        children = children_of(sidecar.process.pid)
        assert len(children) == len(PARTS) + 1  # the observer
        assert sidecar.terminate(number) == 0
        assert not sidecar.said("ready")
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


@pytest.fixture
def nearly_cold(complete_cache, cold) -> Path:
    """A cache that contains all loops, but lacks the mark: child processes check each loop."""
    shutil.copytree(complete_cache, cold / complete_cache.name)
    (cold / complete_cache.name / loop_cache.COMPLETE).unlink()
    return cold / complete_cache.name


@pytest.mark.long
def test_once_the_loops_are_loaded_sessions_begin_and_a_plan_is_adopted(nearly_cold):
    with (
        SidecarProcess(
            "policy.name=quincy",
            "policy.plan_first_wait_ms=5000",
            until="listening",
            compiled=True,
        ) as sidecar,
        sidecar.channel() as channel,
    ):
        assert refusal(channel)
        sidecar.await_said("ready", within_s=READY_S)
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) > 0
        # The deciding process sends figures to the observer periodically.
        await_true(lambda: value(sidecar.scraped(), "plans_total", result="adopted") == 1)
        found = sidecar.scraped()
        assert value(found, "cycles_total") == 1
        assert value(found, "compiled") == 1
        assert sidecar.page("/readyz") == (200, "ok\n")
        assert health_of(channel) == health_pb2.HealthCheckResponse.SERVING
        status = status_of(channel)
        assert (status.loops_state, status.loop_parts_compiled) == ("compiled", len(PARTS))
        assert sidecar.terminate() == 0
    assert (nearly_cold / loop_cache.COMPLETE).exists()


def test_without_a_compiler_it_is_ready_at_once_with_plain_loops(cold, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with SidecarProcess() as sidecar, sidecar.channel() as channel:
        assert len(GrpcModule(channel).begin().batch(cycle=True)) > 0
        assert status_of(channel).loops_state == "plain"
        assert sidecar.page("/readyz") == (200, "ok\n")
        assert children_of(sidecar.process.pid) == [sidecar.observer_pid]


def test_garbage_is_collected_rarely_and_not_in_what_was_loaded(complete_cache):
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python's own
    compiling = Compilation()
    try:
        compiling.start()
        while compiling.state in {"compiling", "loading"}:
            compiling.look()
            time.sleep(0.1)
        assert compiling.state == "compiled"
        assert gc.get_freeze_count() > len(gc.get_objects())
        assert gc.get_threshold()[0] >= 7000
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        compiling.stop()
        interpret(False)


LOAD_CACHED = """
import shutil
from allocator.server.system import compilation, loop_cache
loop_cache.prepare()
from allocator.core.numba.compiled import cached_only_here, compiled_here
compilation.load_cached()
shutil.rmtree(loop_cache.directory())
with cached_only_here(), compiled_here():
    compilation.load()
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_before_it_forks_it_loads_what_is_cached_and_compiles_nothing(
    complete_cache, cold, damaged
):
    shutil.copytree(complete_cache, cold / complete_cache.name)
    if damaged:
        for code in (cold / complete_cache.name).rglob("*.nbc"):
            code.unlink()
    command = [sys.executable, "-c", LOAD_CACHED]
    done = subprocess.run(command, capture_output=True, check=False, text=True, cwd=ROOT)
    if damaged:
        assert "NotCachedError" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def exits(code: int) -> Callable[[str], list[str]]:
    return lambda _part: [sys.executable, "-c", f"raise SystemExit({code})"]


def test_where_loops_cannot_be_compiled_no_session_begins_and_it_is_said_why(monkeypatch, cold):
    monkeypatch.setattr(compilation, "command_aside", exits(3))
    loop_cache.prepare()
    compiling = Compilation()
    try:
        with structlog.testing.capture_logs() as log:
            compiling.start()
            while compiling.state == "compiling":
                compiling.look()
        assert not compiling.ready
        assert re.fullmatch(
            r"the loops could not be compiled \(\S+ ended with exit code 3\);"
            r" retried in \d+ s",
            compiling.problem(),
        )
        assert compiling.progress == ("failed", compiling.done, compiling.problem())
        assert log[-1]["log_level"] == "error"
        assert "no session begins until they are" in log[-1]["event"]
    finally:
        compiling.stop()
        interpret(False)


def test_a_failed_compilation_is_retried(monkeypatch, cold):
    """As if no descriptor had been left, for a while."""

    monkeypatch.setattr(compilation, "command_aside", exits(3))
    monkeypatch.setattr(compilation, "load", lambda: None)
    loop_cache.prepare()
    compiling = Compilation(again_s=0.0)
    try:
        compiling.start()
        while compiling.state == "compiling":
            compiling.look()
        assert compiling.state == "failed"
        monkeypatch.setattr(compilation, "command_aside", exits(0))
        while compiling.state != "compiled":
            compiling.look()
            time.sleep(0.01)
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
    """A file in place of the directory prevents even root from writing."""
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
    """Example: a service without a home directory, which may not write to its installation."""
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

"""Notifications to systemd, on a real notification socket."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from allocator import policies
from allocator.server.config import Config
from allocator.server.engine import monitor as monitors
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.monitor import Monitor
from allocator.server.process import systemd
from tests.server.metrics.test_metrics_http import Busy
from tests.server.sidecar_process import SidecarProcess


@pytest.fixture
def heard(tmp_path, monkeypatch) -> Iterator[socket.socket]:
    """The socket on which systemd would listen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        yield listener


def emptied(listener: socket.socket) -> list[bytes]:
    """All notifications so far."""
    listener.setblocking(False)
    found = []
    try:
        while True:
            found.append(listener.recv(100))
    except BlockingIOError:
        return found
    finally:
        listener.settimeout(60)


def test_systemd_is_notified_of_start_life_and_end(heard, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "300000")
    with SidecarProcess() as sidecar:
        assert heard.recv(100) == systemd.READY
        assert heard.recv(100) == heard.recv(100) == systemd.ALIVE
        assert sidecar.terminate() == 0
    assert emptied(heard)[-1] == systemd.STOPPING


def test_a_core_that_hangs_is_not_called_alive(heard, monkeypatch):
    monkeypatch.setenv("WATCHDOG_USEC", "60000")
    monkeypatch.setattr(monitors, "SILENCE_S", 0.05)
    loop = CoreLoop(Config(), build_policy=policies.build)
    loop.start()
    monitor = Monitor(loop, lambda: "")
    with systemd.watched(lambda: not monitor.health()):
        assert heard.recv(100) == systemd.ALIVE
        with Busy(loop):
            # Notifications stop soon, and stay off.
            silent_since_s = time.monotonic()
            while time.monotonic() - silent_since_s < 0.5:
                if emptied(heard):
                    silent_since_s = time.monotonic()
                time.sleep(0.01)
        assert heard.recv(100) == systemd.ALIVE
    loop.stop()


@pytest.mark.parametrize(
    ("usec", "pid", "within_s"),
    [("60000000", None, 60.0), ("1000", "mine", 0.001), ("1000", "1", 0.0), ("x", "", 0)],
)
def test_the_time_is_meant_for_one_process(monkeypatch, usec, pid, within_s):
    monkeypatch.setenv("WATCHDOG_USEC", usec)
    if pid is not None:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "mine" else pid)
    assert systemd.watchdog_s() == within_s


def test_without_systemd_there_are_no_notifications(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    with systemd.watched(lambda: pytest.fail("no watchdog was requested")):
        systemd.notify(systemd.READY)

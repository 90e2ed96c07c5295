"""Without free descriptors a sidecar continues, logs one line, and accepts clients again later."""

import resource
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from allocator.v1 import admin_pb2, admin_pb2_grpc, settings_pb2, types_pb2
from tests.rule_changes import listed, rule_change
from tests.server.processes import lowest_free_descriptor
from tests.server.sidecar_process import GrpcModule, SidecarProcess

SAID = "http accepts no connections for a while"
KNOCKS = 20


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory) -> Iterator[SidecarProcess]:
    with SidecarProcess(
        listen=[f"unix:{tmp_path_factory.mktemp('s')}/s"], compiled=True
    ) as running:
        running.await_said("observing")
        yield running


def scrape(http: str) -> str:
    """Ask until an answer arrives; pytest-timeout bounds it."""
    while True:
        try:
            with urllib.request.urlopen(f"http://{http}/healthz", timeout=5) as answer:
                return answer.read().decode()
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)


@contextmanager
def no_descriptors(pid: int) -> Iterator[None]:
    """Leave a process its open descriptors only, for the duration of the context."""
    # Descriptors of the previous test are closed a moment later.
    lowest, still = -1, 0
    while still < 3:
        before, lowest = lowest, lowest_free_descriptor(pid)
        still = still + 1 if lowest == before else 0
        time.sleep(0.1)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_no_flood_of_logs_without_descriptors(sidecar):
    host, _, port = sidecar.http.rpartition(":")
    with no_descriptors(sidecar.observer_pid), ExitStack() as stack:
        for _ in range(KNOCKS):
            stack.enter_context(socket.create_connection((host, int(port)), 60))
        sidecar.await_said(SAID)
        lines = len(sidecar.raw)
        time.sleep(2.5)  # the event loop tries again each second
        assert len(sidecar.raw) == lines
        assert not [line for line in sidecar.raw if "Traceback" in line]
    assert scrape(sidecar.http).startswith("ok")
    assert len(sidecar.said(SAID)) == 1


def test_operators_on_a_socket_are_answered_without_descriptors(sidecar):
    """The client cannot be identified then, which is no reason to refuse it."""
    limit = settings_pb2.Limit(role="eng", limit=types_pb2.Quantities(name=["cpus"], amount=[1]))
    with sidecar.channel() as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=60)  # so it is connected
        with no_descriptors(sidecar.process.pid):
            answer = stub.ChangeRule(rule_change(limit=limit), timeout=60)
    assert [each.role for each in listed(answer)] == ["eng"]


def test_a_configuration_that_cannot_be_read_ends_nothing(sidecar):
    """Not even the path of the plugins can be looked up then."""
    with no_descriptors(sidecar.process.pid):
        sidecar.process.send_signal(signal.SIGHUP)
        said = sidecar.await_said("configuration refused, nothing has changed")
    assert said["problems"] == ["Too many open files; send SIGHUP again when that is over"]
    sidecar.process.send_signal(signal.SIGHUP)
    sidecar.await_said("configuration reloaded")


def test_the_first_request_by_http_needs_no_import():
    with SidecarProcess(compiled=True) as fresh:
        fresh.await_said("observing")
        host, _, port = fresh.http.rpartition(":")
        with socket.create_connection((host, int(port)), 60) as connection:
            time.sleep(0.5)  # until it is accepted
            with no_descriptors(fresh.observer_pid):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
                assert connection.recv(1024).startswith(b"HTTP/1.1 200")
        assert not [line for line in fresh.raw if "Traceback" in line]


@pytest.mark.long
def test_the_first_cycle_needs_no_descriptor():
    """No module is imported during a session: without a descriptor that would fail and end it."""
    with SidecarProcess(compiled=True) as fresh, fresh.channel() as channel:
        module = GrpcModule(channel).begin()
        module.batch()
        with no_descriptors(fresh.process.pid):
            assert len(module.batch(cycle=True))

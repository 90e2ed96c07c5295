"""Torture of a sidecar process: it ends without a violation, and planted defects are found."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack

import pytest

from allocator.core import MILLI
from allocator.v1 import admin_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from laboratory.links.sidecar_process import channel
from laboratory.links.stream import StreamLink
from laboratory.master.emulated import EmulatedMaster
from tests.server.metrics.scraping import samples
from tests.server.processes import free_port
from tests.server.sidecar_process import await_true
from tests.tiers import long
from tests.torture.faults import (
    FAULTS,
    hostile_tenants,
    kill,
    kill_planned,
    kill_planner,
    questions,
    reconnect,
    set_policy,
)
from tests.torture.report import text, write
from tests.torture.rig import TorturedSidecar
from tests.torture.run import Plan, TortureWorld, torture
from tests.torture.wall_clock import WallClock
from tests.torture.wires import Cable, Proxy, dial_tcp

QUIET = (questions,)


@pytest.mark.parametrize("duration_s", [2.0, *long(4.0, 10.0)])
def test_a_short_torture_finds_nothing(tmp_path, duration_s):
    cycles_min = int(duration_s * 5)
    report = torture(Plan(duration_s, seed=3, out=tmp_path, cycles_min=cycles_min))
    assert not report.violations, text(report)
    findings = report.findings
    assert findings.counts["cycles"] >= cycles_min
    if duration_s >= 10:  # long enough for each, even on a busy machine
        assert findings.counts["facts_compared"]
        assert findings.faults
        assert findings.samples
    kept = json.loads(write(report, tmp_path).read_text())
    assert kept["violations"] == 0
    assert kept["faults"] == dict(findings.faults)
    assert (tmp_path / "sidecar.log").stat().st_size


@pytest.mark.long
def test_each_fault_is_survived(tmp_path, monkeypatch):
    """Inject each fault in turn, in a busy cluster."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    left = list(FAULTS)

    def strike_each(world: TortureWorld) -> None:
        scene, heap = world.scene, world.scene.master.event_heap

        def strike() -> None:
            if not left:
                return
            heap.after(500, strike)
            recovered = scene.rig.sidecar.wanted and not scene.link.vain and not scene.rig.short
            if recovered and (fault := left.pop()).possible(scene.rig):
                fault.strike(scene)

        heap.at(1_000, strike)

    plan = Plan(300, 3, tmp_path, size=4, faults=QUIET, tamper=strike_each)
    report = torture(plan, stopped=lambda: not left)
    assert not report.violations, text(report)
    assert not left


def test_every_fault_has_a_name_of_its_own():
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert all(fault.weight > 0 for fault in FAULTS)


@pytest.mark.long
def test_altered_books_are_found(tmp_path):
    """Tell the sidecar that half of what came into use was released: the books diverge."""

    def tamper(world):
        master = world.scene.master
        transition = master.outbox.transition

        def half_ended(row):
            framework, role, agent, amount = row
            transition((framework, role, agent, amount))
            if master.event_heap.now_ms > 3_000:
                half = (amount[0] // 2,)
                if any(half):
                    master.outbox.release((framework, role, agent, half), used=True)

        master.outbox.transition = half_ended

    report = torture(Plan(5.0, 3, tmp_path, cycles_min=150, faults=QUIET, tamper=tamper))
    assert report.findings.broken["equal books on both sides"], text(report)


@pytest.mark.long
def test_a_filter_that_is_not_sent_is_found(tmp_path):
    """A sidecar that does not receive refusals makes decisions that the books forbid."""

    def tamper(world):
        master = world.scene.master
        release = master.outbox.release

        def without_filter(row, *, used=False, refuse_ms=-1):
            release(row, used=used)

        master.outbox.release = without_filter

    report = torture(Plan(5.0, 3, tmp_path, cycles_min=150, faults=QUIET, tamper=tamper))
    assert report.findings.broken["no decision that the books forbid"], text(report)


@pytest.mark.long
def test_a_sidecar_that_loses_settings_is_found(tmp_path):
    def tamper(world):
        world.scene.rig.kept["torture/never-set"] = 5 * MILLI

    report = torture(Plan(5.0, 3, tmp_path, cycles_min=50, faults=(set_policy,), tamper=tamper))
    assert report.findings.broken["what operators set is kept"], text(report)


@pytest.mark.long
def test_kills_and_reconnects_are_survived(tmp_path):
    report = torture(Plan(5.0, 5, tmp_path, cycles_min=100, faults=(kill, reconnect)))
    assert not report.violations, text(report)
    assert report.findings.faults


@pytest.mark.long
def test_kills_over_plans_are_survived(tmp_path):
    faults = (kill_planner, kill_planned)
    report = torture(Plan(5.0, 5, tmp_path, cycles_min=30, faults=faults))
    assert not report.violations, text(report)
    assert report.findings.faults


@pytest.mark.long
def test_hostile_tenants_are_survived(tmp_path):
    report = torture(Plan(5.0, 3, tmp_path, cycles_min=100, faults=(hostile_tenants,)))
    assert not report.violations, text(report)
    assert len(report.findings.manners) > 3


@pytest.mark.long
def test_control_c_ends_it_in_order(tmp_path):
    command = [sys.executable, "-m", "tests.torture", "--hours", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    while not (tmp_path / "sidecar.log").exists():  # pytest-timeout bounds it
        time.sleep(0.1)
    time.sleep(5.0)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "0 violations" in said
    assert json.loads((tmp_path / "torture.json").read_text())["violations"] == 0


def test_a_clock_is_set_for_a_process_and_for_no_other(tmp_path):
    clock = WallClock(tmp_path / "ahead")
    program = (
        "import sys, time; from pathlib import Path;"
        "from tests.torture.wall_clock import follow;"
        "follow(Path(sys.argv[1])); before = time.monotonic();"
        "[print(time.time(), time.time_ns(), flush=True) for _ in sys.stdin];"
        "assert time.monotonic() - before < 3600"
    )
    words = [sys.executable, "-c", program, str(clock.path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
        for ahead_s in (0.0, -86_400.0, 7_200.5):
            clock.set(ahead_s)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            at_s, at_ns = process.stdout.readline().split()
            assert float(at_s) - time.time() == pytest.approx(ahead_s, abs=600)
            assert int(at_ns) / 1e9 == pytest.approx(float(at_s), abs=600)
        process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.long
def test_a_sidecar_has_the_clock_that_is_set(tmp_path):
    """The clock is ahead after a restart, and gRPC does not wait for the machine's to catch up."""
    http, target = free_port(), f"unix:{tmp_path}/a.sock"
    config = tmp_path / "config.toml"
    config.write_text(f'[listen]\ntargets = ["{target}"]\n[http]\nport = {http}\n')
    clock = WallClock(tmp_path / "ahead")
    sidecar = TorturedSidecar(config, tmp_path / "log", clock.path)

    def heard_ago_s() -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics", timeout=60) as answer:
            found = samples(answer.read().decode())
        return time.time() - found["last_batch_timestamp_seconds", ()]

    def look(ahead_s: float) -> None:
        clock.set(ahead_s)
        master = EmulatedMaster(StreamLink(target))
        master.open()
        while master.step(2_000):
            pass
        await_true(lambda: heard_ago_s() == pytest.approx(-ahead_s, abs=600))
        clock.set(ahead_s + 7_200.0)
        with channel(target) as to_sidecar:
            status = AdminServiceStub(to_sidecar).GetStatus(admin_pb2.GetStatusRequest())
        assert status.in_session
        assert "silent master" not in [each.what for each in status.warnings]
        master.close()

    try:
        sidecar.start()
        look(0.0)
        look(7_200.0)
        assert sidecar.terminate() == 0
        sidecar.start()
        look(7_200.0)
    finally:
        sidecar.kill()


def test_the_network_is_cut_and_comes_back(echo_everywhere, tool):
    """A connection survives a temporary loss of packets without losing data."""
    tool("nsenter")
    tool("unshare")
    show = [tool("ip"), "address"]
    with ExitStack() as stack:
        try:
            cable = stack.enter_context(Cable())
        except OSError as error:
            pytest.skip(f"no right to make a network: {error}")
        connection = stack.enter_context(cable.dial(echo_everywhere))
        connection.settimeout(60)
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"
        cable.pull()
        connection.sendall(b"later")
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(5)
        with pytest.raises(OSError, match="unreachable"):
            cable.dial(echo_everywhere)
        connection.settimeout(60)
        cable.plug()
        assert connection.recv(5) == b"later"
        cable.dial(echo_everywhere).close()
    shown = subprocess.run(show, capture_output=True, check=True).stdout.decode()
    assert cable.address not in shown


@pytest.fixture
def echo():
    """A proxy that sends all data twice; yields its port."""
    yield from echoing("127.0.0.1")


@pytest.fixture
def echo_everywhere():
    yield from echoing("")


def echoing(address):
    with socket.create_server((address, 0)) as listener:

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=say_again, args=(connection,), daemon=True).start()

        def say_again(connection):
            with connection:
                try:
                    while data := connection.recv(1024):
                        connection.sendall(data)
                except OSError:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def proxied(echo):
    with Proxy(dial_tcp(echo), seed=1) as proxy, dial_tcp(proxy.port)() as connection:
        connection.settimeout(60)
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"
        yield proxy, connection


def test_the_proxy_resets(proxied):
    proxy, connection = proxied
    assert proxy.reset() == 1
    with pytest.raises(ConnectionResetError):
        connection.recv(1)


def test_the_proxy_stalls_and_continues(proxied):
    proxy, connection = proxied
    proxy.stall()
    connection.sendall(b"later")
    connection.settimeout(0.3)
    with pytest.raises(TimeoutError):
        connection.recv(5)
    connection.settimeout(60)
    proxy.flow()
    assert connection.recv(5) == b"later"


def test_the_proxy_tears(proxied):
    proxy, connection = proxied
    proxy.tear()
    connection.sendall(b"x" * 1000)
    received: list[bytes] = []
    with pytest.raises(ConnectionResetError):
        received.extend(iter(lambda: connection.recv(1000), b""))
    assert sum(map(len, received)) < 1000


def test_the_proxy_garbles_one_byte(proxied):
    proxy, connection = proxied
    proxy.garble()
    connection.sendall(b"x" * 100)
    received = b""
    while len(received) < 100:
        received += connection.recv(100)
    assert sum(byte != ord("x") for byte in received) == 1

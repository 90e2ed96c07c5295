"""The module's session library against real sidecar processes, and against hostile servers.

`mesos-module/tests/session/session_driver.cpp` plays a small master: exact ledger, gates,
frameworks that accept and decline, agents that come and go. It exits with code 3 as soon as its
ledger is wrong. `make test` builds it and names it in MESOS_ALLOCATOR_DRIVER; `make test-all` names
the one built with the address sanitizer.
"""

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from allocator.v1 import admin_pb2, admin_pb2_grpc
from allocator.v1 import session_pb2 as pb
from tests.cluster.hostile import ENDING, HostileSidecar
from tests.server.grpc.certificates import Authority
from tests.server.metrics.scraping import series, value
from tests.server.sidecar_process import SidecarProcess, await_true
from tests.tiers import long

DRIVER = os.environ.get("MESOS_ALLOCATOR_DRIVER", "")

MIB = 2**20


@pytest.fixture(scope="module", autouse=True)
def driver_is_built():
    if not Path(DRIVER).is_file():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("`make module` builds the driver")


class Driver:
    """The driver as a child process; its output is parsed into dictionaries.

    Options are those of the program: ``answer_ms=500`` is ``--answer-ms 500``.
    """

    def __init__(self, target: str, **options: object) -> None:
        options = {"target": target, "agents": 20, "interval_ms": 50, **options}
        words = [
            word
            for name, value in options.items()
            for word in ("--" + name.replace("_", "-"), str(value))
        ]
        self.process = subprocess.Popen(
            [DRIVER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def tell(self, word: str) -> int:
        """Send the driver a command; returns the number of lines read so far."""
        place = len(self.lines)
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return place

    def wait(self, event: str, start: int = 0, **fields) -> dict[str, Any]:
        """Wait for an event that the driver reports after line number `start`."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in self.lines[start:]:
                if line["event"] == event and fields.items() <= line.items():
                    return line
            assert self.process.poll() is None, self.lines[-3:]
            time.sleep(0.01)
        raise AssertionError(f"no {event} {fields} in {self.lines[start:][-5:]}")

    def counters(self) -> dict[str, Any]:
        """Wait for the next counters."""
        return self.wait("counters", len(self.lines))

    def wait_for(self, counter: str, reached: Callable[[Any], bool]) -> None:
        """Wait until a counter satisfies a condition."""
        deadline = time.monotonic() + 60
        while not reached(self.counters()[counter]):
            assert time.monotonic() < deadline, self.lines[-1]

    def decides(self) -> None:
        """Wait until further decisions have become offers."""
        before = self.counters()["offers"]
        self.wait_for("offers", lambda offers: offers > before)

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def stop(self) -> dict[str, Any]:
        """Stop it in order; returns the final counters."""
        self.tell("stop")
        assert self.process.wait(60) == 0
        self._reader.join()
        return [line for line in self.lines if line["event"] == "counters"][-1]


def same_books(driver: Driver, sidecar: SidecarProcess) -> int:
    """Compare holdings in thousandths; returns the number of rows."""
    held: dict[tuple[int, ...], list[int]] = {}
    for *place, cpus, mem in driver.wait("books", driver.tell("hold"))["holdings"]:
        sums = held.setdefault(tuple(place), [0, 0])
        sums[:] = sums[0] + cpus, sums[1] + mem
    with sidecar.channel() as channel:
        dump = admin_pb2_grpc.AdminServiceStub(channel).Dump(admin_pb2.DumpRequest())
        state = json.loads(b"".join(piece.json for piece in dump))
    theirs = {
        (row["framework"], row["role"], row["agent"]): [
            row["held"].get("0", 0),
            row["held"].get("1", 0),
        ]
        for row in state["holdings"]
    }
    assert theirs == held
    assert state["paused"] is False
    driver.tell("resume")
    return len(held)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", *long("unix:{}/session.sock")])
def test_the_books_agree_while_everything_comes_and_goes(listen, tmp_path):
    with SidecarProcess(listen=[listen.format(tmp_path)], compiled=True) as sidecar:
        with Driver(sidecar.targets[0], agents=60, frameworks=8) as driver:
            driver.wait("connected")
            rows = 0
            for _ in range(3):
                driver.decides()
                rows += same_books(driver, sidecar)
            driver.wait_for("outcomes", lambda counts: counts[pb.OUTCOME_REASON_OFFERED] > 50)
            rows += same_books(driver, sidecar)
            last = driver.stop()
        assert rows > 10
        assert (last["attempts"], last["sessions"], last["resyncs"]) == (1, 1, 0)
        assert last["decisions"] == sum(last["outcomes"]) > 50
        assert 0 < last["round_trip_p50_us"] <= last["round_trip_p99_us"]
        sidecar.await_said("session closed")
        assert not sidecar.said("session ended with an error")


def test_figures_of_the_module_are_in_the_scrape():
    """The figures that the module sends with batches, every 200 ms here, are in the metrics."""
    with SidecarProcess() as sidecar, Driver(sidecar.targets[0]) as driver:
        driver.wait("connected")
        driver.decides()
        offered: dict[Any, float] = {}
        while not any(offered.values()):  # pytest-timeout bounds it
            time.sleep(0.1)
            found = sidecar.scraped()
            offered = series(found, "module_outcomes_total", reason="offered")
        assert value(found, "module_sessions_total") == 1
        assert value(found, "module_attempts_total") >= 1
        assert value(found, "module_fallback_cycles_total") == 1, "as the driver says"
        assert value(found, "module_round_trip_seconds", part="max") > 0
        last = driver.stop()
        assert next(iter(offered.values())) <= last["outcomes"][pb.OUTCOME_REASON_OFFERED]


def test_both_sides_prove_who_they_are_over_tls(tmp_path, tool):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for place, *names in ((ours, "sidecar", "module"), (theirs, "module")):
        place.mkdir()
        authority = Authority(tool("openssl"), place)
        for name in names:
            authority.sign(name, "subjectAltName=DNS:sidecar.test")
    flags = (
        f"listen.tls_cert={ours}/sidecar.pem",
        f"listen.tls_key={ours}/sidecar.key",
        f"listen.tls_client_ca={ours}/ca.pem",
    )
    known: dict[str, Any] = {"tls_ca": ours / "ca.pem", "tls_name": "sidecar.test"}
    module, other = (
        {"tls_cert": place / "module.pem", "tls_key": place / "module.key"}
        for place in (ours, theirs)
    )
    with SidecarProcess(*flags) as sidecar:
        (target,) = sidecar.targets
        with Driver(target, **known, **module) as driver:
            driver.wait("connected")
            driver.decides()
        for wrong in (
            {},
            {**known},
            {**known, **other},
            {**known, **module, "tls_name": "another.test"},
            {**module, "tls_ca": theirs / "ca.pem", "tls_name": "sidecar.test"},
        ):
            with Driver(target, **wrong) as driver:
                ended = driver.wait("ended")
                assert (ended["cause"], ended["was_connected"]) == ("unreachable", False)


@pytest.mark.parametrize(
    "signals",
    [(signal.SIGKILL, signal.SIGTERM), *long((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL))],
)
def test_a_sidecar_that_is_killed_or_ends_comes_back(signals, tmp_path):
    target = f"unix:{tmp_path}/session.sock"
    with Driver(target, agents=60, frameworks=8) as driver:
        driver.wait("ended", cause="unreachable")  # There is no sidecar at first.
        for round_, number in enumerate(signals):
            place = len(driver.lines)
            with SidecarProcess(listen=[target]) as sidecar:
                driver.wait("connected", place)
                driver.decides()
                same_books(driver, sidecar)
                place = len(driver.lines)
                sidecar.process.send_signal(number)
                ended = driver.wait("ended", place, was_connected=True)
                assert ended["cause"] == "lost"
                assert ("SHUTDOWN" in ended["reason"]) == (number == signal.SIGTERM)
                assert driver.counters()["resyncs"] == round_
        last = driver.stop()
    assert last["sessions"] == len(signals)


@pytest.mark.parametrize("rounds", [1, *long(3)])
def test_a_sidecar_that_is_stopped_is_left_and_taken_up_again(rounds, tmp_path):
    target = f"unix:{tmp_path}/session.sock"
    options = {"answer_ms": 1000, "welcome_ms": 500, "agents": 60, "frameworks": 8}
    with (
        SidecarProcess(listen=[target]) as sidecar,
        Driver(target, **options) as driver,
    ):
        driver.wait("connected")
        for _ in range(rounds):
            driver.decides()
            place = len(driver.lines)
            sidecar.process.send_signal(signal.SIGSTOP)
            stopped = time.monotonic()
            driver.wait("ended", place, cause="silent")
            assert time.monotonic() - stopped > 0.9  # the session ends only at the deadline
            driver.wait("ended", place, cause="unreachable")  # a new session gets no answer
            place = len(driver.lines)
            sidecar.process.send_signal(signal.SIGCONT)
            driver.wait("connected", place)
            driver.decides()
            same_books(driver, sidecar)
        assert driver.stop()["resyncs"] >= rounds


def test_a_full_queue_causes_a_resync_and_does_not_block(tmp_path):
    target = f"unix:{tmp_path}/session.sock"
    with (
        SidecarProcess(listen=[target]) as sidecar,
        Driver(target, queue=20) as driver,
    ):
        driver.wait("connected")
        driver.decides()
        place = len(driver.lines)
        sidecar.process.send_signal(signal.SIGSTOP)
        driver.tell("load 1000000")
        loaded = driver.wait("loaded", place)
        assert loaded["taken"] < 1_000_000
        assert loaded["longest_ms"] < 10_000, "as long as nothing but the machine holds it up"
        driver.wait("ended", place, cause="queue_full")
        assert driver.resident_bytes() < 200 * MIB
        place = len(driver.lines)
        sidecar.process.send_signal(signal.SIGCONT)
        driver.wait("connected", place)
        driver.decides()
        same_books(driver, sidecar)
        assert driver.stop()["ends"]["queue_full"] == 1


def test_refusals_of_a_snapshot_reach_the_sidecar():
    with SidecarProcess() as sidecar:
        (target,) = sidecar.targets
        options = {"agents": 100, "frameworks": 200, "filters": 20_000, "churn": 0}
        with Driver(target, **options, interval_ms=10_000) as driver:
            driver.wait("connected")
            with sidecar.channel() as channel:
                stub = admin_pb2_grpc.AdminServiceStub(channel)
                ask = admin_pb2.GetStatusRequest()
                await_true(lambda: stub.GetStatus(ask).filters == 20_000)
            driver.stop()


def test_the_older_of_two_masters_yields():
    with SidecarProcess() as sidecar:
        (target,) = sidecar.targets
        with Driver(target, instance="old", started_us=1) as old:
            old.wait("connected")
            place = len(old.lines)
            with Driver(target, instance="new", started_us=2) as new:
                new.wait("connected")
                ended = old.wait("ended", place)
                assert ended["cause"] == "refused"
                assert "SUPERSEDED" in ended["reason"]
                assert ended["retry_ms"] >= 500
                new.decides()
                last = new.stop()
                assert last["sessions"] == last["attempts"] == 1
            old.wait("connected", len(old.lines))
            old.decides()


def test_bad_options_are_said_and_nothing_starts(tmp_path):
    for words, said in (
        (("--target", "nowhere"), "'nowhere' is not a target"),
        (("--target", "127.0.0.1:1", "--tls-ca", f"{tmp_path}/none"), "cannot be read"),
        (
            ("--target", "127.0.0.1:1", "--tls-key", "k"),
            "give both a certificate and its key for TLS, or neither",
        ),
    ):
        done = subprocess.run(
            [DRIVER, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        assert said in done.stderr


BELIEVED = ["greedy", "unknown_handle", *long("crossed", "vast", "twice")]


def endure(driver: Driver, manner: str, target: str, seed: int, streams: int = 4) -> None:
    """Run the driver against a hostile server for a while."""
    with HostileSidecar(target, seed, manner=manner) as server:
        deadline = time.monotonic() + 60
        # The driver checks its ledger after every decision and in every interval.
        while server.streams < streams if manner in ENDING else server.said[manner] < 60:
            assert driver.process.poll() is None, driver.lines[-1]
            assert time.monotonic() < deadline, server.figures
            time.sleep(0.02)
    assert driver.resident_bytes() < 400 * MIB


QUICK = {"refused_ms": 100, "answer_ms": 800, "snapshot_ms": 800, "interval_ms": 20}
PATIENT = {**QUICK, "answer_ms": 60_000, "snapshot_ms": 60_000}
"""A busy machine is no reason to end a session."""


@pytest.mark.parametrize("manner", [*BELIEVED, *ENDING])
def test_no_server_makes_the_ledger_wrong(manner, tmp_path):
    target = f"unix:{tmp_path}/session.sock"
    with Driver(target, **(QUICK if manner in ENDING else PATIENT)) as driver:
        endure(driver, manner, target, seed=1)
        last = driver.stop()
    outcomes, ends = last["outcomes"], last["ends"]
    if manner not in ENDING:
        assert last["sessions"] == 1
        assert sum(outcomes) - outcomes[pb.OUTCOME_REASON_OFFERED] > 50
    else:
        causes = {"immense": "lost", "rude": "refused", "silent": "silent", "parts": "silent"}
        assert ends[causes.get(manner, "malformed")] >= 2, ends


@pytest.mark.long
def test_after_all_of_them_a_good_sidecar_finds_the_books_in_order(tmp_path):
    target = f"unix:{tmp_path}/session.sock"
    manners = ["greedy", "unknown_handle", *ENDING]
    random.Random(2).shuffle(manners)
    with Driver(target, agents=60, frameworks=8, **QUICK) as driver:
        for manner in manners:
            endure(driver, manner, target, seed=2, streams=2)
        place = len(driver.lines)
        with SidecarProcess(listen=[target]) as sidecar:
            driver.wait("connected", place)
            driver.decides()
            same_books(driver, sidecar)
            driver.stop()

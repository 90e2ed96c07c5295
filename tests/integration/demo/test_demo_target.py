"""`demo` and `demo soak` on a running sidecar change its settings, and restore them afterwards."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.tree import Exit
from allocator.core import PolicySpec
from allocator.v1 import admin_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from allocator.wire.settings.operator_settings import read_policy
from laboratory.cli.app import app
from laboratory.cli.options import end_if_told, on_sidecar
from laboratory.links.borrowed import ADMIN_S, set_policy
from laboratory.links.sidecar_process import SidecarProcess, channel
from laboratory.links.stream import StreamLink
from laboratory.master.emulated import EmulatedMaster
from tests.plain_loops import PLAIN, plain_sidecar
from tests.server.sidecar_process import SidecarProcess as Serving
from tests.tiers import long

OURS = PolicySpec("choosy", "listed", parameters={"unit": "agents"}, subtrees={"eng": "tsf"})
"""Differs from every default, so that a policy that was not restored shows."""

SHORT = {
    "demo": ("--policies", "drf,tsf", "--modes", "oblivious", "--scale", "0.02"),
    "soak": ("soak", "--seconds", "6", "--size", "2", "--policy", "drf"),
}
LONG = {
    "demo": ("--policies", "drf", "--modes", "oblivious"),
    "soak": ("soak", "--seconds", "100000", "--size", "2", "--policy", "drf"),
}


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    with plain_sidecar(tmp_path_factory.mktemp("s")) as process:
        yield process


@pytest.fixture(autouse=True)
def ours(sidecar):
    set_policy(sidecar.target, OURS)


def begin(command: str, sidecar: SidecarProcess, out: Path, words, *more: str):
    where = () if command == "soak" else ("--out", str(out))
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "laboratory", "demo", *words[command], *where),
            *("--target", sidecar.target, *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | PLAIN,
    )


def ask(sidecar: SidecarProcess):
    """The policy in force, and the status."""
    with channel(sidecar.target) as to_sidecar:
        stub = AdminServiceStub(to_sidecar)
        policy = stub.GetPolicy(admin_pb2.GetPolicyRequest(), timeout=ADMIN_S).policy
        return read_policy(policy), stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=ADMIN_S)


def wait_for(condition) -> None:
    deadline_s = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def master_on(sidecar: SidecarProcess, started_us: int) -> EmulatedMaster:
    master = EmulatedMaster(StreamLink(sidecar.target, started_us))
    master.open()
    while master.step(2_000):
        pass
    return master


@pytest.mark.parametrize("command", ["soak", *long("demo")])
def test_the_policy_is_set_back_at_the_end(command, sidecar, tmp_path):
    run = begin(command, sidecar, tmp_path, SHORT)
    out, said = run.communicate(timeout=200)
    assert run.returncode == Exit.OK, said
    assert ask(sidecar)[0] == OURS
    if command == "soak":
        assert said.startswith(f"playing against {sidecar.target}; the emulated clock runs fast")
        assert "0 differences" in out


def test_a_policy_of_the_configuration_does_not_become_an_operator_s(sidecar, tmp_path):
    with channel(sidecar.target) as to_sidecar:
        stub = AdminServiceStub(to_sidecar)
        stub.ResetSettings(admin_pb2.ResetSettingsRequest(what=["policy"]), timeout=ADMIN_S)
        before = stub.ListSettings(admin_pb2.ListSettingsRequest(), timeout=ADMIN_S)
        run = begin("soak", sidecar, tmp_path, SHORT)
        _, said = run.communicate(timeout=200)
        assert run.returncode == Exit.OK, said
        assert stub.ListSettings(admin_pb2.ListSettingsRequest(), timeout=ADMIN_S) == before


@pytest.mark.parametrize("command", ["soak", *long("demo")])
@pytest.mark.parametrize("number", [signal.SIGINT, *long(signal.SIGTERM)])
def test_an_interruption_sets_the_policy_back_and_sums_up(command, number, sidecar, tmp_path):
    before = ask(sidecar)[1].events
    run = begin(command, sidecar, tmp_path, LONG)
    wait_for(lambda: ask(sidecar)[0] != OURS and ask(sidecar)[1].in_session)
    wait_for(lambda: ask(sidecar)[1].events > before + 20)
    run.send_signal(number)
    out, said = run.communicate(timeout=100)
    assert run.returncode == 128 + number, said
    assert "Traceback" not in said
    assert ask(sidecar)[0] == OURS
    if (command, number) == ("soak", signal.SIGINT):
        assert re.search(r"\d+ s of the emulated cluster's clock, in \d+ s of real time", out)
        assert re.search(r"[1-9]\d* events, .* books compared \d+ times, 0 differences", out)


def test_a_soak_sets_nothing_unless_a_policy_is_named(sidecar, tmp_path):
    with channel(sidecar.target) as to_sidecar:
        stub = AdminServiceStub(to_sidecar)
        before = stub.ListSettings(admin_pb2.ListSettingsRequest(), timeout=ADMIN_S)
        words = {"soak": ("soak", "--seconds", "6", "--size", "2")}
        run = begin("soak", sidecar, tmp_path, words)
        out, said = run.communicate(timeout=200)
        assert run.returncode == Exit.OK, said
        assert "0 differences" in out
        # Neither the policy, nor its author and time.
        assert stub.ListSettings(admin_pb2.ListSettingsRequest(), timeout=ADMIN_S) == before


def test_a_policy_that_an_operator_sets_meanwhile_stays(sidecar, tmp_path):
    run = begin("soak", sidecar, tmp_path, LONG)
    wait_for(lambda: ask(sidecar)[0] != OURS and ask(sidecar)[1].in_session)
    set_policy(sidecar.target, PolicySpec("tsf"))
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=100)
    assert run.returncode == 130, said
    assert "another policy was set" in said
    assert ask(sidecar)[0].name == "tsf"


@pytest.mark.parametrize("words", [SHORT["soak"], SHORT["demo"]])
def test_a_wrong_token_is_one_line(words, tmp_path, monkeypatch):
    for name in ("ours", "theirs"):
        (tmp_path / name).write_text(f"{name}\n")
    theirs = f"access.admin_write_token={tmp_path / 'theirs'}"
    with Serving(theirs, f"access.admin_read_token={tmp_path / 'theirs'}") as process:
        monkeypatch.setenv("MESOS_ALLOCATOR_TOKEN_FILE", str(tmp_path / "ours"))
        done = CliRunner().invoke(app, ["demo", *words, "--target", process.targets[0]])
    assert done.exit_code == Exit.REFUSED
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: the token is wrong: it has no right admin_read")


@pytest.mark.long
def test_a_wrong_token_of_masters_is_one_line(tmp_path, monkeypatch):
    for name in ("ours", "theirs"):
        (tmp_path / name).write_text(f"{name}\n")
    with Serving(f"access.session_token={tmp_path / 'theirs'}") as process:
        monkeypatch.setenv("MESOS_ALLOCATOR_SESSION_TOKEN_FILE", str(tmp_path / "ours"))
        done = CliRunner().invoke(app, ["demo", *SHORT["soak"], "--target", process.targets[0]])
    assert done.exit_code == Exit.UNREACHABLE, done.output
    *_, line = done.stderr.splitlines()
    assert "the token is wrong: it has no right session" in line


@pytest.fixture
def signals(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield numbers
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_signal_whose_exception_was_lost_still_ends_it(signals):
    """Python ignores exceptions in callbacks of C code, and in finalizers."""

    def play(number: int) -> None:
        with on_sidecar(None, force=False):
            end_if_told()
            with contextlib.suppress(SystemExit):
                signal.raise_signal(number)
            end_if_told()

    for number in signals:
        with pytest.raises(SystemExit) as ended:
            play(number)
        assert ended.value.code == 128 + number


def test_a_signal_amid_a_lock_still_ends_it(signals):
    """The exit interrupts `Condition.wait` before that has its lock again, so a release fails."""

    def play(number: int) -> None:
        condition = threading.Condition()
        with on_sidecar(None, force=False), condition:
            condition.release()
            signal.raise_signal(number)

    for number in signals:
        with pytest.raises(SystemExit) as ended:
            play(number)
        assert ended.value.code == 128 + number


def test_threads_that_an_exit_breaks_say_nothing(signals, capsys):
    """gRPC's thread fails if a signal interrupts the start of a call and the channel closes."""
    with pytest.raises(SystemExit), on_sidecar(None, force=False):
        signal.raise_signal(signal.SIGINT)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert capsys.readouterr().err == ""


def test_a_signal_that_is_ignored_stays_so(signals):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with on_sidecar(None, force=False):
        signal.raise_signal(signal.SIGINT)
        end_if_told()


@pytest.mark.parametrize("command", ["soak", *long("demo")])
def test_a_sidecar_that_serves_a_master_is_left_alone(command, sidecar, tmp_path):
    master = master_on(sidecar, 10)
    sessions = ask(sidecar)[1].sessions
    run = begin(command, sidecar, tmp_path, SHORT)
    _, said = run.communicate(timeout=100)
    assert run.returncode == Exit.REFUSED
    assert said.startswith(f"error: the sidecar at {sidecar.target} serves the master 'emulated")
    assert "--force" in said
    assert len(said.splitlines()) == 1
    policy, status = ask(sidecar)
    assert (policy, status.in_session, status.sessions) == (OURS, True, sessions)
    master.close()


@pytest.mark.parametrize("command", ["soak", *long("demo")])
def test_a_sidecar_is_taken_over_by_force_and_returned(command, sidecar, tmp_path):
    master = master_on(sidecar, 10)
    run = begin(command, sidecar, tmp_path, SHORT, "--force")
    _, said = run.communicate(timeout=200)
    assert run.returncode == Exit.OK, said
    assert ask(sidecar)[0] == OURS
    master.close()


@pytest.mark.long
@pytest.mark.parametrize("command", list(LONG))
def test_where_a_newer_master_comes_it_ends_with_one_line(command, sidecar, tmp_path):
    run = begin(command, sidecar, tmp_path, LONG)
    wait_for(lambda: ask(sidecar)[1].in_session)
    master = master_on(sidecar, time.time_ns() // 1000)
    _, said = run.communicate(timeout=100)
    assert run.returncode == Exit.REFUSED
    *progress, error = said.splitlines()
    assert error.startswith("error: ")
    assert "superseded" in error
    assert all(line.startswith("playing") for line in progress)
    assert ask(sidecar)[0] == OURS
    master.close()

"""An observer that is killed, stopped or slow delays answers to operators, but no decision."""

import errno
import fcntl
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import Mock

import grpc
import pytest

from allocator.server.process.link import new_link
from allocator.server.process.observing import NICENESS
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, settings_pb2, types_pb2
from tests.rule_changes import listed, rule_change
from tests.server.processes import name_of
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true


@pytest.fixture
def sidecar():
    with SidecarProcess() as process:
        yield process


def status(channel: grpc.Channel) -> pb.GetStatusResponse:
    stub = admin_pb2_grpc.AdminServiceStub(channel)
    return stub.GetStatus(pb.GetStatusRequest(), timeout=60)


def set_limit(channel: grpc.Channel, timeout_s: float = 60) -> pb.ChangeRuleResponse:
    stub = admin_pb2_grpc.AdminServiceStub(channel)
    limit = settings_pb2.Limit(role="r", limit=types_pb2.Quantities(name=["cpus"], amount=[1000]))
    return stub.ChangeRule(rule_change(limit=limit), timeout=timeout_s)


def test_a_killed_observer_is_restarted_and_has_the_same_books(sidecar):
    with sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) == 2
        before, killed = status(channel), sidecar.observer_pid
        os.kill(killed, signal.SIGKILL)
        module.batch(cycle=True)  # decisions continue at once
        sidecar.await_said("the observer ended and is restarted")
        after = status(channel)
        assert (after.cycles, after.events) == (before.cycles + 1, before.events)
        assert (after.agents, after.outstanding_decisions) == (2, before.outstanding_decisions)
        assert sidecar.observer_pid != killed
        assert sidecar.page("/readyz") == (200, "ok\n")
        assert sidecar.page("/")[0] == 200


def test_decisions_and_changes_continue_while_the_observer_is_stopped(sidecar):
    with sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        os.kill(sidecar.observer_pid, signal.SIGSTOP)
        try:
            begun_s = time.monotonic()
            for _ in range(20):
                module.batch(cycle=True)
            assert time.monotonic() - begun_s < 30
            answer = set_limit(channel, timeout_s=4)
            assert [each.role for each in listed(answer)] == ["r"]
            (warning,) = answer.change.warnings
            assert "could not be judged" in warning
        finally:
            os.kill(sidecar.observer_pid, signal.SIGCONT)
        assert status(channel).cycles == 20
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        assert len(stub.ListRules(pb.ListRulesRequest(kind="limit"), timeout=60).rules) == 1


def test_the_observer_ends_with_the_decider(sidecar):
    observer = sidecar.observer_pid
    sidecar.process.kill()

    def is_gone() -> bool:
        try:
            return name_of(observer) != "observer"
        except OSError:
            return True

    await_true(is_gone)


def test_an_observer_that_is_starting_ends_with_the_decider(sidecar):
    """An observer that outlived its sidecar would keep the port that the next one needs."""
    decider = sidecar.process.pid
    children = Path(f"/proc/{decider}/task/{decider}/children")
    killed = sidecar.observer_pid
    os.kill(killed, signal.SIGKILL)
    await_true(lambda: bool(set(children.read_text().split()) - {str(killed)}))
    (starting,) = set(children.read_text().split()) - {str(killed)}
    sidecar.process.kill()  # long before it has imported its modules
    sidecar.process.wait()

    def is_gone() -> bool:
        try:
            return "observing" not in Path(f"/proc/{starting}/cmdline").read_text()
        except OSError:
            return True

    await_true(is_gone)


def test_the_deciding_process_comes_first_where_processors_are_few(sidecar):
    usual = os.getpriority(os.PRIO_PROCESS, sidecar.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, sidecar.observer_pid) == min(usual + NICENESS, 19)


FORBIDDEN = """
import ctypes, os, struct, sys
from allocator.server.system.priority import give_way

LOAD, JUMP_IF_EQUAL, RETURN, NO_NEW_PRIVILEGES, SECCOMP, FILTER = 0x20, 0x15, 0x06, 38, 22, 2
instructions = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, int(sys.argv[1]))]
instructions += [(RETURN, 0, 0, 0x50001), (RETURN, 0, 0, 0x7FFF0000)]  # EPERM, or allowed
packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in instructions))
program = struct.pack("HP", len(instructions), ctypes.addressof(packed))
library = ctypes.CDLL(None, use_errno=True)
assert not library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
assert not library.prctl(SECCOMP, FILTER, program, 0, 0), os.strerror(ctypes.get_errno())
try:
    os.nice(1)
except PermissionError:
    give_way(10)
    print("went on")
"""
SETPRIORITY = {"x86_64": 141, "aarch64": 140}


def test_a_sandbox_may_forbid_a_lower_priority():
    """As the system call filter ``~@resources`` of systemd does."""
    number = SETPRIORITY.get(platform.machine())
    if number is None:
        pytest.skip("the number of the system call is not known")
    command = [sys.executable, "-c", FORBIDDEN, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "went on\n", done.stderr


@pytest.fixture
def place(monkeypatch):
    """The directory of the next sidecar's socket; the path of a socket must be short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        monkeypatch.setenv("RUNTIME_DIRECTORY", directory)
        yield Path(directory)


def test_the_link_of_both_is_closed_to_others_and_goes_with_them(place):
    with SidecarProcess() as process:
        (link,) = place.iterdir()
        assert link.stat().st_mode & 0o077 == 0
        assert {each.name for each in link.iterdir()} == {"decider", "observer"}
        assert process.terminate() == 0
    assert not list(place.iterdir())


def test_what_a_killed_process_left_is_removed_by_a_later_one(place):
    (place / "mesos-allocator-link-young").mkdir()
    (place / "mesos-allocator-link-file").write_text("no directory")
    kept = set(place.iterdir())
    with SidecarProcess() as process:
        (left,) = set(place.iterdir()) - kept
        os.utime(left, (0, 0))
        new_link(0)
        assert left.exists(), "it is in use"
        process.process.kill()

        def is_gone() -> bool:  # once its observer has ended, too
            new_link(0)
            return not left.exists()

        await_true(is_gone)
    assert kept < set(place.iterdir())


def test_a_place_without_locks_is_used_too(place, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "")))
    assert new_link(0).directory.parent == place


def test_a_place_that_cannot_be_written_or_is_too_long_is_passed_over(monkeypatch, tmp_path):
    """The possible directories are tried in order, and unusable ones are skipped."""
    long_place = tmp_path / ("x" * 100)
    long_place.mkdir()
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(long_place))
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    link = new_link(0)
    assert link.directory.parent == Path("/tmp")
    link.directory.rmdir()


def test_a_question_after_a_change_sees_it(sidecar):
    """Read your writes: an answer includes everything that was confirmed before the question."""
    with sidecar.channel() as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        for amount in range(1, 50):
            quantities = types_pb2.Quantities(name=["cpus"], amount=[1000 * amount])
            limit = settings_pb2.Limit(role="r", limit=quantities)
            stub.ChangeRule(rule_change(limit=limit), timeout=60)
            (found,) = listed(stub.ListRules(pb.ListRulesRequest(kind="limit"), timeout=60))
            assert found == limit


def test_an_observer_makes_no_changes(place):
    with SidecarProcess():
        (link,) = place.iterdir()
        target = f"unix:{link}/observer"
        with grpc.insecure_channel(target) as channel, pytest.raises(grpc.RpcError) as refused:
            set_limit(channel)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "this is an observer, which changes nothing" in str(refused.value.details())

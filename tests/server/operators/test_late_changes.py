"""A delayed change is either made and confirmed, or reported as failed and never made."""

import threading
from typing import Any

import grpc
import pytest

from allocator.server.config import Config, Loaded
from allocator.server.engine.commands import left_s
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc import admin
from allocator.server.grpc.admin import BUSY
from allocator.server.operators import audit
from allocator.server.operators.operators import Operators
from allocator.v1 import settings_pb2 as spb
from tests.rule_changes import listed, rule_change


class Lines:
    """Replaces the writer of the audit log."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str]] = []
        self.threads: set[str] = set()
        self.came = threading.Event()
        self.broken = False

    def info(self, _event: str, **said: Any) -> None:
        self.kept.append((said["scope"], said["result"]))
        self.threads.add(threading.current_thread().name)
        self.came.set()
        if self.broken:
            raise OSError("the log is no longer read")


@pytest.fixture
def lines(monkeypatch) -> Lines:
    found = Lines()
    monkeypatch.setattr(audit, "_audit_log", found)
    return found


DRAIN = rule_change(drain=spb.Drain(agent="a1"))
DRAINED = Loaded(Config.model_validate({"drain": [{"agent": "a1"}]}), {})


def drains(loop: CoreLoop) -> set[str]:
    return set(loop.call(lambda: loop.allocator.settings.drains).result(60))


class Held:
    """The core's thread, blocked at a change: right before it is made, or right after."""

    def __init__(self, loop: CoreLoop, monkeypatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        operate = loop.step

        def slowly(event: Any) -> None:
            self.begun.set()
            assert self.go.wait(60)
            operate(event)

        monkeypatch.setattr(loop, "step", slowly)


def held_before_the_change(loop: CoreLoop, monkeypatch) -> threading.Event:
    """Block the core's thread behind the last question before a change."""
    go, set_drain = threading.Event(), Operators.set

    def late(operators: Operators, *what: Any) -> Any:
        loop.call(lambda: go.wait(30))
        return set_drain(operators, *what)

    monkeypatch.setattr(Operators, "set", late)
    return go


def test_a_change_reported_as_failed_is_never_applied(loop, stub, lines, monkeypatch):
    """The core has not started it in time: the client learns so before its deadline."""
    go = held_before_the_change(loop, monkeypatch)
    monkeypatch.setattr(admin, "left_s", lambda _context: 0.1)
    with pytest.raises(grpc.RpcError) as caught:
        stub.ChangeRule(DRAIN, timeout=100)
    error: Any = caught.value
    assert (error.code(), error.details()) == (grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
    go.set()
    assert drains(loop) == set()
    assert lines.kept == [("agent a1", "refused")]


class Calling:
    """A call with this much time left."""

    def __init__(self, left_s: float | None) -> None:
        self._left_s = left_s

    def time_remaining(self) -> float | None:
        return self._left_s


@pytest.mark.parametrize(
    ("given", "left"), [(None, 30.0), (10.0, 9.75), (0.4, 0.3), (100.0, 30.0), (-1.0, 0.0)]
)
def test_an_answer_is_under_way_before_the_deadline(given, left):
    context: Any = Calling(given)
    assert left_s(context) == pytest.approx(left)


def test_a_change_of_a_disconnected_caller_is_not_applied(loop, stub, lines, monkeypatch):
    """For example by Ctrl-C while the change waits for the core."""
    go = held_before_the_change(loop, monkeypatch)
    asked = stub.ChangeRule.future(DRAIN, timeout=60)
    while not loop.commands.depth:
        threading.Event().wait(0.01)
    asked.cancel()
    threading.Event().wait(0.5)  # until the server has noticed
    go.set()
    assert drains(loop) == set()
    assert ("agent a1", "done") not in lines.kept


def test_a_change_in_progress_is_audited_even_if_its_caller_left(loop, stub, lines, monkeypatch):
    held = Held(loop, monkeypatch)
    asked = stub.ChangeRule.future(DRAIN, timeout=3)
    assert held.begun.wait(60)
    with pytest.raises(grpc.RpcError):
        asked.result(60)
    held.go.set()
    assert drains(loop) == {"a1"}
    assert (lines.kept, lines.threads) == ([("agent a1", "done")], {"core"})


def test_an_applied_change_is_reported_even_if_the_core_is_busy(loop, stub, lines, monkeypatch):
    go, operate = threading.Event(), loop.step

    def and_more(event: Any) -> None:
        operate(event)
        loop.call(lambda: go.wait(100))

    monkeypatch.setattr(loop, "step", and_more)
    try:
        answer = stub.ChangeRule(DRAIN, timeout=60)
        assert [each.agent for each in listed(answer)] == ["a1"]
    finally:
        go.set()
    assert lines.kept == [("agent a1", "done")]


def test_a_log_that_cannot_be_written_fails_no_change(loop, stub, lines):
    lines.broken = True
    assert [each.agent for each in listed(stub.ChangeRule(DRAIN, timeout=60))] == ["a1"]


def test_a_configuration_reported_as_late_is_never_applied(loop):
    operators = Operators(loop, Loaded(Config(), {}))
    go = threading.Event()
    loop.call(lambda: go.wait(30))
    with pytest.raises(TimeoutError):
        operators.replace_config(DRAINED, 0.1)
    go.set()
    assert drains(loop) == set()
    assert operators.loaded.config == Config()


def test_a_configuration_that_is_being_taken_over_is_waited_for(loop, monkeypatch):
    operators, held = Operators(loop, Loaded(Config(), {})), Held(loop, monkeypatch)
    threading.Timer(3.0, held.go.set).start()
    operators.replace_config(DRAINED, 2.0)
    assert drains(loop) == {"a1"}
    assert operators.loaded == DRAINED

"""The core's thread and the queues around it."""

import gc
import threading
import time
import weakref
from traceback import format_exception

import pytest
import structlog

from allocator.core import Allocator
from allocator.policies import build
from allocator.server.config import Config
from allocator.server.config.sections import PolicySection
from allocator.server.engine import core_loop, sessions
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.sessions import SessionStream
from allocator.v1 import session_pb2 as pb
from allocator.wire import WireError
from tests.server.in_process import InProcess
from tests.server.sidecar_process import await_true


@pytest.fixture
def loop():
    config = Config(policy=PolicySection(selection="listed"))
    loop = CoreLoop(config, build_policy=build, sidecar_id="sidecar")
    loop.start()
    yield loop
    loop.stop()


def test_work_is_done_in_order_on_one_thread(loop):
    seen = []
    futures = [
        loop.call(lambda n=n: seen.append((n, threading.current_thread().name))) for n in range(50)
    ]
    for future in futures:
        future.result(60)
    assert seen == [(n, "core") for n in range(50)]


def test_the_caller_receives_the_error(loop):
    with pytest.raises(ZeroDivisionError):
        loop.call(lambda: 1 / 0).result(60)
    assert loop.call(lambda: 5).result(60) == 5


def test_a_session_is_known_by_what_it_said(loop):
    assert loop.call(lambda: loop.session).result(60) is None
    module = InProcess(loop).begin()
    module.batch(7)
    session = loop.call(lambda: loop.session).result(60)
    assert session is not None
    assert (session.master_id, session.instance_id, session.peer) == ("master", "instance", "test")
    assert (session.number, session.sequence, session.clock_ms) == (1, 1, 7)


def test_cycles_are_timed_and_counted(loop):
    module = InProcess(loop).begin()
    module.batch(7)
    module.batch(8, cycle=False)
    assert sum(loop.cycle_times.buckets) == 1
    assert 0 < loop.cycle_times.percentile(0.5) == loop.cycle_times.total_s
    counts = loop.call(lambda: loop.counts).result(60)
    assert (counts.cycles, counts.batches, counts.decisions) == (1, 2, 2)


def test_a_corrected_field_is_logged_once_in_a_session(loop):
    window = pb.UnavailabilityUpdate(agent=1)
    window.unavailability.start_ms = -5
    with structlog.testing.capture_logs() as log:
        for instance in (1, 2):
            module = InProcess(loop, f"instance-{instance}", started_us=instance).begin()
            for clock_ms in (7, 8):
                event = pb.Event(unavailability=window)
                module.say(module.client.batch_of(clock_ms, [event]))
                module.client.receive(next(module.answers))
    found = [entry for entry in log if entry["event"] == "a value was mended"]
    assert [(each["session"], each["field"]) for each in found] == [
        (1, "agent.unavailability.start_ms"),
        (2, "agent.unavailability.start_ms"),
    ]
    assert found[0]["message"] == "is -5; 0 is used"
    assert loop.call(lambda: loop.counts.mended).result(60) == {"agent.unavailability.start_ms": 4}


def test_a_stream_that_never_says_hello_is_dropped(loop, monkeypatch):
    for module in (core_loop, sessions):
        monkeypatch.setattr(module, "HELLO_S", 0.05)
    silent = InProcess(loop)
    (last,) = silent.answers
    assert last.error.code == pb.ERROR_CODE_PROTOCOL
    assert last.error.message == "no hello came within 0.05 s"


def test_draining_tells_all_and_refuses_new_ones(loop):
    module, silent = InProcess(loop).begin(), InProcess(loop)
    loop.drain().result(60)
    late = InProcess(loop)
    for each in (module, silent, late):
        (last,) = each.answers
        assert last.error.code == pb.ERROR_CODE_SHUTDOWN
    assert loop.call(lambda: loop.sessions).result(60) == 0


def test_a_peer_that_does_not_read_is_noticed(loop):
    """Four answers wait, and the client reads none: the queue is full for a fifth of a second."""
    module = InProcess(loop).begin()
    for clock_ms in range(10, 14):
        module.say(module.client.batch(clock_ms))
    loop.call(lambda: None).result(60)
    begun = time.monotonic()
    assert not module.port.await_room()
    assert time.monotonic() - begun >= 0.2  # it was given the time allowed


def test_a_peer_that_reads_slowly_is_not_dropped(loop):
    module = InProcess(loop, stalled_s=60.0).begin()
    for clock_ms in range(10, 14):
        module.say(module.client.batch(clock_ms))
    loop.call(lambda: None).result(60)
    reader = threading.Timer(0.1, lambda: next(module.answers))
    reader.start()
    assert module.port.await_room()
    reader.join()


def test_a_peer_that_never_reads_its_last_answers_is_cut():
    cut = threading.Event()
    port = SessionStream("test", queue_max=4, stalled_s=1, cut=cut.set)
    port.answer(pb.SessionResponse())
    port.end(grace_s=0.05)
    assert cut.wait(60)


def test_a_peer_that_reads_them_is_not_cut():
    cut = threading.Event()
    port = SessionStream("test", queue_max=4, stalled_s=1, cut=cut.set)
    port.answer(pb.SessionResponse())
    port.end(grace_s=0.1)
    assert len(list(port.answers())) == 1
    assert not cut.wait(0.3)


def test_after_the_end_nothing_is_queued():
    port = SessionStream("test", queue_max=4, stalled_s=1, cut=lambda: None)
    port.end(grace_s=1)
    port.answer(pb.SessionResponse())
    assert list(port.answers()) == []


def test_messages_wait_for_the_core_and_not_the_other_way(loop):
    """The reading thread stops at the bound, however busy the core is."""
    module = InProcess(loop).begin()
    hold = threading.Event()
    blocked = loop.call(hold.wait)
    for clock_ms in range(10, 14):
        module.say(module.client.batch(clock_ms))
    waiting = threading.Thread(target=module.port.await_room)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive(), "five messages wait where four may"
    hold.set()
    blocked.result(60)
    next(module.answers)
    waiting.join(60)
    assert not waiting.is_alive()


def test_a_stream_that_is_gone_frees_the_core(loop):
    module = InProcess(loop).begin()
    module.port.hang_up()
    loop.close(module.port)
    assert loop.call(lambda: loop.session).result(60) is None
    assert loop.call(lambda: loop.counts.sessions_closed["left"]).result(60) == 1


def test_a_slow_peer_is_named(loop):
    module = InProcess(loop).begin()
    loop.close(module.port, WireError(pb.ERROR_CODE_SLOW_PEER, "", "read"))
    (last,) = module.answers
    assert last.error.code == pb.ERROR_CODE_SLOW_PEER
    assert loop.call(lambda: dict(loop.counts.errors)).result(60) == {"slow_peer": 1}


def test_a_session_that_failed_keeps_no_books(loop):
    """Not even until a garbage collection, which is rare."""
    module = InProcess(loop).begin()

    def spoil() -> weakref.ref[Allocator]:
        allocator = loop.allocator
        allocator._decide = lambda *_: 1 / 0
        return weakref.ref(allocator)

    failed = loop.call(spoil).result(60)
    gc.disable()
    try:
        with structlog.testing.capture_logs() as log:
            module.say(module.client.batch(7, [], cycle=True))
            assert next(module.answers).error.code == pb.ERROR_CODE_INTERNAL
            InProcess(loop, "later", 2).begin().batch(8)
            loop.call(lambda: None).result(60)
        (error,) = [each["exc_info"] for each in log if "exc_info" in each]
        assert "1 / 0" in "".join(format_exception(error))
        assert failed() is None
    finally:
        gc.enable()


def test_a_stream_that_has_ended_keeps_no_thread(loop, monkeypatch):
    """A timer waits for its first message."""
    for module in (core_loop, sessions):
        monkeypatch.setattr(module, "HELLO_S", 3600.0)
    loop.call(lambda: None).result(60)
    before = threading.active_count()
    for _ in range(50):
        port = SessionStream("test", queue_max=4, stalled_s=1.0, cut=lambda: None)
        loop.open(port)
        loop.close(port)
        loop.call(lambda: None).result(60)
        port.hang_up()
    await_true(lambda: threading.active_count() <= before)

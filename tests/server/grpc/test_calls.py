"""Idle calls leave room for masters, operators and probes."""

import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from allocator import policies
from allocator.server.config import Config
from allocator.server.config.sections import AccessSection
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.monitor import Monitor
from allocator.server.engine.sessions import SESSIONS_MAX
from allocator.server.grpc import calls
from allocator.server.grpc.access import Access
from allocator.server.grpc.calls import BOUNDS, CALLS_MAX, Calls
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc
from tests.server.in_process import running
from tests.server.metrics.scraping import samples
from tests.server.sidecar_process import METHOD, GrpcModule, SidecarProcess, await_true

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
STATUS = "/allocator.v1.AdminService/GetStatus"
DUMP = "/allocator.v1.AdminService/Dump"
IDLE_CALLERS = 40
NAME = "calls_refused_total"
OWN_CONNECTION = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]


@contextmanager
def idle(target: str, method: str, said: bytes | None = None) -> Iterator[list[Any]]:
    """Open calls on forty connections, and send nothing more."""
    over = threading.Event()

    def say() -> Iterator[bytes]:
        if said is not None:
            yield said
        over.wait()

    with ExitStack() as until_end:
        until_end.callback(over.set)
        begun: list[Any] = []
        for _ in range(IDLE_CALLERS):
            channel = until_end.enter_context(grpc.insecure_channel(target, OWN_CONNECTION))
            grpc.channel_ready_future(channel).result(60)
            call: Any = channel.stream_stream(method)
            begun.append(call(say()))
            threading.Thread(target=_drain, args=begun[-1:], daemon=True).start()
        # A call is sent once its connection is established; then the sidecar must accept it.
        time.sleep(0.5)
        yield begun


def _drain(call: Any) -> None:
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (REFLECTION, None),
        (WATCH, b""),
        (WATCH, None),
        (CHECK, None),
        (STATUS, None),
        (DUMP, None),
        (METHOD, None),
    ],
)
def test_idle_callers_do_not_block_others(sidecar, method, said):
    with idle(sidecar.targets[0], method, said), sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) == 2
        if method not in {STATUS, DUMP}:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            assert stub.GetStatus(pb.GetStatusRequest(), timeout=60).in_session
        if method != CHECK:
            health: Any = health_pb2_grpc.HealthStub(channel)
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=60)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert sidecar.page("/readyz")[0] == 200
        module.leave()
        list(module.heard())


class Held:
    """A server that keeps masters' streams open, whatever the core does with them."""

    def __init__(self) -> None:
        self.calls = Calls(Access(AccessSection()))
        self.over = threading.Event()
        handler: Any = grpc.stream_stream_rpc_method_handler(self._session)
        handlers = grpc.method_handlers_generic_handler(
            "allocator.v1.SessionService", {"Session": handler}
        )
        pool = ThreadPoolExecutor(CALLS_MAX)
        self.server = grpc.server(pool, handlers=[handlers], interceptors=[self.calls])
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def _session(self, _requests: Any, _context: Any) -> Iterator[bytes]:
        yield b"here"
        self.over.wait()


def test_readiness_reports_that_sessions_are_refused():
    held = Held()
    with ExitStack() as until_end:
        core = until_end.enter_context(running(CoreLoop(Config(), build_policy=policies.build)))
        monitor = Monitor(core, held.calls.problem)
        monitor.serving()
        until_end.callback(held.server.stop, None)
        until_end.callback(held.over.set)
        channel = until_end.enter_context(grpc.insecure_channel(held.target, OWN_CONNECTION))
        begin: Any = channel.stream_stream(METHOD)
        never, begun = threading.Event(), []
        until_end.callback(never.set)
        for number in range(2 * SESSIONS_MAX):
            assert number < BOUNDS["session"].places
            assert monitor.readiness() == ""
            begun.append(begin(iter(never.wait, True)))
            assert next(begun[-1]) == b"here"
        assert monitor.readiness() == "32 streams of masters are open, and no more can be"
        with pytest.raises(grpc.RpcError) as caught:
            next(begin(iter(never.wait, True)))
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert held.calls.refused == {("session", "room"): 1}


def test_an_answer_that_is_not_read_ends(monkeypatch):
    """Its client may have no right to stay, and occupies a thread."""
    monkeypatch.setitem(calls.BOUNDS, "operator", calls.Bounds(1, 600.0, 0.2))
    ended = threading.Event()

    def endless(_request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        context.add_callback(ended.set)
        while True:
            yield b"x" * 2**20

    handler: Any = grpc.unary_stream_rpc_method_handler(endless)
    handlers = grpc.method_handlers_generic_handler("allocator.v1.AdminService", {"Dump": handler})
    interceptor = Calls(Access(AccessSection()))
    server = grpc.server(ThreadPoolExecutor(4), handlers=[handlers], interceptors=[interceptor])
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with grpc.insecure_channel(target, OWN_CONNECTION) as channel:
        dump: Any = channel.unary_stream(DUMP)
        call = dump(b"")
        next(call)
        assert ended.wait(60)
        call.cancel()
        server.stop(None)


class Crowded:
    """A server that answers operators after a moment."""

    def __init__(self) -> None:
        handlers: Any = {"GetStatus": grpc.unary_unary_rpc_method_handler(self._make)}
        service = grpc.method_handlers_generic_handler("allocator.v1.AdminService", handlers)
        interceptor = Calls(Access(AccessSection()))
        pool = ThreadPoolExecutor(CALLS_MAX)
        self.server = grpc.server(pool, handlers=[service], interceptors=[interceptor])
        self.target = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def _make(self, _request: bytes, _context: grpc.ServicerContext) -> bytes:
        time.sleep(0.02)
        return b"x"


def test_operators_have_room_again_when_silent_ones_are_ended(monkeypatch):
    """Applies to bugs as well as attacks: a call without its request ends."""
    monkeypatch.setattr(calls, "REQUEST_S", 1.0)
    crowded = Crowded()
    channel = grpc.insecure_channel(crowded.target, OWN_CONNECTION)
    with idle(crowded.target, STATUS), channel:
        status: Any = channel.unary_unary(STATUS)

        def answered() -> bool:
            try:
                status(b"", timeout=60)
            except grpc.RpcError as error:
                told.add(str(error.details()))
                return False
            return True

        told: set[str] = set()
        await_true(answered)
    crowded.server.stop(None)
    assert told <= {"12 calls of this kind (operator) are open; call again later"}


def test_refused_calls_are_shown_by_kind_and_reason(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    flags = f"access.admin_read_token={token}"
    with SidecarProcess(flags) as sidecar, sidecar.channel() as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        for _ in range(3):
            with pytest.raises(grpc.RpcError) as caught:
                stub.GetStatus(pb.GetStatusRequest(), timeout=60)
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED

        def refused() -> dict[frozenset, float]:
            text = urllib.request.urlopen(f"http://{sidecar.http}/metrics", timeout=60).read()
            found = samples(text.decode())
            return {frozenset(key[1]): each for key, each in found.items() if key[0] == NAME}

        await_true(lambda: sum(refused().values()) >= 3)
        found = refused()
    assert len(found) == len(BOUNDS) * len(calls.REASONS)
    told = {labels: value for labels, value in found.items() if value}
    assert told == {frozenset({("kind", "operator"), ("reason", "right")}): 3.0}

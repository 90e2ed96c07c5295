"""Slow questions: how many are answered at a time, and which wait for others."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from allocator import explain, policies
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc.questions import LONG_MAX
from allocator.server.views import views
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import asking, running, tell


class Counted:
    """Explanations that take a given time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.go = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> explain_pb2.ExplainResponse:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.go.wait(60)
        with self._lock:
            self.now -= 1
        return explain_pb2.ExplainResponse()


@pytest.fixture
def stub():
    with running(CoreLoop(Config(), build_policy=policies.build)) as loop, asking(loop) as found:
        tell(loop, *CLUSTER)
        yield found


def test_two_long_questions_are_worked_out_at_a_time(stub, monkeypatch):
    counted = Counted()
    monkeypatch.setattr(explain, "explain", counted)
    request = explain_pb2.ExplainRequest(framework="spark")
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(stub.Explain, request, timeout=60) for _ in range(3)]
        while counted.now < LONG_MAX:
            time.sleep(0.01)
        # Quick ones do not wait for them.
        assert stub.GetStatus(pb.GetStatusRequest(), timeout=60).frameworks == 2
        with pytest.raises(grpc.RpcError) as refused:
            stub.Explain(request, timeout=1)
        assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        counted.go.set()
        for each in asked:
            each.result(60)
    assert counted.most == LONG_MAX == 2


def test_an_explanation_ends_with_its_caller(stub, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def explained(*question: Any) -> explain_pb2.ExplainResponse:
        *_, goes_on, _corrections = question
        begun.set()
        until_s = time.monotonic() + 60
        while goes_on() and time.monotonic() < until_s:
            time.sleep(0.01)
        if time.monotonic() < until_s:
            ended.set()
        return explain_pb2.ExplainResponse()

    monkeypatch.setattr(explain, "explain", explained)
    monkeypatch.setattr(views, "EXPLAIN_S", 100)
    call = stub.Explain.future(explain_pb2.ExplainRequest(framework="spark"), timeout=60)
    assert begun.wait(60)
    call.cancel()
    assert ended.wait(60)

"""Questions that are long: how many are worked out at a time, and who waits for whom."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from allocator import explain, policies
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc.questions import LONG_MAX
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import asking, running, tell


class Counted:
    """Explanations that take as long as they are told to."""

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
        # Short ones wait for none of them.
        assert stub.GetStatus(pb.GetStatusRequest(), timeout=60).frameworks == 2
        with pytest.raises(grpc.RpcError) as refused:
            stub.Explain(request, timeout=1)
        assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        counted.go.set()
        for each in asked:
            each.result(60)
    assert counted.most == LONG_MAX == 2

"""Followers of the record stream: their limits; the deciding process serves its observer only."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
import pytest

from allocator import policies
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.feed import Follower
from allocator.server.grpc.calls import BOUNDS
from allocator.server.grpc.records import RecordServicer, deciders_records
from allocator.v1 import admin_pb2, admin_pb2_grpc, records_pb2, records_pb2_grpc
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import decider_of, running, tell
from tests.server.sidecar_process import GrpcModule, SidecarProcess


def follow(channel: grpc.Channel, timeout_s: float = 60.0):
    """Start to follow; returns the stream once its first message has arrived."""
    stream = records_pb2_grpc.RecordServiceStub(channel).Follow(
        records_pb2.FollowRequest(), timeout=timeout_s
    )
    next(stream)
    return stream


def test_followers_have_places_and_the_observer_has_another():
    with SidecarProcess("observer.listen=127.0.0.1:0") as sidecar, ExitStack() as until_end:
        (target,) = sidecar.await_said("serving followers")["targets"]
        channel, followed = map(until_end.enter_context, map(sidecar.channel, (None, target)))
        module = GrpcModule(channel).begin()
        module.batch(cycle=True)
        sidecar.catch_up()
        streams = [follow(followed) for _ in range(BOUNDS["follower"].places)]
        with pytest.raises(grpc.RpcError) as refused:
            follow(followed)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.RpcError) as refused:
            follow(channel)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        os.kill(sidecar.observer_pid, signal.SIGKILL)
        for each in streams:
            with pytest.raises(grpc.RpcError):
                list(each)
        sidecar.await_said("the observer ended and is restarted")
        module.batch(cycle=True)
        status = admin_pb2_grpc.AdminServiceStub(channel).GetStatus(
            admin_pb2.GetStatusRequest(), timeout=60
        )
        assert status.cycles == 2


class SlowLoop(CoreLoop):
    """A core whose checkpoints take 50 ms."""

    def __init__(self) -> None:
        super().__init__(Config(), build_policy=policies.build)
        self.begun_s: list[float] = []

    def follow(self) -> Follower:
        self.begun_s.append(time.monotonic())
        time.sleep(0.05)
        return super().follow()


@contextmanager
def served(part: float) -> Iterator[tuple[grpc.Channel, list[float]]]:
    """Serve the stream of such a core; also returns the start times of its checkpoints."""
    loop = SlowLoop()
    with running(loop):
        tell(loop, *CLUSTER)
        server = grpc.server(ThreadPoolExecutor(8))
        deciders_records(decider_of(loop), part).add_to(server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel, loop.begun_s
        loop.feed.end()
        server.stop(None).wait()


def test_checkpoints_take_only_a_part_of_the_cores_time():
    with served(part=0.1) as (channel, begun_s), ThreadPoolExecutor(3) as pool:
        for stream in pool.map(lambda _: follow(channel), range(3)):
            stream.cancel()
        first, second, third = begun_s
        assert min(second - first, third - second) >= 0.05 / 0.1


def test_a_follower_that_cannot_wait_its_turn_is_refused_without_asking_the_core():
    with served(part=0.001) as (channel, begun_s):
        follow(channel).cancel()
        with pytest.raises(grpc.RpcError) as refused:
            follow(channel, timeout_s=20.0)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert len(begun_s) == 1


def test_a_stream_that_is_made_too_late_is_ended():
    """Its follower has left, because the checkpoint took too long."""
    asked, ended, late = Event(), Event(), SimpleNamespace()
    late.end = ended.set

    def begin() -> Any:
        asked.wait(60)
        return late

    def abort(code: grpc.StatusCode, _text: str) -> NoReturn:
        raise TimeoutError(code)

    context: Any = SimpleNamespace(time_remaining=lambda: 0.05, abort=abort)
    with ThreadPoolExecutor(1) as core:
        servicer = RecordServicer(begin, core.submit, 1.0)
        with pytest.raises(TimeoutError, match="DEADLINE_EXCEEDED"):
            list(servicer.follow(records_pb2.FollowRequest(), context))
        asked.set()
        assert ended.wait(60)

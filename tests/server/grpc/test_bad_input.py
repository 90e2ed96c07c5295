"""Clients that violate the protocol get a named error; the sidecar and other sessions continue."""

import random
import socket
import time

import grpc
import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AgentInfo,
    Outcomes,
    RemoveAgent,
)
from allocator.server.engine.sessions import SESSIONS_MAX
from allocator.v1 import admin_pb2, admin_pb2_grpc
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting
from laboratory.module_protocol import write_hello
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import STATE

NOW_US = time.time_ns() // 1000
"""A master that started so late supersedes those of nearly all other tests here."""


@pytest.fixture(scope="module")
def sidecar():
    with SidecarProcess("limits.agents=100", "limits.message_bytes_max=1048576") as process:
        yield process
        assert process.alive


def wait_until_free(sidecar: SidecarProcess) -> None:
    """A session that is open at the end of a test may be newer than those of the next."""
    with sidecar.channel() as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        for _ in range(500):
            if not stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=60).in_session:
                break
            time.sleep(0.02)


@pytest.fixture
def channel(sidecar):
    with sidecar.channel() as channel:
        yield channel
    wait_until_free(sidecar)


@pytest.fixture
def witness(sidecar):
    """A session that must not be affected."""
    with sidecar.channel() as channel:
        module = GrpcModule(channel, "witness", NOW_US).begin()
        module.batch(cycle=True)
        yield module
        offers = module.batch(
            AddAgent(3, AgentInfo("agent-3"), {0: 4000, 1: 8_192_000}), cycle=True
        )
        assert offers.agent.tolist() == [3]
        module.leave()
        list(module.heard())
    wait_until_free(sidecar)


def bad_streams() -> dict[str, tuple[bytes, str, str]]:
    """Invalid first messages: the code, and a part of the error text.

    `tests/wire/session/test_session.py` covers all invalid ones.
    """
    hello = pb.SessionRequest(hello=write_hello(Greeting("master", "instance", 5)))
    return {
        "noise": (random.Random(1).randbytes(100_000), "PROTOCOL", "are not a SessionRequest"),
        "an older master": (hello.SerializeToString(), "SUPERSEDED", "is 5, older than"),
    }


@pytest.mark.parametrize("what", bad_streams())
def test_bad_input_is_refused_without_effect_on_other_callers(sidecar, channel, witness, what):
    said, code, message = bad_streams()[what]
    module = GrpcModule(channel)
    module.say(said)
    error = module.ends_with()
    assert pb.ErrorCode.Name(error.code) == f"ERROR_CODE_{code}"
    assert message in error.message
    assert module.call.code() is grpc.StatusCode.OK


def test_a_bad_batch_ends_its_session_only(sidecar, channel):
    """The next session starts from its own snapshot."""
    module = GrpcModule(channel).begin()
    module.say(module.client.batch(2000, [RemoveAgent(77)]))
    error = module.ends_with()
    assert error.code == pb.ERROR_CODE_HANDLE
    assert error.field == "events[0].remove_agent.agent"
    assert error.sequence == 0
    assert len(GrpcModule(channel, started_us=2).begin().batch(cycle=True)) == 2


def test_a_message_that_is_too_large_ends_its_stream(sidecar, channel, witness):
    """gRPC itself reports that."""
    module = GrpcModule(channel)
    module.say(b"\0" * (2**20 + 1))
    with pytest.raises(grpc.RpcError) as caught:
        list(module.heard())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_second_master_takes_over_when_it_is_newer(sidecar, channel):
    old, new = GrpcModule(channel, "old", 10), GrpcModule(channel, "new", 11)
    old.begin().batch(cycle=True)
    new.begin()
    error = old.ends_with()
    assert error.code == pb.ERROR_CODE_SUPERSEDED
    assert "instance 'new' of master 'master' took this sidecar over" in error.message
    assert len(new.batch(cycle=True)) == 2


def test_a_peer_that_vanishes_frees_the_sidecar(sidecar):
    with sidecar.channel() as channel:
        GrpcModule(channel, "gone", 5).begin().batch(cycle=True)
    sidecar.await_said("session closed")
    with sidecar.channel() as channel:
        deadline = time.monotonic() + 60
        module = GrpcModule(channel, "older", 4)
        module.say(module.client.hello())
        while module.hear().HasField("error"):
            assert time.monotonic() < deadline, "the session of a closed channel lives on"
            module = GrpcModule(channel, "older", 4)
            module.say(module.client.hello())


def test_methods_that_do_not_exist_are_refused(sidecar, channel, witness):
    call = channel.unary_unary("/allocator.v1.SessionService/Sesame")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"open", timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_of_too_many_streams_the_one_ends_that_waits_for_longest(sidecar, channel):
    """A master's call is accepted, however many silent connections exist."""
    before = len(sidecar.said("session opened"))
    quiet = [GrpcModule(channel) for _ in range(SESSIONS_MAX)]
    deadline = time.monotonic() + 60
    while len(sidecar.said("session opened")) < before + len(quiet):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    master = GrpcModule(channel, "master", NOW_US).begin()
    assert len(master.batch(cycle=True)) == 2
    ended = []
    for stream in quiet:
        stream.leave()
        ended += [response.error for response in stream.heard()]
    (error,) = ended
    assert error.code == pb.ERROR_CODE_LIMIT
    text = "16 streams are open, and this one has waited longest; send hello"
    assert error.message == text
    master.leave()
    list(master.heard())


MANY = 3000
AGENTS = [AddAgent(agent, AgentInfo(f"a{agent}"), {0: 1000}) for agent in range(1, MANY + 1)]


def say_without_reading(module: GrpcModule, batches: int) -> None:
    """Ask for thousands of decisions again and again, and reject all of them."""
    refused = np.full(MANY, pb.OUTCOME_REASON_NOTHING_AVAILABLE)
    none = np.empty(0, np.int64)
    for number in range(batches):
        first = 1 + (number - 1) * MANY
        events = [Outcomes(first, refused, none, none.reshape(0, 0))] if number else []
        module.say(module.client.batch(2000 + number, events, cycle=True))


def await_ready(sidecar: SidecarProcess) -> bool:
    """Ask until it is ready: on a slow machine the core has a queue to work through."""
    for _ in range(60):
        if sidecar.page("/readyz")[0] == 200:
            return True
        time.sleep(0.5)
    return False


@pytest.mark.long
def test_a_peer_that_does_not_read_is_dropped_and_blocks_no_other():
    with SidecarProcess(compiled=True) as sidecar, sidecar.channel() as slow_channel:
        slow = GrpcModule(slow_channel, "slow", 1).begin([*STATE[:2], *AGENTS])
        say_without_reading(slow, 3000)
        time.sleep(2)
        with sidecar.channel() as channel:
            assert await_ready(sidecar)
            noisy = GrpcModule(channel)
            noisy.say(b"noise")
            assert noisy.ends_with().code == pb.ERROR_CODE_PROTOCOL
        sidecar.await_said("session ended with an error", code="ERROR_CODE_SLOW_PEER")
        answers = list(slow.heard())
        assert len(answers) < 3000
        assert answers[-1].error.code == pb.ERROR_CODE_SLOW_PEER
        assert "no answer was read for 10 s" in answers[-1].error.message
        with sidecar.channel() as channel:
            assert len(GrpcModule(channel, "older", 0).begin().batch(cycle=True)) == 2


def test_bytes_of_another_protocol_do_no_harm(sidecar, witness):
    """HTTP/1 and random bytes on the port itself."""
    host, _, port = sidecar.targets[0].rpartition(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", random.Random(2).randbytes(10_000), b"PRI * HTTP/2.0"):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            connection.sendall(data)

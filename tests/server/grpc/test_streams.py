"""Every call frees its stream when it ends, without waiting for a garbage collection.

gRPC refuses the next call of a connection that has as many streams as it may have.
"""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from allocator.v1 import admin_pb2 as pb
from tests.server.sidecar_process import METHOD, GrpcModule, SidecarProcess
from tests.tiers import some

CALLS = 70
"""More than the maximum of concurrent streams, which is 64."""

OWN_CONNECTION = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]

NONSENSE = b"\xff"
SERVICE = pb.DESCRIPTOR.services_by_name["AdminService"]
METHODS = [each.name for each in SERVICE.methods]
QUICK = {"GetStatus", "Explain", "Dump", "SetPolicy", "ForgetUsage"}
"""Of the forwarded ones an answer, an error and a stream; of changes one that either rejects."""

HEALTH = "/grpc.health.v1.Health"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
STATUS = f"/{SERVICE.full_name}/GetStatus"


@pytest.fixture(scope="module")
def without_collections(tmp_path_factory) -> Iterator[SidecarProcess]:
    place = tmp_path_factory.mktemp("python")
    (place / "sitecustomize.py").write_text("import gc\n\ngc.disable()\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(place), prepend=":")
        sidecar = SidecarProcess(compiled=True)
    with sidecar, sidecar.channel() as channel:
        GrpcModule(channel).begin().batch(cycle=True)
        yield sidecar


def unary(method: str, data: bytes = b"", within_s: float = 60.0) -> Callable[[grpc.Channel], None]:
    def call(channel: grpc.Channel) -> None:
        begun: Any = channel.unary_unary(method)
        begun(data, timeout=within_s)

    return call


def streamed(method: str, *data: bytes) -> Callable[[grpc.Channel], None]:
    def call(channel: grpc.Channel) -> None:
        begun: Any = channel.stream_stream(method)
        list(begun(iter(data), timeout=60))

    return call


def cancelled(method: str, data: bytes = b"") -> Callable[[grpc.Channel], None]:
    def call(channel: grpc.Channel) -> None:
        begin: Any = channel.stream_stream(method)
        begun = begin(iter([data]))
        next(begun)
        begun.cancel()

    return call


def session(channel: grpc.Channel) -> None:
    module = GrpcModule(channel).begin()
    module.batch(cycle=True)
    module.leave()
    list(module.heard())


def refused(sidecar: SidecarProcess, call: Callable[[grpc.Channel], None]) -> int:
    """How many of many calls on one connection gRPC refuses."""
    found = 0
    with grpc.insecure_channel(sidecar.targets[0], OWN_CONNECTION) as channel:
        for _ in range(CALLS):
            try:
                call(channel)
            except grpc.RpcError as error:
                found += "RST_STREAM" in str(error.details())
    return found


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(session, id="session"),
        pytest.param(streamed(METHOD), id="empty session"),
        pytest.param(streamed(METHOD, NONSENSE), id="session of nonsense"),
        pytest.param(unary(f"{HEALTH}/Check"), id="check"),
        pytest.param(unary(f"{HEALTH}/Check", b"\x0a\x01x"), id="check of an unknown service"),
        pytest.param(unary(f"{HEALTH}/Check", NONSENSE), id="check of nonsense"),
        pytest.param(streamed(f"{HEALTH}/Check"), id="check without a request"),
        pytest.param(cancelled(f"{HEALTH}/Watch"), id="watch"),
        pytest.param(streamed(REFLECTION, b":\x00"), id="reflection"),
        pytest.param(streamed(REFLECTION, b":\x00", NONSENSE), id="reflection of nonsense"),
        pytest.param(cancelled("/allocator.v1.RecordService/Follow"), id="follow"),
        pytest.param(unary(STATUS, within_s=0.002), id="deadline"),
        pytest.param(unary("/no.Such/Call"), id="unknown call"),
    ],
)  # fmt: skip
def test_a_call_frees_its_stream(without_collections, call):
    assert not refused(without_collections, call)


@pytest.mark.parametrize("method", some(METHODS, QUICK))
def test_an_operators_call_frees_its_stream(without_collections, method):
    assert not refused(without_collections, streamed(f"/{SERVICE.full_name}/{method}", b""))


@pytest.mark.parametrize("method", METHODS)
def test_nonsense_is_rejected_before_it_reaches_the_observer(without_collections, method):
    """gRPC would never free a call whose request it cannot parse, in either process."""
    with without_collections.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        streamed(f"/{SERVICE.full_name}/{method}", NONSENSE)(channel)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "the request, 1 bytes, is not a message of this call's type"

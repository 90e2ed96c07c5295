"""A real sidecar process: transports, health, shutdown, remaining files."""

import signal
import socket
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from allocator.v1 import session_pb2 as pb
from tests.server.grpc.certificates import Authority
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.tiers import long

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = ["", "allocator.v1.SessionService", "allocator.v1.AdminService"]


def test_a_session_over_tcp(sidecar):
    with sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        assert sorted(module.batch(cycle=True).agent.tolist()) == [1, 2]
        module.leave()
        assert list(module.heard()) == []
        assert module.call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("service", SERVICES)
def test_health_is_served(sidecar, service):
    with sidecar.channel() as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
        assert answer.status == SERVING


def test_reflection_lists_the_services(sidecar):
    with sidecar.channel() as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(iter([ask]), timeout=60)
        names = {service.name for service in answer.list_services_response.service}
        assert names >= {*SERVICES[1:], "grpc.health.v1.Health"}


def test_the_http_endpoint_is_ready(sidecar):
    assert sidecar.page("/readyz")[0] == 200


def test_a_unix_socket_has_the_configured_mode(tmp_path):
    path = tmp_path / "allocator.sock"
    with SidecarProcess("listen.unix_mode=0o600", listen=[f"unix:{path}"]) as sidecar:
        assert sidecar.targets == [f"unix:{path}"]
        assert path.stat().st_mode & 0o777 == 0o600
        with sidecar.channel() as channel:
            assert len(GrpcModule(channel).begin().batch(cycle=True)) == 2
        assert sidecar.terminate() == 0
    assert not path.exists()


def test_a_stale_socket_file_is_replaced(tmp_path):
    path = tmp_path / "allocator.sock"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    with SidecarProcess(listen=[f"unix:{path}"]) as sidecar, sidecar.channel() as channel:
        GrpcModule(channel).begin().batch()


def start_fails(*flags: str, listen: list[str]) -> str:
    """Start a sidecar that must fail; returns its error."""
    process = SidecarProcess(*flags, listen=listen)
    with pytest.raises(AssertionError):
        process.__enter__()
    code = process.process.wait(60)
    process.__exit__()
    assert code == 1, process.raw
    assert process.said("cannot start"), process.raw
    return process.said("cannot start")[0]["error"]


@pytest.mark.long
def test_a_socket_in_use_is_not_replaced(tmp_path):
    path = tmp_path / "allocator.sock"
    with SidecarProcess(listen=[f"unix:{path}"]) as sidecar:
        assert "another process listens there" in start_fails(listen=[f"unix:{path}"])
        with sidecar.channel() as channel:
            GrpcModule(channel).begin().batch()


@pytest.mark.long
def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    assert "is not a socket; remove it" in start_fails(listen=[f"unix:{path}"])
    assert path.read_text() == "data"


@pytest.mark.long
def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    directory = tmp_path / "open"
    directory.mkdir()
    directory.chmod(0o777)
    assert "others may write to" in start_fails(listen=[f"unix:{directory}/a.sock"])


def test_a_port_that_is_taken_is_named(sidecar):
    """Two sidecars must not share a port, although gRPC would allow that."""
    assert sidecar.targets[0] in start_fails(listen=sidecar.targets)


def test_tls_admits_only_modules_with_a_certificate(tmp_path, tool):
    authority = Authority(tool("openssl"), tmp_path)
    for name in ("sidecar", "module"):
        authority.sign(name)
    read = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    trusted = grpc.ssl_channel_credentials(read["ca.pem"], read["module.key"], read["module.pem"])
    anonymous = grpc.ssl_channel_credentials(read["ca.pem"])
    files = [
        f"listen.tls_cert={tmp_path}/sidecar.pem",
        f"listen.tls_key={tmp_path}/sidecar.key",
        f"listen.tls_client_ca={tmp_path}/ca.pem",
    ]
    with SidecarProcess(*files) as sidecar:
        with grpc.secure_channel(sidecar.targets[0], trusted) as channel:
            assert len(GrpcModule(channel).begin().batch(cycle=True)) == 2
        with grpc.secure_channel(sidecar.targets[0], anonymous) as channel:
            with pytest.raises(grpc.RpcError) as caught:
                GrpcModule(channel).begin()
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("number", [signal.SIGTERM, *long(signal.SIGINT)])
def test_shutdown_notifies_all_sessions(number):
    with SidecarProcess() as sidecar, sidecar.channel() as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        assert next(watch).status == SERVING
        module = GrpcModule(channel).begin()
        module.batch(cycle=True)
        sidecar.process.send_signal(number)
        assert next(watch).status == NOT_SERVING
        assert module.ends_with().code == pb.ERROR_CODE_SHUTDOWN
        assert module.call.code() is grpc.StatusCode.OK
        watch.cancel()
        assert sidecar.process.wait(60) == 0
        assert sidecar.said("done")


def test_a_sidecar_without_sessions_ends_at_once():
    with SidecarProcess() as sidecar:
        assert sidecar.terminate(within_s=60) == 0

"""Messages if no sidecar answers: the cause, and the remedy."""

import getpass
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import pytest

from allocator.client import why_unavailable
from allocator.server.system.http_socket import http_socket
from allocator.server.web.http import HttpServer
from tests.cli.command_tree import LAB, invoke
from tests.server.grpc.certificates import Authority


def told(*words: str) -> str:
    """The line of a command that reaches no sidecar."""
    done = invoke(words)
    assert done.exit_code == 3, done.output
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def tls_target(tool, tmp_path):
    """An address that requires TLS."""
    Authority(tool("openssl"), tmp_path).sign("sidecar")
    pair = ((tmp_path / "sidecar.key").read_bytes(), (tmp_path / "sidecar.pem").read_bytes())
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


def test_the_http_port_is_recognised():
    with closing(HttpServer(http_socket("127.0.0.1", 0), [])) as server:
        target = f"127.0.0.1:{server.port}"
        line = told("status", "--target", target)
    assert line.startswith(f"error: {target} answers, but does not speak gRPC; it may be the HTTP")


@pytest.mark.parametrize("command", ["status", f"{LAB} demo soak"])
def test_that_tls_is_wanted_is_said(command, tls_target):
    line = told(*command.split(), "--target", tls_target)
    part = f"error: the sidecar at {tls_target} closed the connection; it may need TLS"
    assert line.startswith(part)


def test_a_socket_that_others_may_not_use_is_not_taken_for_a_missing_sidecar():
    # gRPC's error for a socket with mode 0600 that belongs to another user.
    details = (
        "failed to connect to all addresses; last error: FAILED_PRECONDITION: unix:/run/a.sock:"
        " connect failed: addr: unix:/run/a.sock error: Permission denied"
    )
    line = why_unavailable("unix:/run/a.sock", details, start="is it running?", tls="")
    who = getpass.getuser()
    assert line.startswith(f"permission to use unix:/run/a.sock is denied to the user {who!r}; run")
    assert "listen.unix_mode" in line
    assert "is it running" not in line

"""With hundreds of open connections sessions and scrapes continue, and descriptors remain."""

import socket
import urllib.request
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import grpc
import pytest

from allocator.server.grpc.calls import CONNECTIONS_MAX
from allocator.server.web.http import OTHERS_MAX, PROBES_MAX, SCRAPES_MAX, SILENT_MAX
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc
from tests.server.grpc.test_calls import OWN_CONNECTION
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true

CROWD = 2 * CONNECTIONS_MAX

SPARE = 96
"""Its own descriptors: files, pipes, listeners, well-behaved clients."""


@contextmanager
def crowded(address: str):
    """Open hundreds of connections, and send nothing."""
    host, _, port = address.rpartition(":")
    with ExitStack() as until_end:
        for _ in range(CROWD):
            member = socket.create_connection((host, int(port)), 60)
            until_end.enter_context(member)
        yield


def status(channel: grpc.Channel) -> pb.GetStatusResponse:
    stub = admin_pb2_grpc.AdminServiceStub(channel)
    return stub.GetStatus(pb.GetStatusRequest(), timeout=60)


def answers(address: str, path: str) -> bool:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as page:
        return page.status == 200 and bool(page.read())


@pytest.mark.long
def test_hundreds_of_connections_keep_no_session_and_no_scrape_away(tmp_path):
    listen = ["127.0.0.1:0", f"unix:{tmp_path}/socket"]
    with SidecarProcess(listen=listen) as sidecar, sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) == 2
        with crowded(sidecar.targets[0]), crowded(sidecar.http):
            for _ in range(3):
                module.batch()
                assert answers(sidecar.http, "/metrics")
                assert answers(sidecar.http, "/healthz")
            # Each address has its own limit.
            with grpc.insecure_channel(sidecar.targets[1]) as beside:
                assert status(beside).in_session
            open_now = len(list(Path(f"/proc/{sidecar.process.pid}/fd").iterdir()))
            over_http = SILENT_MAX + PROBES_MAX + SCRAPES_MAX + OTHERS_MAX
            assert open_now <= CONNECTIONS_MAX + over_http + SPARE
            # A later client gets a place once silent ones are disconnected.
            await_true(lambda: newcomer(sidecar.targets[0]))
            module.batch()


def newcomer(target: str) -> bool:
    with grpc.insecure_channel(target, OWN_CONNECTION) as channel, suppress(grpc.RpcError):
        return status(channel).in_session
    return False

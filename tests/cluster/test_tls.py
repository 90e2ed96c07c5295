"""A session by TLS over TCP, in which both sides prove who they are."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.framework_behaviours import work
from tests.cluster.mesos import Mesos
from tests.cluster.processes import until
from tests.cluster.world import World
from tests.server.grpc.certificates import Authority
from tests.server.processes import free_port

pytestmark = pytest.mark.long

NAME = "sidecar.test"
WITHOUT_TLS = "this module was built with a gRPC that has no TLS"


@pytest.fixture
def places(tool, tmp_path) -> tuple[Path, Path]:
    """Two authorities' directories, each with certificates of a sidecar and a module."""
    found = tmp_path / "ours", tmp_path / "theirs"
    for place in found:
        place.mkdir()
        authority = Authority(tool("openssl"), place)
        for name in ("sidecar", "module"):
            authority.sign(name, f"subjectAltName=DNS:{NAME}")
    return found


@contextlib.contextmanager
def cluster(mesos: Mesos, sidecar: Path, module: Path) -> Iterator[World]:
    """A cluster where only the sidecar decides; certificates of these directories."""
    target = f"127.0.0.1:{free_port()}"
    parameters = {
        "target": target,
        "tls_ca": str(sidecar / "ca.pem"),
        "tls_cert": str(module / "module.pem"),
        "tls_key": str(module / "module.key"),
        "tls_name": NAME,
        "fallback": "false",
    }
    world = World(mesos, agents=1, sidecar=False, parameters=parameters)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(world)
        except AssertionError as error:
            if WITHOUT_TLS in str(error):
                pytest.skip(WITHOUT_TLS)
            raise
        world.sidecar.start(
            f'listen.targets=["{world.sidecar.target}", "{target}"]',
            f"listen.tls_cert={sidecar}/sidecar.pem",
            f"listen.tls_key={sidecar}/sidecar.key",
            f"listen.tls_client_ca={sidecar}/ca.pem",
        )
        yield world


def test_a_session_by_tls_decides(mesos, places):
    ours, _ = places
    with cluster(mesos, ours, ours) as world:
        world.wait_connected()
        framework = world.framework("eng", "eng", manner=work(0.5, 64, 1, at_once=2))
        until(lambda: framework.states()["FINISHED"] >= 4, 60, "tasks finish")
        assert world.operator.metrics()["allocator/sidecar/outcomes/offered"] > 0
        world.wait_for_agreement()


def test_a_module_of_another_authority_gets_no_session(mesos, places):
    ours, theirs = places
    with cluster(mesos, ours, theirs) as world:
        attempts = world.operator.metrics()["allocator/sidecar/attempts"]

        def more_attempts() -> bool:
            return world.operator.metrics()["allocator/sidecar/attempts"] > attempts + 3

        until(more_attempts, 60, "more attempts")
        metrics = world.operator.metrics()
        assert metrics["allocator/sidecar/sessions"] == 0
        assert metrics["allocator/sidecar/ends/unreachable"] > 3
        assert not world.sidecar.status().sessions

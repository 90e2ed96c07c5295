"""A sidecar; a core in this process, and its operators' service."""

from collections.abc import Iterator

import pytest

from allocator import policies
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from tests.server.in_process import asking, running
from tests.server.sidecar_process import SidecarProcess


@pytest.fixture(scope="module")
def sidecar() -> Iterator[SidecarProcess]:
    with SidecarProcess() as process:
        yield process


@pytest.fixture
def loop() -> Iterator[CoreLoop]:
    with running(CoreLoop(Config(), build_policy=policies.build)) as core:
        yield core


@pytest.fixture
def stub(loop: CoreLoop) -> Iterator[AdminServiceStub]:
    with asking(loop) as found:
        yield found

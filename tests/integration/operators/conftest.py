"""A sidecar for all tests of a file, and a module in session with it."""

from collections.abc import Iterator

import pytest

from tests.integration.operators.test_lasting_settings import ask
from tests.integration.sessions.live_session import Session
from tests.server.sidecar_process import SidecarProcess


@pytest.fixture(scope="module")
def process() -> Iterator[SidecarProcess]:
    with SidecarProcess() as running:
        yield running


@pytest.fixture
def session(process: SidecarProcess) -> Iterator[Session]:
    """A module in session; settings are reset afterwards."""
    running = Session(process)
    running.module.batch()
    yield running
    running.channel.close()
    ask(process, "settings", "reset", "--all")

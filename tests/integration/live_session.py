"""A session with a running sidecar whose settings operators change, for tests."""

import time

import pytest

from tests.integration.test_admin import Session
from tests.integration.test_lasting_settings import ask
from tests.server.process import SidecarProcess


@pytest.fixture
def session(process):
    """A module in session; what was set meanwhile is taken back."""
    running = Session(process)
    running.module.batch()
    yield running
    running.channel.close()
    ask(process, "settings", "reset", "--all")


def compared(process: SidecarProcess) -> dict:
    """Ask again until the policy that looks on has decided something."""
    while True:  # pytest-timeout bounds it
        found = ask(process, "shadow", "show")
        if found["counts"]["compared"]:
            return found
        time.sleep(0.05)

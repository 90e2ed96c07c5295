"""A module that connects while the sidecar loads its loops waits, and gets its session then."""

import time
from pathlib import Path

import pytest

from tests.integration.sessions.test_cpp_session import DRIVER, Driver
from tests.server.sidecar_process import READY_S, SidecarProcess

LONGEST_S = 1.0
"""Interval between the module's attempts while there is no answer."""

BUSY_S = 3.0
"""Additional time for a busy machine."""


@pytest.mark.skipif(not Path(DRIVER).is_file(), reason="`make module` builds the driver")
def test_a_module_gets_a_session_within_a_second_of_readiness_and_no_decision_before():
    with (
        SidecarProcess(until="listening", compiled=True) as sidecar,
        Driver(sidecar.targets[0]) as driver,
    ):
        sidecar.await_said("ready", within_s=READY_S)
        ready_s = time.monotonic()
        driver.wait("connected")
        assert time.monotonic() - ready_s < LONGEST_S + BUSY_S
        ends = [line for line in driver.lines if line["event"] == "ended"]
        # The number of refusals depends on when it connected.
        assert {line["cause"] for line in ends} <= {"unreachable"}
        assert all("loading the compiled loops" in line["reason"] for line in ends)
        assert max((line["retry_ms"] for line in ends), default=0) <= 1000 * LONGEST_S
        driver.decides()
        last = driver.stop()
        assert last["sessions"] == 1
        assert last["attempts"] == len(ends) + 1
        assert len(sidecar.said("session opened")) == 1

"""Timeouts of cluster tests run slower when more tasks want to run than there are processors."""

import time

import pytest

from tests.cluster import processes
from tests.cluster.processes import Patience, share_of_processors, until
from tests.cluster.sidecar import Sidecar


def test_interpreted_loops_are_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(AssertionError, match="NUMBA_DISABLE_JIT is set"):
        Sidecar(tmp_path).until_compiled()


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances by a second with each sleep; yields the list of sleeps."""
    slept: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: float(len(slept)))
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


@pytest.mark.parametrize(("share", "seconds"), [(1.0, 60), (0.125, 480)])
def test_timeouts_are_longer_on_a_busy_machine(clock, monkeypatch, share, seconds):
    """With eight times as many tasks as processors, sixty seconds are eight minutes."""
    monkeypatch.setattr(processes, "share_of_processors", lambda: share)
    assert until(lambda: len(clock) == seconds - 1, 60, "it comes late")
    clock.clear()
    with pytest.raises(AssertionError, match="not within 60 s: it never comes"):
        until(lambda: False, 60, "it never comes")
    assert len(clock) == seconds


def test_a_share_is_at_most_a_whole_processor():
    assert 0 < share_of_processors() <= 1
    assert not Patience(3600).over

"""A master's silence is measured on a monotonic clock."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from allocator.server.views.status_warnings import SILENCE_S, _session
from allocator.v1 import records_pb2

SHORT, LONG = SILENCE_S / 10, 2 * SILENCE_S


@pytest.mark.parametrize("clock_off_s", [-1e6, 0.0, 1e6])
@pytest.mark.parametrize(
    ("silent_s", "unheard_s", "warns"), [(SHORT, 0, False), (LONG, 0, True), (SHORT, LONG, True)]
)
def test_a_clock_that_is_set_makes_no_master_silent(clock_off_s, silent_s, unheard_s, warns):
    """`unheard_s`: how long the deciding process has not heard from the master, as it says."""
    books: Any = SimpleNamespace(
        session=SimpleNamespace(figures=None),
        figures=records_pb2.Figures(
            last_batch_s=time.time() - silent_s + clock_off_s, silent_s=silent_s
        ),
        lag=SimpleNamespace(heard_s=time.monotonic() - unheard_s),
    )
    assert [each.what for each in _session(books)] == ["silent master"] * warns

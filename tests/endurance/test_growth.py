"""Memory does not grow with what has happened."""

from tests.endurance.growth import measure

GROWTH_BYTES_MAX = 400_000
"""Over twice as many events: tables that double, and whatever is in flight at the second look."""


def test_a_session_keeps_nothing_of_what_is_over():
    found = measure(seed=1, warm_up=6_000, events=18_000)
    assert found.events >= 18_000
    assert found.bytes < GROWTH_BYTES_MAX, "\n".join(found.top)

"""Figures that a module reports are accepted within bounds, and change nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Reason
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec.figures import (
    MODULE_ENDS,
    TOTAL_MAX,
    ModuleFigures,
    read_figures,
    write_figures,
)

counts = st.integers(0, TOTAL_MAX)
FIGURES = st.builds(
    ModuleFigures,
    cycles=counts,
    fallback_since_ms=counts,
    breaker_open=st.booleans(),
    shadow=st.booleans(),
    shadow_none=counts,
    queue_bytes=counts,
    round_trip_max_us=counts,
    ends=st.fixed_dictionaries(dict.fromkeys(MODULE_ENDS.values(), counts)),
    outcomes=st.fixed_dictionaries({each.name.lower(): counts for each in Reason}),
)


@given(FIGURES)
def test_written_values_are_read_back(figures):
    data = write_figures(figures).SerializeToString()
    assert read_figures(pb.ModuleFigures.FromString(data)) == figures


@given(
    st.builds(
        pb.ModuleFigures,
        cycles=st.integers(0, 2**64 - 1),
        fallback_since_ms=st.integers(-(2**63), 2**63 - 1),
        outcomes=st.lists(st.integers(0, 2**64 - 1), max_size=100),
        ends=st.lists(st.integers(0, 2**64 - 1), max_size=100),
    )
)
def test_nothing_that_a_module_says_is_out_of_bounds(message):
    figures = read_figures(message)
    numbers = [figures.cycles, figures.fallback_since_ms]
    numbers += [*figures.outcomes.values(), *figures.ends.values()]
    assert all(0 <= number <= TOTAL_MAX for number in numbers)
    assert set(figures.outcomes) <= {each.name.lower() for each in Reason}
    assert set(figures.ends) <= set(MODULE_ENDS.values())

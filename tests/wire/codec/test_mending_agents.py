"""An event is read without corrections first, and only corrected if that fails."""

from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AMOUNT_MAX
from allocator.v1 import types_pb2 as types
from allocator.wire import WireError
from allocator.wire.codec.decode import LIST_READERS, READERS
from allocator.wire.codec.sanitizing import mend_event
from allocator.wire.codec.validation import TEXT_LENGTH_MAX, TIME_MAX_MS

LONG = "x" * (TEXT_LENGTH_MAX + 1)


def mostly(usual, *odd):
    """A usual value nine times in ten, so that whole lists of agents are valid."""
    return st.integers(0, 9).flatmap(lambda dice: st.sampled_from(odd) if dice == 0 else usual)


texts = mostly(st.sampled_from(["", "a", "b"]), LONG)
names = mostly(st.sampled_from(["a", "b"]), "", LONG)
times = mostly(st.integers(0, TIME_MAX_MS), -1, TIME_MAX_MS + 1)
windows = st.builds(types.Unavailability, start_ms=times, duration_ms=times)
attributes = st.builds(
    types.Attribute, name=names, value=texts, type=mostly(st.sampled_from([1, 2, 3, 4]), 0, 5)
)
domains = st.builds(types.Domain, region=texts, zone=texts)
amounts = mostly(st.integers(0, AMOUNT_MAX), -1, AMOUNT_MAX + 1)


@st.composite
def agents(draw) -> list[types.Agent]:
    kinds = draw(mostly(st.sampled_from([[0, 1], [2], []]), [1, 1]))
    return [
        types.Agent(
            agent=draw(mostly(st.integers(1, 9), 0)),
            agent_id=draw(names),
            hostname=draw(texts),
            attributes=draw(st.lists(attributes, max_size=2)),
            capabilities=draw(mostly(st.lists(st.sampled_from([1, 2, 3]), max_size=3), [1, 99])),
            domain=draw(st.none() | domains),
            unavailability=draw(st.none() | windows),
            deactivated=draw(st.booleans()),
            capacity=types.Amounts(kind=kinds, amount=[draw(amounts) for _ in kinds]),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]


def is_taken(reader, message) -> bool:
    try:
        reader(message)
    except WireError:
        return False
    return True


@given(agents())
def test_accepted_values_need_no_correction(messages):
    each = [is_taken(READERS["add_agent"], message) for message in messages]
    together = is_taken(LIST_READERS["add_agent"], messages)
    assert together == all(each)
    # Corrections are made in place.
    mended = [bool(mend_event("add_agent", message, 10)) for message in messages]
    assert not any(taken and changed for taken, changed in zip(each, mended, strict=True))
    # After one pass no correction is left.
    assert not any(mend_event("add_agent", message, 10) for message in messages)

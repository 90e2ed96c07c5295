"""Agents that are read in one pass are those that nothing is to be mended or refused of."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AMOUNT_MAX
from allocator.v1 import types_pb2 as types
from allocator.wire import WireError
from allocator.wire.decode import LIST_READERS, SOUND_LIST_READERS
from allocator.wire.errors import TEXT_LENGTH_MAX
from allocator.wire.mending import mend_event
from allocator.wire.validation import TIME_MAX_MS

LONG = "x" * (TEXT_LENGTH_MAX + 1)


def mostly(usual, *odd):
    """A usual value nine times in ten, so that whole lists of agents are sound."""
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


def strictly(messages: list[types.Agent]):
    """What the reader that names what is wrong makes of it; None where it refuses."""
    try:
        return LIST_READERS["add_agent"](messages)
    except WireError:
        return None


@given(agents())
def test_sound_is_what_is_neither_mended_nor_refused(messages):
    found = SOUND_LIST_READERS["add_agent"](messages)
    # Mending is in place, so it is tried on copies.
    copies = [types.Agent.FromString(message.SerializeToString()) for message in messages]
    mended = sum(len(mend_event("add_agent", copy, 10)) for copy in copies)
    expected = None if mended else strictly(messages)
    assert (found is None) == (expected is None)
    if found is not None:
        for field in fields(found):
            ours, theirs = getattr(found, field.name), getattr(expected, field.name)
            assert ours == theirs if field.name == "info" else np.array_equal(ours, theirs)

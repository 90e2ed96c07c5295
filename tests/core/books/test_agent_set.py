"""Tests the agent set against a naive implementation."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books.agent_set import AgentSet

_agents = st.integers(0, 99)


@given(st.lists(st.tuples(st.booleans(), st.lists(_agents, max_size=9), st.integers(100, 2000))))
def test_an_agent_set_behaves_like_a_set(steps):
    fast, slow = AgentSet(), set()
    for adds, agents, rows in steps:
        if adds:
            fast.update(agents, rows)
            slow.update(agents)
        for agent in [] if adds else agents:
            fast.discard(agent)
            slow.discard(agent)
        assert len(fast) == len(slow)
        assert set(fast) == slow == set(fast.rows().tolist())
        assert [agent for agent in range(120) if agent in fast] == sorted(slow)


def test_memory_of_agent_sets_is_at_most_a_byte_per_agent():
    many, one = AgentSet(), AgentSet()
    many.update(range(20_000), 20_000)
    one.update((7,), 20_000)
    assert sys.getsizeof(many._flags) + sys.getsizeof(many._few) < 21_000
    assert one._flags is None

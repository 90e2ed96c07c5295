"""Adding several agents in one event has the same effect as adding them one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AddAgent, AddAgents, AgentInfo, Event, EventError, SessionLimits
from tests.core.checkpoint.test_checkpoint import kept, same
from tests.core.session import CPUS, MEM, Session

LIMIT = 12


def session() -> Session:
    made = Session(limits=SessionLimits(agents=LIMIT), options={"region": "here"})
    made.agent(3, 4, 4)
    made.framework(1, capabilities={"GPU_RESOURCES"})
    made.framework(2, 2, capabilities={"MULTI_ROLE"})
    return made


agents = st.builds(
    AddAgent,
    agent=st.integers(0, LIMIT + 1),
    info=st.builds(
        AgentInfo,
        agent_id=st.text("ab", min_size=1),
        attributes=st.dictionaries(st.sampled_from("xy"), st.text("ab", max_size=1)),
        region=st.sampled_from(["", "here", "there"]),
        capabilities=st.frozensets(st.sampled_from(["MULTI_ROLE", "HIERARCHICAL_ROLE"])),
    ),
    capacity=st.builds(
        lambda mem, cpus: {MEM: mem, CPUS: cpus}, st.integers(0, 9), st.integers(0, 9)
    ),
    active=st.booleans(),
    unavailable_from_ms=st.integers(-1, 9),
    unavailable_for_ms=st.integers(0, 9),
)


def together(added: list[AddAgent]) -> AddAgents:
    """One event that adds all of these agents, which have the same kinds."""
    first, *others = map(AddAgents.of, added)
    for other in others:
        first = replace(
            first,
            info=first.info + other.info,
            **{
                name: np.concatenate([getattr(first, name), getattr(other, name)])
                for name in ("agent", "capacity", "active", "unavailable_from_ms")
            },
            unavailable_for_ms=np.append(first.unavailable_for_ms, other.unavailable_for_ms),
        )
    return first


def wrong(made: Session, *events: Event) -> str:
    """The error of the first event that is refused; empty if all are applied."""
    try:
        for event in events:
            made.allocator.step(event)
    except EventError as error:
        return str(error)
    return ""


@given(st.lists(agents, min_size=1, max_size=6))
def test_the_books_are_the_same_or_nothing_has_changed(added):
    one_by_one, at_once = session(), session()
    error = wrong(one_by_one, *added)
    assert wrong(at_once, together(added)) == error
    at_once.state.check()
    if error:
        assert same(kept(at_once.allocator), kept(session().allocator))
    else:
        # The event counter grows by one, however many agents the event adds.
        at_once.state.agents.version = one_by_one.state.agents.version
        assert same(kept(at_once.allocator), kept(one_by_one.allocator))
        assert at_once.cycle(1000) == one_by_one.cycle(1000)


def test_a_kind_that_is_not_bound_is_named():
    event = replace(AddAgents.of(AddAgent(1, AgentInfo("a"), {MEM: 1})), kind=np.array([7]))
    with pytest.raises(EventError, match=r"capacity: kind 7 is not bound; define it"):
        session().allocator.step(event)

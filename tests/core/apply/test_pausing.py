"""Paused roles: they and their descendants are offered nothing new, and nothing is taken away."""

import numpy as np
import pytest

from allocator.core import EventError, PolicySpec, SetPause
from allocator.explain import explain, take
from allocator.policies import POLICIES
from tests.core.session import MODES, Session
from tests.tiers import in_turn
from tests.world.world import MODERN_AGENT

PATHS = {1: "a", 2: "b", 3: "a/x"}


def crowded(spec: PolicySpec | None = None, **options) -> Session:
    """Frameworks 1, 2 and 3 are in the roles ``a``, ``b`` and ``a/x``."""
    session = Session(spec, PATHS, **options)
    for agent in range(1, 5):
        session.agent(agent, 4, 8, capabilities=MODERN_AGENT)
    for framework in PATHS:
        session.framework(framework, framework, name=f"f{framework}")
    return session


def served(session: Session, now_ms: int) -> set[int]:
    """The frameworks with offers of a cycle; all are declined without a filter."""
    offers = session.cycle(now_ms)
    for each in offers:
        session.give_back(each)
    return {each[0] for each in offers}


@pytest.mark.parametrize(("name", "mode"), in_turn(POLICIES, MODES))
def test_a_paused_role_and_its_descendants_are_offered_nothing(name, mode):
    session = crowded(PolicySpec(name, mode=mode))
    session.allocator.step(SetPause("a"))
    found = [served(session, now_ms) for now_ms in range(1000, 5000, 1000)]
    assert set().union(*found) == {2}, "and the others are served as ever"
    session.allocator.step(SetPause("a", paused=False))
    found = [served(session, now_ms) for now_ms in range(5000, 12000, 1000)]
    assert set().union(*found) == {1, 2, 3}


def test_a_paused_role_keeps_its_holdings():
    session = crowded()
    offers = session.cycle(1000)
    for each in offers:
        session.use(each)
    held = session.state.ledger.books.client_held.copy()
    session.allocator.step(SetPause("a"))
    session.cycle(2000)
    np.testing.assert_array_equal(session.state.ledger.books.client_held, held)


def test_a_role_below_alone_can_be_paused_and_one_that_comes_later():
    session = crowded()
    session.allocator.step(SetPause("a/x"))
    assert served(session, 1000) == {1, 2}
    session.allocator.step(SetPause("c"))
    session.paths = {**PATHS, 4: "c"}
    session.world.bind(roles=[*PATHS.values(), "c"])
    session.framework(4, 4, name="f4")
    session.framework(5, 2, name="f5")
    assert 4 not in served(session, 2000) | served(session, 3000)


def test_its_frameworks_do_not_wait_and_come_before_none_when_it_resumes():
    session = crowded(patience_cycles=2)
    state = session.state
    for agent in range(2, 5):
        session.allocator.state.agents.active[agent] = False
    # One agent is too little for three: two of them wait.
    for now_ms in (1000, 2000):
        session.cycle(now_ms)
    state.clients.waited[:4] = 5
    session.allocator.step(SetPause("a"))
    paused = [row for row in range(1, 4) if PATHS[int(state.clients.role[row])] != "b"]
    assert not state.clients.waited[paused].any()
    assert state.clients.waited[[row for row in range(1, 4) if row not in paused]].all()
    session.cycle(3000)
    assert not state.clients.waited[paused].any()


def test_to_resume_what_is_not_paused_is_an_error():
    session = crowded()
    with pytest.raises(EventError, match="there is no pause of role 'a'"):
        session.allocator.step(SetPause("a", paused=False))
    with pytest.raises(EventError, match="'a//b' is not a role"):
        session.allocator.step(SetPause("a//b"))


def test_explain_gives_the_reason():
    session = crowded()
    session.allocator.step(SetPause("a"))
    session.cycle(1000)
    (client,) = explain(take(session.allocator, "framework", "f3"), "framework", "f3").clients
    blocker = client.blockers[0]
    assert (blocker.reason, blocker.agents) == ("role paused", 4)
    assert "paused the role a/x or one above it" in blocker.cause
    assert "resume" in blocker.mend

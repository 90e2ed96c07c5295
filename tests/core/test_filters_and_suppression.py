"""Refusals, suppression and activation, as Mesos has them (hierarchical allocator, 1.11)."""

import pytest

from allocator.core import (
    ActivateFramework,
    Revive,
    SessionLimits,
    Suppress,
    UpdateAgent,
    UpdateFramework,
)
from allocator.core.apply import clients, frameworks
from allocator.core.events import FrameworkInfo
from tests.core.session import Session

WHOLE = {"cpus": 4, "mem": 8}


def declined(refuse_ms: int) -> Session:
    """One agent, one framework that declined it at 1000 ms."""
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    assert offer == (1, 1, 1, WHOLE)
    session.give_back(offer, refuse_ms)
    return session


def test_a_filter_hides_the_agent_until_it_expires():
    session = declined(5000)
    assert session.cycle(2000) == []
    assert session.cycle(5999) == []
    assert session.cycle(6000) == [(1, 1, 1, WHOLE)]
    assert len(session.state.filters) == 0


def test_a_tiny_filter_still_covers_the_next_batch():
    """MESOS-4302: it lives at least one allocation interval."""
    session = declined(1)
    assert session.cycle(2000) == []
    assert session.cycle(2001) == [(1, 1, 1, WHOLE)]


@pytest.mark.parametrize("refuse_ms", [0, -1])
def test_without_a_filter_the_agent_is_offered_at_once(refuse_ms: int):
    assert declined(refuse_ms).cycle(1001) == [(1, 1, 1, WHOLE)]


def test_more_than_was_refused_is_offered():
    """A filter bars what its resources cover, and nothing else (superset rule)."""
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.give_back(offer, 60_000, cpus=2, mem=4)
    assert session.cycle(2000) == []
    session.give_back(offer, -1, cpus=1, mem=2)
    assert session.cycle(3000) == [(1, 1, 1, {"cpus": 3, "mem": 6})]


def test_a_filter_bars_only_who_refused():
    session = declined(60_000)
    session.framework(2)
    assert session.cycle(2000) == [(2, 1, 1, WHOLE)]


def test_revive_clears_a_long_filter():
    session = declined(3_600_000)
    session.allocator.step(Revive(1))
    assert session.cycle(2000) == [(1, 1, 1, WHOLE)]


def test_deactivation_clears_filters_and_stops_offers():
    session = declined(3_600_000)
    session.allocator.step(ActivateFramework(1, active=False))
    assert session.cycle(2000) == []
    session.allocator.step(ActivateFramework(1, active=True))
    assert session.cycle(3000) == [(1, 1, 1, WHOLE)]


def test_an_agent_whose_attributes_change_forgets_who_refused_it():
    session = declined(3_600_000)
    session.allocator.step(UpdateAgent(1, attributes={}))
    assert session.cycle(2000) == []
    session.allocator.step(UpdateAgent(1, attributes={"rack": "r2"}))
    assert session.cycle(3000) == [(1, 1, 1, WHOLE)]


def test_suppression_is_per_role_and_lasts_until_revive():
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1, 1, 2)
    session.allocator.step(Suppress(1, (1,)))
    assert session.cycle(1000) == [(1, 2, 1, WHOLE)]
    session.agent(2, 4, 8)
    session.allocator.step(Suppress(1))
    assert session.cycle(2000) == []
    session.allocator.step(Revive(1, (1,)))
    assert session.cycle(3000) == [(1, 1, 2, WHOLE)]


def test_a_framework_that_unsuppresses_by_update_forgets_its_refusals():
    session = declined(3_600_000)
    info = FrameworkInfo("framework-1")
    session.allocator.step(UpdateFramework(1, info, (1,), suppressed_roles=(1,)))
    assert session.cycle(2000) == []
    session.allocator.step(UpdateFramework(1, info, (1,)))
    assert session.cycle(3000) == [(1, 1, 1, WHOLE)]


def test_filters_that_others_cover_do_not_pile_up():
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    for cpus in (1, 2, 1):
        session.give_back(offer, 60_000, cpus=cpus, mem=1)
    assert len(session.state.filters) == 1
    session.give_back(offer, 60_000, cpus=0, mem=2)
    assert len(session.state.filters) == 2
    session.allocator.check()


def test_filters_beyond_the_limit_are_forgotten_and_counted():
    session = Session(limits=SessionLimits(filters=1))
    session.agent(1, 4, 8)
    session.agent(2, 4, 8)
    session.framework(1)
    for offer in session.cycle(1000):
        session.give_back(offer, 60_000)
    assert len(session.state.filters) == 1
    assert session.state.filters.forgotten == 1
    assert len(session.cycle(2000)) == 1


OTHERS = (
    UpdateFramework(1, FrameworkInfo("y"), (1, 2), (2,)),
    UpdateFramework(1, FrameworkInfo("x"), (1, 2), (1,)),
    UpdateFramework(1, FrameworkInfo("x"), (1, 2)),
    UpdateFramework(1, FrameworkInfo("x"), (2,), (2,)),
)


def test_an_update_that_says_the_same_is_not_worked_out(monkeypatch):
    """A framework may say it as often as it likes, in very many roles."""
    session, worked_out = Session(), []

    def noting(*given):
        worked_out.append(given)
        return clients.derive(*given)

    session.framework(1, 1, 2)
    monkeypatch.setattr(frameworks, "derive", noting)
    as_it_is = UpdateFramework(1, FrameworkInfo("x"), (1, 2), (2,))
    for other in OTHERS:
        for event, times in ((as_it_is, 1), (as_it_is, 0), (other, 1), (other, 0)):
            worked_out.clear()
            session.allocator.step(event)
            assert len(worked_out) == times
            table = session.state.clients
            rows = [table.row(1, role) for role in event.roles]
            suppressed = [role in event.suppressed_roles for role in event.roles]
            assert table.suppressed[rows].tolist() == suppressed
    # Nor where it suppressed a role itself, and says now that it does.
    for role, times in ((1, 0), (2, 1)):
        session.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2)))
        session.allocator.step(Suppress(1, (role,)))
        worked_out.clear()
        session.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2), (1,)))
        assert len(worked_out) == times

"""Refusals and suppression: cases that the scenarios of `tests/conformance` do not cover.

Those test the duration, the extent and the end of refusals for every policy, and
`tests/differential` compares these with a model.
"""

from allocator.core import SessionLimits, Suppress, UpdateAgent, UpdateFramework
from allocator.core.apply import clients, frameworks
from allocator.core.events import FrameworkInfo
from tests.core.session import Session


def test_an_agent_whose_attributes_change_forgets_who_refused_it():
    session = Session()
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.give_back(offer, 3_600_000)
    session.allocator.step(UpdateAgent(1, attributes={}))  # unchanged
    assert session.cycle(2000) == []
    session.allocator.step(UpdateAgent(1, attributes={"rack": "r2"}))
    assert session.cycle(3000) == [offer]


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
    assert session.cycle(2000) == [], "the framework has as many as it may"
    assert len(session.cycle(62_000)) == 2


OTHERS = (
    UpdateFramework(1, FrameworkInfo("y"), (1, 2), (2,)),
    UpdateFramework(1, FrameworkInfo("x"), (1, 2), (1,)),
    UpdateFramework(1, FrameworkInfo("x"), (1, 2)),
    UpdateFramework(1, FrameworkInfo("x"), (2,), (2,)),
)


def test_an_update_that_says_the_same_is_not_worked_out(monkeypatch):
    """A framework may suppress as often as it likes, in very many roles."""
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
    # Nor if it suppressed a role itself, and repeats that now.
    for role, times in ((1, 0), (2, 1)):
        session.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2)))
        session.allocator.step(Suppress(1, (role,)))
        worked_out.clear()
        session.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2), (1,)))
        assert len(worked_out) == times

"""Invalid events raise a named error, and change nothing."""

import copy

import numpy as np
import pytest

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddFilters,
    AddFramework,
    AgentInfo,
    Define,
    EventError,
    Exclude,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Options,
    Outcomes,
    PolicySpec,
    Release,
    RemoveAgent,
    RemoveFramework,
    Revive,
    SessionLimits,
    SetPolicy,
    SetQuota,
    Suppress,
    UpdateAllocation,
    UpdateFramework,
)
from tests.core.session import Session
from tests.tables import dense

ONE = np.array([1])
YES = np.array([True])
NO = np.array([False])


def rows(framework=1, role=1, agent=1, kind=0, amount=1000) -> Holdings:
    return Holdings(
        np.array([framework]),
        np.array([role]),
        np.array([agent]),
        np.array([kind]),
        np.array([[amount]]),
    )


BAD = [
    (Options(), "value", "options"),
    (Define(kinds={9999: Kind("x")}), "limit", "kinds"),
    (Define(kinds={0: Kind("other")}), "handle", "kinds"),
    (Define(roles={0: "x"}), "limit", "roles"),
    (Define(roles={1: "x"}), "handle", "roles"),
    (Define(roles={3: "a"}), "handle", "roles"),
    (Define(roles={3: "x/y"}), "handle", "roles"),
    (Define(roles={3: "a//b"}), "value", "roles"),
    (AddAgent(1, AgentInfo("x"), {}), "handle", "agent"),
    (AddAgent(0, AgentInfo("x"), {}), "limit", "agent"),
    (AddAgent(2, AgentInfo("x"), {7: 1}), "handle", "capacity"),
    (RemoveAgent(7), "handle", "agent"),
    (ActivateAgent(7, active=True), "handle", "agent"),
    (AddFramework(1, FrameworkInfo("x"), (1,)), "handle", "framework"),
    (AddFramework(2, FrameworkInfo("x"), (7,)), "handle", "roles"),
    (AddFramework(2, FrameworkInfo("x"), (1,), (2,)), "value", "suppressed_roles"),
    (UpdateFramework(7, FrameworkInfo("x"), (1,)), "handle", "framework"),
    (RemoveFramework(7), "handle", "framework"),
    (ActivateFramework(7, active=True), "handle", "framework"),
    (Suppress(1, (2,)), "handle", "roles"),
    (Revive(7), "handle", "framework"),
    (Hold(rows(agent=7)), "handle", "holdings.agent"),
    (Hold(rows(role=7)), "handle", "holdings.role"),
    (Hold(rows(framework=0)), "limit", "holdings.framework"),
    (Hold(rows(kind=7)), "handle", "holdings.kind"),
    (Release(rows(amount=5000), np.array([-1]), NO), "books", "released.amount[0]"),
    (AddFilters(rows(agent=7), ONE), "handle", "refused"),
    (Exclude(ONE, np.array([2]), ONE, YES), "handle", "framework[0]"),
    (UpdateAllocation(1, 1, 1, {0: 5000}, {}), "books", "consumed"),
    (UpdateAllocation(0, 0, 1, {0: 50_000}, {}), "books", "consumed"),
    (SetPolicy(PolicySpec("no such policy")), "value", "policy"),
    (Outcomes.all_or_nothing(7, YES), "value", "first_decision"),
    (SetQuota("a/b", {"cpus": 1}, {}), "value", "guarantees"),
    (SetQuota("a", {"cpus": 2}, {"cpus": 1}), "value", "guarantees"),
]


def session() -> Session:
    made = Session(limits=SessionLimits(agents=100, frameworks=100))
    made.agent(1, 4, 8)
    made.framework(1, 1)
    made.allocator.step(Hold(rows(amount=2000)))
    return made


def fingerprint(state) -> list:
    books = state.ledger.books
    return [
        books.held[:, state.ledger.rows()].tolist(),
        state.agents.capacity.tolist(),
        state.agents.bound.tolist(),
        state.agents.active.tolist(),
        state.frameworks.bound[:8].tolist(),
        state.clients.framework.tolist(),
        state.clients.suppressed.tolist(),
        list(state.roles.path),
        state.roles.weight[:4].tolist(),
        [kind and kind.name for kind in state.space.kinds],
        len(state.filters),
        dense(state.eligibility.excluded).tolist(),
        copy.deepcopy(state.settings),
    ]


@pytest.mark.parametrize(
    ("event", "kind", "field"), BAD, ids=lambda value: str(value)[:60].replace(" ", "")
)
def test_a_bad_event_is_named_and_changes_nothing(event, kind: str, field: str):
    made = session()
    before = fingerprint(made.state)
    with pytest.raises(EventError) as caught:
        made.allocator.step(event)
    assert (caught.value.kind, caught.value.field) == (kind, field)
    assert len(caught.value.message) > 15
    assert fingerprint(made.state) == before
    made.allocator.check()


def test_a_bulk_release_with_one_bad_row_releases_nothing():
    made = session()
    made.agent(2, 4, 8)
    made.allocator.step(Hold(rows(agent=2)))
    good, bad = rows(amount=2000), rows(agent=2, amount=1001)
    both = Holdings(
        np.concatenate([good.framework, bad.framework]),
        np.concatenate([good.role, bad.role]),
        np.concatenate([good.agent, bad.agent]),
        good.kind,
        np.concatenate([good.amount, bad.amount]),
    )
    before = fingerprint(made.state)
    with pytest.raises(EventError):
        made.allocator.step(Release(both, np.array([-1, -1]), np.array([True, True])))
    assert fingerprint(made.state) == before


def test_a_clock_that_runs_backwards_is_refused():
    made = session()
    made.allocator.advance(1000)
    with pytest.raises(EventError, match="backwards"):
        made.allocator.allocate(999)

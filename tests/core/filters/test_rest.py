"""The rest: kinds beyond the limit are offered as a whole, to one framework after the other."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    DEMAND_LABEL,
    ActivateFramework,
    AddAgent,
    AgentInfo,
    Define,
    Kind,
    Outcomes,
    PolicySpec,
    Reason,
    RemoveAgent,
    Revive,
    SetQuota,
    UpdateAgent,
)
from allocator.core.apply.holdings import REST_REFUSED_MS
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.core.filters import rest_kind_filters
from allocator.core.filters.rest_kind_filters import RestKindFilters
from tests.core.session import Session

DISK, GPUS = 2, 3
RESTS = {DISK: Kind("disk", rest=True), GPUS: Kind("gpus", rest=True)}


def session_with(*agents, frameworks=2, **settings) -> Session:
    """Agents with these amounts of CPUs and of the rest of disk; frameworks in role a."""
    session = Session(patience_cycles=0, **settings)
    session.allocator.step(Define(kinds=RESTS))
    for handle, (cpus, disk) in enumerate(agents, 1):
        capacity = {0: cpus * 1000, 1: cpus * 1_000_000, DISK: disk * 1000}
        session.allocator.step(AddAgent(handle, AgentInfo(f"agent-{handle}"), capacity))
    for framework in range(1, frameworks + 1):
        session.framework(framework)
    return session


def settle(session, made, given):
    """Report that each decision became an offer of `given` units of disk and no CPUs."""
    count = len(made)
    reason = np.full(count, Reason.PARTIAL if given else Reason.NOTHING_AVAILABLE)
    amount = np.full((count if given else 0, 1), given * 1000, np.int64)
    kind = np.array([DISK])
    session.allocator.step(Outcomes(made.first_decision, reason, kind, amount))
    session.allocator.check()


def asked(session, now_ms, given=0):
    """Frameworks offered the rest of agent 1 in one cycle; unused decisions are returned."""
    made = session.allocator.allocate(now_ms)
    assert session.allocator.last_cycle.policy_error == ""
    columns = made.kind.tolist()
    disk = made.amount[:, columns.index(DISK)] if DISK in columns else np.zeros(len(made), int)
    rows = np.flatnonzero((disk > 0) & (made.agent == 1))
    settle(session, made, given)
    return [(int(made.framework[row]), int(disk[row]) // 1000) for row in rows]


def test_the_rest_is_offered_whole_to_each_client_in_turn_and_then_not_at_all():
    session = session_with((4, 9), frameworks=3)
    found = [asked(session, 1000 * cycle) for cycle in range(1, 7)]
    assert sorted(each for one in found for each in one) == [(1, 9), (2, 9), (3, 9)]
    assert found[3:] == [[], [], []]


def test_after_a_while_all_are_asked_again():
    session = session_with((4, 9), frameworks=1)
    assert asked(session, 1000) == [(1, 9)]
    assert asked(session, 1000 + REST_REFUSED_MS) == []
    assert asked(session, 1001 + REST_REFUSED_MS) == [(1, 9)]


def test_a_client_that_got_a_part_of_the_rest_is_offered_what_is_left():
    session = session_with((4, 9), frameworks=1)
    assert asked(session, 1000, given=4) == [(1, 9)]
    assert asked(session, 2000) == [(1, 5)]
    assert asked(session, 3000) == []


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_everything_else_of_the_agent_is_offered_on(mode):
    """A framework excluded from the rest is not excluded from the agent."""
    session = session_with((4, 9), frameworks=1, policy=PolicySpec("drf", mode=mode))
    assert asked(session, 1000) == [(1, 9)]
    made = session.allocator.allocate(2000)
    assert made.kind.tolist() == [0, 1]
    assert made.amount.tolist() == [[4000, 4_000_000]]


def test_the_rest_does_not_count_against_limits():
    """Only the module knows its composition, and bounds it."""
    session = session_with((4, 9), frameworks=1)
    session.allocator.step(SetQuota("a", {}, {"disk": 1000}))
    assert asked(session, 1000) == [(1, 9)]


def again(session):
    """Update the agent with the same capacity and other attributes."""
    session.allocator.step(UpdateAgent(1, attributes={"rack": "other"}))


def replace_agent(session):
    session.allocator.step(RemoveAgent(1))
    session.allocator.step(AddAgent(1, AgentInfo("new"), {0: 4000, DISK: 9000}))


LIFTED = {
    "the framework revives": lambda session: session.allocator.step(Revive(1)),
    "the framework drops out": lambda session: (
        session.allocator.step(ActivateFramework(1, active=False)),
        session.allocator.step(ActivateFramework(1, active=True)),
    ),
    "the agent is another one": again,
    "the agent is replaced": replace_agent,
    "there is more of it": lambda session: session.allocator.step(
        UpdateAgent(1, capacity={0: 4000, 1: 4_000_000, DISK: 10_000})
    ),
}


@pytest.mark.parametrize("lift", LIFTED)
def test_events_that_remove_filters_remove_those_of_the_rest(lift):
    session = session_with((4, 9), (4, 9), frameworks=1)
    assert [len(asked(session, now_ms)) for now_ms in (1000, 2000)] == [1, 0]
    LIFTED[lift](session)
    assert len(asked(session, 3000)) == 1
    assert asked(session, 4000) == []


def test_one_agent_s_refusal_is_not_another_s():
    session = session_with((4, 9), (4, 9), frameworks=1)
    assert asked(session, 1000) == [(1, 9)]
    session.allocator.step(AddAgent(3, AgentInfo("late"), {0: 4000, DISK: 9000}))
    made = session.allocator.allocate(2000)
    disk = made.amount[:, made.kind.tolist().index(DISK)]
    assert made.agent[disk > 0].tolist() == [3]


def test_two_plain_kinds_of_a_name_are_both_offered():
    """Ranges on one agent and sets on another: the module reports two kinds of the same form."""
    session = Session()
    session.allocator.step(Define(kinds={2: Kind("p", scalar=False), 3: Kind("p", scalar=False)}))
    for agent in (1, 2):
        capacity = {0: 4000, 1: 4_000_000, 1 + agent: 5000}
        session.allocator.step(AddAgent(agent, AgentInfo(f"agent-{agent}"), capacity))
    session.framework(1)
    made = session.allocator.allocate(1000)
    assert session.allocator.last_cycle.policy_error == ""
    assert made.kind.tolist() == [0, 1, 2, 3]
    assert made.amount[:, 2:].sum(axis=1).tolist() == [5000, 5000]


actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.integers(1, 3),
            st.integers(1, 3),
            st.integers(0, 1),
            st.integers(1, 5),
            st.integers(0, 30),
        ),
        st.tuples(st.just("expire"), st.integers(0, 30)),
        st.tuples(st.just("drop_agent"), st.integers(1, 3)),
        st.tuples(st.just("drop_client"), st.integers(1, 3)),
        st.tuples(st.just("restore")),
    ),
    max_size=30,
)


@given(actions)
def test_refusals_beside_a_plain_dictionary(script):
    refusals = RestKindFilters()
    twin: dict[tuple[int, int, int], tuple[int, int]] = {}
    for name, *arguments in script:
        before, touched = set(twin), None
        if name == "restore":
            refusals = restore(to_columns(Detached(refusals).value), RestKindFilters())
        else:
            touched = getattr(refusals, name)(*arguments)
        match name, arguments:
            case "add", (client, agent, kind, amount, expires_ms):
                twin[agent, client, kind] = amount, expires_ms
            case "expire", (now_ms,):
                twin = {key: row for key, row in twin.items() if row[1] >= now_ms}
            case "drop_agent", (agent,):
                twin = {key: row for key, row in twin.items() if key[0] != agent}
            case "drop_client", (client,):
                twin = {key: row for key, row in twin.items() if key[1] != client}
        if touched is not None:
            assert touched == sorted({agent for agent, _, _ in before - set(twin)})
        assert len(refusals) == len(twin)
        assert set(refusals) == {agent for agent, _, _ in twin}
        for agent, kind, free in ((a, k, f) for a in (1, 2, 3) for k in (0, 1) for f in (1, 3, 6)):
            expected = {
                c
                for (a, c, k), (amount, _) in twin.items()
                if (a, k) == (agent, kind) and free <= amount
            }
            assert set(refusals.clients(agent, kind, free)) == expected


def calls(function: Callable[[], object]) -> int:
    """Number of calls while a function runs, of Python and C functions."""
    made = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return made


def test_removing_refusals_does_not_search_those_of_others():
    """However much others refuse: a framework may refuse all agents, in all of its roles."""
    refusals = RestKindFilters()
    for client, agent in ((c, a) for c in range(1, 101) for a in range(1, 31)):
        refusals.add(client, agent, 0, 5, 1000 + client)
    assert calls(lambda: refusals.drop_client(200)) < 50
    assert calls(lambda: refusals.drop_client(50)) < 30 * 10
    assert calls(lambda: refusals.expire(1001)) < 50
    assert calls(lambda: refusals.expire(1002)) < 30 * 20
    assert len(refusals) == 98 * 30


def test_ends_of_what_is_gone_are_bounded():
    refusals = RestKindFilters()
    for turn in range(1000):
        refusals.add(turn % 7, turn % 5, 0, 5, 10**6 + turn)
        refusals.add(1, 1, 0, 5, 10**6 - turn)
        if turn % 3 == 0:
            refusals.drop_client(turn % 7)
        assert len(refusals._index.ends) <= 2 * len(refusals) + 64
    refusals.expire(10**7)
    assert not len(refusals)


def test_refusals_have_a_bound(monkeypatch):
    """A forgotten framework is asked again."""
    monkeypatch.setattr(rest_kind_filters, "REFUSALS_MAX", 2)
    refusals = RestKindFilters()
    for client in range(1, 5):
        refusals.add(client, 1, 0, 5, 100)
    assert len(refusals) == 2
    refusals.drop_client(1)
    refusals.add(9, 1, 0, 5, 100)
    assert sorted(refusals.clients(1, 0, 5)) == [2, 9]


def test_a_task_that_only_fits_the_rest_does_not_wait():
    """The composition of the rest is unknown, so it is not counted in tasks."""
    session = session_with((4, 9), frameworks=0, policy=PolicySpec("drf", mode="characterised"))
    session.framework(1, labels={DEMAND_LABEL: "disk:5"})
    for cycle in range(1, 5):
        asked(session, 1000 * cycle)
    assert session.state.clients.waited[session.state.clients.row(1, 1)] == 0

"""Answers in groups and in parts: complete, of bounded size, and checked by the module."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import core
from allocator.core import AddAgent, AddFramework, AgentInfo, Decisions, Define, FrameworkInfo, Kind
from allocator.core.cycle.decisions import one_table
from allocator.v1 import session_pb2 as pb
from allocator.v1.types_pb2 import Holdings
from allocator.wire import PROTOCOL_VERSION, Greeting, WireError, write_decisions
from allocator.wire.codec.encode import BYTES_LEAST, BYTES_MAX, GANG_DECISIONS_MAX
from laboratory.module_protocol import BadSidecarError, ModuleSession, read_decisions
from tests.wire import strategies
from tests.wire.dialogue import WELCOME, Module, new_sidecar
from tests.wire.opening import read_hello
from tests.wire.strategies import same


@given(strategies.decisions(), st.integers(300, 3000))
def test_parts_hold_what_was_decided_and_stay_small(decisions: Decisions, bytes_max: int) -> None:
    parts = write_decisions(7, decisions, bytes_max)
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]
    due = decisions.first_decision
    groups: list[core.Holdings] = []
    gangs, ends = [], []
    for part in parts:
        assert (part.sequence, part.cycle, part.first_decision) == (7, decisions.cycle, due)
        rows = sum(len(group.framework) for group in part.grants)
        assert part.ByteSize() <= bytes_max - bytes_max // 8 or rows == 1
        read = read_decisions(part)
        gangs += [(due - decisions.first_decision + first, n) for first, n in read.gangs]
        due += rows
        ends.append(due - decisions.first_decision)
        groups += read.groups
    assert due == decisions.first_decision + len(decisions)
    assert same(one_table(groups), decisions.together)
    # A gang whose decisions are in several parts is offered one by one.
    whole = [each for each in decisions.gangs if not any(each[0] < e < sum(each) for e in ends)]
    assert gangs == whole


def test_a_gang_that_is_too_large_to_be_judged_at_once_is_not_named() -> None:
    rows = 2 * GANG_DECISIONS_MAX
    group = Holdings(framework=[1] * rows, role=[1] * rows, agent=[9] * rows, kind=[0])
    group.amount.extend([1] * rows)
    decisions = read_decisions(pb.DecisionBatch(cycle=1, first_decision=1, grants=[group]))
    gangs = ((0, GANG_DECISIONS_MAX - 1), (GANG_DECISIONS_MAX - 1, GANG_DECISIONS_MAX + 1))
    (part,) = write_decisions(1, replace(decisions, gangs=gangs))
    assert read_decisions(part).gangs == gangs[:1]


@pytest.mark.parametrize(
    ("first", "count", "said"),
    [
        ([0], [], "gangs.count: has 0 rows, first 1"),
        ([0, 1], [2, 1], r"gangs.first\[1\]: is 1"),
        ([0], [0], r"gangs.first\[0\]: is 0"),
        ([2], [2], r"gangs.first\[0\]: is 2"),
    ],
)
def test_the_emulated_module_refuses_gangs_that_overlap_or_lie_outside(first, count, said) -> None:
    group = Holdings(framework=[1] * 3, role=[1] * 3, agent=[9] * 3, kind=[0], amount=[1] * 3)
    batch = pb.DecisionBatch(cycle=1, first_decision=1, grants=[group])
    batch.gangs.first.extend(first)
    batch.gangs.count.extend(count)
    with pytest.raises(WireError, match=said):
        read_decisions(batch)


def test_small_answers_are_not_divided() -> None:
    whole = Holdings(framework=[1] * 5000, role=[1] * 5000, agent=[9] * 5000, kind=[0], amount=[1])
    whole.amount.extend([1] * 4999)
    batch = pb.DecisionBatch(cycle=1, first_decision=1, grants=[whole])
    decisions = read_decisions(batch)
    assert len(write_decisions(1, decisions)) == 1
    assert len(write_decisions(1, decisions, 16_000)) == 2


def answer(first: int, *, more: bool, **changed) -> pb.SessionResponse:
    group = Holdings(framework=[1], role=[1], agent=[first], kind=[0], amount=[1000])
    usual = {"sequence": 1, "cycle": 1, "first_decision": first, "grants": [group], "more": more}
    return pb.SessionResponse(decisions=pb.DecisionBatch(**{**usual, **changed}))


def asked(bytes_max: int = BYTES_MAX) -> ModuleSession:
    """A module that waits for the answer to its first batch."""
    client = ModuleSession(Greeting("master", "instance", 1, message_bytes_max=bytes_max))
    client.hello()
    client.receive(pb.SessionResponse(welcome=WELCOME))
    list(client.snapshot([], sequence=0, clock_ms=0))
    client.batch(1, cycle=True)
    return client


def test_the_module_takes_part_after_part() -> None:
    client = asked()
    for first in (1, 2, 3):
        made = client.receive(answer(first, more=first < 3))
        assert isinstance(made, Decisions)
        assert made.first_decision == first
        assert client.more == (first < 3)
        assert client.answered == (first == 3)
        assert client.unsettled == first


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (answer(2, more=False, sequence=2), "an answer to batch 2; 1 is due"),
        (answer(2, more=False, cycle=2), "cycle 2 in the answer to batch 1"),
        (answer(3, more=False), "decision 3 comes where 2 is due"),
        (answer(2, more=True, grants=[]), "a part of the answer to batch 1 is empty"),
        (answer(2, more=False, grants=[Holdings(kind=[1])]), r"grants\[0\].framework: is empty"),
    ],
)
def test_parts_that_do_not_fit_end_the_session(second: pb.SessionResponse, said: str) -> None:
    client = asked()
    client.receive(answer(1, more=True))
    with pytest.raises(BadSidecarError, match=said):
        client.receive(second)


def test_a_message_that_the_module_does_not_read_ends_the_session() -> None:
    client = asked(BYTES_LEAST)
    group = Holdings(framework=[1] * 20_000, role=[1] * 20_000, agent=[1] * 20_000, kind=[0])
    group.amount.extend([1] * 20_000)
    with pytest.raises(BadSidecarError, match="this module reads 65536"):
        client.receive(answer(1, more=False, grants=[group]))


def test_a_module_must_read_enough() -> None:
    hello = pb.Hello(protocol_version=PROTOCOL_VERSION, instance_id="i", message_bytes_max=1000)
    hello.options.allocation_interval_ms = 1000
    with pytest.raises(WireError, match="message_bytes_max: is 1000; it must be from 65536"):
        read_hello(hello)
    hello.message_bytes_max = 0
    assert read_hello(hello).message_bytes_max == BYTES_MAX


def test_a_large_answer_comes_in_parts_and_is_settled_as_one() -> None:
    agents, own = 9000, 3
    module = Module(new_sidecar())
    module.client = ModuleSession(Greeting("master", "i", 1, message_bytes_max=BYTES_LEAST))
    kinds = {0: Kind("cpus"), 1: Kind("mem")}
    capacity = [
        {0: 4000 + agent, 1: 8_192_000} if agent % own else {0: 1000} for agent in range(agents)
    ]
    state: list[core.Event] = [
        Define(kinds, {1: "eng"}),
        AddFramework(1, FrameworkInfo("spark"), (1,)),
        *(AddAgent(1 + row, AgentInfo(f"a{row}"), each) for row, each in enumerate(capacity)),
    ]
    module.begin(state)
    said = module.tell(module.client.batch(2000, cycle=True))
    assert len(said) > 1
    parts = [part for part in said if isinstance(part, Decisions)]
    groups = [group for part in parts for group in part.groups]
    assert [group.kind.tolist() for part in parts[:1] for group in part.groups] == [[0]]
    assert {tuple(group.kind.tolist()) for group in groups} == {(0,), (0, 1)}
    whole = one_table(groups)
    found = dict(zip(whole.agent.tolist(), whole.amount.tolist(), strict=True))
    assert found == {1 + row: [each[0], each.get(1, 0)] for row, each in enumerate(capacity)}
    assert module.client.unsettled == agents
    offered = np.full(agents, pb.OUTCOME_REASON_OFFERED)
    none = np.empty(0, np.int64)
    module.batch(module.client.outcomes(offered, none, none.reshape(0, 0)))
    module.sidecar.allocator.check()
    assert not len(module.sidecar.allocator.state.open_decisions)


def test_many_kinds_are_sent_agent_by_agent() -> None:
    """Reservations differ from agent to agent, so nearly each decision is a group."""
    agents, kinds, each = 720, 120, 30
    module = Module(new_sidecar())
    module.client = ModuleSession(Greeting("master", "i", 1, message_bytes_max=BYTES_LEAST))
    known = {kind: Kind(f"r{kind}", reserved_role="eng", depth=1) for kind in range(kinds)}
    capacity = [
        {(row + kind) % kinds: 1000 * (1 + row + kind) for kind in range(each)}
        for row in range(agents)
    ]
    state: list[core.Event] = [
        Define(known, {1: "eng"}),
        AddFramework(1, FrameworkInfo("spark", minimum={1: ()}), (1,)),
        *(AddAgent(1 + row, AgentInfo(f"a{row}"), one) for row, one in enumerate(capacity)),
    ]
    module.begin(state)
    said = module.tell(module.client.batch(2000, cycle=True))
    groups = [group for part in said if isinstance(part, Decisions) for group in part.groups]
    assert len(said) > 1
    assert len({tuple(group.kind.tolist()) for group in groups}) == kinds
    found = {
        agent: dict(zip(group.kind.tolist(), amounts, strict=True))
        for group in groups
        for agent, amounts in zip(group.agent.tolist(), group.amount.tolist(), strict=True)
    }
    assert found == {1 + row: one for row, one in enumerate(capacity)}

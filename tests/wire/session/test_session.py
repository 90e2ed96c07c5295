"""The sidecar's side of a session: every rule, and the error for each violation."""

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AddAgents,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Hold,
    Kind,
    Outcomes,
    Policy,
    Release,
    RemoveAgent,
    SessionLimits,
    Settings,
    Transition,
)
from allocator.policies import build, substitute
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, SessionCounts, SessionState, SidecarSession
from allocator.wire.session.sidecar_session import LAST_SNAPSHOT, TRANSITIONS
from laboratory.module_protocol import write_hello
from tests.wire.dialogue import (
    POLICY,
    STATE,
    WELCOME,
    Module,
    declined,
    holding,
    new_sidecar,
)
from tests.wire.strategies import same
from tests.world.rows import holdings_of
from tests.world.world import World

MESSAGES = {
    "hello": pb.SessionRequest(hello=write_hello(Greeting("master", "instance", 1))),
    "snapshot": pb.SessionRequest(snapshot=pb.SnapshotChunk()),
    LAST_SNAPSHOT: pb.SessionRequest(snapshot=pb.SnapshotChunk(last=True, sequence=4)),
    "events": pb.SessionRequest(events=pb.EventBatch(sequence=5)),
}

WAY_TO = {
    SessionState.AWAITING_HELLO: [],
    SessionState.SNAPSHOT: ["hello"],
    SessionState.STREAMING: ["hello", LAST_SNAPSHOT],
}


def new_session(
    policy: Policy | None = None, counts: SessionCounts | None = None
) -> SidecarSession:
    def admit(_greeting: Greeting) -> Allocator:
        return Allocator(
            lambda spec: policy or build(spec),
            Settings(policy=POLICY),
            substitute=policy or substitute(),
        )

    return SidecarSession(admit, WELCOME, counts)


@pytest.mark.parametrize("state", WAY_TO)
@pytest.mark.parametrize("said", MESSAGES)
def test_only_what_the_table_allows_may_be_said(state, said):
    session = new_session()
    for step in WAY_TO[state]:
        session.receive(MESSAGES[step])
    assert session.state is state
    answers = session.receive(MESSAGES[said].SerializeToString())
    if (state, said) in TRANSITIONS:
        assert session.state is TRANSITIONS[state, said]
        assert not any(answer.HasField("error") for answer in answers)
    else:
        assert session.state is SessionState.CLOSED
        (answer,) = answers
        assert answer.error.code == pb.ERROR_CODE_PROTOCOL
        assert answer.error.message == f"the module said {said}; it must say {state.value} now"


def test_after_the_end_nothing_is_answered():
    session = new_session()
    assert session.receive(b"\xff")[0].error.code == pb.ERROR_CODE_PROTOCOL
    for message in MESSAGES.values():
        assert session.receive(message) == []


@pytest.mark.parametrize("data", [b"", b"\xfa\x01\x01a"], ids=["no bytes", "an unknown field"])
def test_a_message_that_holds_nothing_is_refused(data):
    (answer,) = new_session().receive(data)
    assert answer.error.code == pb.ERROR_CODE_PROTOCOL
    assert "nothing that this sidecar knows" in answer.error.message


def test_bytes_that_do_not_parse_are_refused():
    """A truncated hello."""
    (answer,) = new_session().receive(b"\x0a\x05abc")
    assert answer.error.code == pb.ERROR_CODE_PROTOCOL
    assert answer.error.message.startswith("5 bytes are not a SessionRequest")


def test_a_batch_without_a_cycle_is_answered_too():
    """So that the module can distinguish an idle sidecar from a hung one."""
    module = Module(new_sidecar()).begin()
    answer = module.batch()
    assert (answer.cycle, answer.first_decision, len(answer)) == (0, 1, 0)


def test_decisions_are_numbered_through_the_session():
    module = Module(new_sidecar()).begin()
    first = module.batch(cycle=True)
    assert (first.cycle, first.first_decision) == (1, 1)
    assert first.agent.tolist() == [1, 2]
    back = declined(first, refuse_ms=-1)
    second = module.batch(module.all_offered(first), back, cycle=True)
    assert (second.cycle, second.first_decision, len(second)) == (2, 3, 2)


def test_a_cycle_may_be_asked_for_some_agents():
    module = Module(new_sidecar()).begin()
    assert module.batch(cycle=True, agents=[2]).agent.tolist() == [2]


def test_the_snapshots_sequence_counts_as_the_batch_before_the_first():
    sidecar = new_sidecar()
    module = Module(sidecar).begin(sequence=41)
    module.batch()
    assert module.client.sequence == 42
    assert sidecar.session is not None
    assert sidecar.session.sequence == 42


@pytest.mark.parametrize("sequence", [0, 1, 3, 2**60])
def test_a_missing_or_repeated_batch_is_refused(sequence):
    module = Module(new_sidecar()).begin()
    module.batch()
    (answer,) = module.say(pb.SessionRequest(events=pb.EventBatch(sequence=sequence)))
    assert answer.error == pb.Error(
        code=pb.ERROR_CODE_SEQUENCE,
        field="sequence",
        message=f"is {sequence}; it must be 2, send a new snapshot",
        sequence=1,
    )


def test_a_clock_that_runs_backwards_is_refused():
    module = Module(new_sidecar()).begin()
    module.batch()
    module.clock_ms = 0
    error = module.refused()
    assert (error.code, error.field) == (pb.ERROR_CODE_VALUE, "clock_ms")


def test_agents_without_a_cycle_are_refused():
    error = Module(new_sidecar()).begin().refused(agents=[1])
    assert (error.code, error.field) == (pb.ERROR_CODE_VALUE, "agents")


REFUSALS = [
    (RemoveAgent(7), pb.ERROR_CODE_HANDLE, "remove_agent.agent"),
    (AddAgent(1, AgentInfo("again"), {}), pb.ERROR_CODE_HANDLE, "add_agent.agent"),
    (AddAgent(3, AgentInfo("a"), {7: 1}), pb.ERROR_CODE_HANDLE, "add_agent.capacity"),
    (Define({5: Kind("x")}), pb.ERROR_CODE_LIMIT, "define.kinds"),
    (Define({2**32 - 1: Kind("x")}), pb.ERROR_CODE_LIMIT, "define.kinds"),
    (AddFramework(3, FrameworkInfo("x"), (9,)), pb.ERROR_CODE_HANDLE, "add_framework.roles"),
    (
        Outcomes(1, np.array([1]), np.empty(0, np.int64), np.empty((0, 0), np.int64)),
        pb.ERROR_CODE_VALUE,
        "outcomes.first_decision",
    ),
    (Hold(holding(1, 1, 7, cpus=1)), pb.ERROR_CODE_HANDLE, "hold.agent"),
    (Hold(holding(1, 1, 1, cpus=-1)), pb.ERROR_CODE_VALUE, "hold.amount[0]"),
    (
        Release(holding(1, 1, 1, cpus=1), np.array([0]), np.array([False])),
        pb.ERROR_CODE_BOOKS,
        "release.released.amount[0]",
    ),
]


@pytest.mark.parametrize(("event", "code", "field"), REFUSALS)
def test_errors_of_the_core_name_fields_of_the_protocol(event, code, field):
    module = Module(new_sidecar(limits=SessionLimits(agents=8, kinds=4))).begin()
    error = module.refused(Hold(holding(1, 1, 1, mem=1)), event)
    assert (error.code, error.field) == (code, f"events[1].{field}")
    assert error.sequence == 0


def test_of_many_events_the_wrong_one_is_named():
    """Also if they are read together as columns."""
    module = Module(new_sidecar()).begin()
    rows = [Hold(holding(1, 1, 1 if number != 7 else 9, cpus=1)) for number in range(20)]
    error = module.refused(*rows)
    assert (error.code, error.field) == (pb.ERROR_CODE_HANDLE, "events[7].hold.agent")


def test_an_unknown_event_is_refused():
    module = Module(new_sidecar()).begin()
    batch = pb.EventBatch(sequence=1, clock_ms=2000, events=[pb.Event()])
    (answer,) = module.say(pb.SessionRequest(events=batch))
    assert (answer.error.code, answer.error.field) == (pb.ERROR_CODE_PROTOCOL, "events[0]")


def test_a_wrong_snapshot_is_refused():
    module = Module(new_sidecar())
    module.tell(module.client.hello())
    requests = list(module.client.snapshot([*STATE, STATE[-1]], sequence=1, clock_ms=1))
    answers = [answer for request in requests for answer in module.say(request)]
    assert answers[0].error.field == "agents[2].agent"
    assert answers[0].error.code == pb.ERROR_CODE_HANDLE


def test_agents_of_a_snapshot_that_have_the_same_kinds_are_added_together(monkeypatch):
    stepped = []
    step = Allocator.step

    def noted(self, event):
        stepped.append(event)
        return step(self, event)

    monkeypatch.setattr(Allocator, "step", noted)
    world = World(POLICY)
    world.bind("cpus", "mem", roles=("eng",))
    world.framework("eng")
    for has in ("cpus:4;mem:8", "cpus:3;mem:9", "cpus:2", "cpus:1;mem:1"):
        world.agent(has)
    # One by one they are different events, with the same decisions.
    together, alone = Module(new_sidecar()), Module(new_sidecar())
    together.begin(world.told)
    assert [len(each.agent) for each in stepped if isinstance(each, AddAgents)] == [2]
    alone.begin(world.told[:-4])
    for event in world.told[-4:]:
        alone.batch(event)
    decided = [holdings_of(module.batch(cycle=True)) for module in (together, alone)]
    assert sorted(decided[0].agent.tolist()) == [1, 2, 3, 4]
    assert same(*decided)


def test_a_paused_snapshot_holds_decisions_back():
    module = Module(new_sidecar())
    module.tell(module.client.hello())
    for request in module.client.snapshot(STATE, sequence=0, clock_ms=1, paused=True):
        module.say(request)
    assert len(module.batch(cycle=True)) == 0


class Defective:
    """A policy that raises an exception other than the core's own."""

    def allocate(self, snapshot, seed):
        raise ZeroDivisionError("a defect")


def test_a_policy_that_fails_ends_no_session():
    """DRF decides instead, and the failure is counted."""
    counts = SessionCounts()
    session = new_session(counts=counts)
    session.receive(MESSAGES["hello"])
    allocator = session._allocator
    assert allocator is not None
    allocator._policy = Defective()
    for event in STATE:
        allocator.step(event)
    session.receive(MESSAGES[LAST_SNAPSHOT])
    (answer,) = session.receive(
        pb.SessionRequest(events=pb.EventBatch(sequence=5, clock_ms=1, cycle=True))
    )
    assert len(answer.decisions.grants[0].agent) == 2
    assert counts.policy_errors == 1
    assert counts.policy_error.startswith("ZeroDivisionError: a defect at ")


def test_a_defect_of_ours_ends_the_session_only():
    """The policy and its replacement both fail: the next session starts again."""
    session = new_session(policy=Defective())
    for said in ("hello", LAST_SNAPSHOT):
        session.receive(MESSAGES[said])
    allocator = session._allocator
    assert allocator is not None
    for event in STATE:
        allocator.step(event)
    (answer,) = session.receive(
        pb.SessionRequest(events=pb.EventBatch(sequence=5, clock_ms=1, cycle=True))
    )
    assert answer.error.code == pb.ERROR_CODE_INTERNAL
    assert "ZeroDivisionError" in answer.error.message
    assert isinstance(session.failure, ZeroDivisionError)
    assert session.state is SessionState.CLOSED


def test_outcomes_are_counted():
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    decisions = module.batch(cycle=True)
    partial = np.array([pb.OUTCOME_REASON_PARTIAL, pb.OUTCOME_REASON_FILTERED])
    outcomes = module.client.outcomes(partial, np.array([0]), np.array([[500]]))
    module.batch(outcomes, *[Transition(holding(1, 1, 1, cpus=100))] * 3)
    module.refused(RemoveAgent(9))
    counts = sidecar.counts
    assert len(decisions) == 2
    assert (counts.batches, counts.cycles, counts.decisions, counts.messages) == (2, 1, 2, 5)
    assert counts.events == {"outcomes": 1, "transition": 3}
    assert counts.outcomes == {"partial": 1, "filtered": 1}
    assert counts.errors == {"handle": 1}
    assert counts.sessions_closed == {"handle": 1}
    assert counts.sessions_opened == 1


def test_the_welcome_says_who_answers():
    (answer,) = new_session().receive(MESSAGES["hello"])
    assert answer.welcome == WELCOME

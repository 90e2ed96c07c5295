"""The module's side of a session: what it may send when, and which answers it accepts."""

import numpy as np
import pytest

from allocator.core import Decisions
from allocator.v1 import session_pb2 as pb
from allocator.v1.types_pb2 import Holdings
from allocator.wire import Greeting
from laboratory.module_protocol import (
    BadSidecarError,
    ModuleSession,
    ModuleState,
    SessionEndedError,
)
from tests.wire.dialogue import STATE, WELCOME, Module, declined, new_sidecar

NONE = np.empty(0, np.int64)


def streaming(sequence: int = 0) -> ModuleSession:
    client = ModuleSession(Greeting("master", "instance", 1))
    client.hello()
    client.receive(pb.SessionResponse(welcome=WELCOME))
    list(client.snapshot(STATE, sequence=sequence, clock_ms=1))
    return client


def decisions(sequence: int, cycle: int = 0, first: int = 1, rows: int = 0) -> pb.SessionResponse:
    batch = pb.DecisionBatch(sequence=sequence, cycle=cycle, first_decision=first)
    for _ in range(rows):
        batch.grants.add(framework=[1], role=[1], agent=[1], kind=[0], amount=[1000])
    return pb.SessionResponse(decisions=batch)


def test_a_session_runs_its_course():
    module = Module(new_sidecar()).begin(sequence=5)
    offers = module.batch(cycle=True)
    assert module.client.unsettled == len(offers) == 2
    module.batch(module.all_offered(offers), declined(offers, -1))
    assert module.client.unsettled == 0
    assert (module.client.sequence, module.client.answered) == (7, 7)
    assert module.batch(cycle=True).first_decision == 3


def test_batches_may_overtake_answers():
    client = streaming()
    client.batch(1, cycle=True)
    client.batch(2)
    client.batch(3, cycle=True)
    client.receive(decisions(1, cycle=1, rows=2))
    assert (client.sequence, client.answered) == (3, 1)
    client.receive(decisions(2, first=3))
    client.receive(decisions(3, cycle=2, first=3, rows=1))
    assert (client.answered, client.unsettled) == (3, 3)


def test_outcomes_are_numbered_in_order():
    client = streaming()
    client.batch(1, cycle=True)
    client.receive(decisions(1, cycle=1, rows=3))
    first = client.outcomes(np.array([1, 1]), NONE, NONE.reshape(0, 0))
    second = client.outcomes(np.array([2]), np.array([0]), np.array([[7]]))
    assert (first.first_decision, second.first_decision) == (1, 3)
    with pytest.raises(ValueError, match="1 outcomes for 0 open decisions"):
        client.outcomes(np.array([1]), NONE, NONE.reshape(0, 0))


def test_the_module_says_things_in_order():
    client = ModuleSession(Greeting("master", "instance", 1))
    with pytest.raises(ValueError, match="must say hello now"):
        client.batch(1)
    client.hello()
    with pytest.raises(ValueError, match="must wait for the welcome now"):
        next(client.snapshot([], sequence=0, clock_ms=0))


def reclaiming(frameworks: int = 1, agents: int = 1, *, more: bool = False) -> pb.SessionResponse:
    answer = decisions(12, cycle=1, rows=1)
    answer.decisions.more = more
    answer.decisions.reclaims.framework.extend([1] * frameworks)
    answer.decisions.reclaims.agent.extend([1] * agents)
    return answer


BAD_ANSWERS = [
    (pb.SessionResponse(), "the sidecar said None"),
    (pb.SessionResponse(welcome=WELCOME), "the sidecar said welcome"),
    (decisions(1), "an answer to batch 1; 12 is due"),
    (decisions(13), "an answer to batch 13; 12 is due"),
    (decisions(12), "cycle 0 in the answer to batch 12"),
    (decisions(12, cycle=2), "cycle 2 in the answer to batch 12"),
    (decisions(12, cycle=1, first=2), "decision 2 comes where 1 is due"),
    (b"\xff\xff", "2 bytes are not a SessionResponse"),
    (
        pb.SessionResponse(
            decisions=pb.DecisionBatch(
                sequence=12, cycle=1, first_decision=1, grants=[Holdings(kind=[1])]
            )
        ),
        r"grants\[0\].framework: is empty",
    ),
    (reclaiming(frameworks=2, agents=1), "reclaims.agent: has 1 rows, framework 2"),
    (reclaiming(more=True), "reclaims: belong in the last part"),
]


@pytest.mark.parametrize(("answer", "said"), BAD_ANSWERS)
def test_an_impossible_answer_ends_the_session(answer, said):
    client = streaming(sequence=11)
    client.batch(1, cycle=True)
    with pytest.raises(BadSidecarError, match=said):
        client.receive(answer)
    assert client.state is ModuleState.CLOSED
    with pytest.raises(BadSidecarError, match="the session is over"):
        client.receive(answer if isinstance(answer, pb.SessionResponse) else decisions(12))


def test_unrequested_decisions_are_rejected():
    client = streaming()
    client.batch(1)
    with pytest.raises(BadSidecarError, match="decisions without a cycle"):
        client.receive(decisions(1, rows=1))


def test_decisions_without_kinds_are_taken_for_the_gates_to_judge():
    """Each decision has a number, and its outcome is malformed."""
    client = streaming(sequence=11)
    client.batch(1, cycle=True)
    group = Holdings(framework=[1, 2], role=[1, 1], agent=[1, 1])
    batch = pb.DecisionBatch(sequence=12, cycle=1, first_decision=1, grants=[group])
    made = client.receive(pb.SessionResponse(decisions=batch))
    assert isinstance(made, Decisions)
    assert made.framework.tolist() == [1, 2]
    assert made.amount.shape == (2, 0)
    assert client.unsettled == 2


def test_an_answer_before_the_first_batch_is_not_believed():
    with pytest.raises(BadSidecarError, match="an answer to batch 1"):
        streaming().receive(decisions(1))


def test_another_version_is_not_believed():
    client = ModuleSession(Greeting("master", "instance", 1))
    client.hello()
    with pytest.raises(BadSidecarError, match="speaks version 3, not 2"):
        client.receive(pb.SessionResponse(welcome=pb.Welcome(protocol_version=3)))


def test_an_error_says_why_the_session_ended():
    client = streaming()
    error = pb.Error(code=pb.ERROR_CODE_BOOKS, field="events[0]", message="no", sequence=0)
    with pytest.raises(SessionEndedError, match=r"^books: events\[0\]: no$") as caught:
        client.receive(pb.SessionResponse(error=error))
    assert caught.value.error == error
    assert client.state is ModuleState.CLOSED

"""For any input bytes, the sidecar answers with a well-formed error or continues."""

from hypothesis import given
from hypothesis import strategies as st

from allocator.core import PolicySpec
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, SessionState, Sidecar
from laboratory.module_protocol import ModuleSession, write_event
from tests.tiers import examples
from tests.wire import strategies
from tests.wire.dialogue import STATE, Module, new_sidecar
from tests.wire.strategies import snapshot_events


def mutations(valid: bytes):
    """The bytes of a valid message with some of them changed, removed or inserted."""
    places = st.integers(0, max(len(valid) - 1, 0))

    def change(edits: list[tuple[int, int, str]]) -> bytes:
        data = bytearray(valid)
        for place, byte, how in edits:
            at = min(place, max(len(data) - 1, 0))
            if how == "flip" and data:
                data[at] = byte
            elif how == "insert":
                data.insert(at, byte)
            elif how == "cut":
                del data[at:]
            elif how == "drop" and data:
                del data[at]
        return bytes(data)

    edit = st.tuples(
        places, st.integers(0, 255), st.sampled_from(["flip", "insert", "cut", "drop"])
    )
    return st.lists(edit, min_size=1, max_size=6).map(change)


def well_formed(answers: list[pb.SessionResponse], session) -> None:
    """The answers are valid, and an error with a code and a text ends the session."""
    for answer in answers:
        assert pb.SessionResponse.FromString(answer.SerializeToString()) == answer
    errors = [answer.error for answer in answers if answer.HasField("error")]
    if session.state is SessionState.CLOSED:
        (error,) = errors
        assert error.code in pb.ErrorCode.values()
        assert error.code not in (pb.ERROR_CODE_UNSPECIFIED, pb.ERROR_CODE_INTERNAL)
        assert error.message
    else:
        assert not errors
    assert session.failure is None


def feed(sidecar: Sidecar, messages: list[bytes]) -> None:
    number = sidecar.open()
    session = sidecar.sessions[number]
    for data in messages:
        if session.state is not SessionState.CLOSED:
            well_formed([answer for _, answer in sidecar.receive(number, data)], session)
    sidecar.close(number)


@given(st.lists(st.binary(max_size=200), max_size=4))
def test_random_bytes(messages):
    feed(new_sidecar(), messages)


def opening() -> list[bytes]:
    client = ModuleSession(Greeting("master", "instance", 1))
    messages = [client.hello()]
    client.receive(pb.SessionResponse(welcome=pb.Welcome(protocol_version=2)))
    messages += client.snapshot(STATE, sequence=0, clock_ms=5)
    return [message.SerializeToString() for message in messages]


OPENING = opening()


@given(st.data())
def test_changed_openings(data):
    messages = [data.draw(mutations(message)) for message in OPENING]
    feed(new_sidecar(), messages)
    feed(new_sidecar(), [OPENING[0], messages[1]])


@given(st.data(), st.lists(strategies.events, max_size=5))
def test_changed_batches(data, events):
    """Valid events of another cluster, and corrupted bytes."""
    said = map(write_event, events)
    batch = pb.SessionRequest(events=pb.EventBatch(sequence=1, clock_ms=6, events=said, cycle=True))
    valid = batch.SerializeToString()
    feed(new_sidecar(), [*OPENING, valid])
    feed(new_sidecar(), [*OPENING, data.draw(mutations(valid))])


@given(st.lists(snapshot_events, max_size=6))
def test_snapshots_of_impossible_clusters(events):
    client = ModuleSession(Greeting("master", "instance", 1))
    client.hello()
    client.receive(pb.SessionResponse(welcome=pb.Welcome(protocol_version=2)))
    requests = list(client.snapshot(events, sequence=3, clock_ms=5))
    feed(new_sidecar(), [OPENING[0], *(request.SerializeToString() for request in requests)])


@examples(10, 30)
@given(st.lists(st.binary(max_size=60), max_size=5))
def test_another_session_continues_meanwhile(messages):
    sidecar = new_sidecar(PolicySpec("drf", selection="listed"))
    module = Module(sidecar).begin()
    feed(sidecar, messages)
    assert len(module.batch(cycle=True)) == 2

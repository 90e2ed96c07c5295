"""Sessions as text, run by both state machines: each sends its lines and checks the other's.

A transcript is an `allocator.v1.Transcript` in protobuf's text format, so that every language with
protobuf reads it. Without a fault, both sides are played. If the fault is the module's, the sidecar
must end the session with the last line. If it is the sidecar's, the module must reject the last
line. The sidecar decides by DRF over listed agents.
"""

from collections import deque
from pathlib import Path

import pytest
from google.protobuf import text_format

from allocator.core import Outcomes
from allocator.v1 import session_pb2 as pb
from allocator.v1.transcript_pb2 import Line, Transcript
from allocator.wire import SessionState
from allocator.wire.codec.decode import READERS
from laboratory.module_protocol import (
    BadSidecarError,
    ModuleSession,
    ModuleState,
    SessionEndedError,
)
from tests.wire.dialogue import WELCOME, new_sidecar
from tests.wire.opening import read_hello, read_snapshot

FILES = sorted(Path(__file__).parent.glob("*.txtpb"))


def load(path: Path) -> Transcript:
    return text_format.Parse(path.read_text(), Transcript())


def names(*faults: "Transcript.Fault.ValueType") -> list[str]:
    return [path.stem for path in FILES if load(path).fault in faults]


def read(name: str) -> list[Line]:
    return list(load(Path(__file__).parent / f"{name}.txtpb").lines)


def test_every_transcript_says_who_is_at_fault():
    for path in FILES:
        transcript = load(path)
        assert transcript.title, path.name
        fault = Transcript.Fault.Name(transcript.fault).removeprefix("FAULT_").lower()
        prefix = "" if fault == "nobody" else f"bad_{fault}_"
        assert fault != "unspecified"
        assert path.stem.startswith(prefix)
        assert path.stem.startswith("bad_") == bool(prefix)


def test_every_error_a_module_can_cause_alone_has_its_transcript():
    errors = {read(name)[-1].sidecar.error.code for name in names(Transcript.FAULT_MODULE)}
    caused_otherwise = {
        pb.ERROR_CODE_UNSPECIFIED,
        pb.ERROR_CODE_SUPERSEDED,  # needs two modules
        pb.ERROR_CODE_LIMIT,  # needs a large cluster
        pb.ERROR_CODE_SLOW_PEER,
        pb.ERROR_CODE_SHUTDOWN,
        pb.ERROR_CODE_INTERNAL,
    }
    assert errors == set(pb.ErrorCode.values()) - caused_otherwise


@pytest.mark.parametrize("name", names(Transcript.FAULT_NOBODY, Transcript.FAULT_MODULE))
def test_the_sidecar_says_its_lines(name):
    sidecar = new_sidecar()
    number = sidecar.open()
    said: deque[pb.SessionResponse] = deque()
    for place, line in enumerate(read(name)):
        match line.WhichOneof("says"):
            case "module":
                data = line.module.SerializeToString()
                said.extend(response for _, response in sidecar.receive(number, data))
            case "module_bytes":
                said.extend(response for _, response in sidecar.receive(number, line.module_bytes))
            case "sidecar":
                assert said, f"line {place}: the sidecar says nothing"
                assert said.popleft() == line.sidecar, f"line {place}"
    assert not said
    ended = name.startswith("bad_")
    assert (sidecar.sessions[number].state is SessionState.CLOSED) == ended


def say(client: ModuleSession | None, line: Line, state: list) -> ModuleSession:
    """Make the client send a line of the module itself."""
    match line.module.WhichOneof("message"):
        case "hello":
            client = ModuleSession(read_hello(line.module.hello))
            assert client.hello() == line.module
        case "snapshot":
            assert client is not None
            chunk = line.module.snapshot
            state += [event for _, event in read_snapshot(chunk)]
            if chunk.last:
                list(client.snapshot(state, sequence=chunk.sequence, clock_ms=chunk.clock_ms))
        case "events":
            assert client is not None
            batch = line.module.events
            cycle, agents = batch.cycle, list(batch.agents)
            events = [read_event(client, event) for event in batch.events]
            assert client.batch(batch.clock_ms, events, cycle=cycle, agents=agents) == line.module
    assert client is not None
    return client


def read_event(client: ModuleSession, message: pb.Event):
    name: str = message.WhichOneof("event") or ""
    event = READERS[name](getattr(message, name))
    if isinstance(event, Outcomes):
        numbered = client.outcomes(event.reason, event.kind, event.amount)
        assert numbered.first_decision == event.first_decision
    return event


def hear(client: ModuleSession, line: Line) -> None:
    client.receive(line.sidecar_bytes or line.sidecar)


@pytest.mark.parametrize("name", names(Transcript.FAULT_NOBODY, Transcript.FAULT_SIDECAR))
def test_the_module_says_its_lines(name):
    *lines, last = read(name)
    client: ModuleSession | None = None
    state: list = []
    for line in lines:
        if line.WhichOneof("says") == "module":
            client = say(client, line, state)
        else:
            assert client is not None
            hear(client, line)
    assert client is not None
    if name.startswith("bad_"):
        with pytest.raises(BadSidecarError):
            hear(client, last)
        assert client.state is ModuleState.CLOSED
    else:
        hear(client, last)
        assert client.answered == client.sequence


@pytest.mark.parametrize("name", names(Transcript.FAULT_MODULE))
def test_the_module_hears_why_the_session_ended(name):
    error = read(name)[-1].sidecar.error
    client = ModuleSession(read_hello(read("pipelined")[0].module.hello))
    client.hello()
    client.receive(pb.SessionResponse(welcome=WELCOME))
    with pytest.raises(SessionEndedError) as caught:
        client.receive(pb.SessionResponse(error=error))
    assert caught.value.error == error

"""Invalid informative fields are corrected and counted; invalid decisive ones end the session."""

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import SessionState
from allocator.wire.codec.decode import READERS
from allocator.wire.codec.sanitizing import FIELDS, mend_event, mend_hello
from allocator.wire.codec.validation import TEXT_LENGTH_MAX
from tests.wire.dialogue import Module, new_sidecar

LONG = "x" * (TEXT_LENGTH_MAX + 1)
KIND = 'define {{ kinds {{ kind: 3 name: "x" type: 1 {} }} }}'
AGENT = 'add_agent {{ agent: 3 agent_id: "a" {} }}'
FRAMEWORK = 'add_framework {{ framework: 3 framework_id: "f" roles: 1 {} }}'
WINDOW = "unavailability {{ agent: 1 unavailability {{ {} }} }}"
INVERSE = "inverse_offer {{ framework: 1 agent: 1 {} }}"

EVENTS = [
    ("add_agent { agent: 3 }", "agent.agent_id"),
    (f'add_agent {{ agent: 3 agent_id: "{LONG}" }}', "agent.agent_id"),
    (AGENT.format('attributes { value: "v" type: 4 }'), "agent.attributes.name"),
    (AGENT.format('attributes { name: "n" value: "v" }'), "agent.attributes.type"),
    (AGENT.format('attributes { name: "n" value: "v" type: 77 }'), "agent.attributes.type"),
    (AGENT.format("capabilities: 99"), "agent.capabilities"),
    (AGENT.format("unavailability { start_ms: -5 }"), "agent.unavailability.start_ms"),
    (
        AGENT.format(f"unavailability {{ duration_ms: {2**62} }}"),
        "agent.unavailability.duration_ms",
    ),
    (WINDOW.format("start_ms: -1"), "agent.unavailability.start_ms"),
    (WINDOW.format(f"start_ms: {2**63 - 1}"), "agent.unavailability.start_ms"),
    (WINDOW.format(f"duration_ms: {-(2**63)}"), "agent.unavailability.duration_ms"),
    (
        'update_agent { agent: 1 replaces_info: true attributes { name: "n" type: 9 } }',
        "agent.attributes.type",
    ),
    (
        "update_agent { agent: 1 replaces_capabilities: true capabilities: 0 }",
        "agent.capabilities",
    ),
    (AGENT.format(f'hostname: "{LONG}"'), "agent.hostname"),
    (AGENT.format(f'domain {{ region: "{LONG}" zone: "z" }}'), "agent.domain"),
    (
        AGENT.format(f'attributes {{ name: "n" value: "{LONG}" type: 4 }}'),
        "agent.attributes.value",
    ),
    ("add_framework { framework: 3 roles: 1 }", "framework.framework_id"),
    (FRAMEWORK.format(f'name: "{LONG}"'), "framework.name"),
    (FRAMEWORK.format(f'user: "{LONG}"'), "framework.user"),
    (FRAMEWORK.format(f'principal: "{LONG}"'), "framework.principal"),
    (FRAMEWORK.format("capabilities: [1, 77]"), "framework.capabilities"),
    (FRAMEWORK.format(f'labels {{ key: "k" value: "{LONG}" }}'), "framework.labels"),
    (FRAMEWORK.format(f'labels {{ key: "{LONG}" value: "v" }}'), "framework.labels"),
    (
        FRAMEWORK.format('minimum { role: 1 any_of { name: "" amount: 1 } }'),
        "framework.minimum",
    ),
    (
        "request { framework: 1 requests { name: ['a', 'a'] amount: [1, 2] } }",
        "request.requests",
    ),
    (
        'request { framework: 1 requests { name: "a" amount: 1 } agent_id: ["S0", "S1"] }',
        "request.agent_id",
    ),
    (
        f'update_framework {{ framework: 1 framework_id: "f" roles: 1 user: "{LONG}" }}',
        "framework.user",
    ),
    (KIND.format(f'reserved_role: "{LONG}" reservation_depth: 1'), "kind.reserved_role"),
    (f'define {{ roles {{ role: 3 path: "{LONG}" }} }}', "role.path"),
    (INVERSE.format("status: STATUS_UNSPECIFIED"), "inverse_offer.status"),
    (INVERSE.format("status: 77"), "inverse_offer.status"),
    (INVERSE.format(f"status: 2 refuse_ms: {-(2**63)}"), "inverse_offer.refuse_ms"),
]
HELLOS = ["mesos_version", "master_id", "module_version"]


def event_of(text: str) -> pb.Event:
    return text_format.Parse(text, pb.Event())


@pytest.mark.parametrize(("text", "field"), EVENTS, ids=[field for _, field in EVENTS])
def test_the_session_lives_and_the_counter_says_so(text, field):
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    for time in (1, 2):
        handle = 2 + time  # a new handle each time, if the event binds one
        event = event_of(
            text.replace("agent: 3", f"agent: {handle}").replace("work: 3", f"work: {handle}")
        )
        answers = module.say(module.client.batch_of(1000 * time + 1000, [event]))
        assert [answer.WhichOneof("message") for answer in answers] == ["decisions"]
        assert sidecar.counts.mended == {field: time}
    session = sidecar.sessions[module.number]
    assert session.state is SessionState.STREAMING
    assert list(session.mended) == [field]
    sidecar.allocator.check()


@pytest.mark.parametrize("name", HELLOS)
def test_a_hello_is_corrected(name):
    sidecar = new_sidecar()
    module = Module(sidecar)
    request = module.client.hello()
    setattr(request.hello, name, LONG)
    (answer,) = module.say(request)
    assert answer.HasField("welcome")
    assert sidecar.counts.mended == {f"hello.{name}": 1}


def test_a_snapshot_is_corrected():
    sidecar = new_sidecar()
    module = Module(sidecar)
    module.tell(module.client.hello())
    chunk = pb.SnapshotChunk(
        roles=[types.Role(role=1, path="eng")],
        frameworks=[types.Framework(framework=1, roles=[1])],
        agents=[
            types.Agent(agent=1, agent_id="a", unavailability=types.Unavailability(start_ms=-1))
        ],
        last=True,
        clock_ms=5,
    )
    assert module.say(pb.SessionRequest(snapshot=chunk)) == []
    assert sidecar.counts.mended == {
        "framework.framework_id": 1,
        "agent.unavailability.start_ms": 1,
    }
    assert sidecar.allocator.state.agents.unavailable_from_ms[1] == 0


def test_every_field_of_the_table_is_tested():
    assert {*(field for _, field in EVENTS), *(f"hello.{name}" for name in HELLOS)} == set(FIELDS)


VALID = [
    (
        'add_agent { agent: 3 agent_id: "a" attributes { name: "n" value: "v" type: 1 } '
        "capabilities: [1, 4] unavailability { start_ms: 0 duration_ms: 9 } }"
    ),
    (
        'add_framework { framework: 3 framework_id: "f" name: "n" roles: 1 capabilities: [1, 6] '
        'labels { key: "k" value: "v" } }'
    ),
    "inverse_offer { framework: 1 agent: 1 status: STATUS_DECLINE refuse_ms: -1 }",
]


@pytest.mark.parametrize("text", VALID)
def test_valid_events_are_not_changed(text):
    event = event_of(text)
    name = event.WhichOneof("event") or ""
    assert mend_event(name, getattr(event, name), 64) == []
    assert event == event_of(text)
    assert mend_hello(pb.Hello(master_id="x" * TEXT_LENGTH_MAX)) == []


TIMES = st.integers(-(2**63), 2**63 - 1)


@given(TIMES, TIMES)
def test_any_window_can_be_read_after_correction(start_ms, duration_ms):
    """Correcting it again changes nothing."""
    message = pb.UnavailabilityUpdate(agent=1)
    message.unavailability.start_ms = start_ms
    message.unavailability.duration_ms = duration_ms
    marks = mend_event("unavailability", message, 64)
    read = READERS["unavailability"](message)
    assert mend_event("unavailability", message, 64) == []
    fields = {mark.field.rpartition(".")[2] for mark in marks}
    assert ("start_ms" in fields) == (read.start_ms != start_ms)
    assert ("duration_ms" in fields) == (read.duration_ms != duration_ms)


DECIDES = [
    (AGENT.format("capacity { kind: 0 amount: -1 }"), "amount"),
    (FRAMEWORK.format("roles: 77"), "roles"),
    ("unavailability { agent: 77 }", "agent"),
    ("inverse_offer { framework: 77 agent: 1 status: 1 }", "framework"),
]


@pytest.mark.parametrize(("text", "field"), DECIDES)
def test_invalid_values_that_decisions_or_handles_depend_on_are_errors(text, field):
    module = Module(new_sidecar()).begin()
    (answer,) = module.say(module.client.batch_of(2000, [event_of(text)]))
    assert field in answer.error.field
    assert module.sidecar.counts.mended == {}

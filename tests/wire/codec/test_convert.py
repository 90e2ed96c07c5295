"""Encoding and decoding: round trips, and errors that name the field."""

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given

from allocator.core import (
    AMOUNT_MAX,
    AddAgent,
    AgentInfo,
    Define,
    Hold,
    Holdings,
    Outcomes,
    Reason,
    SetWhitelist,
)
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import Greeting, WireError, write_decisions
from allocator.wire.codec.decode import READERS
from allocator.wire.codec.proto_types import read_kind
from allocator.wire.codec.validation import TEXT_LENGTH_MAX
from laboratory.module_protocol import read_decisions, write_event, write_hello
from laboratory.module_protocol.encode import write_kind
from tests.wire import strategies
from tests.wire.opening import read_hello
from tests.wire.strategies import same

SCALAR = types.VALUE_TYPE_SCALAR


def read(event: pb.Event):
    name: str = event.WhichOneof("event") or ""
    return READERS[name](getattr(event, name))


def through_bytes(message):
    return type(message).FromString(message.SerializeToString())


@given(strategies.events)
def test_an_event_comes_back_as_it_was(event):
    assert same(read(through_bytes(write_event(event))), event)


def test_the_wire_has_a_reader_for_every_event():
    assert set(READERS) == {field.name for field in pb.Event.DESCRIPTOR.fields}


@given(strategies.greetings)
def test_a_greeting_comes_back_as_it_was(greeting):
    assert read_hello(through_bytes(write_hello(greeting))) == greeting


@given(strategies.decisions())
def test_decisions_come_back_as_they_were(decisions):
    (batch,) = write_decisions(7, decisions)
    assert batch.sequence == 7
    assert not batch.more
    assert same(read_decisions(through_bytes(batch)), decisions)


@given(strategies.kinds())
def test_a_kind_comes_back_as_it_was(kind):
    message = through_bytes(write_kind(5, kind))
    assert message.kind == 5
    assert read_kind(message) == kind


def test_two_kinds_that_decisions_tell_apart_are_two():
    """For a difference in any single field."""
    usual: dict[str, Any] = {
        "name": "disk",
        "type": SCALAR,
        "reserved_role": "a",
        "reservation_depth": 1,
    }
    others: list[dict[str, Any]] = [
        {"name": "cpus"},
        {"type": types.VALUE_TYPE_RANGES},
        {"reserved_role": "a/b"},
        {"reserved_role": "", "reservation_depth": 0},
        {"reservation_depth": 2},
        {"revocable": True},
        {"shared": True},
        {"indivisible": True},
        *({"form": form} for form in types.DiskForm.values() if form),
    ]
    messages = [types.Kind(**usual), *(types.Kind(**{**usual, **other}) for other in others)]
    assert len({read_kind(each) for each in messages}) == len(messages)


def test_one_kind_of_a_name_is_plain():
    """A kind with any special property is not plain."""
    plain = types.Kind(name="disk", type=SCALAR)
    assert read_kind(plain).plain
    specials: list[dict[str, Any]] = [
        {"reserved_role": "a", "reservation_depth": 1},
        {"revocable": True},
        {"shared": True},
        {"indivisible": True},
        {"rest": True},
        *({"form": form} for form in types.DiskForm.values() if form),
    ]
    for special in specials:
        assert not read_kind(types.Kind(name="disk", type=SCALAR, **special)).plain


def test_offered_and_partial_count_as_offered_and_every_other_reason_gives_all_of_it_back():
    reason = np.arange(1, len(Reason) + 1)
    outcomes = Outcomes(5, reason, np.array([0]), np.array([[700]]))
    assert outcomes.offered.tolist() == [each <= Reason.PARTIAL for each in Reason]
    assert outcomes.partial.tolist() == [each == Reason.PARTIAL for each in Reason]


BAD_EVENTS = [
    ("remove_agent { }", "agent", "is 0"),
    ("hold { framework: 1 role: 1 agent: 1 agent: 2 }", "agent", "has 2 entries but"),
    ("hold { framework: 1 framework: 2 role: 1 agent: 1 }", "role", "has 1 entries but"),
    ("hold { framework: 1 role: 1 agent: 1 kind: 0 kind: 1 amount: 5 }", "amount", "1 entries"),
    ("hold { framework: 1 role: 1 agent: 1 kind: 3 kind: 3 amount: [1, 1] }", "kind[1]", "3 once"),
    ("hold { framework: 1 role: 1 agent: 1 kind: 0 amount: -1 }", "amount[0]", "is -1"),
    (f"hold {{ framework: 1 role: 1 agent: 1 kind: 0 amount: {AMOUNT_MAX + 1} }}", "amount[0]", ""),
    ("hold { framework: 0 role: 1 agent: 1 }", "framework[0]", "names nothing"),
    ("transition { framework: 0 role: 0 agent: 1 }", "role[0]", "names nothing"),
    ("release { released { framework: 1 role: 1 agent: 0 } }", "released.agent[0]", "is 0"),
    ("release { released { framework: 1 role: 1 agent: 1 } }", "refuse_ms", "has 0 entries"),
    (
        "release { released { framework: 1 role: 1 agent: 1 } refuse_ms: 5 }",
        "allocated",
        "has 0 entries but released.framework has 1",
    ),
    (
        "release { released { framework: 1 role: 1 agent: 1 } refuse_ms: -2 allocated: true }",
        "refuse_ms[0]",
        "is -2; it must be from -1",
    ),
    ("exclusions { framework: 1 role: 1 agent: 1 }", "excluded", "has 0 entries"),
    ("add_agent { agent: 1 }", "agent_id", "is empty"),
    ('add_agent { agent: 1 agent_id: "a" capacity { kind: 1 } }', "capacity.amount", "0 entries"),
    (
        'add_agent { agent: 1 agent_id: "a" capacity { kind: 1 amount: -1 } }',
        "capacity.amount[0]",
        "is -1",
    ),
    ('add_agent { agent: 1 agent_id: "a" capabilities: 9 }', "capabilities[0]", "is 9"),
    ('add_agent { agent: 1 agent_id: "a" attributes { type: 1 } }', "attributes[0].name", "empty"),
    (
        'add_agent { agent: 1 agent_id: "a" unavailability { start_ms: -5 } }',
        "unavailability.start_ms",
        "is -5",
    ),
    ('add_framework { framework: 1 framework_id: "f" roles: [1, 1] }', "roles[1]", "once more"),
    ('add_framework { framework: 1 framework_id: "f" roles: 0 }', "roles[0]", "names nothing"),
    ('add_framework { framework: 1 framework_id: "f" capabilities: 0 }', "capabilities[0]", "is 0"),
    ('define { kinds { kind: 1 name: "x" type: 4 } }', "kinds[0].type", "is 4"),
    ("define { kinds { kind: 1 type: 1 } }", "kinds[0].name", "is empty"),
    ("define { roles { role: 1 } }", "roles[0].path", "is empty"),
    ("define { roles { role: 1 } roles { role: 1 } }", "roles.role[1]", "is 1 once more"),
    (
        'define { kinds { name: "x" type: 1 reserved_role: "r" } }',
        "kinds[0].reservation_depth",
        "is 0 where reserved_role is 'r'; give both, or neither",
    ),
    (
        'define { kinds { name: "x" type: 1 reservation_depth: 3 } }',
        "kinds[0].reservation_depth",
        "is 3 where reserved_role is ''",
    ),
    (
        'define { kinds { name: "x" type: 1 form: 6 } }',
        "kinds[0].form",
        "is 6; it must be one of",
    ),
    (
        'define { kinds { name: "x" type: 1 rest: true shared: true } }',
        "kinds[0].rest",
        "is set together with fields that distinguish kinds",
    ),
    ('weights { weights { role: "r" weight: nan } }', "weights[0].weight", "is nan"),
    ('weights { weights { role: "r" weight: inf } }', "weights[0].weight", "is inf"),
    ('weights { weights { role: "r" weight: -1 } }', "weights[0].weight", "is -1.0"),
    ('weights { weights { role: "r" } }', "weights[0].weight", "is 0.0"),
    ('quota { role: "r" limits { name: "x" name: "x" amount: [1, 2] } }', "limits.name[1]", "once"),
    ('quota { role: "r" limits { name: "x" amount: -3 } }', "limits.amount[0]", "is -3"),
    ("inverse_offer { framework: 1 agent: 1 status: STATUS_UNSPECIFIED }", "status", "is 0"),
    ("inverse_offer { framework: 1 agent: 1 status: 77 }", "status", "is 77"),
    ('whitelist { hostnames: "h" }', "restricted", "is false though"),
    ("outcomes { first_decision: 1 reason: 21 }", "reason[0]", "is 21"),
    ("outcomes { first_decision: 1 reason: 0 }", "reason[0]", "is 0"),
    ("outcomes { first_decision: 1 reason: 2 kind: 0 }", "amount", "1 partial decisions times 1"),
    ("outcomes { first_decision: 1 reason: 2 kind: 0 amount: -1 }", "amount[0]", "is -1"),
    (
        "outcomes { first_decision: 1 reason: 2 kind: 4 kind: 4 amount: [1, 1] }",
        "kind[1]",
        "4 once more",
    ),
    ("outcomes { reason: 1 }", "first_decision", "is 0"),
]


def test_a_whitelist_may_hold_an_agent_that_calls_itself_nothing():
    event = text_format.Parse('whitelist { restricted: true hostnames: ["", "h"] }', pb.Event())
    assert read(event) == SetWhitelist(frozenset({"", "h"}))


@pytest.mark.parametrize(("text", "field", "said"), BAD_EVENTS)
def test_a_bad_value_is_named(text, field, said):
    """With the field, the value and the valid range."""
    event = text_format.Parse(text, pb.Event())
    with pytest.raises(WireError) as caught:
        read(event)
    assert caught.value.code == pb.ERROR_CODE_VALUE
    assert caught.value.field == field
    assert said in caught.value.message


@pytest.mark.parametrize("value", [-7, AMOUNT_MAX + 1])
@pytest.mark.parametrize("rows", [1, 5, 32, 33, 1000])
def test_a_bad_entry_is_found_in_columns_of_any_length(rows, value):
    """Short and long columns are checked by different code."""
    ones = np.ones(rows, np.int64)
    message = write_event(Hold(Holdings(ones, ones, ones, np.array([0]), ones[:, None])))
    message.hold.amount[rows - 1] = value
    with pytest.raises(WireError, match=f"is {value}; it must be from 0 to") as caught:
        read(message)
    assert caught.value.field == f"amount[{rows - 1}]"


def test_texts_have_a_bound():
    agent = write_event(AddAgent(1, AgentInfo("a" * TEXT_LENGTH_MAX), {}))
    read(agent)
    agent.add_agent.agent_id += "a"
    with pytest.raises(WireError, match=r"agent_id: has 65537 characters; at most 65536"):
        read(agent)


BAD_HELLOS = [
    ("protocol_version", 3, pb.ERROR_CODE_VERSION, "this sidecar speaks 2"),
    ("protocol_version", 0, pb.ERROR_CODE_VERSION, "this sidecar speaks 2"),
    ("instance_id", "", pb.ERROR_CODE_VALUE, "is empty"),
    ("instance_started_us", -1, pb.ERROR_CODE_VALUE, "is -1"),
    ("options.allocation_interval_ms", 0, pb.ERROR_CODE_VALUE, "is 0"),
]


@pytest.mark.parametrize(("field", "value", "code", "said"), BAD_HELLOS)
def test_a_bad_greeting_is_refused(field, value, code, said):
    hello = write_hello(Greeting("master", "instance", 1))
    *path, last = field.split(".")
    setattr(hello.options if path else hello, last, value)
    with pytest.raises(WireError) as caught:
        read_hello(hello)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert said in caught.value.message


def test_a_greeting_needs_options():
    hello = write_hello(Greeting("master", "instance", 1))
    hello.ClearField("options")
    with pytest.raises(WireError, match=r"options: is missing"):
        read_hello(hello)


def test_of_attributes_with_one_name_the_first_counts():
    """As in Mesos's own offer constraints."""
    agent = write_event(AddAgent(1, AgentInfo("a", attributes={"zone": "a"}), {}))
    agent.add_agent.attributes.add(name="zone", value="b", type=types.VALUE_TYPE_TEXT)
    assert read(agent).info.attributes == {"zone": "a"}


def test_a_define_without_anything_is_nothing():
    assert read(write_event(Define())) == Define()

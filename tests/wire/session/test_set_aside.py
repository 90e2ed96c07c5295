"""With any untrusted input the session survives: invalid input is ignored and reported."""

import pytest
from google.protobuf import text_format

from allocator.core import DEMAND_LABEL, AddFramework, Define, FrameworkInfo, SessionLimits
from allocator.core.bounds import LABELS_MAX
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire import SessionState, WireError
from allocator.wire.codec.validation import distinct
from tests.wire.dialogue import STATE, Module, new_sidecar

FRAMEWORK = 'add_framework {{ framework: 3 framework_id: "f" roles: 1 {} }}'


def said(module: Module, *texts: str) -> None:
    """Send events as on the wire; the session must survive."""
    events = [text_format.Parse(text, pb.Event()) for text in texts]
    module.clock_ms += 1000
    answers = module.say(module.client.batch_of(module.clock_ms, events))
    assert [answer.WhichOneof("message") for answer in answers] == ["decisions"]
    assert module.sidecar.sessions[module.number].state is SessionState.STREAMING
    module.sidecar.allocator.check()


def rows(module: Module, framework: int = 3) -> list[tuple[str, str]]:
    found = module.sidecar.allocator.state.frameworks.aside.get(framework, ())
    return [(row.field, row.reason) for row in found]


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (f'labels {{ key: "{DEMAND_LABEL}" value: "cpus:9e999999" }}', ("labels", "unreadable")),
        ('minimum { role: 1 any_of { name: "" amount: 1 } }', ("offer_filters", "unreadable")),
        ('minimum { role: 1 any_of { name: "a" amount: -1 } }', ("offer_filters", "unreadable")),
        ("minimum { role: 1 } minimum { role: 1 }", ("offer_filters", "unreadable")),
        ("minimum { role: 77 }", ("offer_filters", "unreadable")),
        (
            'set_aside { field: "offer_filters" reason: 4 text: "deep" }',
            ("offer_filters", "too_deep"),
        ),
        ('set_aside { field: "new" reason: 99 text: "?" }', ("new", "unreadable")),
        ('user: "u" capabilities: 99', ("capabilities", "unknown")),
    ],
)
def test_a_framework_is_served_as_if_it_had_not_said_it(words, row):
    module = Module(new_sidecar()).begin()
    said(module, FRAMEWORK.format(words))
    assert rows(module) == [row]
    assert module.sidecar.allocator.state.live_clients().sum() == 3
    said(module, 'update_framework { framework: 3 framework_id: "f" roles: 1 }')
    assert rows(module) == []


def test_the_number_of_labels_is_limited_and_ours_are_kept_first():
    module = Module(new_sidecar()).begin()
    labels = " ".join(f'labels {{ key: "k{n}" value: "v" }}' for n in range(2 * LABELS_MAX))
    said(module, FRAMEWORK.format(f'{labels} labels {{ key: "{DEMAND_LABEL}" value: "cpus:1" }}'))
    info = module.sidecar.allocator.state.frameworks.info[3]
    assert info
    assert len(info.labels) == LABELS_MAX
    assert info.labels[DEMAND_LABEL] == "cpus:1"
    assert rows(module) == [("labels", "too_many")]


def test_a_request_that_cannot_be_read_is_as_none():
    module = Module(new_sidecar()).begin()
    said(module, "request { framework: 1 requests { name: 'cpus' amount: [1, 2] } }")
    assert rows(module, 1) == [("request", "unreadable")]
    said(module, "request { framework: 1 }")
    assert rows(module, 1) == []


@pytest.mark.parametrize("begins", [False, True], ids=["event", "snapshot"])
def test_an_error_of_ours_sets_words_aside_and_ends_no_session(monkeypatch, begins):
    def fails(label: str) -> None:
        if label:
            raise OverflowError("planted")

    monkeypatch.setattr("allocator.core.demand.own_words.demand_of_label", fails)
    info = FrameworkInfo("f", "named", labels={DEMAND_LABEL: "cpus:1"})
    event = AddFramework(3, info, (1,))
    module = Module(new_sidecar())
    if begins:
        module.begin([*STATE, event])
    else:
        module.begin().batch(event)
    assert rows(module) == [("labels", "failed")]
    session = module.sidecar.sessions[module.number]
    assert session.state is SessionState.STREAMING
    assert [type(each) for each in session.defects] == [OverflowError]
    assert [told[:2] for told in session.asides] == [("framework", "f")]
    taken = module.sidecar.allocator.state.frameworks.info[3]
    assert taken
    assert taken.name == "named"
    module.sidecar.allocator.check()


def test_an_error_not_caused_by_tenants_input_ends_the_session():
    module = Module(new_sidecar()).begin()
    error = module.refused(AddFramework(3, FrameworkInfo("f", labels={"a": "b"}), (77,)))
    assert error.code == pb.ERROR_CODE_HANDLE
    assert error.field == "events[0].add_framework.roles"


def test_words_of_agents_are_kept_as_well():
    module = Module(new_sidecar()).begin()
    aside = 'set_aside { field: "attributes" reason: 3 text: "too many" }'
    said(module, f'add_agent {{ agent: 3 agent_id: "a" {aside} }}')
    agents = module.sidecar.allocator.state.agents
    assert [row.reason for row in agents.aside[3]] == ["too_many"]
    said(module, "update_agent { agent: 3 replaces_info: true }")
    assert not agents.aside


def test_more_roles_than_are_kept_end_no_session():
    module = Module(new_sidecar(limits=SessionLimits(roles=4))).begin()
    roles = {role: f"many-{role}" for role in range(3, 40)}
    module.batch(Define(roles=roles), AddFramework(3, FrameworkInfo("f"), tuple(roles)))
    assert rows(module) == [("roles", "too_many")]
    held = types.Holdings(framework=[3], role=[39], agent=[1], kind=[0], amount=[1000])
    event = pb.Event(hold=held)
    said(module, text_format.MessageToString(event))
    released = pb.Release(released=held, refuse_ms=[-1], allocated=[True])
    said(module, text_format.MessageToString(pb.Event(release=released)))


class CountedName(str):
    """A name that counts comparisons."""

    __slots__ = ()
    compared = 0

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_a_name_that_is_sent_twice_is_found_in_one_pass():
    names = [CountedName(f"name-{n}") for n in range(3000)]
    CountedName.compared = 0
    with pytest.raises(WireError, match="'name-2999' once more"):
        distinct([*names, CountedName("name-2999")], "name")
    assert CountedName.compared < 3 * len(names)


def test_a_refused_peer_is_notified_before_its_options_are_read():
    sidecar = new_sidecar()
    first = Module(sidecar, started_us=5).begin()
    second = Module(sidecar, instance="older", started_us=4)
    request = second.client.hello()
    request.hello.options.minimum_any_of.add(name=["a", "a"], amount=[1, 1])
    (answer,) = second.say(request)
    assert answer.error.code == pb.ERROR_CODE_SUPERSEDED
    # A newer instance that sends nonsense does not take the sidecar over.
    third = Module(sidecar, instance="newer", started_us=6)
    request = third.client.hello()
    request.hello.options.minimum_any_of.add(name=["a", "a"], amount=[1, 1])
    (answer,) = third.say(request)
    assert answer.error.code == pb.ERROR_CODE_VALUE
    first.batch()


def test_more_frameworks_and_agents_than_are_kept_end_no_session_and_do_no_harm():
    module = Module(new_sidecar(limits=SessionLimits(frameworks=2, agents=2))).begin()
    held = types.Holdings(framework=[3], role=[1], agent=[3], kind=[0], amount=[1000])
    said(
        module,
        FRAMEWORK.format(""),
        'update_framework { framework: 3 framework_id: "f" roles: 1 }',
        'add_agent { agent: 3 agent_id: "a" capacity { kind: 0 amount: 1000 } }',
        'add_agent { agent: 4 agent_id: "b" capacity { kind: 0 amount: 1000 } }',
        "activate_agent { agent: 3 active: true }",
        "suppress { framework: 3 }",
        "request { framework: 3 }",
        text_format.MessageToString(pb.Event(hold=held)),
        text_format.MessageToString(
            pb.Event(release=pb.Release(released=held, refuse_ms=[-1], allocated=[True]))
        ),
        "exclusions { framework: 3 role: 1 agent: 1 excluded: true }",
        "inverse_offer { framework: 3 agent: 1 status: 1 }",
        "remove_agent { agent: 3 }",
        "remove_framework { framework: 3 }",
    )
    state = module.sidecar.allocator.state
    assert state.beyond == {"agents": 4, "frameworks": 3, "roles": 0}
    made = module.sidecar.allocator.allocate(10_000)
    assert sorted(made.framework.tolist()) == [1, 2]

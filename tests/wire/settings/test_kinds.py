"""Every kind of operators' setting has its field in each message; see `rule_kinds`."""

import pytest

from allocator.core import EVENT_OF_KIND
from allocator.rule_kinds import KINDS, LIMIT, RULES, Scope, Value
from allocator.v1 import admin_pb2, journal_pb2, settings_pb2
from allocator.wire.settings.operator_settings import read_rule, write_rule


@pytest.mark.parametrize("name", KINDS)
def test_state_files_and_journals_have_a_place_for_a_kind(name):
    kept = settings_pb2.KeptChange.DESCRIPTOR.oneofs_by_name["change"].fields
    record = journal_pb2.JournalRecord.DESCRIPTOR.oneofs_by_name["record"].fields
    (of_file,) = (field.message_type for field in kept if field.name == name)
    (of_journal,) = (field.message_type for field in record if field.name == name)
    assert of_file is of_journal


def test_files_keep_nothing_that_is_no_kind():
    kept = settings_pb2.KeptChange.DESCRIPTOR.oneofs_by_name["change"].fields
    assert {field.name for field in kept} == set(KINDS)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_a_rule_has_its_calls_and_a_list_at_a_journals_beginning(kind):
    calls = admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods_by_name
    listed = calls[f"List{kind.title}s"].output_type.fields_by_name[kind.plural]
    asked = calls[f"Set{kind.title}"].input_type.fields_by_name
    assert asked[kind.name].message_type is listed.message_type
    assert ("all" in asked) == (kind.scope is Scope.FRAMEWORKS)
    if kind is not LIMIT:
        start = journal_pb2.JournalStart.DESCRIPTOR.fields_by_name[kind.plural]
        assert start.message_type is listed.message_type


SAMPLES = {
    Value.AMOUNTS: {"cpus": 1500, "mem": 2000},
    Value.HOURS: {"gpus": 1500},
    Value.EXPRESSION: "zone=a|b",
    Value.NUMBER: 2.5,
    Value.COUNT: 8,
    Value.NOTHING: True,
}


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_a_message_says_all_that_a_rule_says(kind):
    fields = dict.fromkeys((flag.name for flag in kind.flags), True)
    fields |= {text.name: f"some {text.name}" for text in kind.texts}
    names = {name: f"some {name}" for name in kind.scope.fields}
    rule = EVENT_OF_KIND[kind.name](**names, **fields, **{kind.field: SAMPLES[kind.value]})
    message = write_rule(rule)
    assert read_rule(kind, type(message).FromString(message.SerializeToString())) == rule

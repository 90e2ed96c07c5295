"""Every kind of operators' setting has its field in messages; see `rule_kinds`."""

import pytest

from allocator.core import EVENT_OF_KIND
from allocator.rule_kinds import KINDS, RULES, Value
from allocator.v1 import settings_pb2
from allocator.wire.settings.operator_settings import read_change, write_change


def test_each_kind_has_a_field():
    fields = settings_pb2.OperatorChange.DESCRIPTOR.oneofs_by_name["change"].fields
    assert {field.name for field in fields} == set(KINDS)


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
    message = write_change(rule)
    assert message.WhichOneof("change") == kind.name
    assert read_change(type(message).FromString(message.SerializeToString())) == rule

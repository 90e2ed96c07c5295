"""The table of conformance is complete, true and up to date."""

import re

from tests.conformance import table


def test_the_table_is_up_to_date():
    assert table.TABLE.read_text(encoding="utf-8") == table.render()


def test_every_name_is_answered_to():
    ours, elsewhere = table.scenarios(), table.read_elsewhere()
    names = [subject.name for subject in table.read_subjects()]
    assert len(names) == len(set(names))
    assert not [name for name in names if name not in ours and name not in elsewhere]


def test_every_answer_names_a_test_of_mesos():
    names = {subject.name for subject in table.read_subjects()}
    answered = {*table.scenarios(), *table.read_elsewhere(), *table.read_differences()}
    assert answered <= names
    assert set(table.read_differences()) <= set(table.scenarios())


def test_every_test_that_is_named_exists():
    missing = []
    for answer in table.read_elsewhere().values():
        for test in answer.tests:
            path, _, name = test.partition("::")
            file = table.ROOT / path
            if not file.exists() or not re.search(rf"\b{name}\b", file.read_text("utf-8")):
                missing.append(test)
    assert not missing

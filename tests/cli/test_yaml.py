"""YAML output can be read back without changes."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from allocator.plain import json_text, yaml_text

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from(["no", "Yes", "null", "~", "1", "1e3", "0x1f", "12:30", "2026-11-24", "- a"]),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(texts, parts, max_size=4),
    max_leaves=20,
)


@given(values)
def test_written_values_are_read_back(value):
    assert yaml.safe_load(yaml_text(value)) == value


def test_numbers_that_are_not_finite_are_what_they_are_in_json():
    value = {"a": [float("inf"), float("-inf")], "b": float("nan")}
    assert yaml.safe_load(yaml_text(value)) == yaml.safe_load(json_text(value))

"""The role tree: a bound on its depth, and computations over it against naive ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Define, EventError, SessionLimits, SetQuota
from allocator.core.books.roles import RoleTable
from tests.core.session import Session


def chain(depth: int) -> dict[int, str]:
    return {level: "/".join(["r"] * level) for level in range(1, depth + 1)}


def test_a_role_may_be_as_deep_as_the_limit():
    session = Session(roles=chain(64))
    assert session.state.roles.depth[64] == 64


@pytest.mark.parametrize(
    "event",
    [
        Define(roles={5: "a/b/c/d"}),
        SetQuota("a/b/c/d", {}, {"cpus": 1}),
    ],
)
def test_one_level_more_is_a_named_error_and_nothing_has_changed(event):
    session = Session(roles={1: "a", 2: "a/b", 3: "a/b/c"}, limits=SessionLimits(role_depth=3))
    with pytest.raises(EventError, match=r"4 levels; at most 3, raise limits\.role_depth") as error:
        session.allocator.step(event)
    assert (error.value.kind, error.value.field) in {("limit", "roles"), ("limit", "role")}
    assert len(session.state.roles) == 3
    assert not session.state.quotas


def test_the_error_about_a_path_of_any_length_is_short():
    session = Session(roles={})
    with pytest.raises(EventError, match="has 10000 levels") as error:
        session.allocator.step(Define(roles={1: "/".join(["r"] * 10_000)}))
    assert len(error.value.message) < 200


@st.composite
def tables(draw) -> RoleTable:
    """Some roles, defined in any order of handles."""
    table = RoleTable()
    paths = [""]
    handles = draw(st.permutations(range(1, 13)))
    for handle in handles[: draw(st.integers(0, 12))]:
        parent = draw(st.sampled_from(paths))
        path = f"{parent}/r{handle}".lstrip("/")
        table.define(handle, path)
        paths.append(path)
    return table


def is_inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith(f"{outer}/")


@given(tables(), st.data())
def test_levels_insides_and_inheritance_are_what_paths_say(table, data):
    bound = [row for row in range(1, len(table.path)) if table.bound[row]]
    levels = [sorted(level.tolist()) for level in table.by_depth() if len(level)]
    deepest = max((table.path[row].count("/") + 1 for row in bound), default=0)
    assert levels == [
        [row for row in bound if table.path[row].count("/") + 1 == depth]
        for depth in range(1, deepest + 1)
    ]
    paths = [table.path[row] for row in bound]
    for path in [*paths, "absent"]:
        inside = table.inside(path)
        assert np.flatnonzero(inside).tolist() == [
            row for row in bound if path != "absent" and is_inside(table.path[row], path)
        ]
    own = data.draw(st.dictionaries(st.sampled_from([*paths, "absent"]), st.integers(0, 9)))
    found = table.inherit(own, -1)
    for row in range(len(table.path)):
        above = [path for path in own if row in bound and is_inside(table.path[row], path)]
        assert found[row] == (own[max(above, key=len)] if above else -1)

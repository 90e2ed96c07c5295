"""Quotas that apply to roles and kinds: computed for all once, and for each new role."""

from dataclasses import fields
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import SetQuota
from allocator.core.books import quota
from allocator.core.books.quota import quota_tree
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.events import Define
from tests.core.session import Session

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


def as_lists(tree: quota.QuotaTree) -> dict[str, Any]:
    found = {each.name: getattr(tree, each.name) for each in fields(tree)}
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def innermost(row: dict[str, int], path: str) -> int:
    """Naive implementation: compares each of the roles."""
    above = [each for each in row if f"{path}/".startswith(f"{each}/")]
    return row[max(above, key=len)] if above else -1


@given(st.sets(paths), st.lists(paths | st.just("")))
def test_the_innermost_role_is_what_its_slow_twin_says(roles, asked):
    row = {path: index for index, path in enumerate(sorted(roles))}
    assert quota.innermost(row, asked).tolist() == [innermost(row, path) for path in asked]


def test_roles_are_looked_through_once_for_all_paths():
    class Counted(dict[str, int]):
        times = 0

        def __iter__(self) -> Any:
            self.times += 1
            return super().__iter__()

    row = Counted({f"role-{index}": index for index in range(50)})
    quota.innermost(row, [f"role-{index}/below" for index in range(100)])
    assert row.times == 1


def test_a_role_that_comes_leaves_the_quotas_as_they_are(monkeypatch):
    session = Session(roles={role: f"role-{role}" for role in range(1, 21)})
    for role in range(1, 21):
        session.allocator.step(SetQuota(f"role-{role}", {}, {"cpus": 1000 * role}))
    session.allocator.step(SetQuota("role-7/below", {}, {"mem": 1000}))
    builder = SnapshotBuilder()
    builder.quota_tree(session.state)
    looked: list[object] = []

    def noting(*arguments: Any) -> Any:
        looked.append(arguments)
        return real(*arguments)

    real = quota.innermost
    monkeypatch.setattr(quota, "innermost", noting)
    for handle, path in ((30, "role-7/below"), (31, "other"), (32, "role-7/below/deep")):
        session.allocator.step(Define(roles={handle: path}))
        tree = builder.quota_tree(session.state)
        assert not looked
        assert as_lists(tree) == as_lists(quota_tree(session.state))
        looked.clear()
    assert tree.of_role[[30, 31, 32]].tolist() == [0, -1, 0]
    # A quota that changes and a kind that is added are taken into account.
    session.allocator.step(SetQuota("role-7/below", {}, {}))
    tree = builder.quota_tree(session.state)
    assert as_lists(tree) == as_lists(quota_tree(session.state))
    assert tree.of_role[30] == tree.of_role[7] >= 0

"""A policy for a subtree: one policy between departments, another inside a department."""

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, EventError, PolicySpec, SetPolicy
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from tests.core.session import Session

ROLES = {1: "eng", 2: "eng/web", 3: "eng/web/old", 4: "ops", 5: "eng/ml"}
SUBTREES = {"eng": "ps-dsf", "eng/web": "tsf"}


def session(spec: PolicySpec) -> Session:
    made = Session(spec, roles=ROLES)
    nested = frozenset({"HIERARCHICAL_ROLE"})
    made.agent(1, 100, 30, capabilities=nested)
    made.agent(2, 30, 100, capabilities=nested)
    return made


def test_the_innermost_role_decides():
    made = session(PolicySpec("drf", subtrees=SUBTREES))
    for framework, role in enumerate(ROLES, start=1):
        made.framework(framework, role)
    tree = SnapshotBuilder().build(made.state, None).tree
    shown = {}
    for leaf, client in enumerate(tree.client):
        path = ROLES[int(made.state.clients.role[client])]
        shown[path] = int(tree.scheme[tree.parent[leaf]])
    assert shown == {"eng": 1, "eng/web": 2, "eng/web/old": 2, "ops": 0, "eng/ml": 1}
    assert tree.scheme[-1] == 0


def test_inside_a_department_it_is_as_if_the_other_policy_were_alone():
    """Section IV of Kesidis et al.: with PS-DSF each framework ends up on the agent it suits."""
    placed = []
    for spec, roles in (
        (PolicySpec("drf", "joint", "characterised", subtrees={"eng": "ps-dsf"}), (2, 5)),
        (PolicySpec("ps-dsf", "joint", "characterised"), (2, 5)),
        (PolicySpec("drf", "joint", "characterised"), (2, 5)),
    ):
        made = session(spec)
        for framework, (role, task) in enumerate(
            zip(roles, ("cpus:5;mem:1", "cpus:1;mem:5"), strict=True), start=1
        ):
            made.framework(framework, role, labels={DEMAND_LABEL: task})
        offers = {offer[:3:2]: offer[3] for offer in made.cycle(1000)}
        placed.append({key: units["cpus"] for key, units in offers.items()})
    assert placed[0] == placed[1] == {(1, 1): 95, (2, 1): 2, (2, 2): 20}
    assert placed[2] != placed[1]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (PolicySpec("drf", subtrees={"eng": "drff"}), "subtrees.eng: there is no policy 'drff'"),
        (PolicySpec("drf", subtrees={"eng//x": "drf"}), "'eng//x' is not a role"),
        (PolicySpec("drf", flat=True, subtrees={"eng": "tsf"}), "cannot be used with flat"),
    ],
)
def test_an_invalid_policy_is_reported_and_changes_nothing(spec, said):
    made = session(PolicySpec("drf"))
    made.framework(1, 1)
    with pytest.raises(EventError, match=said):
        made.allocator.step(SetPolicy(spec))
    assert made.allocator.settings.policy == PolicySpec("drf")
    assert np.array_equal(SnapshotBuilder().build(made.state, None).tree.scheme, [0, 0, 0])

"""The policies by name, and the errors of a wrong specification."""

import re
import subprocess
import sys
from typing import Any

import pytest

from allocator.core.policy import PolicySpec
from allocator.policies import POLICIES, SELECTIONS, build, warm
from allocator.policies.filling import Filling
from tests import oracles


def test_every_policy_can_be_built_with_every_selection_and_value():
    for name, entry in POLICIES.items():
        for selection in ("", *entry.selections):
            built = build(PolicySpec(name, selection))
            if isinstance(built, Filling):
                assert built.selection == (selection or entry.selections[0])
        for key, values in entry.parameters.items():
            for value in values:
                build(PolicySpec(name, parameters={key: value}))


def test_every_criterion_has_a_twin():
    missing = {name for name, entry in POLICIES.items() if entry.criterion} - set(oracles.CRITERIA)
    assert not missing, (
        f"{', '.join(sorted(missing))}: spell the criterion out in CRITERIA of tests/oracles.py,"
        " from its definition: every test of the compiled loops then takes it, too"
    )


def test_best_fit_is_the_default_of_bf_drf_alone():
    default = {name: entry.selections[:1] for name, entry in POLICIES.items()}
    assert [name for name, first in default.items() if first != ("random",)] == ["bf-drf"]
    assert default["bf-drf"] == ("best_fit",)
    assert all(set(entry.selections) == set(SELECTIONS) for entry in POLICIES.values())


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (PolicySpec("fifo"), ["name", "'fifo'", "drf, tsf, ps-dsf", "asset"]),
        (PolicySpec(selection="first"), ["selection", "'first'", "round_robin", "random"]),
        (PolicySpec(mode="greedy"), ["mode", "'greedy'", "oblivious, characterised"]),
        (PolicySpec("drf", parameters={"unit": "tasks"}), ["parameters.unit", "drf", "remove it"]),
        (PolicySpec("choosy", parameters={"units": "tasks"}), ["parameters.units", "from unit"]),
        (
            PolicySpec("choosy", parameters={"unit": "slots"}),
            ["parameters.unit", "'slots'", "agents, tasks, dominant_share"],
        ),
    ],
)
def test_an_error_names_the_key_the_value_and_the_fix(spec, said):
    with pytest.raises(ValueError) as caught:
        build(spec)
    for part in said:
        assert re.search(re.escape(part), str(caught.value))


def test_to_know_the_policies_nothing_is_compiled():
    """Every start checks the configuration; the first cycle imports loops and solvers."""
    program = """
import sys
from allocator.core.policy import PolicySpec
from allocator.policies import POLICIES, build
for name in POLICIES:
    build(PolicySpec(name))
late = "filling.by_agent", "filling.by_client", "solvers.proportional_fairness"
print([name for name in sys.modules if name.endswith(late)])
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[]\n"


def test_one_compilation_serves_every_criterion():
    """Numba compiles a loop for each combination of types, at seconds apiece."""
    from allocator.policies.filling import by_agent, by_client
    from allocator.testing import static_snapshot

    warm()
    cluster = static_snapshot([[4, 4], [2, 8]], [[1, 1], [0, 0]])
    for name in POLICIES:
        for selection in SELECTIONS:
            build(PolicySpec(name, selection)).allocate(cluster, 0)
    loops: list[Any] = [by_agent.fill, by_client.fill]
    assert [len(loop.dispatcher.signatures) for loop in loops] == [1, 1]

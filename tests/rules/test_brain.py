"""The module's brain and the cases: it says the same of every wish."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.rules.cases import Case
from tests.rules.random_cases import cases
from tests.rules.small_brain import can_be_told, named, verdict
from tests.rules.small_master import SmallMaster
from tests.rules.test_rules import CASES
from tests.simulation.brain import LIBRARY, library_path

TOLD = [(f"{file}: {case.title}", case) for file, case in CASES if can_be_told(case)]


@pytest.fixture
def library() -> Path:
    found = library_path()
    if found is None:
        fail_or_skip = pytest.fail if os.environ.get("CI") else pytest.skip
        fail_or_skip(f"{LIBRARY} names no library; `make module` builds the brain")
    return found


def test_most_cases_can_be_told():
    assert len(TOLD) > 0.9 * len(CASES)


@pytest.mark.parametrize("case", [case for _, case in TOLD], ids=[name for name, _ in TOLD])
def test_the_brain_says_so(case: Case, library: Path):
    assert verdict(case, library) == (case.verdict[0], named(case.offered))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_it_says_what_the_emulated_masters_gates_say(case: Case, library: Path):
    if can_be_told(case) and SmallMaster(case).decision.kinds:
        case.verdict = SmallMaster(case).verdict()
        said = verdict(case, library)
        told = f"\n{case.text()}# the brain: {said}\n"
        assert said == (case.verdict[0], named(case.offered)), told

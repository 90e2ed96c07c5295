"""The core, the emulated master's gates and the module's brain agree on random cases.

A difference is printed as a minimized case, ready for a file in this directory.
"""

from pathlib import Path

from hypothesis import assume, given

from allocator.core import Reason
from tests.rules import small_core
from tests.rules.cases import Case, Wish, words_of
from tests.rules.random_cases import by_quota, cases, is_coarse
from tests.rules.small_brain import SmallBrain, is_of_a_master
from tests.rules.small_master import SmallMaster


def told(case: Case, offered: Wish) -> str:
    """The case with both results."""
    case.verdict = SmallMaster(case).verdict()
    case.core = words_of(offered)
    return f"\n{case.text()}"


@given(cases())
def test_decisions_of_the_core_pass_the_gates_unchanged(case: Case):
    offered = small_core.offered(case)
    if offered:
        wish = Case(case.title, state=case.state, wish=[*case.wish[:3], *words_of(offered)])
        reason, *amounts = SmallMaster(wish).verdict()
        assert (reason, amounts) == (Reason.OFFERED.name, words_of(offered)), told(wish, offered)


@given(cases())
def test_the_core_decides_all_that_passes_the_gates(case: Case):
    if not is_coarse(case):
        offered = small_core.offered(case)
        case.verdict = SmallMaster(case).verdict()
        assert by_quota(case, offered) == by_quota(case, case.offered), told(case, offered)


@given(case=cases())
def test_the_gates_of_the_module_and_of_the_emulated_master_say_the_same(
    case: Case, brain_library: Path
):
    assume(is_of_a_master(case))
    case.verdict = SmallMaster(case).verdict()
    said = SmallBrain(case, brain_library).verdict()
    assert said == case.verdict, f"\n{case.text()}the brain: {' '.join(said)}"

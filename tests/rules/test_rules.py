"""Mesos's rules, one case each.

The emulated master's gates, the gates of the module's brain, and the core run them.

`README.md` describes the format of the files. With `REWRITE=1` in the environment, missing verdicts
are written; commit them only if you understand every line.
"""

import os
from pathlib import Path

import pytest

from tests.rules import small_core
from tests.rules.cases import Case, amounts_of, read_cases, write_cases
from tests.rules.small_brain import SmallBrain, is_of_a_master
from tests.rules.small_master import SmallMaster

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.txt"))


def all_cases() -> list[tuple[str, Case]]:
    return [(path.stem, case) for path in FILES for case in read_cases(path.read_text())]


CASES = all_cases()
NAMES = [f"{file}: {case.title}" for file, case in CASES]


def test_there_is_a_case_for_every_rule():
    assert len(set(NAMES)) == len(NAMES) >= 80
    reasons = {case.verdict[0] for _, case in CASES if case.verdict}
    assert len(reasons) == 18, "a case for each outcome of the protocol"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_file_is_written_as_it_is_read(path: Path):
    cases = read_cases(path.read_text())
    if os.environ.get("REWRITE"):
        for case in cases:
            case.verdict = case.verdict or SmallMaster(case).verdict()
        path.write_text(write_cases(cases))
    assert write_cases(cases) == path.read_text()
    assert all(case.verdict for case in cases)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=NAMES)
def test_the_gates_say_so(case: Case):
    reason, *amounts = SmallMaster(case).verdict()
    assert (reason, amounts_of(amounts)) == (case.verdict[0], case.offered)


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=NAMES)
def test_the_modules_brain_says_so(case: Case, brain_library: Path):
    if not is_of_a_master(case):
        pytest.skip("Mesos refuses quotas below the top, so no module sees one")
    reason, *amounts = SmallBrain(case, brain_library).verdict()
    assert (reason, amounts_of(amounts)) == (case.verdict[0], case.offered)


@pytest.mark.parametrize(
    "case",
    [case for _, case in CASES if case.wants_all],
    ids=[name for name, (_, case) in zip(NAMES, CASES, strict=True) if case.wants_all],
)
def test_the_core_offers_what_the_gates_let_through(case: Case):
    assert small_core.offered(case) == case.decided

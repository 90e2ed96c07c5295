"""The table must agree with the results."""  # noqa: INP001 - found by path

import json
import re
from pathlib import Path

import pytest
import run
import table

HERE = Path(table.__file__).resolve().parent
REASON = table.Reason(("A.x",), "because", applicable=True, subjects=())


def test_the_committed_page_is_what_the_committed_results_give() -> None:
    """The page is not edited by hand, and contains every result."""
    subjects = ("sidecar", "fallback", "built-in", "control")
    page = table.render(
        [table.read_run(HERE / "results" / f"{each}.json") for each in subjects],
        table.read_reasons(HERE / "reasons.toml"),
        (HERE / "preface.md").read_text(encoding="utf-8"),
    )
    assert page == (HERE.parent / "CONFORMANCE.md").read_text(encoding="utf-8")


def test_a_failure_needs_a_reason() -> None:
    """A failure without a reason prevents the table."""
    with pytest.raises(table.TableError, match=re.escape("A.x, s: aborted, and no reason")):
        table.render([table.Run("s", {"A.x": "aborted"}, {})], [], "")


def test_a_reason_needs_a_failure() -> None:
    """An outdated reason is an error."""
    with pytest.raises(table.TableError, match=re.escape("A.x: it failed nowhere")):
        table.render([table.Run("s", {"A.x": "passed"}, {})], [REASON], "")


def test_a_reason_for_one_subject_says_nothing_of_another() -> None:
    """A failure accepted for one subject is not accepted for another."""
    reason = table.Reason(("A.x",), "because", applicable=True, subjects=("s",))
    with pytest.raises(table.TableError, match=re.escape("A.x, t: failed, and no reason")):
        table.render([table.Run(each, {"A.x": "failed"}, {}) for each in ("s", "t")], [reason], "")


def test_two_reasons_for_one_failure_are_one_too_many() -> None:
    """A failure must have exactly one reason."""
    with pytest.raises(table.TableError, match="two reasons"):
        table.render([table.Run("s", {"A.x": "failed"}, {})], [REASON, REASON], "")


def test_outcomes_stand_in_their_columns_and_are_counted() -> None:
    """A failure is shown with its reason; a test that did not run does not count as passed."""
    runs = [
        table.Run("s", {"A.x": "hung", "A.y": "passed", "I/A.z/0": "failed"}, {}),
        table.Run("t", {"A.x": "passed", "A.y": "passed"}, {"A.y": 2}),
    ]
    reasons = [
        table.Reason(("A.x",), "because", applicable=True, subjects=("s",)),
        table.Reason(("I/A.z/0",), "names", applicable=False, subjects=()),
    ]
    page = table.render(runs, reasons, "head")
    assert "| x | **hung** | passed | because |" in page
    assert "| y | passed | passed (try 2) |  |" in page
    assert "| z [I/0] | not applicable | - | names |" in page
    assert "| s | 1 | 1 | 1 | 1 |" in page
    assert "| t | 2 | 2 | 0 | 0 |" in page


def test_the_negative_control_needs_no_reasons_and_is_subtracted() -> None:
    """Tests that pass without any decision are not counted as shown by an allocator."""
    runs = [
        table.Run("s", {"A.x": "passed", "A.y": "passed"}, {}),
        table.Run(table.CONTROL, {"A.x": "passed", "A.y": "hung"}, {}),
    ]
    page = table.render(runs, [], "head")
    assert "| y | passed | hung |  |" in page
    assert "| s | 2 | 1 | 0 | 0 |" in page
    assert "| control | 1 | 0 | 1 | 0 |" in page


FAKE_BINARY = r"""#!/bin/sh
for argument; do
  case $argument in
    --gtest_list_tests) printf 'A.\n  good\n  bad\n  crash\n  sleep\n  DISABLED_old\n'; exit ;;
    --gtest_filter=*) test=${argument#*=} ;;
    --gtest_output=xml:*) report=${argument#*xml:} ;;
  esac
done
case $test in
  A.good) body='<testcase name="good" status="run"/>' ;;
  A.bad) body='<testcase name="bad" status="run"><failure message="no"/></testcase>' ;;
  A.crash) kill -ABRT $$ ;;
  A.sleep) exec sleep 60 ;;
esac
echo "<testsuites><testsuite name=\"A\">$body</testsuite></testsuites>" > "$report"
"""


def test_an_abort_and_a_hang_are_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that ends its process does not affect others."""
    binary = tmp_path / "tests"
    binary.write_text(FAKE_BINARY, encoding="utf-8")
    binary.chmod(0o755)
    out = tmp_path / "results.json"
    arguments = [str(binary), str(out), "--subject", "s", "--timeout", "2"]
    logs = ["--logs", str(tmp_path / "logs"), "--jobs", "4"]
    monkeypatch.setattr("sys.argv", ["run.py", *arguments, *logs])
    assert run.main() == 0
    tests = json.loads(out.read_text(encoding="utf-8"))["tests"]
    assert {name: test["outcome"] for name, test in tests.items()} == {
        "A.good": "passed",
        "A.bad": "failed",
        "A.crash": "aborted",
        "A.sleep": "hung",
    }

#!/usr/bin/env python3
"""Make the conformance table from results and reasons.

The table must agree with the results: a failure without a reason is an error, and so is a reason
for a test that did not fail. The negative control, where no allocator decides, needs no reasons: it
shows which tests pass without any decision.
"""

import argparse
import json
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PASSED = "passed"
NOT_APPLICABLE = "not applicable"
MISSING = "-"
# The subject of the negative control: neither a sidecar nor the module's fallback.
CONTROL = "control"


@dataclass(frozen=True)
class Run:
    """The outcome of each test with one subject."""

    subject: str
    outcomes: dict[str, str]
    tries: dict[str, int]


@dataclass(frozen=True)
class Reason:
    """Why tests fail or do not apply, for some subjects or (if empty) for all."""

    tests: tuple[str, ...]
    why: str
    applicable: bool
    subjects: tuple[str, ...]


class TableError(ValueError):
    """Results and reasons do not match."""


def read_run(path: Path) -> Run:
    """Read a file that `run.py` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    tests = content["tests"]
    return Run(
        content["subject"],
        {name: test["outcome"] for name, test in tests.items()},
        {name: test.get("tries", 1) for name, test in tests.items()},
    )


def read_reasons(path: Path) -> list[Reason]:
    """Read the reasons: tables `[[failed]]` and `[[not_applicable]]` of a TOML file."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Reason(tuple(each["tests"]), each["why"], applicable, tuple(each.get("subjects", ())))
        for key, applicable in (("failed", True), ("not_applicable", False))
        for each in content.get(key, [])
    ]


def reason_for(reasons: list[Reason], test: str, subject: str) -> Reason | None:
    """Find the reason for a test and subject; None if there is none."""
    found = [
        each
        for each in reasons
        if test in each.tests and (not each.subjects or subject in each.subjects)
    ]
    if len(found) > 1:
        raise TableError(f"{test}, {subject}: two reasons")
    return found[0] if found else None


def check(runs: list[Run], reasons: list[Reason]) -> None:
    """Check that each failure has a reason, and each reason a failure.

    Raises
    ------
    TableError
        With a line for each failure or reason that has no counterpart.
    """
    wrong = []
    used = set()
    for run in runs:
        if run.subject == CONTROL:
            continue
        for test, outcome in run.outcomes.items():
            reason = reason_for(reasons, test, run.subject)
            if reason is not None and outcome != PASSED:
                used.add((test, reason.why))
            if outcome != PASSED and reason is None:
                wrong.append(f"{test}, {run.subject}: {outcome}, and no reason says why")
            if outcome == PASSED and reason is not None and reason.subjects:
                wrong.append(f"{test}, {run.subject}: passed, and a reason says why not")
    wrong += [
        f"{test}: it failed nowhere, and a reason says why"
        for reason in reasons
        for test in reason.tests
        if (test, reason.why) not in used
    ]
    if wrong:
        raise TableError("\n".join(wrong))


def cell(run: Run, reasons: list[Reason], test: str) -> str:
    """Format one outcome; a dash if the test did not run."""
    outcome = run.outcomes.get(test, MISSING)
    tries = run.tries.get(test, 1)
    if outcome == PASSED and tries > 1:
        return f"{PASSED} (try {tries})"
    if outcome in (PASSED, MISSING) or run.subject == CONTROL:
        return outcome
    reason = reason_for(reasons, test, run.subject)
    applicable = reason is None or reason.applicable
    return f"**{outcome}**" if applicable else NOT_APPLICABLE


def suite_and_name(test: str) -> tuple[str, str]:
    """Split a full name, `Instance/Suite.Test/0`, into the suite and the rest.

    >>> suite_and_name("ReservationType/WithReservations.Unallocated/0")
    ('WithReservations', 'Unallocated [ReservationType/0]')
    >>> suite_and_name("HierarchicalAllocatorTest.OfferFilter")
    ('HierarchicalAllocatorTest', 'OfferFilter')
    """
    suite, _, name = test.partition(".")
    instance, slash, base = suite.partition("/")
    if slash and not base.isdigit():
        name, _, number = name.partition("/")
        return base, f"{name} [{instance}/{number}]"
    return instance, name


def rows(runs: list[Run], reasons: list[Reason]) -> list[str]:
    """Format one Markdown table per suite."""
    tests = sorted({test for run in runs for test in run.outcomes}, key=suite_and_name)
    head = "| test | " + " | ".join(run.subject for run in runs) + " | why |"
    lines: list[str] = []
    suite = ""
    for test in tests:
        base, name = suite_and_name(test)
        if base != suite:
            suite = base
            lines += ["", f"## {suite}", "", head, "|---" * (len(runs) + 2) + "|"]
        cells = [cell(run, reasons, test) for run in runs]
        why: list[str] = []
        for run in runs:
            reason = reason_for(reasons, test, run.subject)
            if run.outcomes.get(test, PASSED) != PASSED and reason and reason.why not in why:
                why.append(reason.why)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {'; '.join(why)} |")
    return lines


def summary(runs: list[Run], reasons: list[Reason]) -> list[str]:
    """Count the outcomes of each subject, and how many passes the negative control lacks."""
    undecided = {
        test
        for run in runs
        if run.subject == CONTROL
        for test, outcome in run.outcomes.items()
        if outcome == PASSED
    }
    lines = [
        f"| | passed | of these, not in *{CONTROL}* | failed | not applicable |",
        "|---|---|---|---|---|",
    ]
    for run in runs:
        passed = {test for test, outcome in run.outcomes.items() if outcome == PASSED}
        cells = Counter(cell(run, reasons, test) for test in run.outcomes.keys() - passed)
        other = cells[NOT_APPLICABLE]
        failed = cells.total() - other
        shown = len(passed - undecided)
        lines.append(f"| {run.subject} | {len(passed)} | {shown} | {failed} | {other} |")
    return lines


def render(runs: list[Run], reasons: list[Reason], preface: str) -> str:
    """Format the whole page."""
    check(runs, reasons)
    return "\n".join([preface.rstrip(), "", *summary(runs, reasons), *rows(runs, reasons), ""])


def main() -> int:
    """Write the page, or compare it with the existing one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", help="files that run.py wrote")
    parser.add_argument("--reasons", type=Path, default=HERE / "reasons.toml")
    parser.add_argument("--preface", type=Path, default=HERE / "preface.md")
    parser.add_argument("--out", type=Path, default=HERE.parent / "CONFORMANCE.md")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    arguments = parser.parse_args()

    try:
        page = render(
            [read_run(path) for path in arguments.results],
            read_reasons(arguments.reasons),
            arguments.preface.read_text(encoding="utf-8"),
        )
    except TableError as error:
        sys.stderr.write(f"{error}\n")
        return 1

    if arguments.check:
        same = arguments.out.exists() and arguments.out.read_text(encoding="utf-8") == page
        return 0 if same else 1
    arguments.out.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Run a GoogleTest binary test by test and write the results.

Each test runs in its own process, so that an abort or a hang is the result of one test and does
not end the run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PASSED = "passed"
FAILED = "failed"
ABORTED = "aborted"
HUNG = "hung"

# Mesos's older word for an agent, which its tests still use.
OLD_NAME_OF_AGENT = "Sla" + "ve"


def list_tests(binary: Path, pattern: str) -> list[str]:
    """List the full names of the tests that a pattern of GoogleTest selects.

    Parameters
    ----------
    binary : Path
        The test binary.
    pattern : str
        A value for `--gtest_filter`.

    Returns
    -------
    list of str
        Names such as `Suite.Test` or `Instance/Suite.Test/0`, without disabled tests.
    """
    listing = subprocess.run(  # noqa: S603 - the binary is the caller's
        [binary, "--gtest_list_tests", f"--gtest_filter={pattern}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = []
    suite = ""
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if name.endswith(".") and not name.startswith(" "):
            suite = name
        elif name.startswith("  ") and suite:
            names.append(suite + name.strip())
    return [name for name in names if "DISABLED_" not in name]


def failures_in(report: Path) -> int | None:
    """Count the failures in a GoogleTest XML report; None if it is unusable."""
    try:
        cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314 - our own run wrote it
    except (OSError, ET.ParseError):
        return None
    ran = [case for case in cases if case.get("status") == "run"]
    return sum(len(case.findall("failure")) for case in ran) if ran else None


def run_test(binary: Path, name: str, log: Path, timeout_s: float) -> dict[str, str | float]:
    """Run one test in its own process.

    Returns
    -------
    dict
        `outcome` is one of passed, failed, aborted (no report was written) and hung;
        `seconds` is the elapsed time.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, log.open("w", encoding="utf-8") as output:
        report = Path(scratch) / "report.xml"
        command = [str(binary), f"--gtest_filter={name}", f"--gtest_output=xml:{report}"]
        try:
            code = subprocess.run(  # noqa: S603 - the binary is the caller's
                command, stdout=output, stderr=output, timeout=timeout_s, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            outcome = HUNG
        else:
            failures = failures_in(report)
            outcome = ABORTED if failures is None or code < 0 else FAILED if failures else PASSED
    return {"outcome": outcome, "seconds": round(time.monotonic() - began, 1)}


def run_until_passed(
    binary: Path, name: str, log: Path, timeout_s: float, tries_max: int
) -> dict[str, str | float]:
    """Run one test until it passes, at most `tries_max` times; `tries` in the result if several."""
    tries = 1
    result = run_test(binary, name, log, timeout_s)
    while result["outcome"] != PASSED and tries < tries_max:
        tries += 1
        result = run_test(binary, name, log, timeout_s)
    return {**result, "tries": tries} if tries > 1 else result


def main() -> int:
    """Run the tests; return 0 even if some failed, because `table.py` checks the failures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("binary", type=Path, help="the test binary")
    parser.add_argument("results", type=Path, help="the file of results to write or to complete")
    parser.add_argument("--subject", required=True, help="what is tested; heads a column")
    parser.add_argument("--filter", default="*", help="GoogleTest's pattern of tests")
    parser.add_argument("--logs", type=Path, help="folder for each test's output")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one test")
    parser.add_argument("--tries", type=int, default=1, help="tries that a test has to pass")
    parser.add_argument("--jobs", type=int, default=1, help="tests at the same time, if no sidecar")
    arguments = parser.parse_args()

    binary = arguments.binary.resolve()
    logs = arguments.logs or Path(tempfile.mkdtemp(prefix="conformance-"))
    logs.mkdir(parents=True, exist_ok=True)

    results: dict[str, dict[str, str | float]] = {}
    if arguments.results.exists():
        results = json.loads(arguments.results.read_text(encoding="utf-8"))["tests"]

    def run(name: str) -> dict[str, str | float]:
        log = logs / (name.replace("/", "_") + ".log")
        return run_until_passed(binary, name, log, arguments.timeout, arguments.tries)

    names = list_tests(binary, arguments.filter)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, result in zip(names, pool.map(run, names), strict=True):
            results[name.replace(OLD_NAME_OF_AGENT, "Agent")] = result
            sys.stdout.write(f"{result['outcome']:8} {result['seconds']:6} s  {name}\n")
            sys.stdout.flush()
            content = {"subject": arguments.subject, "tests": dict(sorted(results.items()))}
            partial = arguments.results.with_suffix(".partial")
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            partial.replace(arguments.results)

    sys.stdout.write(f"logs: {logs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Inject faults into a sidecar process, and report every violated invariant.

The sidecar is killed, frozen, restarted and replaced; its connections are reset, cut and stalled;
its disk fills and its certificates expire; tenants send every harmful input that a master accepts.
Meanwhile emulated masters compare every number. Ctrl-C ends the run and prints the report so far.
Exit code 1: an invariant was violated.

    python -m tests.torture --hours 1 --seed 7
"""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from tests.torture.report import TortureFindings, text, write
from tests.torture.run import Plan, torture

HOUR_S = 3_600.0


def main() -> int:
    """Run until the time is over or a signal arrives; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--hours", type=float, default=1.0, help="duration (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first world (default: 0)")
    parser.add_argument(
        "--size", type=int, default=10, help="agents, and frameworks at a time (default: 10)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("torture-out"), help="directory for report and log"
    )
    given = parser.parse_args()
    told: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    plan = Plan(given.hours * HOUR_S, given.seed, given.out, given.size)
    report = torture(plan, stopped=lambda: bool(told), tell=_tell)
    print(text(report))
    print(f"\nwritten: {write(report, given.out)}")
    if report.violations:
        first = report.findings.violations[0].seed
        print(f"{report.violations} violations; the first with --seed {first}", file=sys.stderr)
    return min(report.violations, 1)


def _tell(findings: TortureFindings) -> None:
    """Print one line of progress per world."""
    broken = sum(findings.broken.values())
    print(
        f"{findings.elapsed_s:7.0f} s  seed {findings.seed}: {findings.counts['cycles']} cycles,"
        f" {sum(findings.faults.values())} faults, {broken} violations",
        file=sys.stderr,
    )


if __name__ == "__main__":
    sys.exit(main())

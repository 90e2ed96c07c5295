"""The long experiments from the command line.

python -m tests.cluster.storm --mesos-root DIR --mesos-module FILE --rounds 60
"""

import argparse
import dataclasses
import statistics
import sys
from typing import Any

from tests.cluster.agreement import agree
from tests.cluster.crowd import crowd
from tests.cluster.experiments import be_hostile, storm, try_policies
from tests.cluster.mesos import find


def main() -> None:
    """Run the requested experiments, and print tables."""
    parser = argparse.ArgumentParser(description="Long experiments on a real Mesos cluster.")
    parser.add_argument("--mesos-root")
    parser.add_argument("--mesos-module")
    parser.add_argument("--policies", action="store_true", help="every policy in every mode")
    parser.add_argument("--rounds", type=int, default=0, help="faults of the sidecar")
    parser.add_argument("--fallback-after-ms", type=int, default=500)
    parser.add_argument("--hostile-s", type=float, default=0, help="seconds of a hostile sidecar")
    parser.add_argument("--agents", type=int, default=0, help="small agents of a crowd")
    parser.add_argument("--frameworks", type=int, default=50, help="frameworks of a crowd")
    parser.add_argument("--crowd-s", type=float, default=60, help="seconds at work of a crowd")
    parser.add_argument("--shadow-s", type=float, default=0, help="seconds a policy in shadow")
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args()
    mesos = find(words.mesos_root, words.mesos_module)
    if words.policies:
        rows = [dataclasses.asdict(each) for each in try_policies(mesos)]
        _table(rows)
    if words.rounds:
        figures = storm(mesos, words.rounds, words.seed, words.fallback_after_ms)
        _faults(figures)
    if words.hostile_s:
        _fields(be_hostile(mesos, words.hostile_s, words.seed))
    if words.shadow_s:
        shown = (
            ("drf", "oblivious", 1),
            ("drf", "oblivious", 8),
            ("drf", "characterised", 8),
            ("rps-dsf", "oblivious", 8),
        )
        _table([dataclasses.asdict(agree(mesos, *each, words.shadow_s)) for each in shown])
    if words.agents:
        _fields(crowd(mesos, words.agents, words.frameworks, words.crowd_s))


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def _table(rows: list[dict[str, Any]]) -> None:
    _say("|", " | ".join(rows[0]), "|")
    _say("|", " | ".join("---" for _ in rows[0]), "|")
    for row in rows:
        cells = (f"{each:.2f}" if isinstance(each, float) else str(each) for each in row.values())
        _say("|", " | ".join(cells), "|")


def _faults(figures: Any) -> None:
    rows = []
    for kind in ("kill", "stop", "restart"):
        faults = [each for each in figures.faults if each.kind == kind]
        if faults:
            gaps = [each.gap_s for each in faults]
            rows.append(
                {
                    "fault": kind,
                    "times": len(faults),
                    "longest gap, median s": statistics.median(gaps),
                    "longest gap, most s": max(gaps),
                    "first offer, most s": max(each.first_s for each in faults),
                    "session back, most s": max(each.back_s for each in faults),
                }
            )
    _table(rows)
    _fields(figures, "faults")


def _fields(figures: Any, *without: str) -> None:
    for each in dataclasses.fields(figures):
        if each.name not in without:
            _say(f"{each.name}: {getattr(figures, each.name)}")


if __name__ == "__main__":
    main()

"""Processor times of the gauges, compared with those of an earlier commit in the same run.

The tree of that commit is checked out to `.cache/gate`, with its own gauges and its own compiled
loops. A process of each tree runs each gauge in turn, so that other work on the machine slows both.
A gauge fails if it takes more than `LIMIT` times as long, twice, in new processes.

`baseline.txt` names the commit; `--record` writes the current one.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.gauges import GAUGES

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("baseline.txt")
LIMIT = 2.0
BLOCKS, BLOCK_MS = 8, 20.0

# Loads all loops, as the measured process does; the first one also compiles missing ones.
_COMPILE = """
import json, sys
from tests.bench.gauges import GAUGES
for name in json.loads(sys.argv[1]):
    if name in GAUGES:
        next(GAUGES[name]())
"""
# Runs a gauge for some turns on each input line; null if the tree has no such gauge, or it ended.
_MEASURE = """
import itertools, json, sys
from tests.bench.gauges import GAUGES
running = {}
for line in sys.stdin:
    name, turns = json.loads(line)
    if name in GAUGES and name not in running:
        running[name] = GAUGES[name]()
    took = list(itertools.islice(running.get(name, ()), turns))
    print(json.dumps(sum(took) / turns if len(took) == turns else None), flush=True)
"""

Clock = Callable[[str, int], float | None]
"""Runs a gauge for some turns; returns milliseconds per turn, None if there are no such turns."""


def started(tree: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """Run code with a tree's own packages."""
    cache = os.environ.get("NUMBA_CACHE_DIR") if tree == ROOT else None
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "NUMBA_CACHE_DIR": cache or str(tree / ".cache" / "numba"),
    }
    command, pipe = [sys.executable, "-c", code, *words], subprocess.PIPE
    return subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)


@contextmanager
def opened(tree: Path) -> Iterator[Clock]:
    """Start a process that measures a tree."""
    with started(tree, _MEASURE) as process:

        def clock(name: str, turns: int) -> float | None:
            print(json.dumps([name, turns]), file=process.stdin, flush=True)
            assert process.stdout is not None
            return json.loads(process.stdout.readline())

        yield clock


def compare(name: str, before: Clock, now: Clock) -> tuple[float, float | None, float]:
    """Run a gauge in both trees in turn: milliseconds now and before, and the median ratio."""

    def run(turns: int) -> tuple[float, float | None]:
        now_ms = now(name, turns)
        assert now_ms, f"{name} ended"
        return now_ms, before(name, turns)

    first_ms, _ = run(2)
    turns = max(2, round(BLOCK_MS / max(first_ms, 1e-3)))
    pairs = [(new, old) for new, old in (run(turns) for _ in range(BLOCKS)) if old]
    if not pairs:
        return first_ms, None, 1.0
    news, olds = zip(*pairs, strict=True)
    return min(news), min(olds), statistics.median(new / old for new, old in pairs)


def slower(before: Path, names: list[str]) -> list[str]:
    """Print a table; returns the gauges that exceed the limit."""
    print("| gauge | ms a turn | before | ratio |")
    print("|---|---|---|---|")
    left = names
    for _ in range(2):
        measured, left = left, []
        with opened(before) as then, opened(ROOT) as now:
            for name in measured:
                now_ms, before_ms, ratio = compare(name, then, now)
                cells = (f"{before_ms:.4g} | {ratio:.2f}") if before_ms else "new |"
                print(f"| {name} | {now_ms:.4g} | {cells} |", flush=True)
                left += [name] * (ratio > LIMIT)
    return left


def git(*words: str) -> bytes:
    """Output of a git command in this repository."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def laid_out(commit: str) -> Path:
    """The tree of a commit, in the cache."""
    tree = ROOT / ".cache" / "gate" / commit
    if tree.exists():
        return tree
    try:
        packed = git("archive", "--format=tar", commit)
    except subprocess.CalledProcessError:
        sys.exit(f"no commit {commit} here: clone without --depth")
    fresh = tree.with_suffix(".new")
    # Python 3.11.2, which Debian has, lacks extraction filters.
    checked: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(fresh, **checked)
    return fresh.rename(tree)


def main() -> None:
    """Measure all gauges in both trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="compare with HEAD from now on")
    parser.add_argument("--baseline", default=BASELINE.read_text().strip(), metavar="COMMIT")
    parser.add_argument("--gauges", nargs="*", default=list(GAUGES), choices=list(GAUGES))
    given = parser.parse_args()
    if given.record:
        BASELINE.write_bytes(git("rev-parse", "HEAD"))
        return
    before = laid_out(given.baseline)
    for tree in (before, ROOT):
        with started(tree, _COMPILE, json.dumps(given.gauges)) as process:
            process.communicate()
        if process.returncode:
            sys.exit(f"the gauges of {tree} failed; the message is above")
    print(f"compared with {given.baseline}\n")
    if found := slower(before, given.gauges):
        sys.exit(f"more than {LIMIT} times as slow as before: {', '.join(found)}")


if __name__ == "__main__":
    main()

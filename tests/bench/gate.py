"""Whether the sidecar has become slower than it was at one commit, told on any machine.

The tree of that commit is laid out beside this one. Both do the same work by turns, block for
block, in processor time: what disturbs for longer than a block disturbs both alike. A gauge that
seems slower is measured again in new processes, and only one that is slower every time is.

`baseline.txt` names the commit. `--record` names the present one: for what is to cost more.
"""

import argparse
import io
import json
import math
import os
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.gauges import GAUGES

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("baseline.txt")
SLOWER = 1.2
"""So much more than before is a regression."""
TRIES = 5
BLOCKS, BLOCK_MS, TURNS_MIN = 24, 20.0, 2

# What is run in either tree: each has gauges of its own. First so that all loops are compiled: what
# a process compiles itself runs a tenth faster than what it loads, so both sides load.
_COMPILE = """
import json, sys
from tests.bench.gauges import GAUGES
for name in json.loads(sys.argv[1]):
    if name in GAUGES:
        next(GAUGES[name]())
"""
# Then one that goes through so many turns of a gauge whenever a line asks for them.
_MEASURE = """
import itertools, json, sys
from tests.bench.gauges import GAUGES
gauges = {name: GAUGES[name]() for name in json.loads(sys.argv[1]) if name in GAUGES}
print(json.dumps(list(gauges)), flush=True)
for line in sys.stdin:
    name, turns = json.loads(line)
    print(json.dumps(sum(itertools.islice(gauges[name], turns))), flush=True)
"""


class Side(NamedTuple):
    """A tree that is measured.

    `gauges`: those that it has.
    `took_ms`: how long so many turns of a gauge take.
    """

    gauges: list[str]
    took_ms: Callable[[str, int], float]


class Found(NamedTuple):
    """What a turn takes now and before, in ms (None: no such gauge), and how they compare."""

    now_ms: float
    before_ms: float | None
    ratio: float


def started(tree: Path, code: str, names: list[str]) -> subprocess.Popen[str]:
    """Run a tree's own code about gauges, in a process of its own."""
    cache = os.environ.get("NUMBA_CACHE_DIR") if tree == ROOT else None
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "NUMBA_CACHE_DIR": cache or str(tree / ".cache" / "numba"),
    }
    command = [sys.executable, "-c", code, json.dumps(names)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)


def compile_loops(tree: Path, names: list[str]) -> None:
    """Compile what gauges need in a tree, where that was not done before."""
    with started(tree, _COMPILE, names) as process:
        process.communicate()
    if process.returncode:
        sys.exit(f"the gauges of {tree} ended with {process.returncode}; its message stands above")


@contextmanager
def opened(tree: Path, names: list[str]) -> Iterator[Side]:
    """Begin to measure gauges in a tree."""
    with started(tree, _MEASURE, names) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said, heard = process.stdin, process.stdout

        def took_ms(name: str, turns: int) -> float:
            print(json.dumps([name, turns]), file=said, flush=True)
            return float(heard.readline())

        yield Side(json.loads(heard.readline()), took_ms)


def compare(before: Side, now: Side, name: str, planted: float = 0.0) -> Found:
    """Measure a gauge in two trees by turns.

    `planted`: so much more work is done now and not told: 0.3 is a regression of 30 %. It shows
        that the gate sees one.
    """
    first_ms = min(now.took_ms(name, 1) for _ in range(2))
    if name not in before.gauges:
        return Found(first_ms, None, 1.0)
    before.took_ms(name, 2)
    turns = max(TURNS_MIN, round(BLOCK_MS / max(first_ms, 1e-3)))
    befores, nows = list[float](), list[float]()
    for _ in range(BLOCKS):
        befores.append(before.took_ms(name, turns) / turns)
        nows.append(now.took_ms(name, math.ceil(turns * (1 + planted))) / turns)
    ratio = statistics.median(new / old for new, old in zip(nows, befores, strict=True))
    return Found(min(nows), min(befores), ratio)


def git(*words: str) -> bytes:
    """What git says, of this repository."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def laid_out(commit: str) -> Path | None:
    """The tree of a commit, in the cache; None where this is no repository that has it."""
    tree = ROOT / ".cache" / "gate" / commit
    if tree.exists():
        return tree
    try:
        packed = git("archive", "--format=tar", commit)
    except (OSError, subprocess.CalledProcessError):
        return None
    fresh = tree.with_suffix(".new")
    # Python 3.11.2, which Debian has, knows no filters.
    checked: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(fresh, **checked)
    return fresh.rename(tree)


def slower(before: Path, names: list[str], planted: float = 0.0) -> list[str]:
    """Compare both trees, a few times where need be; prints a table, gives what is slower."""
    least: dict[str, Found] = {}
    left = names
    for _ in range(TRIES):
        with opened(before, left) as then, opened(ROOT, left) as now:
            for name in left:
                found = compare(then, now, name, planted)
                least[name] = min(found, least.get(name, found), key=lambda each: each.ratio)
        left = [name for name in left if least[name].ratio > SLOWER]
        if not left:
            break
    print("| gauge | ms a turn | before | ratio | |")
    print("|---|---|---|---|---|")
    for name in names:
        now_ms, before_ms, ratio = least[name]
        if before_ms is None:
            print(f"| {name} | {now_ms:.4g} | | | new |")
            continue
        verdict = "SLOWER" if name in left else "as before"
        print(f"| {name} | {now_ms:.4g} | {before_ms:.4g} | {ratio:.2f} | {verdict} |")
    return left


def main() -> None:
    """Measure all gauges in both trees, and end with 1 where one is slower than it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="compare with HEAD from now on")
    parser.add_argument("--baseline", default=BASELINE.read_text().strip(), metavar="COMMIT")
    parser.add_argument("--planted", type=float, default=0.0, help="see what 0.3 more work does")
    parser.add_argument("--gauges", nargs="*", default=list(GAUGES), choices=list(GAUGES))
    given = parser.parse_args()
    if given.record:
        BASELINE.write_bytes(git("rev-parse", "HEAD"))
        return
    before = laid_out(given.baseline)
    if before is None:
        lacks = f"nothing to compare with: no commit {given.baseline} here; its history is missing"
        if os.environ.get("CI"):
            sys.exit(f"{lacks}: clone without --depth")
        print(lacks)
        return
    for tree in (before, ROOT):
        compile_loops(tree, given.gauges)
    print(f"compared with {given.baseline}\n")
    if found := slower(before, given.gauges, given.planted):
        mend = "make it fast again, or say why it costs more and compare with that: gate --record"
        sys.exit(f"slower than before: {', '.join(found)}; {mend}")


if __name__ == "__main__":
    main()

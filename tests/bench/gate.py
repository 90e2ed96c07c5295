"""Whether the sidecar has become slower than it was at one commit, told on any machine.

The tree of that commit is laid out beside this one, and both are measured in the same run: the same
gauges, each beside a yardstick, in processor time. What counts is the fastest of a dozen blocks on
either side: whatever disturbs only adds. A gauge that seems slower is measured again in both trees,
and only one that is slower every time is.

`baseline.txt` names the commit. `--record` names the present one: for what is to cost more.
"""

import argparse
import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.bench.gauges import GAUGES, Gauge
from tests.bench.yardstick import yardstick_ms

ROOT = Path(__file__).parents[2]
BASELINE = Path(__file__).with_name("baseline.txt")
SLOWER = 1.2
"""So much more than before is a regression."""
TRIES = 5
BLOCKS, BLOCK_MS, TURNS_MIN = 12, 20.0, 10

# What is run in either tree: each has gauges of its own. First so that all loops are compiled: what
# a process compiles itself runs a tenth faster than what it loads, so both sides load.
_COMPILE = """
import json, sys
from tests.bench.gauges import GAUGES
names, _ = json.loads(sys.argv[1])
for name in names:
    if name in GAUGES:
        next(GAUGES[name]())
"""
_MEASURE = """
import json, sys
from tests.bench.gate import ratio
from tests.bench.gauges import GAUGES
names, planted = json.loads(sys.argv[1])
json.dump({name: ratio(GAUGES[name](), planted) for name in names if name in GAUGES}, sys.stdout)
"""


def ratio(gauge: Gauge, planted: float = 0.0) -> float:
    """How many yardsticks one turn of a gauge takes.

    `planted`: so much more work is done and not told: 0.3 is a regression of 30 %. It shows that
        the gate sees one.
    """
    took_ms, yard_ms = [], []
    turns = max(TURNS_MIN, round(BLOCK_MS / max(next(gauge), next(gauge), 1e-3)))
    done = round(turns * (1 + planted))
    for _ in range(BLOCKS):
        yard_ms.append(yardstick_ms())
        took_ms.append(sum(itertools.islice(gauge, done)) / turns)
    return min(took_ms) / min(yard_ms)


def run(tree: Path, code: str, names: list[str], planted: float = 0.0) -> str:
    """What a tree's own code says of gauges, in a process of its own."""
    cache = os.environ.get("NUMBA_CACHE_DIR") if tree == ROOT else None
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "NUMBA_CACHE_DIR": cache or str(tree / ".cache" / "numba"),
    }
    command = [sys.executable, "-c", code, json.dumps([names, planted])]
    said = subprocess.run(
        command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return said.stdout


def measured(tree: Path, names: list[str], planted: float = 0.0) -> dict[str, float]:
    """Ratios of gauges in a tree; those that it has."""
    result: dict[str, float] = json.loads(run(tree, _MEASURE, names, planted))
    return result


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


def slower(before: Path, names: list[str], planted: float) -> list[str]:
    """Compare both trees, a few times where need be; prints a table, gives what is slower."""
    then: dict[str, float] = {}
    now: dict[str, float] = {}
    left = names
    for _ in range(TRIES):
        for least, found in (
            (then, measured(before, left)),
            (now, measured(ROOT, left, planted)),
        ):
            for name, each in found.items():
                least[name] = min(each, least.get(name, each))
        left = [each for each in left if each in then and now[each] > SLOWER * then[each]]
        if not left:
            break
    print("| gauge | yardsticks a turn | before | ratio | |")
    print("|---|---|---|---|---|")
    for name in names:
        if name not in then:
            print(f"| {name} | {now[name]:.4g} | | | new |")
            continue
        verdict = "SLOWER" if name in left else "as before"
        print(
            f"| {name} | {now[name]:.4g} | {then[name]:.4g} | {now[name] / then[name]:.2f}"
            f" | {verdict} |"
        )
    return left


def main() -> None:
    """Measure all gauges in both trees, and end with 1 where one is slower than it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="compare with HEAD from now on")
    parser.add_argument("--baseline", default=BASELINE.read_text().strip(), metavar="COMMIT")
    parser.add_argument("--planted", type=float, default=0.0, help="see what 0.3 more work does")
    parser.add_argument("--gauges", nargs="*", default=list(GAUGES))
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
        run(tree, _COMPILE, given.gauges)
    print(f"compared with {given.baseline}; a yardstick is {yardstick_ms():.1f} ms now\n")
    if found := slower(before, given.gauges, given.planted):
        mend = "make it fast again, or say why it costs more and compare with that: gate --record"
        sys.exit(f"slower than before: {', '.join(found)}; {mend}")


if __name__ == "__main__":
    main()

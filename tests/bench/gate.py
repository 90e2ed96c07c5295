"""Whether the sidecar has become slower than it was, told on any machine and under any load.

Each gauge is measured beside a yardstick, in turn, in processor time; what counts is the ratio of
the two, the fastest of a dozen blocks on either side: whatever disturbs only adds. Where a ratio is
beyond the one that was recorded, the gauge is measured again, and only one that is beyond
it every time is slower.

How fast loops are against the interpreter differs from processor to processor. So what is recorded
is kept by the processor's name, and on one that nobody has recorded the gate tells its ratios and
passes. `--record` writes them.
"""

import argparse
import itertools
import json
import platform
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from tests.bench.gauges import GAUGES, Gauge
from tests.bench.yardstick import yardstick_ms

RECORDED = Path(__file__).with_name("gate.json")
SLOWER = 1.2
"""So much more than was recorded is a regression."""
TRIES = 5
BLOCKS, BLOCK_MS, TURNS_MIN = 12, 20.0, 10


def processor() -> str:
    """What this machine computes with, as far as it says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    said = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    parts = ("model name", "cpu family", "model", "stepping", "cache size")
    return ", ".join(said[part].strip() for part in parts if part in said) or platform.machine()


def ratio(gauge: Gauge, planted: float = 0.0) -> float:
    """How many yardsticks one turn of a gauge takes.

    Parameters
    ----------
    planted : float
        So much more work is done and not told: 0.3 is a regression of 30 %. It shows that the gate
        sees one.
    """
    took_ms, yard_ms = [], []
    turns = max(TURNS_MIN, round(BLOCK_MS / max(next(gauge), next(gauge), 1e-3)))
    done = round(turns * (1 + planted))
    for _ in range(BLOCKS):
        yard_ms.append(yardstick_ms())
        took_ms.append(sum(itertools.islice(gauge, done)) / turns)
    return min(took_ms) / min(yard_ms)


def judge(make: Callable[[], Gauge], recorded: float, planted: float = 0.0) -> tuple[float, bool]:
    """Measure a gauge until it is as fast as it was, a few times at most; and whether it is."""
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, ratio(make(), planted))
        if least <= recorded * SLOWER:
            return least, True
    return least, False


def record(make: Callable[[], Gauge]) -> float:
    """Measure a gauge a few times, and give the median."""
    return float(f"{statistics.median(ratio(make()) for _ in range(TRIES)):.4g}")


def main() -> None:
    """Measure all gauges, and end with 1 where one is slower than it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep what is measured now")
    parser.add_argument("--planted", type=float, default=0.0, help="see what 0.3 more work does")
    parser.add_argument("--gauges", nargs="*", default=list(GAUGES))
    given = parser.parse_args()
    recorded: dict[str, dict[str, float]] = json.loads(RECORDED.read_text())
    mine = recorded.setdefault(processor(), {})
    print(f"processor: {processor()}; a yardstick is {yardstick_ms():.1f} ms now\n")
    if given.record:
        for name in given.gauges:
            mine[name] = record(GAUGES[name])
        RECORDED.write_text(json.dumps(recorded, indent=2) + "\n")
    slower = _judge_all(given.gauges, mine, given.planted)
    if slower:
        mend = "make it fast again, or say why it costs more and record it: gate --record"
        sys.exit(f"slower than recorded: {', '.join(slower)}; {mend}")


def _judge_all(gauges: list[str], recorded: dict[str, float], planted: float) -> list[str]:
    """Print a table; gives those that are slower."""
    slower = []
    print("| gauge | yardsticks a turn | recorded | ratio | |")
    print("|---|---|---|---|---|")
    for name in gauges:
        if name not in recorded:
            print(f"| {name} | {ratio(GAUGES[name](), planted):.4g} | | | not recorded |")
            continue
        before = recorded[name]
        now, fine = judge(GAUGES[name], before, planted)
        shown = f"{before:.4g} | {now / before:.2f} | {'as before' if fine else 'SLOWER'}"
        print(f"| {name} | {now:.4g} | {shown} |", flush=True)
        slower += [] if fine else [name]
    return slower


if __name__ == "__main__":
    main()

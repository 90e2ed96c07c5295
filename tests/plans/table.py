"""The distance of plans from their policies' definitions, on any number of random clusters.

``python -m tests.plans.table [--instances 1000] [--first 0] [--policies cmmf pf-exact ...]`` prints
a table. Each cluster is played twice on a real sidecar, through a real stream: from empty, and
after everything that DRF granted has turned over once. The table names the seed with the largest
distance.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from allocator.core import PolicySpec
from laboratory.links.sidecar_process import SidecarProcess
from tests.plans.measures import MEASURES, Measure
from tests.plans.turnover import SETTINGS, await_compiled, mended, planned


def measured(name: str, seeds: Sequence[int], sidecar: SidecarProcess) -> dict[str, np.ndarray]:
    """The deviations of each cluster, by initial state."""
    measure, spec = MEASURES[name], PolicySpec(name, mode="characterised")
    found: dict[str, list[float]] = {"from empty": [], "before": [], "turned over": []}
    for seed in seeds:
        cluster = measure.draw(seed)
        begun = planned(cluster, sidecar, spec, turns=0)
        turned = mended(cluster, sidecar, spec, turns=measure.turns)
        for each, tasks in zip(found, (begun[0], turned[0], turned[-1]), strict=True):
            found[each].append(measure.off(cluster, tasks))
    return {each: np.array(off) for each, off in found.items()}


def row(name: str, began: str, off: np.ndarray, seeds: Sequence[int], measure: Measure) -> str:
    percentiles = " | ".join(f"{each:.3f}" for each in np.percentile(off, [50, 90, 99, 100]))
    far = int((off >= measure.bound).sum())
    worst = seeds[int(off.argmax())]
    within = f"{len(off) - far} of {len(off)} < {measure.bound:g} {measure.unit}"
    return f"| {name} | {began} | {percentiles} | {within} | {worst} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--policies", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.instances)
    print("| policy | begun | median | 90th | 99th | most | within | farthest |")
    print("|---|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as directory,
        SidecarProcess(Path(directory), SETTINGS) as one,
    ):
        await_compiled(one)
        for name in options.policies:
            for began, off in measured(name, seeds, one).items():
                print(row(name, began, off, seeds, MEASURES[name]), flush=True)


if __name__ == "__main__":
    main()

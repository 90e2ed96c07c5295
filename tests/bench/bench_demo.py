"""Time of the whole path: an emulated master, a stream, a sidecar process.

Run by hand: ``python -m tests.bench.bench_demo``. Prints a table in Markdown.
"""

import argparse
import tempfile
import time
from pathlib import Path

from allocator.core import PolicySpec
from laboratory.experiments import demo_runs as catalogue
from laboratory.experiments.runs import ExperimentRun, play_on
from laboratory.links.sidecar_process import SidecarProcess
from laboratory.reports.run_report import figures
from laboratory.workloads.scenario import Scenario
from laboratory.workloads.spark_experiment import experiment

HEADER = (
    "| scenario | mode | wall s | simulated s | batches/s | offers/s | p50 ms | p99 ms | MiB |",
    "|---|---|---|---|---|---|---|---|---|",
)


def scenarios(scale: float) -> dict[str, Scenario]:
    return {
        "section V": experiment(0, jobs=max(1, round(50 * scale))),
        "SWIM, 1,000 agents": catalogue.swim(0, 1_000, 21, scale)[0],
        "openb, 400 agents": catalogue.openb(0, 400, scale / 10)[0],
    }


def main() -> None:
    """Play each scenario in each mode once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the jobs")
    arguments = parser.parse_args()
    print(*HEADER, sep="\n")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        settings = {"log.level": "warning"}
        with SidecarProcess(Path(directory), settings) as sidecar:
            for name, scenario in scenarios(arguments.scale).items():
                for mode in catalogue.MODES:
                    run = ExperimentRun(name, PolicySpec("drf", mode=mode), 0, scenario)
                    begin_s = time.perf_counter()
                    played = play_on(run, sidecar.target)
                    wall_s = time.perf_counter() - begin_s
                    row = figures(played, "drf", mode, 0)
                    assert not row.rejected, row.rejected
                    print(
                        f"| {name} | {mode} | {wall_s:.1f} | {row.makespan_s:.0f} "
                        f"| {row.batches / wall_s:.0f} | {row.offers / wall_s:.0f} "
                        f"| {row.latency_p50_ms:.2f} | {row.latency_p99_ms:.2f} "
                        f"| {sidecar.memory_mib()[1]:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()

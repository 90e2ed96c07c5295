"""The runs of the demo, and how they are combined in plots."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from allocator.core import PolicySpec
from laboratory.experiments.runs import CHARACTERISED, ExperimentRun
from laboratory.workloads import traces
from laboratory.workloads.scenario import Scenario
from laboratory.workloads.spark_experiment import ONE_OF_EACH, experiment
from laboratory.workloads.traces import Replay, read_nodes, read_pods, read_swim

SECTION_V = "section-v"
OBLIVIOUS = "oblivious"
MODES = (OBLIVIOUS, CHARACTERISED)
POLICIES = ("drf", "ps-dsf", "rps-dsf", "tsf", "bf-drf")
STAGED_POLICIES = ("bf-drf", "rps-dsf")

STAGED_JOBS = 20
STAGED_APART_MS = 10_000

SWIM_FILE = "FB-2009_samples_24_times_1hr_1.tsv"
NODES_FILE = "openb_node_list_all_node.csv"
PODS_FILE = "openb_pod_list_gpuspec33.csv"
SWIM_AGENTS = 1_000
OPENB_AGENTS = 1_523
OPENB_PODS = 8_152


@dataclass(frozen=True, slots=True)
class Picture:
    """Runs to draw in one plot.

    runs: names of runs.
    """

    file: str
    title: str
    runs: tuple[str, ...]


PICTURES = (
    Picture(
        "fig-1.png",
        "DRF and PS-DSF, whole agents are offered (oblivious)",
        ("drf oblivious", "ps-dsf oblivious"),
    ),
    Picture(
        "fig-2.png",
        "DRF and PS-DSF, whole tasks are offered (characterised)",
        ("drf characterised", "ps-dsf characterised"),
    ),
    Picture(
        "fig-3.png",
        "TSF, BF-DRF and rPS-DSF, whole tasks are offered (characterised)",
        ("tsf characterised", "bf-drf characterised", "rps-dsf characterised"),
    ),
    Picture("fig-4.png", "DRF in both modes", ("drf oblivious", "drf characterised")),
    Picture(
        "fig-5.png",
        "Agents registered one by one",
        ("bf-drf characterised staged", "rps-dsf characterised staged"),
    ),
)
"""The figures of section V."""


def pictures(trace: str, source: str, played: Sequence[str]) -> list[Picture]:
    """List the plots to draw: for section V the paper's figures, else one for each mode.

    trace, source: what was played, and its origin.
    played: names of the runs.
    """
    if trace == SECTION_V:
        found = [each for each in PICTURES if set(each.runs) <= set(played)]
        return found or [Picture("all.png", "Section V", tuple(played))]
    return [
        Picture(f"{trace}-{mode}.png", f"{trace}, {mode}: {source}", runs)
        for mode in MODES
        if (runs := tuple(name for name in played if name.endswith(f" {mode}")))
    ]


def section_v(
    policies: Sequence[str], modes: Sequence[str], seed: int, scale: float
) -> list[ExperimentRun]:
    """List the runs of the Spark-on-Mesos experiment.

    scale: fraction of the fifty jobs of each queue (twenty if agents register one by one).
    """
    whole = experiment(seed, jobs=max(1, round(50 * scale)))
    jobs = max(1, round(STAGED_JOBS * scale))
    staged = experiment(seed, cluster=ONE_OF_EACH, jobs=jobs, apart_ms=STAGED_APART_MS)
    few = [name for name in policies if name in STAGED_POLICIES]
    runs = on_trace(whole, policies, modes, seed)
    return runs + on_trace(staged, few, [m for m in modes if m == CHARACTERISED], seed, " staged")


def on_trace(
    scenario: Scenario, policies: Sequence[str], modes: Sequence[str], seed: int, what: str = ""
) -> list[ExperimentRun]:
    """List the runs of a scenario under each policy in each mode."""
    return [
        ExperimentRun(f"{name} {mode}{what}", PolicySpec(name, mode=mode), seed, scenario)
        for mode in modes
        for name in policies
    ]


def trace_directory() -> Path:
    """The directory of the traces, set by MESOS_ALLOCATOR_TRACES."""
    return Path(os.environ.get("MESOS_ALLOCATOR_TRACES", "traces"))


def swim(seed: int, agents: int, hour: int, scale: float) -> tuple[Replay, str]:
    """An hour of the SWIM sample, or a synthetic substitute; and which of the two."""
    path = trace_directory() / SWIM_FILE
    if path.is_file():
        jobs, source = read_swim(path, hour), f"{path.name}, hour {hour}"
    else:
        jobs, source = traces.swim_jobs(seed), f"synthetic ({path} is not there)"
    kept = jobs[: max(1, round(len(jobs) * scale))]
    return traces.swim(kept, agents, seed), source


def openb(seed: int, agents: int, scale: float) -> tuple[Replay, str]:
    """The openb cluster, or a synthetic substitute; and which of the two."""
    nodes_path, pods_path = trace_directory() / NODES_FILE, trace_directory() / PODS_FILE
    if nodes_path.is_file() and pods_path.is_file():
        nodes, pods = read_nodes(nodes_path), read_pods(pods_path)
        source = f"{nodes_path.name}, {pods_path.name}"
    else:
        nodes = traces.openb_nodes(OPENB_AGENTS)
        pods = traces.openb_pods(seed, OPENB_PODS)
        source = f"synthetic ({nodes_path} or {pods_path} is not there)"
    # Every n-th node and pod, so that the mixture stays the same.
    nodes = nodes[:: max(1, round(len(nodes) / agents))]
    pods = pods[:: max(1, round(1 / scale))]
    return traces.openb(nodes, pods), source

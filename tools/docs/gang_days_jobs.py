"""Jobs of a recorded cluster: pods of the openb trace, some of which start together."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from allocator.core import MILLI
from laboratory.workloads.traces import Node, Pod, read_nodes, read_pods

DAY_S = 86_400
FIRST_DAY, END_DAY, DAYS = 115, 149, 2
"""Days of the trace with at least 75 pods each; windows of two of them are played."""

WINDOWS = (1, 3, 7, 8, 10, 15, 16)
"""Those in which gangs wait more than 20 min on average in a strict queue."""

OTHERS = tuple(n for n in range((END_DAY - FIRST_DAY) // DAYS) if n not in WINDOWS)

EVERY_NODE = 250
LIFE_S_MAX = 12 * 3600
APART_S = 300
TASKS_MAX = 8


class Job(NamedTuple):
    """Pods that start together, or one pod.

    need: of each, in thousandths.
    arrives_ms: since the beginning of the window.
    lasts_ms: one for each pod.
    kind: the name of its framework, without a number; durations are learnt by kind.
    """

    role: str
    need: Mapping[str, int]
    models: frozenset[str]
    arrives_ms: int
    lasts_ms: tuple[int, ...]
    kind: str

    @property
    def is_gang(self) -> bool:
        return len(self.lasts_ms) > 1


class Window(NamedTuple):
    """Nodes, and the jobs that arrive within two days, in order."""

    nodes: Sequence[Node]
    jobs: list[Job]

    def total(self) -> dict[str, int]:
        """Sum of all nodes, in thousandths."""
        names = {name: 0 for node in self.nodes for name in node.capacity}
        return {name: sum(node.capacity.get(name, 0) for node in self.nodes) for name in names}


def jobs_of(pods: Sequence[Pod], first_s: int) -> list[Job]:
    """Jobs of pods in the order of their creation.

    Pods whose QoS class, need and models are equal are of one application. Pods of one application,
    each created at most five minutes after the one before, are a gang of at most eight, which
    arrives with its last pod.
    """
    last: dict[object, list[Pod]] = {}
    found: list[list[Pod]] = []
    for pod in pods:
        key = pod.qos, tuple(pod.need.items()), pod.models
        gang = last.get(key, [])
        if gang and pod.create_s - gang[-1].create_s <= APART_S and len(gang) < TASKS_MAX:
            gang.append(pod)
        else:
            last[key] = [pod]
            found.append(last[key])
    jobs = [
        Job(
            role=gang[0].qos,
            need=gang[0].need,
            models=gang[0].models,
            arrives_ms=(gang[-1].create_s - first_s) * 1000,
            lasts_ms=tuple(max(1, min(pod.life_s, LIFE_S_MAX)) * 1000 for pod in gang),
            kind=_kind_of(gang[0].need["gpus"]),
        )
        for gang in found
    ]
    return sorted(jobs, key=lambda job: job.arrives_ms)


def _kind_of(gpus: int) -> str:
    return "part" if gpus < MILLI else "one" if gpus == MILLI else "several"


def can_run(job: Job, nodes: Sequence[Node]) -> bool:
    """Whether all its pods fit on the empty nodes at once."""
    return len(job.lasts_ms) <= sum(
        min(node.capacity.get(name, 0) // amount for name, amount in job.need.items())
        for node in nodes
        if not job.models or node.model in job.models
    )


def read(trace: Path, numbers: Sequence[int] = WINDOWS) -> list[Window]:
    """Read the windows, on the same sample of the nodes."""
    every = [node for node in read_nodes(trace / "openb_node_list_all_node.csv") if node.model]
    every.sort(key=lambda node: (node.model, sorted(node.capacity.items()), node.name))
    nodes = every[EVERY_NODE // 2 :: EVERY_NODE]
    pods = [p for p in read_pods(trace / "openb_pod_list_gpuspec33.csv") if "gpus" in p.need]
    days = [pod.create_s // DAY_S for pod in pods]
    windows = []
    for number in numbers:
        day = FIRST_DAY + DAYS * number
        some = pods[bisect_left(days, day) : bisect_left(days, day + DAYS)]
        jobs = [job for job in jobs_of(some, day * DAY_S) if can_run(job, nodes)]
        windows.append(Window(nodes, jobs))
    return windows

"""Choosy on Mesos: four jobs with different constraints share four types of nodes (Figure 14).

160 cores are divided equally among standard, high-memory, cluster and GPU nodes of 8 cores. Hadoop
can use any node, Spark only high-memory ones, CUDA only GPU nodes, MPI those with 10 Gbps Ethernet
(cluster and GPU nodes). The jobs run on the real core under the policy Choosy, which counts tasks
of one core. The paper does not publish task times; one to four seconds are chosen here so that its
claim about the ramp-up ("within 5 seconds") can be checked.

Source: section 7.3 and Figure 14 of the paper.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from allocator.core import PolicySpec
from allocator.solvers.max_min import max_min
from laboratory.papers.online import Online
from laboratory.papers.report import (
    Panel,
    PaperReport,
    PlotLine,
    Row,
    TableCell,
    beside,
    paragraphs,
)

SOURCE = "Ghodsi et al., EuroSys 2013, sec. 7.3 and Figure 14"

CORES = 160
CORES_PER_NODE = 8
MEM_MIB: Mapping[str, int] = {
    "standard": 7 * 1024,
    "high-memory": 68 * 1024,
    "cluster": 23 * 1024,
    "gpu": 23 * 1024,
}
NODES_PER_TYPE = CORES // CORES_PER_NODE // len(MEM_MIB)

CAN_USE: Mapping[str, Sequence[str]] = {
    "Hadoop": ("standard", "high-memory", "cluster", "gpu"),
    "Spark": ("high-memory",),
    "CUDA": ("gpu",),
    "MPI": ("cluster", "gpu"),
}
TASK_MIB = 512
TASK_MS = (1000, 4000)
TICK_MS = 100
"""Ends of tasks and allocation cycles are at multiples of this."""

_MILLI = 1000
_CPUS = 0  # the kind
_NEAR = 3  # cores; a job within this distance has its share, as tasks end all the time
_DRAWN_MS = 1_000
_SETTLED_MS = 10_000  # shares are means over the end of each phase


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job joins or leaves.

    share: published shares of the cluster afterwards; empty if the paper does not state any.
    """

    time_ms: int
    job: str
    joins: bool
    share: Mapping[str, float] = field(default_factory=dict)


_QUARTERS = {"Hadoop": 1 / 4, "Spark": 1 / 4, "CUDA": 1 / 4, "MPI": 1 / 4}

SCRIPT = (
    JobChange(0, "Hadoop", joins=True, share={"Hadoop": 1.0}),
    JobChange(30_000, "Spark", joins=True, share={"Hadoop": 3 / 4, "Spark": 1 / 4}),
    JobChange(65_000, "CUDA", joins=True, share={"Hadoop": 1 / 2, "Spark": 1 / 4, "CUDA": 1 / 4}),
    JobChange(100_000, "MPI", joins=True, share=_QUARTERS),
    JobChange(180_000, "MPI", joins=False),
    JobChange(240_000, "CUDA", joins=False, share={"Hadoop": 3 / 4, "Spark": 1 / 4}),
    JobChange(305_000, "MPI", joins=True, share={"Hadoop": 3 / 8, "Spark": 1 / 4, "MPI": 3 / 8}),
)
"""The schedule. The text gives 30, 65, 100 and 305 s, but not when MPI and CUDA end."""

END_MS = 340_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """Cores of each job over time.

    time_ms (T,)
    cores (T, 4): in the order of `CAN_USE`.
    """

    time_ms: np.ndarray
    cores: np.ndarray


class Jobs:
    """The cluster with its jobs, tick by tick."""

    def __init__(self, seed: int) -> None:
        policy = PolicySpec(
            "choosy", "random", mode="characterised", flat=True, parameters={"unit": "tasks"}
        )
        self._cluster = Online(policy, ("cpus", "mem"), seed)
        self._rng = np.random.default_rng(seed)
        self._ends: list[tuple[int, int, int]] = []  # time, framework, agent: one a task
        self._framework: dict[str, int] = {}
        kinds = [kind for kind in MEM_MIB for _ in range(NODES_PER_TYPE)]
        for agent, kind in enumerate(kinds, 1):
            capacity = (CORES_PER_NODE * _MILLI, MEM_MIB[kind] * _MILLI)
            self._cluster.add_agent(agent, capacity, {"type": kind})

    def apply(self, change: JobChange) -> None:
        """Let a job join, or leave at once with all its tasks."""
        if change.joins:
            handle = 1 + list(CAN_USE).index(change.job)
            constraint = "type=" + "|".join(CAN_USE[change.job])
            demand = f"cpus:1;mem:{TASK_MIB}"
            self._cluster.add_framework(handle, change.job, demand, constraint)
            self._framework[change.job] = handle
            return
        handle = self._framework.pop(change.job)
        self._cluster.remove_framework(handle)
        self._ends = [task for task in self._ends if task[1] != handle]
        heapq.heapify(self._ends)

    def tick(self, now_ms: int) -> None:
        """End the tasks that are due, and allocate what is free."""
        ended = []
        while self._ends and self._ends[0][0] <= now_ms:
            ended.append(heapq.heappop(self._ends)[1:])
        if ended:
            pair, count = np.unique(np.array(ended), axis=0, return_counts=True)
            amount = count[:, None] * np.array([[1, TASK_MIB]]) * _MILLI
            self._cluster.release(pair[:, 0], pair[:, 1], amount)
        taken = self._cluster.allocate(now_ms)
        cores = taken.amount[:, taken.kind == _CPUS].sum(axis=1) // _MILLI
        for framework, agent, tasks in zip(taken.framework, taken.agent, cores, strict=True):
            for length in self._rng.integers(*TASK_MS, int(tasks), endpoint=True):
                due = -(-(now_ms + int(length)) // TICK_MS) * TICK_MS
                heapq.heappush(self._ends, (due, int(framework), int(agent)))

    def cores(self) -> list[int]:
        running = [task[1] for task in self._ends]
        return [running.count(self._framework.get(job, -1)) for job in CAN_USE]


def play(seed: int = 0) -> Timeline:
    jobs = Jobs(seed)
    times = np.arange(0, END_MS, TICK_MS)
    cores = np.zeros((len(times), len(CAN_USE)), np.int64)
    script = list(SCRIPT)
    for row, now_ms in enumerate(times.tolist()):
        while script and script[0].time_ms <= now_ms:
            jobs.apply(script.pop(0))
        jobs.tick(now_ms)
        cores[row] = jobs.cores()
    return Timeline(times, cores)


def fair_cores(active: Sequence[str]) -> dict[str, float]:
    """CMMF cores of each active job, by the offline solver."""
    eligible = np.array([[kind in CAN_USE[job] for kind in MEM_MIB] for job in active])
    count = np.full(len(MEM_MIB), CORES // len(MEM_MIB))
    return dict(zip(active, max_min.solve(eligible, count).machines.tolist(), strict=True))


def figure_14(seed: int = 0) -> PaperReport:
    """Figure 14: shares of the cluster once settled, and how long that takes."""
    timeline = play(seed)
    rows = []
    active: list[str] = []
    for number, change in enumerate(SCRIPT):
        active = [*active, change.job] if change.joins else [j for j in active if j != change.job]
        until = SCRIPT[number + 1].time_ms if number + 1 < len(SCRIPT) else END_MS
        rows += _phase(timeline, change, until, fair_cores(active))
    return PaperReport(
        name="choosy-fig-14",
        title="Four jobs on 160 cores of four types: shares of the cluster under Choosy",
        source=SOURCE,
        columns=(*CAN_USE, "ramp-up (s)"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Means over the last {_SETTLED_MS / 1000:g} s of each phase; tolerance {_NEAR} of {CORES}
            cores: if tasks of several jobs end at the same time, the job with fewer remaining tasks
            may take a core, which it returns after one task. The offline rows are the CMMF optimum.

            Ramp-up: the time until the job that joined is within {_NEAR} cores of its CMMF share.
            The text says at most 5 s, for MPI 4 s. Tasks take {TASK_MS[0] / 1000:g} to
            {TASK_MS[1] / 1000:g} s here; the paper does not say.
        """),
        panels=(_panel(timeline),),
    )


def _panel(timeline: Timeline) -> Panel:
    rows = slice(None, None, _DRAWN_MS // TICK_MS)
    seconds = tuple((timeline.time_ms[rows] / 1000).tolist())
    lines = tuple(
        PlotLine(job, seconds, tuple((timeline.cores[rows, column] / CORES).tolist()))
        for column, job in enumerate(CAN_USE)
    )
    return Panel("Figure 14", "time (s)", "share of the cluster", lines, stepped=True)


def _phase(
    timeline: Timeline, change: JobChange, until_ms: int, fair: Mapping[str, float]
) -> list[Row]:
    """Offline and online shares after a change."""
    name = f"{change.time_ms / 1000:g} s, {change.job} {'joins' if change.joins else 'ends'}"
    during = (timeline.time_ms >= change.time_ms) & (timeline.time_ms < until_ms)
    settled = during & (timeline.time_ms >= until_ms - _SETTLED_MS)
    last = timeline.cores[settled].mean(axis=0) / CORES
    published = [change.share.get(job, 0.0 if change.share else None) for job in CAN_USE]
    offline = beside((fair.get(job, 0.0) / CORES for job in CAN_USE), published, 1e-9)
    online = beside(last, published, _NEAR / CORES)
    if change.joins:
        cores = timeline.cores[during][:, list(CAN_USE).index(change.job)]
        there = int(np.argmax(cores >= fair[change.job] - _NEAR)) * TICK_MS / 1000
        online += (TableCell(there, 5.0, at_most=True),)
    return [Row(f"{name}, offline", offline), Row(name, online)]

"""Gangs of a recorded cluster: `python tools/docs/gang_days.py --trace DIR` plays them.

`DIR` contains the files of the openb trace. Results are kept in `data/which-policy/gang_days.json`;
`make docs` writes a section of the page about policies from what is kept.
"""

import argparse
import json
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

import gangs

KEPT = gangs.KEPT.with_name("gang_days.json")

DAY_S = 86_400
FIRST_DAY, END_DAY, DAYS = 115, 149, 2
"""Days of the trace with at least 100 pods each; windows of two of them are played."""

EVERY_NODE = 400
LIFE_S_MAX = 12 * 3600
APART_S = 300
TASKS_MAX = 8
COLLECT_S = 3600
INTERVAL_MS = 1000
LOOK_MS = 600_000
UNTIL_S = 2 * DAYS * DAY_S


class Job(NamedTuple):
    """Pods that start together, or one pod.

    app: a name without digits, the same for all pods of one application.
    need: of each, in thousandths.
    arrives_ms: since the beginning of the window.
    lasts_ms: one for each pod.
    """

    app: str
    role: str
    need: Mapping[str, int]
    models: frozenset[str]
    arrives_ms: int
    lasts_ms: tuple[int, ...]

    @property
    def is_gang(self) -> bool:
        return len(self.lasts_ms) > 1


class Window(NamedTuple):
    """Nodes, and the jobs that arrive within two days, in order."""

    nodes: Sequence[Any]
    jobs: list[Job]

    def total(self) -> dict[str, int]:
        """Sum of all nodes, in thousandths."""
        names = {name: 0 for node in self.nodes for name in node.capacity}
        return {name: sum(node.capacity.get(name, 0) for node in self.nodes) for name in names}


def jobs_of(pods: Sequence[Any], first_s: int) -> list[Job]:
    """Jobs of pods in the order of their creation.

    Pods whose QoS class, need and models are equal are of one application. Pods of one application,
    each created at most five minutes after the one before, are a gang of at most eight, which
    arrives with its last pod.
    """
    apps: dict[Any, str] = {}
    last: dict[Any, list[Any]] = {}
    found: list[tuple[Any, list[Any]]] = []
    for pod in pods:
        key = pod.qos, tuple(pod.need.items()), pod.models
        apps.setdefault(key, "".join(ascii_lowercase[at] for at in divmod(len(apps), 26)))
        gang = last.get(key, [])
        if gang and pod.create_s - gang[-1].create_s <= APART_S and len(gang) < TASKS_MAX:
            gang.append(pod)
        else:
            last[key] = [pod]
            found.append((key, last[key]))
    jobs = [
        Job(
            app=apps[key],
            role=gang[0].qos,
            need=gang[0].need,
            models=gang[0].models,
            arrives_ms=(gang[-1].create_s - first_s) * 1000,
            lasts_ms=tuple(max(1, min(pod.life_s, LIFE_S_MAX)) * 1000 for pod in gang),
        )
        for key, gang in found
    ]
    return sorted(jobs, key=lambda job: job.arrives_ms)


def can_run(job: Job, nodes: Sequence[Any]) -> bool:
    """Whether all its pods fit on the empty nodes at once."""
    return len(job.lasts_ms) <= sum(
        min(node.capacity.get(name, 0) // amount for name, amount in job.need.items())
        for node in nodes
        if not job.models or node.model in job.models
    )


def read(trace: Path) -> tuple[list[Any], list[Window]]:
    """Read all windows, on the same sample of the nodes."""
    from laboratory.workloads.traces import read_nodes, read_pods

    every = [node for node in read_nodes(trace / "openb_node_list_all_node.csv") if node.model]
    every.sort(key=lambda node: (node.model, sorted(node.capacity.items()), node.name))
    nodes = every[EVERY_NODE // 2 :: EVERY_NODE]
    pods = [p for p in read_pods(trace / "openb_pod_list_gpuspec33.csv") if "gpus" in p.need]
    days = [pod.create_s // DAY_S for pod in pods]
    windows = []
    for day in range(FIRST_DAY, END_DAY, DAYS):
        some = pods[bisect_left(days, day) : bisect_left(days, day + DAYS)]
        jobs = [job for job in jobs_of(some, day * DAY_S) if can_run(job, nodes)]
        windows.append(Window(nodes, jobs))
    return every, windows


# What no schedule can beat.


def bound(window: Window) -> dict[str, float]:
    """Limits of any schedule, even of one that knows all arrivals and durations in advance."""
    total, jobs = window.total(), window.jobs
    those = [job for job in jobs if job.is_gang]
    return {
        "wait_s": least_wait_s(those, total, 300) / max(len(those), 1),
        "idle_gpu_h": 0.0,
        "end_h": least_end_ms(jobs, total) / 3_600_000,
    }


def least_end_ms(jobs: Sequence[Job], total: Mapping[str, int]) -> float:
    """When the last job can end at the earliest.

    Each takes its time after it arrived; and all that arrive from some moment on need, of each
    resource, the whole cluster for their work.
    """
    end_ms = float(max(job.arrives_ms + max(job.lasts_ms) for job in jobs))
    for name, amount in total.items():
        work = 0
        for job in sorted(jobs, key=lambda job: -job.arrives_ms):
            work += job.need.get(name, 0) * sum(job.lasts_ms)
            end_ms = max(end_ms, job.arrives_ms + work / max(amount, 1))
    return end_ms


def least_wait_s(jobs: Sequence[Job], total: Mapping[str, int], slot_s: int) -> float:
    """A lower bound of the sum of all waits: the optimum of a linear program.

    In the relaxation, tasks can be interrupted and run in any part of one large agent; only the
    number of tasks of each job that run at once, and the amounts in use, are bounded. The work of
    a job that begins at once, averaged over time, lies half of its length after its start; so the
    mean time of its work in slots bounds its wait. Work counts at the beginning of its slot. Work
    after the last slot needs no resources.
    """
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if not jobs:
        return 0.0
    slots = -(-UNTIL_S // slot_s)
    count = len(jobs)
    begin_s = slot_s * np.arange(slots + 1)
    rows, columns, values, most = [], [], [], []
    done_rows, done_columns = [], []
    at = count  # the first variables are the waits
    for number, job in enumerate(jobs):
        lasts_s = np.array(job.lasts_ms) / 1000
        arrives_s, work_s = job.arrives_ms / 1000, float(lasts_s.sum())
        first = int(arrives_s // slot_s)
        when_s = np.maximum(begin_s[first:], arrives_s)
        length_s = np.append(begin_s[first + 1 :] - when_s[:-1], np.inf)
        own = at + np.arange(len(when_s))
        at += len(when_s)
        most += np.minimum(1.0, len(lasts_s) * length_s / work_s).tolist()
        done_rows.append(np.full(len(own), number))
        done_columns.append(own)
        # Mean time of the work <= arrival + wait + mean time of the work without a wait.
        rows += [np.full(len(own) + 1, number)]
        columns += [np.append(own, number)]
        values += [np.append(when_s - arrives_s, -1.0)]
        for kind, amount in enumerate(total.items()):
            name, whole = amount
            part = job.need.get(name, 0) * work_s / (max(whole, 1) * slot_s)
            rows.append(count + kind * slots + np.arange(first, slots))
            columns.append(own[:-1])
            values.append(np.full(len(own) - 1, part))
    middle_s = [sum(each**2 for each in job.lasts_ms) / sum(job.lasts_ms) / 2000 for job in jobs]
    less = csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(count + slots * len(total), at),
    )
    equal = csr_array(
        (np.ones(at - count), (np.concatenate(done_rows), np.concatenate(done_columns))),
        shape=(count, at),
    )
    best = linprog(
        np.append(np.ones(count), np.zeros(at - count)),
        A_ub=less,
        b_ub=np.append(middle_s, np.ones(slots * len(total))),
        A_eq=equal,
        b_eq=np.ones(count),
        bounds=np.column_stack([np.zeros(at), np.append(np.full(count, np.inf), most)]),
        method="highs",
    )
    assert best.status == 0, best.message
    return float(best.fun)


# Playing.


def _strict(window: Window) -> list[int | None]:
    """When each job starts in a strict queue."""
    sorts = {job.models for job in window.jobs if job.models}
    # Agents of the right models have enough of a resource that only such tasks need.
    agents = [
        dict(node.capacity) | {str(sorted(each)): 10**6 for each in sorts if node.model in each}
        for node in window.nodes
    ]
    arrivals = []
    for number, job in enumerate(window.jobs):
        need = dict(job.need) | ({str(sorted(job.models)): 1} if job.models else {})
        arrivals.append((job.arrives_ms, [gangs.Unit(number, need, job.lasts_ms)]))
    starts, _, _ = gangs.in_order(agents, arrivals)
    return [starts[number] for number in range(len(window.jobs))]


class Offered:
    """Forecasts of next offers, and when the offers came.

    `waiting`: by number of the job: when each forecast was made, its p50 and its p95.
    `offered`: p50, p95, and what became of it, in ms after the forecast.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, list[tuple[int, int, int]]] = {}
        self.offered: list[tuple[int, int, int]] = []

    def comes(self, job: int, now_ms: int) -> None:
        """Note an offer to a job."""
        for made_ms, expected_ms, latest_ms in self.waiting.pop(job, ()):
            self.offered.append((expected_ms, latest_ms, now_ms - made_ms))


def play(window: Window, way: str, forecasts: Offered | None = None) -> list[int | None]:
    """Play jobs on the emulated master: when each starts; None: it does not."""
    from functools import partial

    from allocator.core import GANG_LABEL, Options, PolicySpec, Settings
    from allocator.explain import next_offer, take_clients
    from allocator.policies import build
    from laboratory.frameworks.base import Identity, Offer
    from laboratory.frameworks.batch import BatchJob, Manner, Work
    from laboratory.links.base import DirectLink
    from laboratory.master.gates import GPU_CAPABILITY
    from laboratory.resources import AgentSpec
    from laboratory.workloads import play as playing
    from laboratory.workloads.scenario import JobStage

    starts: list[int | None] = [None] * len(window.jobs)

    class Noted(BatchJob):
        number = 0

        def offered(self, offers: list[Offer]) -> None:
            if forecasts is not None:
                forecasts.comes(self.number, self._master.event_heap.now_ms)
            super().offered(offers)

    class Scenario:
        kinds = ("cpus", "mem", "gpus")
        agents = tuple(
            (0, AgentSpec(node.name, dict(node.capacity), {"gpu_model": node.model}))
            for node in window.nodes
        )
        jobs = len(window.jobs)

        def begin(self, stage: JobStage) -> None:
            self.master = stage.master
            for number, job in enumerate(window.jobs):
                stage.at(job.arrives_ms, partial(self.submit, stage, number, job))
            if forecasts is not None:
                stage.at(LOOK_MS, partial(self.look, forecasts))

        def submit(self, stage: JobStage, number: int, job: Job) -> None:
            size = len(job.lasts_ms)
            stated = size > 1 and way != "hoarding"
            identity = Identity(
                f"{job.app}-{number}",
                (job.role,),
                dict(job.need),
                {"gpu_model": job.models} if job.models else {},
                frozenset({GPU_CAPABILITY}),
                more_labels={GANG_LABEL: f"tasks:{size}"} if stated else {},
            )

            def started() -> None:
                starts[number] = stage.master.event_heap.now_ms

            made = Noted(
                identity,
                (Work(dict(job.need), job.lasts_ms),),
                Manner(gang=size),
                lambda _cancelled: stage.ended(job.role),
                started,
            )
            made.number = number
            stage.submit(made)

        def look(self, forecasts: Offered) -> None:
            state, now_ms = link.allocator.state, self.master.event_heap.now_ms
            some = [
                (each.framework.number, state.clients.row(handle, next(iter(roles))))
                for handle, each in self.master.members.items()
                if each.framework.waits
                for roles in [state.frameworks.roles(handle)]
            ]
            if some:
                picture = take_clients(link.allocator, [row for _, row in some])
                for (number, _), subject in zip(some, picture.subjects, strict=True):
                    found = next_offer(picture, subject)
                    if found.latest_ms >= 0:
                        times = now_ms, found.expected_ms, found.latest_ms
                        forecasts.waiting.setdefault(number, []).append(times)
            self.master.event_heap.after(LOOK_MS, partial(self.look, forecasts))

    settings = Settings(PolicySpec("drf", mode="characterised"), collect_ms=COLLECT_S * 1000)
    if way == "collecting":
        settings.priors_max = 0
    link = DirectLink(build, settings)
    played = playing.play(
        Scenario(),
        link,
        tell_demand=True,
        options=Options(allocation_interval_ms=INTERVAL_MS),
        until_ms=UNTIL_S * 1000,
        to_end=False,
        sample_ms=UNTIL_S * 1000,
    )
    assert not played.record.defects, played.record.defects
    return starts

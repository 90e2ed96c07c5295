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
PICTURE = gangs.HERE.parents[1] / "docs" / "pictures" / "gang-days.svg"

DAY_S = 86_400
FIRST_DAY, END_DAY, DAYS = 115, 149, 2
"""Days of the trace with at least 75 pods each; windows of two of them are played."""

WINDOWS = (1, 4, 7, 10, 13, 16)

EVERY_NODE = 250
LIFE_S_MAX = 12 * 3600
APART_S = 300
TASKS_MAX = 8
COLLECT_S = 3600
PATIENCE_MS = 60_000
INTERVAL_MS = 30_000
HOLDS_MS = 120_000
LOOK_MS = 1_800_000
UNTIL_S = 3 * DAY_S

WAYS = {
    "hoarding": "frameworks keep offers",
    "strict": "strict queue",
    "collecting": "stated gangs, without backfill",
    "backfill": "stated gangs, with backfill",
    "planned": "a plan that knows all durations",
    "bound": "no schedule can do better",
}

COLUMNS = {
    "wait_min": "gangs wait (min)",
    "late_min": "p95 (min)",
    "small_wait_min": "single pods wait (min)",
    "idle_gpu_h": "idle GPU hours",
    "end_h": "last end (h)",
    "unstarted": "not started (%)",
}

HEAD = """\
### Two days of a GPU cluster

The same ways, with pods of Alibaba's [openb
trace](https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023), two days at a
time: {windows} windows between the days {first} and {end}, with {jobs} jobs, {gangs} of them gangs.

- The trace does not say which pods start together. Here a gang is at most {tasks} pods with GPUs of
  the same application, each created at most {apart} min after the one before. Pods whose QoS class,
  resources and GPU models are equal count as one application.
- Most of the cluster was idle, so it is scaled down: one of {every} agents with GPUs is played,
  that is, {nodes} agents with {gpus:g} GPUs. Pods without GPUs are left out, and so are gangs that
  the agents have no room for. Durations are limited to {life:g} h.
- Frameworks that keep offers do so for {holds} s. The allocation interval is {interval} s,
  `starvation.collect_s` is {collect}, and a gang collects after {patience} s. Nothing is learnt
  when the two days begin.
- *A plan that knows all durations* is conservative backfilling, also without the allocator: in the
  order of arrival, each job gets the earliest start that delays none before it.
- *No schedule can do better*: a job ends when its longest pod has run, at the earliest, and the
  cluster needs time for the work of all jobs that arrive after any moment. Waits can be 0.

Waits are from the last pod's creation to the first start, or until the simulation ends, after
{until:g} h. *Idle GPU hours* are those during which a gang waits. Means over windows, with 95 %
confidence intervals.

"""

FOOT = """\

![How long gangs and single pods wait, by way](../pictures/gang-days.svg)
"""


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

    def gangs(self) -> int:
        return sum(job.is_gang for job in self.jobs)

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


def read(trace: Path) -> list[Window]:
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
    return windows


# Schedulers that know all durations.


def least_end_ms(jobs: Sequence[Job], total: Mapping[str, int]) -> float:
    """When the last job can end at the earliest, under any schedule.

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


class Reserved(NamedTuple):
    """An amount of an agent that is taken for a time."""

    need: Mapping[str, int]
    begin_ms: int
    end_ms: int


def planned(
    agents: Sequence[Mapping[str, int]], units: Sequence[tuple[int, gangs.Unit]]
) -> list[int]:
    """Play conservative backfilling: when each unit starts.

    `units`: when each arrives, ascending, and what it is. In this order, each gets the earliest
    start that delays none before it.
    """
    taken: list[list[Reserved]] = [[] for _ in agents]
    starts = []
    for arrives_ms, unit in units:
        for each in taken:
            each[:] = [one for one in each if one.end_ms > arrives_ms]
        ends_ms = {one.end_ms for each in taken for one in each}
        for start_ms in sorted({arrives_ms, *ends_ms}):
            until_ms = start_ms + max(unit.lasts_ms)
            free = [
                _least_free(has, each, start_ms, until_ms)
                for has, each in zip(agents, taken, strict=True)
            ]
            if places := gangs.fit(free, unit):
                break
        else:
            raise ValueError(f"the tasks of job {unit.job} do not fit on the empty agents")
        starts.append(start_ms)
        for place, lasts_ms in zip(places, unit.lasts_ms, strict=True):
            taken[place].append(Reserved(unit.need, start_ms, start_ms + lasts_ms))
    return starts


def _least_free(
    has: Mapping[str, int], taken: Sequence[Reserved], begin_ms: int, end_ms: int
) -> dict[str, int]:
    """What of an agent is free during all of a time."""
    there = [one for one in taken if one.begin_ms < end_ms and one.end_ms > begin_ms]
    times = {begin_ms, *(one.begin_ms for one in there if one.begin_ms > begin_ms)}
    least = dict(has)
    for time_ms in times:
        now = [one.need for one in there if one.begin_ms <= time_ms < one.end_ms]
        for name, amount in has.items():
            left = amount - sum(need.get(name, 0) for need in now)
            least[name] = min(least[name], left)
    return least


# Playing.


def _queued(window: Window) -> tuple[list[dict[str, int]], list[tuple[int, gangs.Unit]]]:
    """Return agents and units for schedulers without the allocator, with constraints as resources.

    Agents of the right models have enough of a resource that only tasks with the constraint need.
    """
    sorts = {job.models for job in window.jobs if job.models}
    agents = [
        dict(node.capacity) | {str(sorted(each)): 10**6 for each in sorts if node.model in each}
        for node in window.nodes
    ]
    units = []
    for number, job in enumerate(window.jobs):
        need = dict(job.need) | ({str(sorted(job.models)): 1} if job.models else {})
        units.append((job.arrives_ms, gangs.Unit(number, need, job.lasts_ms)))
    return agents, units


def strict(window: Window) -> list[int]:
    """When each job starts in a strict queue."""
    agents, units = _queued(window)
    starts, _, _ = gangs.in_order(agents, [(when_ms, [unit]) for when_ms, unit in units])
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
                Manner(gang=size, holds_ms=HOLDS_MS),
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

    settings = Settings(
        PolicySpec("drf", mode="characterised"),
        patience_cycles=PATIENCE_MS // INTERVAL_MS,
        collect_ms=COLLECT_S * 1000,
    )
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


# Measuring.


def measure(window: Window, starts: Sequence[int | None]) -> dict[str, float]:
    """Figures of one window, by column; a job that does not start waits until the end."""
    import numpy as np

    until_ms = UNTIL_S * 1000
    known = [until_ms if at is None else min(at, until_ms) for at in starts]
    waits: dict[bool, list[float]] = {True: [], False: []}
    changes: list[tuple[int, int, int]] = []  # when, GPUs in use, gangs that wait
    end_ms = 0
    for job, start_ms in zip(window.jobs, known, strict=True):
        waits[job.is_gang].append((start_ms - job.arrives_ms) / 60_000)
        if job.is_gang:
            changes += [(job.arrives_ms, 0, 1), (start_ms, 0, -1)]
        if start_ms == until_ms:
            end_ms = until_ms
            continue
        for lasts_ms in job.lasts_ms:
            gpus = job.need["gpus"]
            changes += [(start_ms, gpus, 0), (start_ms + lasts_ms, -gpus, 0)]
            end_ms = max(end_ms, start_ms + lasts_ms)
    total, idle, used, waiting, last_ms = window.total()["gpus"], 0, 0, 0, 0
    for when_ms, gpus, gang in sorted(changes):
        idle += (when_ms - last_ms) * (total - used) * (waiting > 0)
        used, waiting, last_ms = used + gpus, waiting + gang, when_ms
    return {
        "wait_min": float(np.mean(waits[True])),
        "late_min": float(np.percentile(waits[True], 95)),
        "small_wait_min": float(np.mean(waits[False])),
        "idle_gpu_h": idle / 3_600_000 / 1000,
        "end_h": min(end_ms, until_ms) / 3_600_000,
        "unstarted": 100 * known.count(until_ms) / len(known),
    }


def bound(window: Window) -> dict[str, float]:
    """Limits of every schedule."""
    end_h = least_end_ms(window.jobs, window.total()) / 3_600_000
    return {**dict.fromkeys(COLUMNS, 0.0), "end_h": end_h}


def compute(trace: Path, note: Callable[[str], None] = print) -> None:
    """Play all ways, and keep what came out."""
    from allocator.server.system import loop_cache

    loop_cache.prepare()
    from laboratory.reports.run_report import interval

    windows = [window for at, window in enumerate(read(trace)) if at in WINDOWS]
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    forecasts = Offered()
    for window in windows:
        for way in WAYS:
            if way == "bound":
                row = bound(window)
            elif way == "strict":
                row = measure(window, strict(window))
            elif way == "planned":
                row = measure(window, planned(*_queued(window)))
            else:
                row = measure(window, play(window, way, forecasts if way == "backfill" else None))
            note(f"{way}: {row}")
            found[way].append(row)
    data = {
        "windows": len(windows),
        "jobs": sum(len(window.jobs) for window in windows),
        "gangs": sum(window.gangs() for window in windows),
        "nodes": len(windows[0].nodes),
        "gpus": windows[0].total()["gpus"] / 1000,
        "rows": {
            way: {
                column: gangs.mean(interval([row[column] for row in every])) for column in COLUMNS
            }
            for way, every in found.items()
        },
        "offered": forecasts.offered,
    }
    KEPT.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    draw(data["rows"])


def section(kept: Path = KEPT) -> str:
    """A section of the page about policies."""
    found = json.loads(kept.read_text("utf-8"))
    head = HEAD.format(
        windows=found["windows"],
        jobs=found["jobs"],
        gangs=found["gangs"],
        nodes=found["nodes"],
        gpus=found["gpus"],
        first=FIRST_DAY,
        end=END_DAY - 1,
        tasks=TASKS_MAX,
        apart=APART_S // 60,
        every=EVERY_NODE,
        life=LIFE_S_MAX / 3600,
        holds=HOLDS_MS // 1000,
        interval=INTERVAL_MS // 1000,
        collect=COLLECT_S,
        patience=PATIENCE_MS // 1000,
        until=UNTIL_S / 3600,
    )
    return head + gangs.table(WAYS, COLUMNS, found["rows"]) + FOOT


def draw(rows: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> None:
    """Draw how long gangs and single pods wait, with intervals."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from laboratory.reports.plots import COLOURS, SETTINGS

    ways = [way for way in WAYS if way != "bound"]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7, 2.8), layout="constrained")
        axes = figure.add_subplot()
        for place, (column, label) in enumerate(
            (("wait_min", "gangs"), ("small_wait_min", "single pods"))
        ):
            means = [rows[way][column]["mean"] or 0.0 for way in ways]
            halves = [rows[way][column]["half"] or 0.0 for way in ways]
            low = [min(half, mean) for half, mean in zip(halves, means, strict=True)]
            axes.barh(
                [at + 0.4 * place for at in range(len(ways))],
                means,
                0.38,
                xerr=[low, halves],
                color=COLOURS[place],
                error_kw={"linewidth": 0.8, "capsize": 2},
                label=label,
            )
        axes.set_yticks([at + 0.2 for at in range(len(ways))], [WAYS[way] for way in ways])
        axes.invert_yaxis()
        axes.set(xlabel="wait (min), with 95 % confidence intervals", xscale="symlog")
        axes.set_xlim(left=0)
        axes.legend(frameon=False, fontsize=8)
        figure.savefig(PICTURE, metadata={"Date": None})
    lines = PICTURE.read_text("utf-8").splitlines()
    PICTURE.write_text("\n".join(line.rstrip() for line in lines) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, required=True)
    compute(parser.parse_args().trace)

"""Gangs of a recorded cluster: `python tools/docs/gang_days.py --trace DIR` plays them.

`DIR` contains the files of the openb trace; `--windows 7 10` plays only some of the days. Results
are kept in `data/which-policy/gang_days.json`; `make docs` writes a section of the page about
policies from what is kept.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import forecasts
import gangs
from forecast_notes import Offered

if TYPE_CHECKING:
    from gang_days_jobs import Window

KEPT = gangs.KEPT.with_name("gang_days.json")
PICTURE = gangs.HERE.parents[1] / "docs" / "pictures" / "gang-days.svg"

HOUR_MS = 3_600_000
UNTIL_MS = 72 * HOUR_MS
"""When simulations end."""

EDGES_S = (0, 60, 300, 900, 3600, 4 * 3600, 10**9)
"""Limits of the p50 of forecasts that are counted together."""

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

WAITS = ("wait_min", "small_wait_min")

HEAD = """
### Two days of a GPU cluster

The same ways, with pods of Alibaba's [openb
trace](https://github.com/alibaba/clusterdata/tree/master/cluster-trace-gpu-v2023), two days at a
time. Of the 17 windows of two days between the days 115 and 148 of the trace, {windows} are played,
with {jobs} jobs, {gangs} of them gangs. They are windows in which gangs wait more than 20 min on
average in the strict queue; in the others little ever waits.

- The trace does not say which pods start together. Here a gang is at most {tasks} pods with GPUs of
  one application, each created at most {apart_min} min after the one before. Pods whose QoS class,
  resources and GPU models are equal count as one application.
- Most of the cluster was idle, so it is scaled down: one of {every} agents with GPUs is played,
  that is, {nodes} agents with {gpus} GPUs. Pods without GPUs are left out, and so are gangs that
  the agents have no room for. Durations are limited to {life_h} h.
- Frameworks that keep offers do so for {holds_s} s. The allocation interval is {interval_s} s,
  `starvation.collect_s` is {collect_s}, and a gang collects after {patience_s} s. QoS classes are
  the roles and principals. Durations are learnt from the beginning, by QoS class and by whether
  pods use part of a GPU, one, or several.
- All ways use the first agents with room, in the same order.
- *A plan that knows all durations* is conservative backfilling, also without the allocator: in the
  order of arrival, each job gets the earliest start that delays none before it.
- *No schedule can do better*: a job ends when its longest pod has run, at the earliest, and the
  cluster needs time for the work of all jobs that arrive after any moment. Waits can be 0.

Waits are from the last pod's creation to the first start, or until the simulation ends, after
{until_h} h. *Idle GPU hours* count while a gang waits. Means over windows, with 95 %
confidence intervals; in one window the strict queue waits for most of a day.

"""

EACH = """
How long gangs wait on average in each window (min):

"""

FOOT = """\

![How long gangs and single pods wait, by way](../pictures/gang-days.svg)
"""


def _queued(window: "Window") -> tuple[list[dict[str, int]], list[tuple[int, gangs.Unit]]]:
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


def strict(window: "Window") -> list[int]:
    """When each job starts in a strict queue."""
    agents, units = _queued(window)
    starts, _, _ = gangs.in_order(agents, [(when_ms, [unit]) for when_ms, unit in units])
    return [starts[number] for number in range(len(window.jobs))]


# Measuring.


def measure(window: "Window", starts: Sequence[int | None]) -> dict[str, float]:
    """Figures of one window, by column; a job that does not start waits until the end."""
    import numpy as np

    known = [UNTIL_MS if at is None else min(at, UNTIL_MS) for at in starts]
    waits: dict[bool, list[float]] = {True: [], False: []}
    changes: list[tuple[int, int, int]] = []  # when, GPUs in use, gangs that wait
    end_ms = 0
    for job, start_ms in zip(window.jobs, known, strict=True):
        waits[job.is_gang].append((start_ms - job.arrives_ms) / 60_000)
        if job.is_gang:
            changes += [(job.arrives_ms, 0, 1), (start_ms, 0, -1)]
        if start_ms == UNTIL_MS:
            end_ms = UNTIL_MS
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
        "idle_gpu_h": idle / HOUR_MS / 1000,
        "end_h": min(end_ms, UNTIL_MS) / HOUR_MS,
        "unstarted": 100 * known.count(UNTIL_MS) / len(known),
    }


def bound(window: "Window") -> dict[str, float]:
    """Limits of every schedule."""
    end_h = gangs.least_end_ms(*_queued(window)) / HOUR_MS
    return {**dict.fromkeys(COLUMNS, 0.0), "end_h": end_h}


def compute(
    trace: Path, numbers: Sequence[int] | None = None, note: Callable[[str], None] = print
) -> None:
    """Play all ways, and keep what came out."""
    from allocator.server.system import loop_cache

    loop_cache.prepare()
    import gang_days_jobs as jobs
    import gang_days_play as playing

    notes = Offered()

    def starts_of(window: "Window", way: str) -> Sequence[int | None]:
        if way == "strict":
            return strict(window)
        if way == "planned":
            return gangs.planned(*_queued(window))
        its = notes if way == "backfill" else Offered()
        return playing.play(window, way, its, UNTIL_MS)

    others = Offered()
    for number, window in enumerate(jobs.read(trace, jobs.OTHERS)):
        playing.play(window, "backfill", others, UNTIL_MS)
        note(f"other {number}: {len(others.offered)} forecasts")
    windows = jobs.read(trace, numbers or jobs.WINDOWS)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number, window in enumerate(windows):
        for way in WAYS:
            limits = way == "bound"
            row = bound(window) if limits else measure(window, starts_of(window, way))
            note(f"{number} {way}: {row}")
            found[way].append(row)
        keep(windows[: number + 1], found, notes.offered, others.offered)


def keep(
    windows: "Sequence[Window]",
    found: Mapping[str, Sequence[Mapping[str, float]]],
    offered: Sequence[forecasts.Judged],
    others: Sequence[forecasts.Judged],
) -> None:
    """Keep means of windows, with all that the page says of them, and draw the picture."""
    import gang_days_jobs as jobs
    import gang_days_play as playing

    from laboratory.reports.run_report import interval

    rows = {
        way: {column: gangs.mean(interval([row[column] for row in every])) for column in COLUMNS}
        for way, every in found.items()
    }
    data = {
        "windows": len(windows),
        "jobs": sum(len(window.jobs) for window in windows),
        "gangs": sum(job.is_gang for window in windows for job in window.jobs),
        "nodes": len(windows[0].nodes),
        "gpus": windows[0].total()["gpus"] // 1000,
        "tasks": jobs.TASKS_MAX,
        "apart_min": jobs.APART_S // 60,
        "every": jobs.EVERY_NODE,
        "life_h": jobs.LIFE_S_MAX // 3600,
        "holds_s": playing.PACE.holds_ms // 1000,
        "interval_s": playing.PACE.interval_ms // 1000,
        "collect_s": playing.PACE.collect_s,
        "patience_s": playing.PACE.patience_ms // 1000,
        "until_h": UNTIL_MS // HOUR_MS,
        "rows": rows,
        "waits_min": {
            way: [[round(row[column], 1) for column in WAITS] for row in every]
            for way, every in found.items()
        },
        "forecasts": forecasts.binned(offered, EDGES_S),
        "width": forecasts.width(offered),
        "others": {
            "windows": len(jobs.OTHERS),
            "rows": forecasts.binned(others, EDGES_S),
            "width": forecasts.width(others),
        },
    }
    KEPT.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    draw(rows)


def section(kept: Path = KEPT) -> str:
    """A section of the page about policies."""
    found = json.loads(kept.read_text("utf-8"))
    table = gangs.table(WAYS, COLUMNS, found["rows"])
    waits_min = {way: [mean for mean, _ in every] for way, every in found["waits_min"].items()}
    ways = {way: text for way, text in WAYS.items() if way != "bound"}
    return HEAD.format(**found) + table + EACH + gangs.each(ways, waits_min) + FOOT


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
        forecasts.save(figure, PICTURE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--windows", type=int, nargs="*", help="default: all with much waiting")
    arguments = parser.parse_args()
    compute(arguments.trace, arguments.windows)

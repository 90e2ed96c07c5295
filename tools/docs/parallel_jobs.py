"""Jobs of a recorded parallel computer: `python tools/docs/parallel_jobs.py FILE` plays them.

`FILE` is the part of HPC2N's log that the simulator Alea contains (`Alea/data-set/hpc2n.swf` of
github.com/aleasimulator/alea), in the Standard Workload Format. Results are kept in
`data/which-policy/parallel_jobs.json`; `make docs` writes a section of the page about policies from
what is kept.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import gangs

if TYPE_CHECKING:
    from gang_days_jobs import Window

KEPT = gangs.KEPT.with_name("parallel_jobs.json")

AGENTS, CPUS = 120, 2

WEEK_MS = 7 * 86_400_000
WEEKS = 8
"""Jobs of the ninth week, of which the log has a day, count with those of the eighth."""

AFTER_MS = WEEK_MS
"""How long simulations go on after the last arrival; no job runs longer than 5 days."""

SHORT_MS = 10_000
"""Durations are at least this in slowdowns, as usual for bounded slowdowns."""

WAYS = {
    "recorded": "as recorded (the scheduler was Maui)",
    "strict": "strict queue",
    "easy_limits": "EASY backfilling, with the limits that users set",
    "easy": "EASY backfilling that knows all durations",
    "collecting": "stated gangs, without backfill",
    "backfill": "stated gangs, with backfill",
}

COLUMNS = {
    "wait_min": "wait (min)",
    "late_min": "p95 of waits (min)",
    "slowdown": "bounded slowdown",
    "unstarted": "not started (%)",
}

HEAD = """
### Two months of a parallel computer

{jobs} jobs of 57 days, recorded in 2002 at HPC2N: the part of the [Parallel Workloads Archive's
log](https://www.cs.huji.ac.il/labs/parallel/workload/l_hpc2n/) that the simulator
[Alea](https://github.com/aleasimulator/alea) contains. {gangs} of them need several of the {cpus}
CPUs at once, at most {most}. They are played on {agents} agents of {each} CPUs; each job is a
framework with a gang of as many tasks as it needs CPUs, in the role of its user. Jobs without a
recorded duration are left out.

- *EASY backfilling* starts jobs in the order of their arrival, and later ones earlier if this does
  not delay the first one that waits. It plans with the limits that users set for their jobs, as it
  was meant to, or with the real durations.
- The allocator does not know these limits. With backfill, it learns durations from the beginning,
  by user and by size of the job (in powers of two). It runs `drf` in characterised mode, so it does
  not serve jobs in the order of their arrival. The allocation interval is {interval_s} s,
  `starvation.collect_s` is {collect_s}, and a gang collects after {patience_s} s.
- Recorded waits include times in which nothing was started: the first three jobs, for 90 CPUs,
  waited for 3.6 days.

The *bounded slowdown* of a job is the time from its arrival to its end, divided by its duration or
{short_s} s, whichever is longer, and at least 1. Means over the {weeks} weeks in which jobs arrive,
with 95 % confidence intervals. They are wide because some weeks are busy and others quiet; the
second table shows the weeks.

"""

EACH = """
How long jobs wait on average, by the week of their arrival (min):

"""


class Logged(NamedTuple):
    """A job of the log.

    `waited_ms`: its recorded wait.
    `limit_ms`: the duration that its user requested.
    """

    arrives_ms: int
    waited_ms: int
    lasts_ms: int
    cpus: int
    limit_ms: int
    user: int


def read(path: Path) -> list[Logged]:
    """Read the jobs with a known duration, in the order of their arrival.

    Fields of the format, from 0: 1 arrival, 2 wait, 3 duration, 4 CPUs, 8 requested duration (all
    durations in seconds), 11 user. -1: unknown.
    """
    rows = [
        [int(float(word)) for word in line.split()]
        for line in path.read_text("ascii").splitlines()
        if line.strip() and not line.startswith(";")
    ]
    jobs = [
        Logged(row[1] * 1000, row[2] * 1000, row[3] * 1000, row[4], row[8] * 1000, row[11])
        for row in rows
        if row[3] > 0 and row[4] > 0
    ]
    return sorted(jobs, key=lambda job: job.arrives_ms)


# Schedulers without the allocator.


def units(jobs: Sequence[Logged], *, limits: bool) -> list[tuple[int, gangs.Unit]]:
    """Return when each job arrives, and its tasks; `limits`: schedulers know limits only.

    The CPUs are those of one agent, because any of them will do.
    """
    return [
        (
            job.arrives_ms,
            gangs.Unit(at, {"cpus": job.cpus}, (job.lasts_ms,), job.limit_ms * limits),
        )
        for at, job in enumerate(jobs)
    ]


def alone(jobs: Sequence[Logged], way: str) -> list[int]:
    """Return when each job starts."""
    agents = [{"cpus": AGENTS * CPUS}]
    if way == "recorded":
        return [job.arrives_ms + job.waited_ms for job in jobs]
    if way == "strict":
        arrivals = [(when_ms, [unit]) for when_ms, unit in units(jobs, limits=False)]
        starts, _, _ = gangs.in_order(agents, arrivals)
        return [starts[at] for at in range(len(jobs))]
    return gangs.easy(agents, units(jobs, limits=way == "easy_limits"))


# With the allocator.


def window(jobs: Sequence[Logged]) -> "Window":
    """Return the jobs in the form that the emulated master plays."""
    from gang_days_jobs import Job, Window

    from laboratory.workloads.traces import Node

    nodes = [Node(f"node{at}", {"cpus": 1000 * CPUS}, "") for at in range(AGENTS)]
    made = [
        Job(
            role=f"user{job.user}",
            need={"cpus": 1000},
            models=frozenset(),
            arrives_ms=job.arrives_ms,
            lasts_ms=(job.lasts_ms,) * job.cpus,
            kind="size" + chr(ord("a") + job.cpus.bit_length()),
        )
        for job in jobs
    ]
    return Window(nodes, made)


# Measuring.


def slowdown(wait_ms: int, lasts_ms: int) -> float:
    return max(1.0, (wait_ms + lasts_ms) / max(lasts_ms, SHORT_MS))


def measure(
    jobs: Sequence[Logged], starts: Sequence[int | None], until_ms: int
) -> list[dict[str, float]]:
    """Figures by column, for the jobs of each week; a job that does not start waits to the end."""
    import numpy as np

    weeks: list[list[tuple[int, float, bool]]] = [[] for _ in range(WEEKS)]
    for job, start_ms in zip(jobs, starts, strict=True):
        wait_ms = (until_ms if start_ms is None else start_ms) - job.arrives_ms
        week = min(job.arrives_ms // WEEK_MS, WEEKS - 1)
        weeks[week].append((wait_ms, slowdown(wait_ms, job.lasts_ms), start_ms is None))
    found = []
    for rows in weeks:
        waits_min = np.array([wait_ms for wait_ms, _, _ in rows]) / 60_000
        found.append(
            {
                "wait_min": float(waits_min.mean()),
                "late_min": float(np.percentile(waits_min, 95)),
                "slowdown": float(np.mean([each for _, each, _ in rows])),
                "unstarted": 100 * float(np.mean([never for _, _, never in rows])),
            }
        )
    return found


def compute(log: Path, note: Callable[[str], None] = print) -> None:
    """Play all ways, and keep what came out."""
    from allocator.server.system import loop_cache

    loop_cache.prepare()
    import gang_days_play as playing
    from forecast_notes import Offered

    from laboratory.reports.run_report import interval

    jobs, pace = read(log), playing.Pace(60_000, 120_000, 86_400, look_ms=0)
    until_ms = jobs[-1].arrives_ms + AFTER_MS
    found = {}
    for way in WAYS:
        starts: Sequence[int | None]
        if way in {"collecting", "backfill"}:
            starts = playing.play(window(jobs), way, Offered(), until_ms, pace)
        else:
            starts = alone(jobs, way)
        found[way] = measure(jobs, starts, until_ms)
        note(f"{way}: {found[way]}")
    data = {
        "jobs": len(jobs),
        "gangs": sum(job.cpus > 1 for job in jobs),
        "most": max(job.cpus for job in jobs),
        "agents": AGENTS,
        "each": CPUS,
        "cpus": AGENTS * CPUS,
        "weeks": WEEKS,
        "short_s": SHORT_MS // 1000,
        "interval_s": pace.interval_ms // 1000,
        "patience_s": pace.patience_ms // 1000,
        "collect_s": pace.collect_s,
        "rows": {
            way: {column: gangs.mean(interval([row[column] for row in rows])) for column in COLUMNS}
            for way, rows in found.items()
        },
        "waits_min": {
            way: [round(row["wait_min"], 1) for row in rows] for way, rows in found.items()
        },
    }
    KEPT.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def section(kept: Path = KEPT) -> str:
    """A section of the page about policies."""
    found = json.loads(kept.read_text("utf-8"))
    table = gangs.table(WAYS, COLUMNS, found["rows"])
    return HEAD.format(**found) + table + EACH + gangs.each(WAYS, found["waits_min"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, help="the file of the log")
    compute(parser.parse_args().log)

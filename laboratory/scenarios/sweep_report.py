"""Tables, files and a plot of a sweep's runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laboratory.reports.plots import beside, finish, line_of
from laboratory.reports.run_report import interval, write_rows
from laboratory.resources import NAMES
from laboratory.scenarios.running import RunResult

Row = dict[str, str | int | float | bool]
Key = tuple[str, str]

COLUMNS = ("end_s", "finished", "jobs", "ended", "tasks", "offers", "declines", "fairness")
"""Scalar results of a run."""


def run_rows(results: Sequence[RunResult]) -> list[Row]:
    rows: list[Row] = []
    for each in results:
        row: Row = asdict(each.cell)
        row |= {name: getattr(each, name) for name in COLUMNS}
        row |= {f"used_{name}": part for name, part in each.used.items()}
        row |= {f"share_{role}": part for role, part in each.role_share.items()}
        rows.append(row)
    return rows


def group_rows(results: Sequence[RunResult]) -> list[Row]:
    return [asdict(each.cell) | asdict(group) for each in results for group in each.groups]


def write(out: Path, results: Sequence[RunResult]) -> list[Path]:
    """Write runs and groups as CSV and Parquet, and the plot; returns the files."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, rows in (("runs", run_rows(results)), ("groups", group_rows(results))):
        path = out / f"{name}.csv"
        write_rows(path, rows)
        pq.write_table(pa.Table.from_pylist(rows), out / f"{name}.parquet")
        written += [path, out / f"{name}.parquet"]
    draw(out / "use.png", results)
    return [*written, out / "use.png"]


def by_policy(results: Sequence[RunResult]) -> Mapping[Key, list[RunResult]]:
    """The runs of each policy and mode, in the order requested."""
    found: dict[Key, list[RunResult]] = {}
    for each in results:
        found.setdefault((each.cell.policy, each.cell.mode), []).append(each)
    return found


def policy_table(results: Sequence[RunResult]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: results of each policy, means over the seeds with intervals."""
    kinds = results[0].kinds
    columns = ["policy", "mode", ">ended", ">end (s)"]
    columns += [f">{NAMES.get(kind, kind)} used (%)" for kind in kinds]
    columns += [">fairness", ">offers", ">declines"]
    rows = []
    for (policy, mode), runs in by_policy(results).items():
        cells = [policy, mode, f"{sum(r.ended for r in runs)} of {sum(r.jobs for r in runs)}"]
        cells.append(_mean(runs, lambda run: run.end_s))
        cells += [str(interval([100 * run.used[kind] for run in runs])) for kind in kinds]
        cells.append(_mean(runs, lambda run: run.fairness))
        cells += [_mean(runs, lambda run: run.offers), _mean(runs, lambda run: run.declines)]
        rows.append(cells)
    return columns, rows


def group_table(results: Sequence[RunResult]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows: results of each group under each policy."""
    columns = ["group", "role", "policy", "mode", ">ended", ">never began"]
    columns += [">wait (s)", ">wait, p95 (s)", ">stay (s)", ">role's share (%)"]
    rows = []
    for place, first in enumerate(results[0].groups):
        for (policy, mode), runs in by_policy(results).items():
            groups = [run.groups[place] for run in runs]
            ended = sum(group.ended for group in groups)
            cells = [first.group, first.role, policy, mode]
            cells.append(f"{ended} of {sum(group.jobs for group in groups)}")
            cells.append(str(sum(group.never_started for group in groups)))
            cells += [
                str(interval([getattr(group, measure) for group in groups]))
                for measure in ("wait_mean_s", "wait_p95_s", "stay_mean_s")
            ]
            cells.append(str(interval([100 * run.role_share[first.role] for run in runs])))
            rows.append(cells)
    return columns, rows


def _mean(runs: Sequence[RunResult], measure: Callable[[RunResult], float]) -> str:
    return str(interval([measure(run) for run in runs]))


def draw(path: Path, results: Sequence[RunResult]) -> None:
    """Draw use over time for the first seed: a column for each resource."""
    kinds = results[0].kinds
    first = {key: runs[0] for key, runs in by_policy(results).items()}
    with beside(path, (5.2 * len(kinds), 3.4), kinds) as pictures:
        for place, (kind, axes) in enumerate(zip(kinds, pictures, strict=True)):
            for (policy, mode), run in first.items():
                time_s = np.append(run.time_s, run.end_s)
                part = np.append(run.part[:, place], run.part[-1:, place]) * 100
                name = f"{policy} {mode}"
                axes.step(time_s, part, where="post", linewidth=0.9, label=name, **line_of(name))
            finish(axes, f"{NAMES.get(kind, kind)} in use (%)", 105)

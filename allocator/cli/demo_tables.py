"""What the demo prints: one line a run, one line a claim."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.terminal import console
from allocator.sim.reports.resource_names import NAMES

if TYPE_CHECKING:
    from allocator.sim.experiments.claims import Verdict
    from allocator.sim.experiments.demand_sources import Average
    from allocator.sim.experiments.runs import Result


def print_runs(results: Sequence["Result"]) -> None:
    """Print what was allocated and how long things took, then what it cost: 80 columns suffice."""
    kinds = results[0].kinds
    columns = ["ends s", *(f"{NAMES.get(kind, kind)} %" for kind in kinds), "job s", "wait s"]
    use = _table("run", columns)
    cost = _table("run", ["offers", "declines", "tasks", "p50 ms", "p99 ms", "MiB"])
    for result in results:
        run = result.figures
        allocated = [f"{run.mean[k] * 100:.1f} ± {run.deviation[k] * 100:.1f}" for k in kinds]
        job_s = sum(run.job_s.values()) / len(run.job_s)
        times = (f"{job_s:.1f}", f"{run.wait_max_s:.1f}")
        use.add_row(result.name, f"{run.makespan_s:.0f}", *allocated, *times)
        latency = (f"{run.latency_p50_ms:.2f}", f"{run.latency_p99_ms:.2f}")
        counts = (str(run.offers), str(run.declines), str(run.executors))
        memory = f"{result.memory_mib:.0f}" if result.memory_mib else ""
        cost.add_row(result.name, *counts, *latency, memory)
    out = console()
    out.print(use)
    out.print("%: allocated, mean ± standard deviation over time while the load was full")
    out.print("job: mean of the roles' mean times from registration to the end")
    out.print("wait: longest until a framework's first offer\n")
    out.print(cost)
    out.print("p50, p99: from asking for a cycle to having its decisions")
    out.print("MiB: the most that the sidecar had resident during the run\n")


def _table(first: str, columns: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def print_sources(rows: Iterable["Average"]) -> None:
    """Print what each source of demands costs."""
    columns = ("offers a job", "declines a job", "executors a job", "makespan s", "longest wait s")
    table = _table("demand", (*columns, "confirmed", "refuted", "probes"))
    for row in rows:
        numbers = (row.offers, row.declines, row.executors)
        times = (row.makespan_s, row.wait_max_s)
        table.add_row(
            row.source,
            *(f"{number:.1f}" for number in numbers),
            *(f"{time_s:.0f}" for time_s in times),
            *(f"{number:.1f}" for number in (row.confirmed, row.refuted, row.probes)),
        )
    console().print(table)


def print_claims(verdicts: Sequence["Verdict"], seeds: int) -> None:
    """Print claims, with what was measured."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "claim", "of", f"mean of {seeds} seeds", "95 % confidence"):
        table.add_column(column, overflow="fold")
    for verdict in verdicts:
        claim = verdict.claim
        wanted = f"within ±{claim.margin:g}" if claim.margin else "above 0"
        table.add_row(
            verdict.outcome,
            claim.text,
            claim.about,
            f"{verdict.mean:.2f} {claim.unit}",
            f"{verdict.low:.2f} to {verdict.high:.2f}, wanted {wanted}",
        )
    out = console()
    out.print(table)
    for verdict in verdicts:
        if verdict.outcome != "holds" and verdict.claim.reason:
            out.print(f"- {verdict.claim.text} ({verdict.claim.about}): {verdict.claim.reason}")

"""What the demo prints: one line a run, one line a claim."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.terminal import console

if TYPE_CHECKING:
    from allocator.sim.experiments.claims import Verdict
    from allocator.sim.experiments.demand_sources import Average
    from allocator.sim.experiments.runs import Result

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}


def print_runs(results: Sequence["Result"]) -> None:
    """Print the figures of runs."""
    kinds = results[0].kinds
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("run")
    columns = ["makespan s", *(f"{NAMES.get(kind, kind)} %" for kind in kinds)]
    columns += ["offers", "declines", "tasks", "rejected", "p50 ms", "p99 ms", "wait s", "MiB"]
    for column in columns:
        table.add_column(column, justify="right")
    for result in results:
        run = result.figures
        allocated = [f"{run.mean[k] * 100:.1f} ± {run.deviation[k] * 100:.1f}" for k in kinds]
        table.add_row(
            result.name,
            f"{run.makespan_s:.0f}",
            *allocated,
            str(run.offers),
            str(run.declines),
            str(run.executors),
            str(sum(run.rejected.values())),
            f"{run.latency_p50_ms:.2f}",
            f"{run.latency_p99_ms:.2f}",
            f"{run.wait_max_s:.1f}",
            f"{result.memory_mib:.0f}" if result.memory_mib else "",
        )
    out = console()
    out.print(table)
    for note in (
        "CPU, memory: part allocated, mean ± standard deviation over time while the load was full",
        "p50, p99: from asking for a cycle to having its decisions",
        "wait: longest until a framework's first offer; MiB: the sidecar's largest resident memory",
    ):
        out.print(note)


def print_sources(rows: Iterable["Average"]) -> None:
    """Print what each source of demands costs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("demand")
    columns = ("offers a job", "declines a job", "executors a job", "makespan s", "longest wait s")
    for column in (*columns, "confirmed", "refuted", "probes"):
        table.add_column(column, justify="right")
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

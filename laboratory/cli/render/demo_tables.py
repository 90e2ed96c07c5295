"""Output of the demo: one line per run, and one per claim."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from allocator.cli.render.terminal import Columns, cells, console, print_rows, table_of
from laboratory.resources import NAMES

if TYPE_CHECKING:
    from laboratory.experiments.claims import Claim, ClaimCase, ClaimVerdict, Measures
    from laboratory.experiments.demand_sources import Average
    from laboratory.experiments.runs import Result
    from laboratory.reports.run_report import RoleLevel, RunFairness


ROLES_MAX = 3
"""With more roles than this, only the smallest and the largest share are shown."""


def print_conclusions(results: Sequence["Result"], *, with_claims: bool) -> None:
    """Print fairness, and for section V whether the runs support each claim."""
    out = console()
    out.print(fairness_table(results))
    out.print("share: dominant share, mean (minimum) after the first minute while the load was")
    out.print("full; Jain: index of the roles' shares, 1: equal")
    if with_claims:
        out.print()
        out.print(claims_table(results))
        out.print("±: tolerance of 'about as long'; the paper has only curves for these claims")
        out.print("one seed proves nothing: `allocator-lab demo claims` plays ten, with intervals")


def fairness_table(results: Sequence["Result"]) -> Table:
    """One row per run: the roles' shares, and their Jain index."""
    roles = sorted({role for result in results for role in result.figures.fairness.roles})
    few = len(roles) <= ROLES_MAX
    heads = [f">{role} %" for role in roles] if few else [">least %", ">most %"]
    rows = []
    for result in results:
        run = result.figures
        shown = [run.fairness.roles.get(role) for role in roles] if few else _ends(run.fairness)
        cells = [_level(each) for each in shown]
        cells += [f"{run.fairness.jain:.3f}", f"{run.fairness.jain_least:.2f}"]
        rows.append((result.name, *cells))
    return table_of(["share", *heads, ">Jain", ">least"], rows)


def _ends(fairness: "RunFairness") -> list["RoleLevel | None"]:
    ordered = sorted(fairness.roles.values(), key=lambda level: level.mean)
    return [ordered[0], ordered[-1]] if ordered else [None, None]


def _level(level: "RoleLevel | None") -> str:
    return "" if level is None else f"{level.mean * 100:.1f} ({level.least * 100:.0f})"


def claims_table(results: Sequence["Result"]) -> Table:
    """One row per claim of section V whose runs were played."""
    from laboratory.experiments.claims import look_once

    rows = []
    for seen in look_once(_measured(results)):
        measured = f"{seen.value:+.1f} {seen.claim.unit}"
        rows.append(("yes" if seen.agrees else "no", measured, _claim(seen.claim)))
    return table_of(["holds", ">measured", "claim of [1], section V"], rows)


def _measured(results: Sequence["Result"]) -> dict["ClaimCase", "Measures"]:
    from laboratory.experiments.claims import HETERO, STAGED, ClaimCase, measures_of

    return {
        ClaimCase(
            result.figures.policy,
            result.figures.mode,
            STAGED if result.name.endswith(" staged") else HETERO,
        ): measures_of(result.figures, result.part, result.kinds)
        for result in results
    }


def print_runs(results: Sequence["Result"]) -> None:
    """Print allocations and times, then costs, in at most 80 columns."""
    kinds = results[0].kinds
    use, cost = [], []
    for result in results:
        run = result.figures
        allocated = [f"{run.mean[k] * 100:.1f} ± {run.deviation[k] * 100:.1f}" for k in kinds]
        job_s = sum(run.job_s.values()) / len(run.job_s)
        times = (f"{job_s:.1f}", f"{run.wait_max_s:.1f}")
        use.append((result.name, f"{run.makespan_s:.0f}", *allocated, *times))
        latency = (f"{run.latency_p50_ms:.2f}", f"{run.latency_p99_ms:.2f}")
        counts = (run.offers, run.declines, run.executors)
        memory = f"{result.memory_mib:.0f}" if result.memory_mib else ""
        cost.append((result.name, *counts, *latency, memory))
    out = console()
    amounts = [f">{NAMES.get(kind, kind)} %" for kind in kinds]
    out.print(table_of(["run", ">ends s", *amounts, ">job s", ">wait s"], use))
    out.print("%: allocated, mean ± standard deviation over time while the load was full")
    out.print("job: time from registration to the end, mean of the roles' means")
    out.print("wait: longest time until a framework's first offer\n")
    heads = ("run", ">offers", ">declines", ">tasks", ">p50 ms", ">p99 ms", ">MiB")
    out.print(table_of(heads, cost))
    out.print("p50, p99: latency from the request for a cycle to its decisions")
    out.print("MiB: maximum resident memory of the sidecar during the run\n")


def print_sources(rows: Iterable["Average"]) -> None:
    print_rows(_SOURCES, rows, "")


_SOURCES: Columns = {
    "demand": lambda row: row.source,
    ">offers a job": lambda row: f"{row.offers:.1f}",
    ">declines a job": lambda row: f"{row.declines:.1f}",
    ">executors a job": lambda row: f"{row.executors:.1f}",
    ">makespan s": lambda row: f"{row.makespan_s:.0f}",
    ">longest wait s": lambda row: f"{row.wait_max_s:.0f}",
    ">confirmed": lambda row: f"{row.confirmed:.1f}",
    ">refuted": lambda row: f"{row.refuted:.1f}",
    ">probes": lambda row: f"{row.probes:.1f}",
}


def print_claims(verdicts: Sequence["ClaimVerdict"], seeds: int) -> None:
    """Print claims and measured values, in at most 80 columns."""
    columns: Columns = {
        "": lambda each: each.outcome,
        f">mean of {seeds}": lambda each: f"{each.mean:+.2f} {each.claim.unit}",
        ">95 % interval": lambda each: f"{each.low:+.2f} to {each.high:+.2f}",
        "~claim of [1], section V": lambda each: _claim(each.claim),
    }
    out = console()
    out.print(table_of(columns, (cells(columns, each) for each in verdicts)))
    out.print(f"mean over {seeds} seeds with a 95 % confidence interval; a claim holds if the mean")
    out.print("is above 0 or, where ± is given, within that")
    for verdict in verdicts:
        if verdict.outcome != "holds" and verdict.claim.reason:
            out.print(f"- {verdict.claim.text} ({verdict.claim.about}): {verdict.claim.reason}")


def _claim(claim: "Claim") -> str:
    wanted = f", ±{claim.margin:g}" if claim.margin else ""
    return f"{claim.text} ({claim.about}{wanted})"

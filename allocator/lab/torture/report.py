"""What came of it, as text and as JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from allocator import __version__
from allocator.lab.torture.findings import Findings, Sample, quantile
from allocator.plain import json_text

ROWS = 12
"""Of memory and latency over time."""

SHOWN = 10
"""Violations that the text tells."""

NAME = "torture.json"


@dataclass(frozen=True)
class Report:
    """A run that is over.

    said: what the log says most often.
    """

    seed: int
    size: int
    findings: Findings
    said: Mapping[str, int]

    @property
    def violations(self) -> int:
        """How often an invariant did not hold."""
        return sum(self.findings.broken.values())


def write(report: Report, out: Path) -> Path:
    """Write the report as JSON; gives the file."""
    content = {
        "version": __version__,
        "seed": report.seed,
        "size": report.size,
        **report.findings.as_json(),
        "log_says": report.said,
    }
    path = out / NAME
    path.write_text(json_text(content, indent=1) + "\n", encoding="utf-8")
    return path


def text(report: Report) -> str:
    """The report for people."""
    findings = report.findings
    counts = findings.counts
    latency = sorted(findings.latency_ms)
    wait = counts["longest_wait_cycles"]
    span = f"{findings.elapsed_s:.0f} s, seeds {report.seed} to {findings.seed}"
    size = f"{report.size} agents and frameworks at a time"
    cycle_ms = ", ".join(
        f"{name} {quantile(latency, part):.1f}"
        for name, part in (("median", 0.5), ("99 %", 0.99), ("longest", 1.0))
    )
    lines = [
        f"{span}, {size}; {counts['worlds']} worlds, {counts['simulated_s']} s of theirs",
        "",
        *_table("what happened", _HAPPENED, counts),
        "",
        f"{sum(findings.faults.values())} faults",
        *_rows(findings.faults),
        "",
        f"hostile tenants of {len(findings.manners)} manners",
        *_rows(findings.manners),
        "",
        f"{sum(findings.checks.values())} looks at invariants, {report.violations} violations",
        *(f"  {name:<44}{n:>9}{findings.broken[name]:>6}" for name, n in _sorted(findings.checks)),
        f"  the longest that anybody waited for what was free: {wait} cycles",
        "",
        f"cycles, ms: {cycle_ms}",
        "",
        *_over_time(findings.samples),
    ]
    if findings.violations:
        lines += ["", "violations"]
        lines += [
            f"  {each.invariant}, seed {each.seed}, {each.at_s:.0f} s: {each.text}"
            for each in findings.violations[:SHOWN]
        ]
    return "\n".join([*lines, *(f"note: {note}" for note in findings.notes)])


_HAPPENED = (
    "events", "batches", "cycles", "decisions", "offers", "offers_looked_at", "tasks",
    "cycles_alone", "offers_of_the_fallback", "calls", "calls_in_vain", "sessions",
    "sessions_lost", "reconnects", "superseded", "lives", "facts_compared", "scrapes_compared",
    "core_queue_max", "log_bytes", "log_lines", "log_bytes_a_minute_max",
)  # fmt: skip


def _table(title: str, names: Iterable[str], counts: Mapping[str, int]) -> list[str]:
    return [title, *(f"  {name.replace('_', ' '):<44}{counts[name]:>9}" for name in names)]


def _rows(counts: Mapping[str, int]) -> list[str]:
    return [f"  {name:<44}{number:>9}" for name, number in _sorted(counts)]


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _over_time(samples: list[Sample]) -> list[str]:
    """Memory and latency, a row for each part of the run."""
    if not samples:
        return []
    lines = ["over time    s  process age s   RSS MiB  threads  descriptors  p50 ms  p99 ms"]
    step = max(1, len(samples) // ROWS)
    for first in range(0, len(samples), step):
        part = samples[first : first + step]
        most = max(part, key=lambda sample: sample.rss_mib)
        p50_ms = quantile(sorted(each.cycle_p50_ms for each in part), 0.5)
        p99_ms = max(each.cycle_p99_ms for each in part)
        lines.append(
            f"{part[0].at_s:>14.0f}{most.age_s:>15.0f}{most.rss_mib:>10.0f}{most.threads:>9}"
            f"{most.descriptors:>13}{p50_ms:>8.1f}{p99_ms:>8.1f}"
        )
    return lines

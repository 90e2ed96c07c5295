"""Findings of a run, collected from any thread, and the report as text and JSON."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from allocator import __version__
from allocator.plain import json_text

# Findings.

DETAILS_MAX = 200
"""Violations whose text is kept; further ones are only counted."""

TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold.

    seed: seed of the world in which it was violated.
    at_s: since the beginning of the run.
    """

    invariant: str
    text: str
    seed: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Resource usage of the process at one moment.

    at_s: since the beginning of the run.
    age_s: since the process became ready.
    cycle_p50_ms, cycle_p99_ms: round trips of cycles since the previous sample; 0 if there were
        none.
    """

    at_s: float
    age_s: float
    rss_mib: float
    descriptors: int
    threads: int
    cycle_p50_ms: float
    cycle_p99_ms: float


@dataclass
class TortureFindings:
    """The findings of a run so far.

    seed: of the current world.
    faults: injections by fault.
    manners: visits of hostile tenants by manner.
    counts: events, cycles, reconnects and others.
    checks: checks by invariant.
    """

    seed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    manners: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    latency_ms: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begun_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._sampled = 0

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.begun_s

    def check(self, invariant: str, wrong: list[str]) -> None:
        """Record one check of an invariant, and its violations."""
        with self._lock:
            self.checks[invariant] += 1
        for text in wrong:
            self.violate(invariant, text)

    def violate(self, invariant: str, text: str) -> None:
        with self._lock:
            self.broken[invariant] += 1
            if len(self.violations) < DETAILS_MAX:
                at_s = round(self.elapsed_s, 1)
                self.violations.append(Violation(invariant, text[:TEXT_MAX], self.seed, at_s))

    def at_most(self, name: str, value: int) -> None:
        """Keep the maximum of a value."""
        self.counts[name] = max(self.counts[name], value)

    def note(self, text: str) -> None:
        """Add a note to the report, once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def cycle_took(self, latency_s: float) -> None:
        self.latency_ms.append(latency_s * 1000)

    def sample(self, age_s: float, rss_mib: float, descriptors: int, threads: int) -> None:
        """Record the resource usage of the process, with the round trips since the last sample."""
        latest = sorted(self.latency_ms[self._sampled :])
        self._sampled += len(latest)
        self.samples.append(
            Sample(
                at_s=round(self.elapsed_s, 1),
                age_s=round(age_s, 1),
                rss_mib=round(rss_mib, 1),
                descriptors=descriptors,
                threads=threads,
                cycle_p50_ms=round(quantile(latest, 0.5), 2),
                cycle_p99_ms=round(quantile(latest, 0.99), 2),
            )
        )

    def as_json(self) -> dict[str, object]:
        return {
            "elapsed_s": round(self.elapsed_s, 1),
            "counts": dict(sorted(self.counts.items())),
            "faults": dict(sorted(self.faults.items())),
            "manners": dict(sorted(self.manners.items())),
            "checks": dict(sorted(self.checks.items())),
            "violations": sum(self.broken.values()),
            "violations_by_invariant": dict(sorted(self.broken.items())),
            "first_violations": [asdict(each) for each in self.violations],
            "samples": [asdict(each) for each in self.samples],
            "notes": self.notes,
        }


def quantile(ascending: list[float], part: float) -> float:
    """The value below which this fraction of the values lies; 0 if there are none."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(part * len(ascending)))]


# The report, as text and as JSON.

ROWS = 12
"""Maximum number of samples of memory and latency over time in the report."""

SHOWN = 10
"""Maximum number of violations in the text."""

NAME = "torture.json"


@dataclass(frozen=True)
class TortureReport:
    """The result of a run.

    said: the most frequent log messages.
    """

    seed: int
    size: int
    findings: TortureFindings
    said: Mapping[str, int]

    @property
    def violations(self) -> int:
        return sum(self.findings.broken.values())


def write(report: TortureReport, out: Path) -> Path:
    """Write the report as JSON; returns the file."""
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


def text(report: TortureReport) -> str:
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
        f"  longest wait of a framework for free resources: {wait} cycles",
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
    """Memory and latency over time, one row per period."""
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

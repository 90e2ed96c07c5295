"""What was counted, and what was found wrong; by any thread."""

import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

DETAILS_MAX = 200
"""Violations of which the text is kept; the others are only counted."""

TEXT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold.

    seed: of the world in which it was seen.
    at_s: since the beginning of the run.
    """

    invariant: str
    text: str
    seed: int
    at_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """How the process was at one moment.

    at_s: since the beginning of the run.
    age_s: of the process.
    cycle_p50_ms, cycle_p99_ms: round trips of cycles since the sample before; 0 where there were
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
class Findings:
    """A run so far.

    seed: of the world that is played.
    faults: how often each fault struck.
    manners: how often hostile tenants of each manner came.
    counts: events, cycles, reconnects and the like.
    checks: how often each invariant was looked at.
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
        """How long the run has lasted."""
        return time.monotonic() - self.begun_s

    def check(self, invariant: str, wrong: list[str]) -> None:
        """One look at an invariant, and what was wrong."""
        with self._lock:
            self.checks[invariant] += 1
        for text in wrong:
            self.violate(invariant, text)

    def violate(self, invariant: str, text: str) -> None:
        """Write a violation down."""
        with self._lock:
            self.broken[invariant] += 1
            if len(self.violations) < DETAILS_MAX:
                at_s = round(self.elapsed_s, 1)
                self.violations.append(Violation(invariant, text[:TEXT_MAX], self.seed, at_s))

    def note(self, text: str) -> None:
        """Write down what the reader of the report should know, once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def cycle_took(self, latency_s: float) -> None:
        """Note the round trip of a cycle."""
        self.latency_ms.append(latency_s * 1000)

    def sample(self, age_s: float, rss_mib: float, descriptors: int, threads: int) -> None:
        """Note how the process is, with the round trips since the last time."""
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
        """Everything, for a file."""
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
    """The value below which this part lies; 0 where there is none."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(part * len(ascending)))]

"""Figures that describe a run; means of several with confidence intervals."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from allocator.core import Floats
from allocator.measures import jain_index
from allocator.plain import json_text
from laboratory.workloads.play import Played, RoleShares

# Means with confidence intervals (Student's t).

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and half the width of its confidence interval (NaN for a single value)."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def outcome(self, margin: float = 0.0) -> str:
        """Judge a claim: ``holds``, ``not shown`` or ``contrary``.

        margin: 0 claims a mean above zero; otherwise a mean between -margin and margin.
        """
        if margin:
            holds = max(-self.low, self.high) < margin
            contrary = self.low > margin or self.high < -margin
        else:
            holds, contrary = self.low > 0, self.high < 0
        return "holds" if holds else "contrary" if contrary else "not shown"

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return "-"
        return f"{self.mean:.4g}" + ("" if np.isnan(self.half) else f" ± {self.half:.2g}")


def interval(values: Sequence[float]) -> Interval:
    """Mean of independent values, with its interval; NaNs are left out.

    Examples
    --------
    >>> str(interval([1.0, 2.0, 3.0]))
    '2 ± 2.5'
    >>> str(interval([5.0]))
    '5'
    """
    there = np.array([each for each in values if not np.isnan(each)])
    if not len(there):
        return Interval(float("nan"), float("nan"))
    if len(there) == 1:
        return Interval(float(there[0]), float("nan"))
    from scipy import stats  # not needed by a soak on an installed package

    half = stats.sem(there) * stats.t.ppf((1 + CONFIDENCE) / 2, len(there) - 1)
    return Interval(float(there.mean()), float(half))


# How even the dominant shares of roles were.


@dataclass(frozen=True, slots=True)
class RoleLevel:
    """Dominant share of a role while it has frameworks, 0 to 1: mean and minimum."""

    mean: float
    least: float


@dataclass(frozen=True, slots=True)
class RunFairness:
    """How even the dominant shares of roles were.

    jain, jain_least: Jain's index over the shares of the roles present: mean and minimum over
        the samples; 1 if there were never two roles.
    """

    roles: dict[str, RoleLevel]
    jain: float
    jain_least: float


def fairness(samples: RoleShares, from_ms: int, to_ms: int) -> RunFairness:
    """Measure how even shares were between two moments.

    from_ms, to_ms: samples from this time count; if there are none, all samples up to `to_ms`.
    """
    time_ms = np.array(samples.time_ms)
    counted = (time_ms >= from_ms) & (time_ms <= to_ms)
    if not counted.any():
        counted = time_ms <= to_ms
    roles = sorted({role for held in samples.held for role in held})
    share = np.array([samples.shares(role)[counted] for role in roles])
    there = np.array([samples.there(role)[counted] for role in roles])
    levels = {
        role: RoleLevel(float(share[row][there[row]].mean()), float(share[row][there[row]].min()))
        for row, role in enumerate(roles)
        if there[row].any()
    }
    several: list[int] = np.flatnonzero(there.sum(axis=0) >= 2).tolist() if roles else []
    jain = [jain_index(share[there[:, column], column]) for column in several]
    return RunFairness(levels, float(np.mean(jain or [1.0])), min(jain, default=1.0))


# From a run to figures that describe it.

STEP_S = 1.0

WARM_MS = 60_000
"""Fairness is measured from here on, when the cluster is full."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a run.

    makespan_s: from the beginning until the last job left.
    loaded_s: until the first queue had no further job; means and deviations cover this time.
    mean, deviation: allocated part of each resource, 0 to 1, weighted by time.
    rejected: decisions that could not be offered as made, by reason.
    latency_p50_ms, latency_p99_ms: wall time from requesting a cycle to its decisions.
    wait_max_s: longest time from a framework's registration to its first offer.
    job_s: mean time of each role's jobs, from registration to leaving.
    fairness: of the roles, from `WARM_MS` on and while the load is full.
    """

    policy: str
    mode: str
    seed: int
    makespan_s: float
    loaded_s: float
    mean: dict[str, float]
    deviation: dict[str, float]
    offers: int
    declines: int
    executors: int
    decisions: int
    rejected: dict[str, int]
    latency_p50_ms: float
    latency_p99_ms: float
    wait_max_s: float
    batches: int
    events: int
    resyncs: int
    job_s: dict[str, float]
    fairness: RunFairness


def figures(played: Played, policy: str, mode: str, seed: int) -> Figures:
    record = played.record
    latency_ms = np.array(record.latency_s or [0.0]) * 1000
    share, weight = _while_loaded(played)
    mean = weight @ share
    deviation = np.sqrt(weight @ (share - mean) ** 2)
    kinds = played.master.ledger.names
    return Figures(
        policy=policy,
        mode=mode,
        seed=seed,
        makespan_s=played.makespan_ms / 1000,
        loaded_s=played.loaded_ms / 1000,
        mean=dict(zip(kinds, mean.tolist(), strict=True)),
        deviation=dict(zip(kinds, deviation.tolist(), strict=True)),
        offers=record.offers,
        declines=record.declines,
        executors=record.tasks,
        decisions=sum(record.outcomes.values()),
        rejected={reason.name.lower(): count for reason, count in record.rejected.items()},
        latency_p50_ms=float(np.percentile(latency_ms, 50)),
        latency_p99_ms=float(np.percentile(latency_ms, 99)),
        wait_max_s=max(record.waits_ms, default=0) / 1000,
        batches=record.batches,
        events=record.events,
        resyncs=record.resyncs,
        job_s=_job_s(played),
        fairness=fairness(played.role_shares, WARM_MS, played.loaded_ms),
    )


def _job_s(played: Played) -> dict[str, float]:
    """Mean time of each role's jobs: all have left, so it is a difference of two means."""
    begun, left = played.progress.submitted_ms, played.progress.ended_ms
    return {
        role: float(np.mean(_of(left, role)) - np.mean(_of(begun, role))) / 1000
        for role in sorted({role for role, _ in left})
    }


def _of(moments: Sequence[tuple[str, int]], role: str) -> list[int]:
    return [moment_ms for each, moment_ms in moments if each == role]


def shares(played: Played) -> tuple[Floats, Floats]:
    """Allocated part of each resource over time.

    Returns (T,): seconds from the beginning; each row holds until the next.
    Returns (T, R): 0 to 1; 0 while the cluster has none of a resource.
    """
    record = played.record
    used = np.array(record.used, float)
    total = np.array(record.total, float)
    part = np.divide(used, total, out=np.zeros_like(used), where=total > 0)
    return np.array(record.time_ms, float) / 1000, part


def sampled(played: Played, step_s: float = STEP_S) -> tuple[Floats, Floats]:
    """The same as `shares`, sampled every `step_s` until the makespan."""
    time_s, part = shares(played)
    at_s = np.arange(0.0, played.makespan_ms / 1000 + step_s, step_s)
    row = np.searchsorted(time_s, at_s, side="right") - 1
    return at_s, np.where(row[:, None] >= 0, part[np.maximum(row, 0)], 0.0)


def _while_loaded(played: Played) -> tuple[Floats, Floats]:
    """Allocated parts from each moment on, and the fraction of the loaded time each one held."""
    time_s, part = shares(played)
    end_s = played.loaded_ms / 1000
    lasted = np.diff(np.minimum(np.append(time_s, max(end_s, time_s[-1])), end_s))
    whole = lasted.sum()
    return part, lasted / whole if whole > 0 else np.full(len(lasted), 1 / len(lasted))


def write_json(path: Path, rows: Sequence[Figures], also: Mapping[str, object]) -> None:
    """Write all figures, and further data about the run."""
    text = json_text({**also, "runs": [asdict(row) for row in rows]}, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Figures]) -> None:
    write_rows(path, [_flat(row) for row in rows])


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table with the columns of the first row."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_series(
    path: Path, series: Mapping[str, tuple[Floats, Floats]], kinds: Sequence[str]
) -> None:
    """Write the allocated parts of every run over time: one line per run and second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "time_s", *kinds])
        for name, (time_s, part) in series.items():
            for when, row in zip(time_s.tolist(), part.tolist(), strict=True):
                writer.writerow([name, f"{when:g}", *(f"{value:.4f}" for value in row)])


def _flat(row: Figures) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in asdict(row).items():
        if name == "rejected":
            flat[name] = sum(value.values())
        elif name == "fairness":
            flat |= {"jain": round(value["jain"], 5), "jain_least": round(value["jain_least"], 5)}
            for role, level in value["roles"].items():
                flat |= {f"{role}_share_{key}": round(part, 5) for key, part in level.items()}
        elif isinstance(value, dict):
            flat |= {f"{key}_{name}": round(part, 5) for key, part in value.items()}
        else:
            flat[name] = round(value, 5) if isinstance(value, float) else value
    return flat

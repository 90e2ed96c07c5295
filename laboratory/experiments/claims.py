"""The claims of section V of the paper, over many seeds.

Each seed is a workload that all policies play, so differences are taken seed by seed and their mean
is given with a 95 % confidence interval (Student's t). A claim that one value is larger holds if
the whole interval is above zero. A claim that two values are about equal holds if the whole
interval is inside the margin. Otherwise the claim is not shown, or the contrary is shown.

The allocator runs in this process; its decisions do not depend on how it is reached.

References
----------
.. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, sec. V-E and V-F.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from allocator.core import Floats, Options, PolicySpec, Settings
from allocator.policies import build
from laboratory.experiments.demo_runs import OBLIVIOUS, STAGED_APART_MS, STAGED_JOBS
from laboratory.experiments.runs import CHARACTERISED
from laboratory.links.base import DirectLink
from laboratory.master.cycles import Timing
from laboratory.reports.run_report import Figures, figures, interval, sampled
from laboratory.resources import AgentSpec
from laboratory.workloads.play import play
from laboratory.workloads.spark_experiment import (
    DRIVERS,
    HETEROGENEOUS,
    HOMOGENEOUS,
    ONE_OF_EACH,
    Drivers,
    Experiment,
    experiment,
)

MARGIN = 2.0
"""Makespans that differ by less than this many percent count as about equal."""

EARLY_S = (20, 40)
LATE_S = (60, 360)
"""Periods of runs whose agents register one by one, at 0, 10 and 20 s: `EARLY_S` when the cluster
has just been filled, `LATE_S` the five minutes after."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimSetting:
    """An experiment without its seed, compared by identity.

    jobs: of each queue.
    selection: how policies choose agents; empty: their default.
    flat: frameworks compete directly, without roles.
    answer_ms: from an offer to the driver's answer.
    interval_ms: from one full allocation cycle to the next.
    """

    name: str
    cluster: tuple[AgentSpec, ...]
    jobs: int = 50
    apart_ms: int = 0
    drivers: Drivers = DRIVERS
    selection: str = ""
    flat: bool = False
    answer_ms: int = 10
    interval_ms: int = 1_000

    def experiment(self, seed: int, scale: float) -> Experiment:
        jobs = max(1, round(self.jobs * scale))
        return experiment(
            seed, cluster=self.cluster, jobs=jobs, apart_ms=self.apart_ms, drivers=self.drivers
        )


HETERO = ClaimSetting("three types", HETEROGENEOUS)
AT_ONCE = ClaimSetting(
    "three types, executors start at once", HETEROGENEOUS, drivers=Drivers(start=0.0)
)
EQUAL = ClaimSetting("equal agents", HOMOGENEOUS)
STAGED = ClaimSetting("one by one", ONE_OF_EACH, STAGED_JOBS, STAGED_APART_MS)


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """A policy in a mode in a setting."""

    policy: str
    mode: str
    setting: ClaimSetting


@dataclass(frozen=True, slots=True)
class Measures:
    """The measurements of a run that claims compare.

    variance: of the allocated part over time, mean of CPU and memory.
    memory_early, memory_late: allocated part of the memory in `EARLY_S` and `LATE_S`, percent.
    """

    makespan_s: float
    variance: float
    memory_early: float
    memory_late: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about the runs of one seed.

    text, about: the claim, and the variant measured here.
    cases: the runs it needs.
    measure: a number in `unit`; the claim is about its mean.
    margin: 0 claims a mean above zero; otherwise a mean between -margin and margin.
    reason: why the claim does not hold here, if that is known.
    """

    text: str
    about: str
    cases: tuple[ClaimCase, ...]
    measure: Callable[..., float]
    unit: str = "%"
    margin: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The result for a claim.

    mean, low, high: of the measure over all seeds: mean and ends of the confidence interval.
    outcome: ``holds``, ``not shown`` or ``contrary``.
    """

    claim: Claim
    values: tuple[float, ...]
    mean: float
    low: float
    high: float
    outcome: str


def earlier(later: Measures, sooner: Measures) -> float:
    """How much shorter the second run's makespan is, in percent of the first run's."""
    return (later.makespan_s - sooner.makespan_s) / later.makespan_s * 100


def steadier(rough: Measures, calm: Measures) -> float:
    """How much smaller the second run's variance is, in percent of the first run's."""
    return (rough.variance - calm.variance) / rough.variance * 100


def recovered(run: Measures) -> float:
    """Growth of allocated memory, in percentage points, since agents were first filled."""
    return run.memory_late - run.memory_early


def fuller(less: Measures, more: Measures) -> float:
    """How much more memory the second run had allocated, in percentage points."""
    return more.memory_late - less.memory_late


EXECUTORS = (
    "in characterised mode more is allocated, but to more and shorter-lived executors, each of "
    "which takes seconds to start and is idle at the end of its job. If executors start at once, "
    "PS-DSF ends the batch earlier; for DRF no difference is shown: see the next line"
)
LOCKED_IN = (
    "; and what V-F says of BF-DRF also applies to DRF: an agent once filled with a bad mixture "
    "stays so, as released resources go back to the framework that released them"
)
COINCIDENCE = (
    "it stays at its first packing until executors of both groups happen to end within one "
    "allocation interval on different agents; best fit then improves the packing. In some seeds "
    "that happens within the five minutes"
)
TEXTS = {"drf": "DRF", "tsf": "TSF", "ps-dsf": "PS-DSF", "bf-drf": "BF-DRF", "rps-dsf": "rPS-DSF"}


def _pair(
    one: tuple[str, str], other: tuple[str, str], setting: ClaimSetting
) -> tuple[ClaimCase, ClaimCase]:
    return ClaimCase(*one, setting), ClaimCase(*other, setting)


def _by_policy() -> Iterator[Claim]:
    """Yield the claims of V-E about policies."""
    for mode in (OBLIVIOUS, CHARACTERISED):
        pair = _pair(("drf", mode), ("ps-dsf", mode), HETERO)
        yield Claim("PS-DSF ends the batch before DRF", mode, pair, earlier)
    mode = CHARACTERISED
    for first, second in (("drf", "tsf"), ("ps-dsf", "bf-drf"), ("ps-dsf", "rps-dsf")):
        pair = _pair((first, mode), (second, mode), HETERO)
        text = f"{TEXTS[second]} takes about as long as {TEXTS[first]}"
        yield Claim(text, mode, pair, earlier, margin=MARGIN)
    for name in ("bf-drf", "rps-dsf"):
        pair = _pair(("tsf", mode), (name, mode), HETERO)
        yield Claim(f"{TEXTS[name]} ends the batch before TSF", mode, pair, earlier)
    for mode in (OBLIVIOUS, CHARACTERISED):
        pair = _pair(("drf", mode), ("ps-dsf", mode), EQUAL)
        text = "on equal agents PS-DSF takes about as long as DRF"
        yield Claim(text, mode, pair, earlier, margin=MARGIN)


def _by_mode() -> Iterator[Claim]:
    """Yield the claims of V-E about modes."""
    for name in ("drf", "ps-dsf"):
        modes = (name, OBLIVIOUS), (name, CHARACTERISED)
        text = "characterised ends the batch before oblivious"
        pair = _pair(*modes, HETERO)
        reason = EXECUTORS + (LOCKED_IN if name == "drf" else "")
        yield Claim(text, TEXTS[name], pair, earlier, reason=reason)
        about = f"{TEXTS[name]}, if executors start at once"
        yield Claim(text, about, _pair(*modes, AT_ONCE), earlier)
        text = "characterised has a lower variance of utilisation"
        yield Claim(text, TEXTS[name], pair, steadier)


def _one_by_one() -> Iterator[Claim]:
    """Yield the claims of V-F."""
    best_fit, residual = _pair(("bf-drf", CHARACTERISED), ("rps-dsf", CHARACTERISED), STAGED)
    where, unit = STAGED.name, "points"
    yield Claim("rPS-DSF recovers memory efficiency", where, (residual,), recovered, unit)
    yield Claim("BF-DRF does not", where, (best_fit,), recovered, unit, MARGIN, COINCIDENCE)
    text = "rPS-DSF has more memory allocated than BF-DRF"
    yield Claim(text, where, (best_fit, residual), fuller, unit)


CLAIMS = (*_by_policy(), *_by_mode(), *_one_by_one())


def run_case(which: tuple[ClaimCase, int], scale: float = 1.0) -> Measures:
    """Play a case with a seed and a fraction of its jobs."""
    return watch_case(which, scale)[0]


def watch_case(which: tuple[ClaimCase, int], scale: float = 1.0) -> tuple[Measures, Floats]:
    """Play a case; also gives the allocated CPU and memory each second, (T, 2)."""
    case, seed = which
    setting = case.setting
    scenario = setting.experiment(seed, scale)
    spec = PolicySpec(case.policy, setting.selection, mode=case.mode, flat=setting.flat)
    link = DirectLink(build, Settings(policy=spec, seed=seed))
    timing = Timing(answer_ms=setting.answer_ms)
    options = Options(allocation_interval_ms=setting.interval_ms)
    told = case.mode == CHARACTERISED
    played = play(scenario, link, tell_demand=told, options=options, timing=timing)
    assert not played.record.rejected, f"{case}, seed {seed}: {played.record.rejected}"
    numbers = figures(played, case.policy, case.mode, seed)
    part, names = sampled(played)[1], played.master.ledger.names
    return measures_of(numbers, part, names), part[:, [names.index("cpus"), names.index("mem")]]


def measures_of(numbers: Figures, part: Floats, kinds: Sequence[str]) -> Measures:
    """Extract the measurements of claims from a run's figures and its allocation per second."""
    memory = part[:, kinds.index("mem")] * 100
    return Measures(
        makespan_s=numbers.makespan_s,
        variance=float(np.mean([value**2 for value in numbers.deviation.values()])),
        memory_early=_mean(memory, EARLY_S),
        memory_late=_mean(memory, LATE_S),
    )


def _mean(series: Floats, window: tuple[int, int]) -> float:
    return float(series[window[0] : window[1]].mean()) if len(series) > window[0] else 0.0


def check_claims(
    seeds: Sequence[int],
    scale: float = 1.0,
    claims: Sequence[Claim] = CLAIMS,
    *,
    spread: Callable[[Callable[[Any], Measures], Sequence[Any]], Iterable[Measures]] = map,
    watch: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[ClaimVerdict]:
    """Play all runs that the claims need, and judge the claims.

    seeds: at least two.
    scale: fraction of the jobs.
    spread: maps a function over arguments, perhaps in other processes; results in order.
    watch: called with the number of finished runs and the total.
    """
    cases = list(dict.fromkeys(case for claim in claims for case in claim.cases))
    wanted = [(case, seed) for seed in seeds for case in cases]
    measured: dict[tuple[ClaimCase, int], Measures] = {}
    for key, measures in zip(wanted, spread(partial(run_case, scale=scale), wanted), strict=True):
        measured[key] = measures
        watch(len(measured), len(wanted))
    return [judge_claim(claim, seeds, measured) for claim in claims]


def judge_claim(
    claim: Claim, seeds: Sequence[int], measured: Mapping[tuple[ClaimCase, int], Measures]
) -> ClaimVerdict:
    """Take the differences seed by seed, and judge the claim."""
    values = [claim.measure(*(measured[case, seed] for case in claim.cases)) for seed in seeds]
    by = interval(values)
    return ClaimVerdict(claim, tuple(values), by.mean, by.low, by.high, by.outcome(claim.margin))


@dataclass(frozen=True, slots=True)
class Seen:
    """A claim's measure by a single run of each case: no proof, as there is no interval.

    value: the claim's measure.
    """

    claim: Claim
    value: float
    agrees: bool


def look_once(
    measured: Mapping[ClaimCase, Measures], claims: Sequence[Claim] = CLAIMS
) -> list[Seen]:
    """Compare claims with one run of each case; skip claims with cases that were not played.

    Examples
    --------
    >>> drf, other = (ClaimCase(name, OBLIVIOUS, HETERO) for name in ("drf", "ps-dsf"))
    >>> runs = {drf: Measures(200.0, 1.0, 0.0, 0.0), other: Measures(150.0, 1.0, 0.0, 0.0)}
    >>> [(each.claim.text, each.value, each.agrees) for each in look_once(runs)]
    [('PS-DSF ends the batch before DRF', 25.0, True)]
    """
    found = []
    for claim in claims:
        if all(case in measured for case in claim.cases):
            value = float(claim.measure(*(measured[case] for case in claim.cases)))
            agrees = abs(value) < claim.margin if claim.margin else value > 0
            found.append(Seen(claim, value, agrees))
    return found

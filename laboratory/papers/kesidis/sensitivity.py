"""Kesidis et al., section V: which modelling assumption decides each claim, one at a time.

The paper does not publish the settings of its Spark drivers, nor durations. Each row changes one
assumption about the emulated drivers (`Habits`, `Drivers`), the allocator or the timing, plays the
same workloads, and reports which of the section's claims then hold.

Source: sections V-E and V-F of the paper.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from laboratory.experiments.claims import (
    HETERO,
    MARGIN,
    STAGED,
    Claim,
    ClaimCase,
    ClaimSetting,
    Measures,
    earlier,
    fuller,
    judge_claim,
    recovered,
    run_case,
    steadier,
)
from laboratory.experiments.demo_runs import OBLIVIOUS
from laboratory.experiments.runs import CHARACTERISED
from laboratory.experiments.spread import spread
from laboratory.frameworks.spark_of_paper import Habits
from laboratory.papers.report import PaperReport, Row, TableCell, paragraphs
from laboratory.workloads.spark_experiment import Drivers

SEEDS = 10
JOBS = 8
"""Jobs of each queue; the paper has fifty."""

STAGED_JOBS = 6
"""The same if agents register one by one: enough for the first six minutes."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A change of one assumption."""

    name: str
    change: Callable[[ClaimSetting], ClaimSetting]


def _drivers(
    start: float = 1.0, stop: float = 1.0, gap: float = 1.0
) -> Callable[[ClaimSetting], ClaimSetting]:
    return lambda setting: replace(setting, drivers=Drivers(start, stop, gap))


def _habits(**change: int | bool | None) -> Callable[[ClaimSetting], ClaimSetting]:
    drivers = Drivers(habits=Habits(**change))  # type: ignore[arg-type]
    return lambda setting: replace(setting, drivers=drivers)


def _choice(**change: str | bool | int | Drivers) -> Callable[[ClaimSetting], ClaimSetting]:
    return lambda setting: replace(setting, **change)  # type: ignore[arg-type]


VARIATIONS = (
    Variation("as it is", lambda setting: setting),
    Variation("executors start at once", _drivers(start=0.0)),
    Variation("executors start three times as slowly", _drivers(start=3.0)),
    Variation("executors stop at once after the job", _drivers(stop=0.0)),
    Variation("executors stop four times as slowly", _drivers(stop=4.0)),
    Variation("executors stop when no task is left for them", _habits(release_idle=True)),
    Variation("the next driver starts at once", _drivers(gap=0.0)),
    Variation("offers are hoarded for 1 s before they are declined", _habits(hoard_ms=1_000)),
    Variation("offers are hoarded for 5 s", _habits(hoard_ms=5_000)),
    Variation("declined without a filter", _habits(refuse_ms=0)),
    Variation("declined for 120 s", _habits(refuse_ms=120_000)),
    Variation("one executor a driver and round of offers", _habits(launches_max=1)),
    Variation("two executors a driver and round", _habits(launches_max=2)),
    Variation("one executor an agent, with all its CPUs", _habits(one_per_agent=True)),
    Variation("drivers hold the whole of each offer", _habits(whole_offers=True)),
    Variation("agents in rounds of random order", _choice(selection="round_robin")),
    Variation("frameworks compete, not roles first", _choice(flat=True)),
    Variation("drivers answer after half a second", _choice(answer_ms=500)),
    Variation("full cycles every 100 ms, not every second", _choice(interval_ms=100)),
)

TOGETHER = (
    Variation(
        "one executor an agent, which holds the whole offer",
        _habits(one_per_agent=True, whole_offers=True),
    ),
    Variation(
        "the next driver starts at once, drivers hold whole offers",
        _choice(drivers=Drivers(gap=0.0, habits=Habits(whole_offers=True))),
    ),
    Variation(
        "the next driver starts at once, frameworks compete",
        _choice(drivers=Drivers(gap=0.0), flat=True),
    ),
)
"""Two changes at once, of those with the largest effect."""


def _claims(wide: ClaimSetting, staged: ClaimSetting) -> Mapping[str, Claim]:
    """The claims, by column heading."""

    def case(policy: str, mode: str, setting: ClaimSetting = wide) -> ClaimCase:
        return ClaimCase(policy, mode, setting)

    def claim(
        text: str, cases: tuple[ClaimCase, ...], measure: Callable[..., float], margin: float = 0.0
    ) -> Claim:
        return Claim(text, "", cases, measure, margin=margin)

    drf = case("drf", OBLIVIOUS), case("drf", CHARACTERISED)
    ps_dsf = case("ps-dsf", OBLIVIOUS), case("ps-dsf", CHARACTERISED)
    best_fit = case("bf-drf", CHARACTERISED, staged)
    residual = case("rps-dsf", CHARACTERISED, staged)
    return {
        "PS-DSF ends first, obl.": claim("", (drf[0], ps_dsf[0]), earlier),
        "PS-DSF ends first, char.": claim("", (drf[1], ps_dsf[1]), earlier),
        "char. ends first, DRF": claim("", drf, earlier),
        "char. ends first, PS-DSF": claim("", ps_dsf, earlier),
        "char. steadier, DRF": claim("", drf, steadier),
        "char. steadier, PS-DSF": claim("", ps_dsf, steadier),
        "BF-DRF does not recover": claim("", (best_fit,), recovered, MARGIN),
        "rPS-DSF recovers": claim("", (residual,), recovered),
        "rPS-DSF fuller": claim("", (best_fit, residual), fuller),
    }


def settings_of(variation: Variation) -> tuple[ClaimSetting, ClaimSetting]:
    """The experiments of V-E and of V-F under a variation."""
    wide = replace(HETERO, name=f"V-E, {variation.name}", jobs=JOBS)
    staged = replace(STAGED, name=f"V-F, {variation.name}", jobs=STAGED_JOBS)
    return variation.change(wide), variation.change(staged)


def sensitivity(
    seed: int = 0, trials: int = SEEDS, variations: Sequence[Variation] = (*VARIATIONS, *TOGETHER)
) -> PaperReport:
    tables = {each.name: _claims(*settings_of(each)) for each in variations}
    cases = [
        case
        for claims in tables.values()
        for case in dict.fromkeys(case for claim in claims.values() for case in claim.cases)
    ]
    wanted = [(case, each) for case in cases for each in range(seed, seed + trials)]
    results = spread(run_case, wanted)
    measured: dict[tuple[ClaimCase, int], Measures] = dict(zip(wanted, results, strict=True))
    seeds = range(seed, seed + trials)
    rows = [
        Row(name, tuple(_judged(claim, seeds, measured) for claim in claims.values()))
        for name, claims in tables.items()
    ]
    columns = tuple(next(iter(tables.values())))
    return PaperReport(
        name="kesidis-sensitivity",
        title="Section V: by how much each claim holds, one choice changed at a time",
        source="Kesidis et al., MASCOTS 2018, sec. V-E and V-F",
        columns=columns,
        rows=tuple(rows),
        notes=(
            *paragraphs(f"""
                'Ends first': the reduction of the makespan, in percent. 'Steadier': the reduction
                of the variance of allocated resources, in percent. 'Recover': the increase of
                allocated memory, in percentage points, after agents that registered one by one were
                first filled. 'Fuller': how much more memory is allocated under rPS-DSF, in
                percentage points.

                A claim holds if the 95 % interval of the mean over the seeds is above zero (for
                'does not recover': within ±{MARGIN:g} points). It is contradicted ('contrary') if
                the interval is below zero, and otherwise undecided ('not shown').

                {trials} seeds; {JOBS} jobs a queue in V-E (the paper: fifty), {STAGED_JOBS} in V-F
                (twenty), which only makes the runs shorter.
            """),
            *summary(columns, rows),
        ),
    )


def summary(columns: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """For each claim its most frequent outcome, and the changes with other outcomes."""
    verbs = {"holds": "holds", "contrary": "is contrary", "not shown": "is not shown"}
    found = []
    for place, claim in enumerate(columns):
        names: dict[str, list[str]] = {outcome: [] for outcome in verbs}
        for row in rows:
            names[row.cells[place].outcome].append(row.name)
        most = max(names, key=lambda outcome: len(names[outcome]))
        count = len(names[most])
        under = "every choice" if count == len(rows) else f"{count} of {len(rows)} choices"
        parts = [f"'{claim}' {verbs[most]} under {under}"]
        parts += [
            f"{outcome.capitalize()}: {'; '.join(those)}"
            for outcome, those in names.items()
            if those and outcome != most
        ]
        found.append(". ".join(parts) + ".")
    return tuple(found)


def _judged(
    claim: Claim, seeds: Sequence[int], measured: Mapping[tuple[ClaimCase, int], Measures]
) -> TableCell:
    verdict = judge_claim(claim, seeds, measured)
    half = (verdict.high - verdict.low) / 2
    return TableCell(verdict.mean, half=half, outcome=verdict.outcome)

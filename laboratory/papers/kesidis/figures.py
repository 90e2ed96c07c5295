"""Kesidis et al., Figures 1 to 5: allocated CPU and memory over time, and the claims about them.

The Spark jobs of section V are emulated, with an in-process allocator. The plots show the runs of
the first seed; the tables compare runs of the same seed, over several seeds. How jobs and drivers
behave is not published: `kesidis-sensitivity` shows which assumptions the claims depend on.

Source: sections V-E and V-F of the paper.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from allocator.core import Floats
from laboratory.experiments.claims import (
    COINCIDENCE,
    HETERO,
    MARGIN,
    STAGED,
    ClaimCase,
    Measures,
    watch_case,
)
from laboratory.experiments.demo_runs import OBLIVIOUS
from laboratory.experiments.runs import CHARACTERISED
from laboratory.papers.report import Panel, PaperReport, PlotLine, Row, averaged, paragraphs
from laboratory.reports.plots import smooth

SEEDS = 10

_EVERY_S = 10  # between points of a curve
_END = 0.1  # the last part of a run
_EQUAL = MARGIN / 100

DRF, PS_DSF = ClaimCase("drf", OBLIVIOUS, HETERO), ClaimCase("ps-dsf", OBLIVIOUS, HETERO)
DRF_CHARACTERISED = ClaimCase("drf", CHARACTERISED, HETERO)
PS_DSF_CHARACTERISED = ClaimCase("ps-dsf", CHARACTERISED, HETERO)
TSF, BF_DRF, RPS_DSF = (
    ClaimCase(name, CHARACTERISED, HETERO) for name in ("tsf", "bf-drf", "rps-dsf")
)
STAGED_BF_DRF, STAGED_RPS_DSF = (
    ClaimCase(name, CHARACTERISED, STAGED) for name in ("bf-drf", "rps-dsf")
)

_run = cache(watch_case)  # figures share runs


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of every case with every seed; `scale` is the fraction of the jobs."""

    seeds: Sequence[int]
    scale: float

    def measures(self, case: ClaimCase) -> list[Measures]:
        return [_run((case, seed), self.scale)[0] for seed in self.seeds]

    def parts(self, case: ClaimCase) -> list[Floats]:
        """Allocated parts of CPU and memory each second, (T, 2), by seed."""
        return [_run((case, seed), self.scale)[1] for seed in self.seeds]

    def makespans(self, less: ClaimCase, more: ClaimCase) -> list[float]:
        """The makespan of one case over that of another, by seed."""
        pairs = zip(self.measures(less), self.measures(more), strict=True)
        return [one.makespan_s / other.makespan_s for one, other in pairs]

    def variances(self, less: ClaimCase, more: ClaimCase) -> list[float]:
        pairs = zip(self.measures(less), self.measures(more), strict=True)
        return [one.variance / other.variance for one, other in pairs]

    def utilisations(self, less: ClaimCase, more: ClaimCase) -> list[float]:
        """The difference of two cases' allocations, while both run."""
        found = []
        for one, other in zip(self.parts(less), self.parts(more), strict=True):
            both = min(len(one), len(other))
            found.append(float(one[:both].mean() / other[:both].mean()))
        return found

    def memory_at_the_end(self, case: ClaimCase) -> list[float]:
        """Allocated memory in the last part of a run over that before."""
        found = []
        for part in self.parts(case):
            at = int(len(part) * (1 - _END))
            found.append(float(part[at:, 1].mean() / part[:at, 1].mean()))
        return found


def _faster(name: str, runs: Runs, sooner: ClaimCase, later: ClaimCase) -> Row:
    return Row(f"makespan, {name}", (averaged(runs.makespans(sooner, later), 1.0, at_most=True),))


def _equal(name: str, runs: Runs, one: ClaimCase, other: ClaimCase) -> Row:
    return Row(f"makespan, {name}", (averaged(runs.makespans(one, other), 1.0, _EQUAL),))


def _steadier(name: str, runs: Runs, calm: ClaimCase, rough: ClaimCase) -> Row:
    ratios = runs.variances(calm, rough)
    return Row(f"variance of what is allocated, {name}", (averaged(ratios, 1.0, at_most=True),))


def _fuller(runs: Runs, less: ClaimCase, more: ClaimCase) -> Row:
    ratios = runs.utilisations(less, more)
    return Row("allocated while both run, DRF over PS-DSF", (averaged(ratios, 1.0, at_most=True),))


def figure_1(seed: int = 0, trials: int = SEEDS, scale: float = 1.0) -> PaperReport:
    """DRF and PS-DSF, oblivious."""
    runs = Runs(range(seed, seed + trials), scale)
    memory = [
        Row(
            f"memory in the last tenth over before, {name}",
            (averaged(runs.memory_at_the_end(case), 1.0, at_most=True),),
        )
        for name, case in (("DRF", DRF), ("PS-DSF", PS_DSF))
    ]
    rows = _faster("PS-DSF over DRF", runs, PS_DSF, DRF), _fuller(runs, DRF, PS_DSF), *memory
    return _report(1, "DRF and PS-DSF, oblivious", runs, rows, {"DRF": DRF, "PS-DSF": PS_DSF})


def figure_2(seed: int = 0, trials: int = SEEDS, scale: float = 1.0) -> PaperReport:
    """DRF and PS-DSF, characterised."""
    runs = Runs(range(seed, seed + trials), scale)
    drf, ps_dsf = DRF_CHARACTERISED, PS_DSF_CHARACTERISED
    rows = _faster("PS-DSF over DRF", runs, ps_dsf, drf), _fuller(runs, drf, ps_dsf)
    return _report(2, "DRF and PS-DSF, characterised", runs, rows, {"DRF": drf, "PS-DSF": ps_dsf})


def figure_3(seed: int = 0, trials: int = SEEDS, scale: float = 1.0) -> PaperReport:
    """TSF, BF-DRF and rPS-DSF, characterised."""
    runs = Runs(range(seed, seed + trials), scale)
    rows = (
        _faster("BF-DRF over TSF", runs, BF_DRF, TSF),
        _faster("rPS-DSF over TSF", runs, RPS_DSF, TSF),
        _equal("TSF over DRF", runs, TSF, DRF_CHARACTERISED),
        _equal("BF-DRF over PS-DSF", runs, BF_DRF, PS_DSF_CHARACTERISED),
        _equal("rPS-DSF over PS-DSF", runs, RPS_DSF, PS_DSF_CHARACTERISED),
    )
    drawn = {"TSF": TSF, "BF-DRF": BF_DRF, "rPS-DSF": RPS_DSF}
    return _report(3, "TSF, BF-DRF and rPS-DSF, characterised", runs, rows, drawn)


def figure_4(seed: int = 0, trials: int = SEEDS, scale: float = 1.0) -> PaperReport:
    """Both modes under DRF; the text makes the same claims about PS-DSF."""
    runs = Runs(range(seed, seed + trials), scale)
    pairs = {"DRF": (DRF_CHARACTERISED, DRF), "PS-DSF": (PS_DSF_CHARACTERISED, PS_DSF)}
    rows = [
        row(f"characterised over oblivious, {name}", runs, *pair)
        for name, pair in pairs.items()
        for row in (_faster, _steadier)
    ]
    drawn = {"oblivious": DRF, "characterised": DRF_CHARACTERISED}
    return _report(4, "DRF in both modes", runs, rows, drawn)


def figure_5(seed: int = 0, trials: int = SEEDS, scale: float = 1.0) -> PaperReport:
    """Agents that register one by one, under BF-DRF and rPS-DSF."""
    runs = Runs(range(seed, seed + trials), scale)
    best_fit, residual = runs.measures(STAGED_BF_DRF), runs.measures(STAGED_RPS_DSF)
    lost = [each.memory_early - each.memory_late for each in residual]
    grown = [each.memory_late - each.memory_early for each in best_fit]
    less = [b.memory_late - r.memory_late for b, r in zip(best_fit, residual, strict=True)]
    rows = (
        Row("rPS-DSF, memory at first less later", (averaged(lost, 0.0, at_most=True),)),
        Row("BF-DRF, memory later less at first", (averaged(grown, 0.0, MARGIN),), _COINCIDENCE),
        Row("memory later, BF-DRF less rPS-DSF", (averaged(less, 0.0, at_most=True),)),
    )
    drawn = {"BF-DRF": STAGED_BF_DRF, "rPS-DSF": STAGED_RPS_DSF}
    return _report(5, "agents registered one by one", runs, rows, drawn)


_COINCIDENCE = COINCIDENCE[0].upper() + COINCIDENCE[1:] + "."


def _report(
    number: int, title: str, runs: Runs, rows: Sequence[Row], drawn: dict[str, ClaimCase]
) -> PaperReport:
    what = "points of memory" if number == 5 else "ratio"
    return PaperReport(
        name=f"kesidis-fig-{number}",
        title=f"Figure {number}: {title}",
        source=f"Kesidis et al., MASCOTS 2018, sec. {'V-F' if number == 5 else 'V-E'}",
        columns=(what,),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The figure contains no numbers, so the statements of the text about it are compared.
            Means over {len(runs.seeds)} seeds with 95 % confidence intervals; runs with the same
            seed have the same jobs. 'About the same' is within
            {MARGIN:g} %{", or points" if number == 5 else ""}.

            The pictures show allocated resources in the run with the first seed, as means over half
            a minute.
        """),
        panels=tuple(_panels(runs, drawn)),
    )


def _panels(runs: Runs, drawn: dict[str, ClaimCase]) -> Iterator[Panel]:
    for place, what in enumerate(("CPU", "memory")):
        lines = []
        for name, case in drawn.items():
            percent = 100 * smooth(runs.parts(case)[0][:, place])[::_EVERY_S]
            time_s = np.arange(len(percent)) * float(_EVERY_S)
            lines.append(PlotLine(name, tuple(time_s.tolist()), tuple(percent.round(3).tolist())))
        yield Panel(f"allocated {what}", "time (s)", "percent", tuple(lines))

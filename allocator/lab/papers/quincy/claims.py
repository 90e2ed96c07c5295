"""What Quincy's text says about its figures, as comparisons of two schedulers.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 6.2 to 6.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from allocator.lab.papers.quincy.runs import Measures
from allocator.lab.papers.report import Cell, Row
from allocator.lab.reports.run_report import interval

WELL_BELOW = 10.0
"""The slowdown that no job reaches with fairness and preemption, and some job without."""

ByScheduler = Mapping[str, Sequence[Measures]]
"""For each scheduler its measures, seed by seed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """That one scheduler has more of something than another.

    more, less: schedulers.
    measure: an attribute of `quincy_runs.Measures`.
    published: by how many percent, where the paper says it.
    """

    text: str
    more: str
    less: str
    measure: str
    published: float | None = None

    def row(self, found: ByScheduler) -> Row:
        """By how many percent it is more, in pairs of the same seed."""
        percent = [
            100 * (getattr(one, self.measure) / getattr(other, self.measure) - 1)
            for one, other in zip(found[self.more], found[self.less], strict=True)
        ]
        text = self.text + ("" if self.published is None else f" (paper: {self.published:g} %)")
        return Row(text, (judged(percent),))


def judged(values: Sequence[float]) -> Cell:
    """Whether a mean is above zero: by its confidence interval."""
    found = interval(values)
    outcome = "holds" if found.low > 0 else "contrary" if found.high < 0 else "not shown"
    return Cell(found.mean, half=found.half, outcome=outcome)


def worst_slowdown(scheduler: str, found: ByScheduler, *, above: bool) -> Row:
    """Whether the largest slowdown is above `WELL_BELOW`, or below it."""
    values = [
        each.worst - WELL_BELOW if above else WELL_BELOW - each.worst for each in found[scheduler]
    ]
    side = "above" if above else "below"
    return Row(f"{scheduler}: largest slowdown {side} {WELL_BELOW:g}, by", (judged(values),))


OPEN_NETWORK = (
    Claim("fairness raises unfairness without preemption: GF over G", "GF", "G", "unfairness"),
    Claim("QF over Q, unfairness", "QF", "Q", "unfairness"),
    Claim("and lowers the mean slowdown: G over GF", "G", "GF", "mean"),
    Claim("Q over QF, mean slowdown", "Q", "QF", "mean"),
    Claim("both lower unfairness, nearly to half: G over GFP", "G", "GFP", "unfairness"),
    Claim("Q over QFP, unfairness", "Q", "QFP", "unfairness"),
    Claim("network-bound jobs do better: QFP over GFP", "QFP", "GFP", "network_performance"),
    Claim("fairness moves more across the core: GF over G", "GF", "G", "core_tb"),
    Claim("QF over Q, across the core", "QF", "Q", "core_tb"),
    Claim("preemption moves more, greedily: GFP over GF", "GFP", "GF", "core_tb"),
    Claim("and less with Quincy: QF over QFP", "QF", "QFP", "core_tb"),
    Claim("it reads more in all: QFP over QF", "QFP", "QF", "total_tb"),
    Claim("Quincy moves less across the core: GFP over QFP", "GFP", "QFP", "core_tb"),
    Claim("least where that costs most: QFP over QFPX", "QFP", "QFPX", "core_tb"),
    Claim("only GFP hurts throughput: makespan, GFP over QFP", "GFP", "QFP", "makespan_s"),
    Claim("a job that hogs the cluster costs time: QF over QFP", "QF", "QFP", "makespan_s"),
    Claim("hysteresis moves less across the core: GF over GFH", "GF", "GFH", "core_tb"),
    Claim("GFP over GFPH, across the core", "GFP", "GFPH", "core_tb"),
    Claim("at the expense of makespan: GFH over GF", "GFH", "GF", "makespan_s"),
    Claim("GFPH over GFP, makespan", "GFPH", "GFP", "makespan_s"),
    Claim("and more than Quincy: GFPH over QFP, across the core", "GFPH", "QFP", "core_tb"),
)
"""Sections 6.2 and 6.4."""

NARROW_NETWORK = (
    Claim("less across the core, the headline: GFP over QFPX", "GFP", "QFPX", "core_tb", 296),
    Claim("GFP over QFP, across the core", "GFP", "QFP", "core_tb", 74),
    Claim("QFP over QFPX, across the core", "QFP", "QFPX", "core_tb", 128),
    Claim("more throughput: makespan, GFP over QFPX", "GFP", "QFPX", "makespan_s", 40),
    Claim("GFP over QFP, makespan", "GFP", "QFP", "makespan_s"),
    Claim("QFP over QFPX, makespan", "QFP", "QFPX", "makespan_s"),
    Claim("network-bound jobs: QFPX over QFP", "QFPX", "QFP", "network_performance", 32),
    Claim("QFPX over GFP, network-bound jobs", "QFPX", "GFP", "network_performance", 87),
    Claim("other jobs do better, too: QFPX over QFP", "QFPX", "QFP", "cpu_performance"),
    Claim("unfairness: QFP over QFPX", "QFP", "QFPX", "unfairness"),
    Claim("GFP over QFPX, unfairness", "GFP", "QFPX", "unfairness"),
    Claim("mean slowdown: QFP over QFPX", "QFP", "QFPX", "mean"),
    Claim("largest slowdown: QFP over QFPX", "QFP", "QFPX", "worst"),
)
"""Section 6.3, and the headline of the abstract."""

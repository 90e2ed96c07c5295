"""What our departures from Quincy's text change in its headline, one at a time.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 4.3, 5.1 and 6.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from allocator.lab.network.cluster import DECIDE_S
from allocator.lab.papers.quincy.claims import ByScheduler, Claim
from allocator.lab.papers.quincy.figures import CLAIMS_NOTE, Setting, compare
from allocator.lab.papers.quincy.jobs import SORT_MOVED
from allocator.lab.papers.quincy.tables import SEEDS, SOURCE, seeds_note
from allocator.lab.papers.report import Cell, Report, Row, averaged


@dataclass(frozen=True, slots=True)
class Choice:
    """Departures, made or not.

    decide_s: as `network.cluster.DECIDE_S`; 0: at every event.
    sort_moved: A key of `quincy_jobs.SORT_MOVED`.
    """

    decide_s: float = DECIDE_S
    sort_moved: str = "tables"


CHOICES: Mapping[str, Choice] = {
    "as on this page": Choice(),
    "decided at every event": Choice(decide_s=0.0),
    "decided every 2 s": Choice(decide_s=2.0),
    "Sort redistributes all": Choice(sort_moved="text"),
    "both as in the text": Choice(decide_s=0.0, sort_moved="text"),
}

_SCHEDULERS = ("GFP", "QFPX")

CLAIMS = (
    Claim("less across the core", "GFP", "QFPX", "core_tb", 296),
    Claim("shorter makespan", "GFP", "QFPX", "makespan_s", 40),
    Claim("network-bound jobs do better", "QFPX", "GFP", "network_performance", 87),
)
"""Section 6.3 and the abstract."""


def departures(seed: int = 0, trials: int = SEEDS, shrink: int = 1) -> Report:
    """The constrained network under GFP and QFPX, with and without the departures."""
    setting = Setting(range(seed, seed + trials), 1, "QFPX", shrink=shrink)
    rows = []
    for name, choice in CHOICES.items():
        chosen = replace(setting, decide_s=choice.decide_s, sort_moved=choice.sort_moved)
        rows.append(Row(name, _cells(compare(_SCHEDULERS, chosen)[1])))
    return Report(
        name="quincy-departures",
        title="Constrained network: what departures from the text change",
        source=f"{SOURCE}, sec. 6.3",
        columns=(
            "GFP, TB across the core",
            "QFPX",
            *(f"{claim.text}, % (paper: {claim.published:g})" for claim in CLAIMS),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"`DECIDE_S` = {DECIDE_S:g} s: the paper solves whenever something happens and on a"
                " timer; ours decides together on what happens within that time. `SORT_MOVED` = "
                f"{SORT_MOVED['tables']:g}: the part of its input that Sort redistributes, all of "
                "it in the text; only with much less can the tables' traffic come out."
            ),
            CLAIMS_NOTE,
            seeds_note(trials),
        ),
    )


def _cells(found: ByScheduler) -> tuple[Cell, ...]:
    core = (averaged([each.core_tb for each in found[name]]) for name in _SCHEDULERS)
    return (*core, *(claim.row(found).cells[0] for claim in CLAIMS))

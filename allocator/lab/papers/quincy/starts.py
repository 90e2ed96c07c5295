"""What it decides in Quincy's Figures 5 to 7 how long after each other the first jobs start.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 5.1, 6.2 and 6.4.
"""

from collections.abc import Sequence
from dataclasses import replace

from allocator.lab.papers.quincy.figures import (
    CLAIMS_NOTE,
    SLOWDOWN_NOTE,
    Setting,
    claims_5_to_7,
    compare,
)
from allocator.lab.papers.quincy.jobs import APART_S, UPLINKS
from allocator.lab.papers.quincy.runs import SCHEDULERS
from allocator.lab.papers.quincy.tables import SEEDS, SOURCE, seeds_note
from allocator.lab.papers.report import Report, Row

APARTS_S = (0.0, 1.0, APART_S, 10.0)
"""Seconds between the starts of the first jobs."""


def starts(
    seed: int = 0, trials: int = SEEDS, shrink: int = 1, aparts_s: Sequence[float] = APARTS_S
) -> Report:
    """The claims on the unconstrained network, by how far apart the first jobs start."""
    setting = Setting(range(seed, seed + trials), UPLINKS, "QP", shrink=shrink)
    columns = [
        claims_5_to_7(compare(SCHEDULERS, replace(setting, apart_s=apart_s))[1])
        for apart_s in aparts_s
    ]
    rows = [
        Row(same[0].name, tuple(each.cells[0] for each in same))
        for same in zip(*columns, strict=True)
    ]
    return Report(
        name="quincy-starts",
        title="Unconstrained network: what the first jobs' starts change",
        source=f"{SOURCE}, sec. 5.1, 6.2 and 6.4",
        columns=tuple(f"{apart_s:g} s apart" if apart_s else "at once" for apart_s in aparts_s),
        rows=tuple(rows),
        notes=(
            (
                "The paper starts PrimeLarge first, 'and the first thing it does is occupy most "
                "computers'; how long after it the others start is not published. If all start at "
                "once, PrimeLarge gets its share from the beginning, and nobody has to wait for it."
            ),
            CLAIMS_NOTE,
            SLOWDOWN_NOTE,
            seeds_note(trials),
        ),
    )

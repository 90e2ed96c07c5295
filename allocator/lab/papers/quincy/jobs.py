"""The thirty jobs of Quincy's experiments, and the cluster that they ran on.

What the paper gives is taken from it: computers, racks, links, partitions and their sizes. What it
does not give has a name here, and was chosen so that jobs alone take about as long as in its Table
3 and read as much as in its Table 2.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 5 and Table 3.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from allocator.lab.network.topology import Topology, even_racks
from allocator.lab.network.workflow import JOB_INPUT, JobKind, JobPlan, Need, Stage, draw_job

COMPUTERS = 243
RACKS = 8
GIGABIT_GB_S = 0.125
UPLINKS = 6
"""Of a gigabit each; one in the constrained network."""

DISK_GB_S = 0.24
"""Four disks that the data is striped over; their speed is not published."""

APART_S = 3.0
"""Between the starts of the first jobs in Figures 5 to 7: for `Case.apart_s`.

PrimeLarge is started first and occupies most computers before others have tasks, and the text says
that they then wait for it where nothing is preempted. The time is not published; `quincy_starts`
compares some."""

SPREAD = 0.15
"""By how much the times of the tasks of a stage differ; Prime's, which are long, by a fifth of it.
Not published."""

SORT_GB = 3.7
"""Of a partition of Sort; the paper says around 4 GB, and with 3.7 the total is that of Table 2."""

SORT_MOVED = {"text": 1.0, "tables": 0.1}
"""Which part of its input Sort redistributes.

All of it, says the text. Then 7/8 of some 480 GB crosses the core switch whatever a scheduler
does, and the tables have less than a third of that. A tenth fits them; the rest of what a sorting
task reads is then taken to be on the computer where its range's own partition was cut up."""

PAGERANK_SPREAD = 0.02
"""Of the second phases of PageRank: they read from the same places, and end within seconds of each
other, as the text of section 6.1 says. Not published."""

PAGERANK_BUCKET_GB = 0.11
"""What a task of a first phase writes; not published."""

PAGERANK_RANKS_GB = 0.03
"""What a task of a second phase writes; not published."""

JOIN_BUCKET_GB = 0.25
"""What a task of the first phase writes; not published."""

WORD_PARTS = (2, 4, 5, 6, 8, 10, 15, 20, 25, 100)
PRIME_PARTS = (2, 4, 5, 6, 8, 10, 15, 20, 25, 500, 1000, 1500, 2000)

PRIME_LARGE = "PrimeLarge240"

IDEAL_S = {
    **dict(
        zip(
            [f"PrimeSmall{parts}" for parts in PRIME_PARTS],
            (14, 14, 14, 14, 15, 15, 15, 17, 17, 29, 44, 57, 71),
            strict=True,
        )
    ),
    PRIME_LARGE: 1360,
    **dict(
        zip(
            [f"WordCount{parts}" for parts in WORD_PARTS],
            (44, 45, 47, 48, 49, 47, 52, 56, 54, 61),
            strict=True,
        )
    ),
    "Join40": 309,
    "Join5": 365,
    "Sort10": 365,
    "Sort40": 409,
    "Sort80": 562,
    "PageRank240": 877,
}
"""Table 3: seconds that each job takes alone."""


def cluster(uplinks: int = UPLINKS, shrink: int = 1) -> Topology:
    """The cluster, with so many gigabit links from each rack to the core switch.

    One that is shrunk has so many times fewer computers, and as much narrower uplinks.
    """
    racks = even_racks(COMPUTERS // shrink, RACKS)
    return Topology(racks, DISK_GB_S, GIGABIT_GB_S, uplinks * GIGABIT_GB_S / shrink)


def _prime(name: str, parts: int, compute_s: float) -> JobKind:
    need = Need(JOB_INPUT, 0.01)
    return JobKind(name, (Stage(parts, compute_s, SPREAD / 5, (need,)),), parts)


def _word_count(parts: int) -> JobKind:
    count = Stage(parts, 26.0, SPREAD, (Need(JOB_INPUT, 0.05),))
    merge = Stage(1, 7.0, SPREAD, (Need(0, 0.001 * parts, from_all=True),))
    return JobKind(f"WordCount{parts}", (count, merge), parts)


def _sort(parts: int, moved: float) -> JobKind:
    sample = Stage(parts, 40.0, SPREAD, (Need(JOB_INPUT, SORT_GB),))
    ranges = Stage(1, 5.0, SPREAD, (Need(0, 0.001 * parts, from_all=True),))
    cut = Stage(parts, 110.0, SPREAD, (Need(JOB_INPUT, SORT_GB), Need(1, 0.001, from_all=True)))
    needs = (Need(2, moved * SORT_GB, from_all=True), Need(2, (1 - moved) * SORT_GB))
    order = Stage(parts, 120.0, SPREAD, needs if moved < 1 else needs[:1])
    return JobKind(f"Sort{parts}", (sample, ranges, cut, order), parts, network_bound=True)


def _join(holders: int) -> JobKind:
    first = Stage(40, 125.0, SPREAD, (Need(JOB_INPUT, (11.8 + 41.8) / 40),))
    needs = (Need(JOB_INPUT, 41.8 / 40), Need(0, JOIN_BUCKET_GB, from_all=True))
    second = Stage(40, 130.0, SPREAD, needs)
    name = f"Join{holders}"
    return JobKind(name, (first, second), 40, holders, one_rack=holders < 40, network_bound=True)


def _page_rank(iterations: int = 3) -> JobKind:
    stages: list[Stage] = []
    for _ in range(iterations):
        before = len(stages) - 1
        needs: tuple[Need, ...] = (Need(JOB_INPUT, 1.0),)
        if stages:
            needs += (Need(before, PAGERANK_RANKS_GB),)
        stages.append(Stage(240, 143.0, SPREAD, needs))
        needs = (Need(before + 1, PAGERANK_BUCKET_GB, from_all=True),)
        stages.append(Stage(240, 105.0, PAGERANK_SPREAD, needs))
    return JobKind("PageRank240", tuple(stages), 240, network_bound=True)


def kinds(moved: float, shrink: int = 1) -> list[JobKind]:
    """The thirty jobs in the order of Table 3.

    moved: which part of its input Sort redistributes.
    shrink: by how many times fewer tasks a stage has, but at least one.
    """
    whole = [
        *(_prime(f"PrimeSmall{parts}", parts, 6.0) for parts in PRIME_PARTS),
        _prime(PRIME_LARGE, 240, 1312.0),
        *(_word_count(parts) for parts in WORD_PARTS),
        _join(40),
        _join(5),
        *(_sort(parts, moved) for parts in (10, 40, 80)),
        _page_rank(),
    ]
    return [_shrunk(kind, shrink) for kind in whole]


def _shrunk(kind: JobKind, shrink: int) -> JobKind:
    stages = tuple(replace(stage, tasks=-(-stage.tasks // shrink)) for stage in kind.stages)
    parts, holders = -(-kind.partitions // shrink), -(-kind.holders // shrink)
    return replace(kind, stages=stages, partitions=parts, holders=holders)


def draw_jobs(
    topology: Topology, moved: float, seed: int, *, large: bool = True, shrink: int = 1
) -> list[JobPlan]:
    """Draw an experiment: PrimeLarge first, if it is to be there, then the others in random order.

    The same seed gives the same jobs in the same order on any network.
    """
    rng = np.random.default_rng(seed)
    plans = {kind.name: draw_job(kind, topology, rng) for kind in kinds(moved, shrink)}
    first = plans.pop(PRIME_LARGE)
    others: Sequence[JobPlan] = list(plans.values())
    order = rng.permutation(len(others)).tolist()
    return ([first] if large else []) + [others[at] for at in order]

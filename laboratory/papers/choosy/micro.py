"""Choosy's microbenchmarks: nine users join and leave (Figures 10 to 13).

Nine users with random constraints arrive one after another at a cluster of machines of random
types, take all they can get, and later leave without delay. Tasks are exponential with mean 1.

Source: section 7.2, Figures 10 to 13 of the paper.
"""

from collections.abc import Iterator
from itertools import repeat

import numpy as np

from laboratory.papers.choosy.ideals import Coming, History, Machines
from laboratory.papers.report import (
    Panel,
    PaperReport,
    PlotLine,
    Row,
    averaged,
    judged,
    paragraphs,
)

SOURCE = "Ghodsi et al., EuroSys 2013, sec. 7.2"
USERS = 9
MACHINES = 100
TYPES = 12
APART = 3.0
"""Time between two arrivals, or departures, in mean task times."""

END = APART * 2 * USERS
STEP = 0.1
_PICKY = (0.15, 0.7)  # fraction of the types that a user can use, uniform
_ENDLESS = 2**40

FIGURES = {
    "restricted": "Fig. 10, restricted offline",
    "preemption": "Fig. 11, migration and preemption",
    "periodic": "Fig. 12, periodic offline",
}
_DRAWN = 3  # every third moment
_SETTLE = 1.0  # mean task times


def exponential(seed: int) -> Iterator[float]:
    """Endless durations with mean 1."""
    rng = np.random.default_rng(seed)
    return (float(rng.exponential()) for _ in repeat(None))


def draw_users(seed: int, *, at_once: bool = False) -> tuple[list[int], list[Coming]]:
    """Machines of each type, and arrivals of users."""
    rng = np.random.default_rng(seed)
    count = rng.multinomial(MACHINES, np.full(TYPES, 1 / TYPES))
    users = []
    for number in range(USERS):
        most = max(1, round(TYPES * rng.uniform(*_PICKY)))
        types = tuple(sorted(rng.choice(TYPES, most, replace=False).tolist()))
        at = 0.0 if at_once else number * APART
        leaves = None if at_once else (USERS + number) * APART
        users.append(Coming(at, types, exponential(seed * USERS + number), _ENDLESS, leaves))
    return count.tolist(), users


def play(scheduler: str, seed: int, *, at_once: bool = False) -> tuple[np.ndarray, History]:
    """Moments, and the users' holdings at each."""
    count, users = draw_users(seed, at_once=at_once)
    end = APART * 2 if at_once else END
    moments = np.arange(STEP / 2, end, STEP)
    history = Machines(count, scheduler, seed).play(users, moments.tolist(), until=end)
    return moments, history


def distance(one: History, other: History) -> np.ndarray:
    """Root mean square of the differences of sorted vectors at each moment, machines."""
    mine, its = np.sort(one.held, axis=1), np.sort(other.held, axis=1)
    return np.sqrt(((mine - its) ** 2).mean(axis=1))


def joins_and_leaves(seed: int = 0, trials: int = 10) -> PaperReport:
    """Figures 10 to 12: the distance of Choosy from each ideal, and that of the hybrid."""
    means: dict[str, list[float]] = {name: [] for name in (*FIGURES, "hybrid")}
    for trial in range(seed, seed + trials):
        runs = {name: play(name, trial)[1] for name in ("choosy", *FIGURES)}
        for name in FIGURES:
            means[name].append(float(distance(runs["choosy"], runs[name]).mean()))
        means["hybrid"].append(float(distance(runs["periodic"], runs["preemption"]).mean()))
    rows = [Row(f"{text}: Choosy", (averaged(means[name]),)) for name, text in FIGURES.items()]
    better = [h - c for h, c in zip(means["hybrid"], means["preemption"], strict=True)]
    rows.append(Row("periodic offline, from the ideal of Fig. 11", (averaged(means["hybrid"]),)))
    claim = "'Choosy performs better than the periodic offline scheduler': by"
    rows.append(Row(claim, (judged(better),)))
    return PaperReport(
        name="choosy-joins",
        title=f"Nine users join and leave: machines (of {MACHINES}) by which two runs differ",
        source=f"{SOURCE}, Figures 10 to 12",
        columns=("RMSE",),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Sorted vectors every {STEP:g} mean task times; means of {trials} seeds, 95 % confidence
            intervals. The figures have no printed numbers.

            The tasks of two runs are drawn independently, so there would be some distance even
            between two equal schedulers.
        """),
        panels=tuple(_panel(FIGURES[name], name, seed) for name in FIGURES),
    )


def empty_cluster(seed: int = 0, trials: int = 20) -> PaperReport:
    """Figure 13: all nine join an empty cluster at once."""
    begins, settled = [], []
    for trial in range(seed, seed + trials):
        moments, choosy = play("choosy", trial, at_once=True)
        _, ideal = play("preemption", trial, at_once=True)
        off = distance(choosy, ideal)
        begins.append(float(off[0]))
        settled.append(float(off[moments >= _SETTLE][0]))
    return PaperReport(
        name="choosy-empty-cluster",
        title=f"Nine users join an empty cluster: machines (of {MACHINES}) from the optimum",
        source=f"{SOURCE}, Figure 13",
        columns=("RMSE",),
        rows=(
            Row("at first", (averaged(begins),)),
            Row("after one mean task time", (averaged(settled, 1.0, at_most=True),)),
        ),
        notes=paragraphs(f"""
            The text says that after one mean task time 'most users are very close to their fair
            share': here a distance of one machine counts as close. {trials} seeds.
        """),
        panels=(_panel("Figure 13", "preemption", seed, at_once=True),),
    )


def _panel(title: str, other: str, seed: int, *, at_once: bool = False) -> Panel:
    """Machines of each user: Choosy's, and dashed those of the other scheduler."""
    lines = []
    for scheduler in ("choosy", other):
        moments, history = play(scheduler, seed, at_once=at_once)
        for user in range(0, USERS, 2):
            x = tuple(moments[::_DRAWN].round(3).tolist())
            y = tuple(map(float, history.held[::_DRAWN, user]))
            dashed = scheduler != "choosy"
            lines.append(PlotLine(f"user {user + 1}, {scheduler}", x, y, dashed=dashed))
    return Panel(title, "mean task times", "machines", tuple(lines), stepped=True)

"""How much past use should count: `python tools/docs/use_over_time.py` plays the examples.

It keeps the results in `data/use-over-time.json` and draws the picture; `make docs` writes the page
from what is kept. Each example is a day of tasks on the emulated master, under DRF.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE / "data" / "use-over-time.json"
PICTURES = HERE.parents[1] / "docs" / "pictures"

HALF_LIFE_S = 600
ALONE = 3
"""The first tenant is alone for this many half-lives."""

SLOTS = 16
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
SHOWN = 2
"""The second tenant is watched for this many half-lives."""

BINS = 10
"""Means are taken over this part of a half-life."""

JOB_S = HALF_LIFE_S // BINS
JOBS_ALONE = (1, 5, 10, 30)
PLOTTED = 10
"""Number of jobs of the first tenant alone, in the picture."""

USERS = ("Acct1/Acct12/UserA", "Acct1/Acct16/UserB", "Acct1/Acct16/UserC")
"""Slurm's example of a tree, with a second user in one of the accounts."""

TREE_JOBS = 30

HEAD = """\
# How much past use should count

<!-- `make docs` writes this file. -->

This page shows what `half_life_s` and `usage_weight` of [`[fairness]`](policies.md#use-over-time)
do, to help you choose them. Each example is computed by the definition, and played on the emulated
master with the real allocator, under DRF in characterised mode. `python
tools/docs/use_over_time.py` plays them again.

## Which values

- *All tenants always want more, or all tasks are short*: leave `half_life_s = 0`. Shares are fair
  at every moment, and so are their averages.
- *Tenants come and go within hours*: set the half-life to about the time for which they are away,
  and `usage_weight = 0.5`. A tenant that returns gets most of the cluster at first, and others keep
  a part.
- *Jobs as large as the cluster, or usage to be balanced over days*: set `usage_weight = 1`, as in
  Slurm or HTCondor, and a half-life of a day to two weeks. Others then wait until the tenant that
  returned has caught up, but never longer than one half-life.

[`allocator-lab advise`](../how-to/advise.md#past-use) tries values on your own recorded days.
"""

SMALL = """\
## A tenant that returns, with small tasks

Two tenants share {slots} slots with tasks of 10 to 30 s; the half-life is {half_life} s. The first
tenant is alone for {alone} half-lives, then the second one arrives. Let `k` be `usage_weight`, and
`D` the difference of their averages, which is then {difference:.3f} of the cluster. The policy
treats both as equal when the second tenant holds `k / (1 - k) * D` more than the first, or at most
the whole cluster. This advantage of the second tenant has two phases:

- While `D` is above `(1 - k) / k`, the second tenant gets the whole cluster.
- After that, its advantage halves with every `1 - k` half-lives.

With `k = 1` it has the whole cluster until it has caught up, after `log2(2 - 2^-{alone})`
half-lives.

The table shows the mean share of the second tenant in tenths of a half-life; each column is named
by the end of its tenth.
*Played* and *computed* differ by at most {error:.3f} in the first two half-lives, and by
{error_mean:.3f} on average. There are three reasons:

- The second tenant first waits for tasks of the other one to end.
- Within a cycle, each grant counts in full, as without past use. So near the end, when `D` is less
  than the resources that become free in one cycle (here a twentieth of the cluster), the first
  tenant gets some of them.
- Tasks are whole: one task is a sixteenth of the cluster.

![The share of a tenant that returns](../pictures/use-over-time.svg)
"""

LARGE = """\
## Jobs as large as the cluster

This is KAI's example: two queues with jobs of {slots} GPUs, on a cluster with {slots} GPUs. A job
takes a tenth of the half-life. Nothing is held when the next job is chosen, so all values of
`usage_weight` above 0 give the same; 0.5 was played. Once both have caught up, they take turns job
by job: a tenant that has just used the cluster has the higher average. KAI reclaims resources from
running jobs, so its turns can be shorter than jobs; here they are not.

![Two pictures of whose job runs, above the averages: on the left two tenants, on the right three
users of two accounts](../pictures/use-over-time-turns.svg)
"""

TREE = """\
## A tree of accounts

In a role tree, each role is compared with its siblings: its average divided by its weight. With
`usage_weight = 1`, roles are served in the order of [Slurm's Fair
Tree](https://slurm.schedmd.com/fair_tree.html): if an account has used less for its weight than its
sibling, all its users come before all users of the sibling. `tests/policies/test_fair_tree.py`
compares both orders in random trees.

Slurm's example is a tree in which `UserA` is in the account `Acct12` and `UserB` in `Acct16`. In
the right half of the picture above there is also a `UserC` in `Acct16`. Each of them always has a
job as large as the cluster; the other two arrive after {alone} jobs of `UserA`. First they run all
jobs, until their account has caught up. Then the accounts take turns, and so do the users within
`Acct16`. Each job that was played is that of the user whom Fair Tree ranks first:

```
{order}
```
"""


def catching_up(jobs_alone: int) -> int:
    """How many jobs the second tenant runs in a row, by the definition."""
    kept = 0.5 ** (JOB_S / HALF_LIFE_S)
    first, second, jobs = 1 - kept**jobs_alone, 0.0, 0
    while second < first:
        first, second, jobs = first * kept, second * kept + 1 - kept, jobs + 1
    return jobs


def fair_tree() -> list[str]:
    """Whose jobs run, if the user whom Fair Tree ranks first is always served."""
    kept = 0.5 ** (JOB_S / HALF_LIFE_S)
    used, order = dict.fromkeys(USERS, 0.0), list[str]()

    def level(user: str) -> tuple[float, float]:
        siblings = (each for each in USERS if _account(each) == _account(user))
        return sum(used[each] for each in siblings), used[user]

    for job in range(TREE_JOBS):
        order.append(min(USERS if job >= PLOTTED else USERS[:1], key=level))
        used = {user: each * kept for user, each in used.items()}
        used[order[-1]] += 1 - kept
    return order


def _account(user: str) -> str:
    return user.rpartition("/")[0]


def computed_shares(weight: float) -> list[float]:
    """Mean share of the second tenant in each part of a half-life since it arrived."""
    steps = 1000
    rate = math.log(2) / steps
    difference, shares = 1 - 0.5**ALONE, []
    for _ in range(SHOWN * steps):
        wanted = math.inf if weight == 1 else weight / (1 - weight) * difference
        ahead = min(1.0, wanted) if difference > rate else 0.0
        shares.append((1 + ahead) / 2)
        difference -= rate * (ahead + difference)
    size = steps // BINS
    return [sum(shares[at : at + size]) / size for at in range(0, len(shares), size)]


def page(kept: Path = KEPT) -> str:
    """The whole page, from the results that are kept."""
    found = json.loads(kept.read_text("utf-8"))
    order = " ".join(user[-1] for user in found["tree"])
    tree = TREE.format(alone=PLOTTED, order=order)
    return "\n".join([HEAD, *_small(found["small"]), *_large(found["large"]), tree])


def _small(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    errors = [
        abs(played - computed)
        for row in rows
        for played, computed in zip(
            row["shares"], computed_shares(row["usage_weight"]), strict=True
        )
    ]
    yield SMALL.format(
        slots=SLOTS,
        half_life=HALF_LIFE_S,
        alone=ALONE,
        difference=1 - 0.5**ALONE,
        error=max(errors),
        error_mean=sum(errors) / len(errors),
    )
    shown = (0, 2, 4, 9, 19)
    yield f"| `usage_weight` | | {' | '.join(f'{(at + 1) / BINS:g} half-lives' for at in shown)} |"
    yield "|---|---|" + "---:|" * len(shown)
    for row in rows:
        weight = row["usage_weight"]
        for name, shares in (("played", row["shares"]), ("computed", computed_shares(weight))):
            yield f"| {weight:g} | {name} | {' | '.join(f'{shares[at]:.2f}' for at in shown)} |"
    yield ""


def _large(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield LARGE.format(slots=SLOTS)
    yield "| jobs of the first alone | jobs of the second in a row, computed | played | then |"
    yield "|---:|---:|---:|---|"
    for row in rows:
        alone, then = row["jobs_alone"], row["then"]
        turns = all(one != other for one, other in pairwise(then))
        yield (
            f"| {alone} | {catching_up(alone)} | {row['in_a_row']} |"
            f" {'one job each, in turn' if turns else ' '.join(then)} |"
        )
    yield ""


# --------------------------------------------------------------------------------------- playing


def _play(
    need: dict[str, int], tasks: Sequence[tuple[str, int, int]], weight: float, end_s: int
) -> list[Any]:
    """Play tasks, each of a tenant, wanted at a time and for a time (s); returns what ran."""
    from allocator import policies
    from allocator.core import PolicySpec, Settings
    from laboratory.experiments.what_if import WhatIf
    from laboratory.links.base import DirectLink
    from laboratory.workloads.play import play
    from laboratory.workloads.recorded_day import Day, DayAgent, DayFramework, Ran

    settings = Settings(
        PolicySpec("drf", mode="characterised"),
        half_life_ms=HALF_LIFE_S * 1000,
        usage_weight=weight,
        patience_cycles=0,
    )
    size = {"cpus": SLOTS * 1000, "mem": SLOTS * 1000, "gpus": SLOTS * 1000}
    day = Day(
        begin_ms=0,
        end_ms=end_s * 1000,
        settings=settings,
        kinds=tuple(size),
        agents={"a": DayAgent("a", "a", size, 0)},
        frameworks={who: DayFramework(who, who, (), 0, demand=need) for who, *_ in tasks},
        ran=[
            Ran(who, who, need, at * 1000, at * 1000, (at + lasts) * 1000, agent="a")
            for who, at, lasts in tasks
        ],
    )
    scenario = WhatIf(day)
    link = DirectLink(policies.build, settings)
    play(scenario, link, tell_demand=True, to_end=False, until_ms=day.end_ms, sample_ms=day.end_ms)
    return [*scenario.ran, *(task for task in scenario.left(day.end_ms) if task.start_ms >= 0)]


def play_small(weight: float) -> list[float]:
    """Mean share of the second tenant in each part of a half-life since it arrived."""
    import numpy as np

    chance = np.random.default_rng(1)
    arrives_s, end_s = ALONE * HALF_LIFE_S, (ALONE + SHOWN) * HALF_LIFE_S
    count = SLOTS * end_s // 20
    tasks = [
        (who, at, int(chance.integers(10, 31)))
        for who, at in (("first", 0), ("second", arrives_s))
        for _ in range(count)
    ]
    ran = _play({"cpus": 1000, "mem": 1000, "gpus": 1000}, tasks, weight, end_s)
    part_ms = JOB_S * 1000
    begins_ms = range(arrives_s * 1000, end_s * 1000, part_ms)

    def held(who: str, at_ms: int) -> int:
        of = (task for task in ran if task.framework == who)
        return sum(max(0, min(t.end_ms, at_ms + part_ms) - max(t.start_ms, at_ms)) for t in of)

    return [held("second", at) / (held("first", at) + held("second", at)) for at in begins_ms]


def play_large(jobs_alone: int) -> list[str]:
    """Whose jobs run, one after another; the second tenant arrives during one of the first's."""
    arrives_s = jobs_alone * JOB_S - JOB_S // 2
    jobs = jobs_alone + 2 * BINS
    tasks = [("first", 0, JOB_S)] * jobs + [("second", arrives_s, JOB_S)] * jobs
    size = {"cpus": SLOTS * 1000, "mem": SLOTS * 1000, "gpus": SLOTS * 1000}
    ran = sorted(_play(size, tasks, 0.5, jobs * JOB_S), key=lambda task: task.start_ms)
    return [task.framework for task in ran]


def play_tree() -> list[str]:
    """Whose jobs run, one after another; the other users arrive during one of the first's."""
    arrives_s = PLOTTED * JOB_S - JOB_S // 2
    size = {"cpus": SLOTS * 1000, "mem": SLOTS * 1000, "gpus": SLOTS * 1000}
    arrivals = (0, *[arrives_s] * (len(USERS) - 1))
    wanted = zip(USERS, arrivals, strict=True)
    tasks = [(user, at_s, JOB_S) for user, at_s in wanted for _ in range(TREE_JOBS)]
    ran = sorted(_play(size, tasks, 1.0, TREE_JOBS * JOB_S), key=lambda task: task.start_ms)
    return [task.framework for task in ran]


def compute() -> None:
    """Play all examples, keep the results, and draw the picture."""
    small: list[dict[str, Any]] = [
        {"usage_weight": each, "shares": play_small(each)} for each in WEIGHTS
    ]
    large = []
    for about in JOBS_ALONE:
        whose = play_large(about)
        alone = whose.index("second")
        next_of_first = whose.index("first", alone)
        then = whose[next_of_first : next_of_first + 8]
        large.append({"jobs_alone": alone, "in_a_row": next_of_first - alone, "then": then})
    for each in small:
        each["shares"] = [round(share, 4) for share in each["shares"]]
    tree = play_tree()[:TREE_JOBS]
    found = {"small": small, "large": large, "tree": tree}
    KEPT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    draw_shares(small)
    draw_turns(large, tree)


def draw_shares(rows: Sequence[dict[str, Any]]) -> None:
    """Draw the share of the second tenant over time, played and computed."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from laboratory.reports.plots import COLOURS, SETTINGS

    middles = [(at + 0.5) / BINS for at in range(SHOWN * BINS)]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for row, colour in zip(rows, COLOURS, strict=False):
            weight = row["usage_weight"]
            axes.plot(middles, computed_shares(weight), "--", color=colour, linewidth=1)
            axes.plot(middles, row["shares"], "o-", color=colour, markersize=3, label=f"{weight:g}")
        axes.set(xlabel="half-lives since the second tenant arrived", ylabel="its share")
        axes.legend(title="usage_weight (dashed: computed)", frameon=False, fontsize=7, ncols=5)
        figure.savefig(PICTURES / "use-over-time.svg", metadata={"Date": None})


def draw_turns(large: Sequence[dict[str, Any]], tree: Sequence[str]) -> None:
    """Draw whose jobs run, of two tenants and of the users of a tree, and their averages."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from laboratory.reports.plots import SETTINGS

    row = next(each for each in large if each["jobs_alone"] == PLOTTED)
    tenants = [*["first"] * PLOTTED, *["second"] * row["in_a_row"], *row["then"]]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        for axes, order, names in zip(
            figure.subplots(1, 2), (tenants, tree), (("first", "second"), USERS), strict=True
        ):
            _draw_order(axes, order, names)
        figure.savefig(PICTURES / "use-over-time-turns.svg", metadata={"Date": None})


def _draw_order(axes: Any, order: Sequence[str], names: Sequence[str]) -> None:  # noqa: ANN401
    from laboratory.reports.plots import COLOURS

    steps, height = 10, 0.06
    kept = 0.5 ** (JOB_S / HALF_LIFE_S / steps)
    for lane, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        mine = [(at / BINS, 1 / BINS) for at, each in enumerate(order) if each == name]
        axes.broken_barh(mine, (1.05 + lane * height, height), color=colour)
        average, curve = 0.0, [0.0]
        for each in order:
            for _ in range(steps):
                average = average * kept + (each == name) * (1 - kept)
                curve.append(average)
        times = [at / steps / BINS for at in range(len(curve))]
        axes.plot(times, curve, color=colour, linewidth=1, label=name)
    axes.set(xlabel="half-lives", ylabel="average, and whose job runs", ylim=(0, 1.3))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.legend(frameon=False, fontsize=7, loc="center right")


if __name__ == "__main__":
    compute()

"""Choosy: the examples of constrained max-min fairness, and how close the online policy comes.

The online policy runs on the real core. A machine is an agent that one framework uses whole; each
step ends the task on one machine, drawn at random, and the machine goes to whoever the policy
Choosy puts first among those that can use it.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 2.2, 4, 5.1, 6.1 and Theorem 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.core import PolicySpec
from allocator.lab.papers.online import Online
from allocator.lab.papers.report import Cell, Report, Row, exactly
from allocator.solvers.max_min import independent, max_min
from allocator.solvers.max_min import whole as max_min_whole

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

SOURCE = "Ghodsi et al., EuroSys 2013"
TRIALS = 20

_MACHINE = 1000  # one CPU, in thousandths: what a machine is does not matter, it is used whole
_QUIET = 20  # releases a machine without any improvement, after which a run ends


@dataclass(frozen=True, slots=True)
class Example:
    """A constraint graph of the paper, and the shares that it gives."""

    can_use: Sequence[Sequence[int]]
    whole: Sequence[float]
    divisible: Sequence[float] = ()
    independent: Sequence[float] = ()

    @property
    def eligible(self) -> Bools:
        """Whether each user can use each machine, (U, M)."""
        machines = range(1, max(max(those) for those in self.can_use) + 1)
        return np.array([[machine in those for machine in machines] for those in self.can_use])


EXAMPLES: Mapping[str, Example] = {
    "Fig. 1": Example(
        ([1, 4], [3, 4], [2, 3, 4, 6, 7], range(5, 11)),
        whole=(2, 1, 3, 4),
        divisible=(1.5, 1.5, 3, 4),
        independent=(4 / 3, 5 / 6, 17 / 6, 5),
    ),
    "Fig. 3": Example((range(1, 4), range(3, 11)), whole=(3, 7)),
    "Sec. 5": Example(([1, 2], range(2, 6)), whole=(2, 3)),
    "Fig. 5": Example(([1, 2], range(2, 6), range(5, 10)), whole=(2, 3, 4)),
}


@dataclass(frozen=True, slots=True)
class Run:
    """How Choosy came to rest.

    machines (U,)
    releases: until the last improvement of the vector of shares in ascending order.
    worsened: steps after which that vector was smaller; the proof of Theorem 4 says that there are
        none.
    """

    machines: Ints
    releases: int
    worsened: int


def run(eligible: Bools, seed: int, holder: Ints | None = None) -> Run:
    """End tasks at random until Choosy has nothing to improve for long.

    eligible (U, M): whether each user can use each machine.
    holder (M,): the user that each machine belongs to at first; -1: nobody. By default all are
        free, and handed out in random order.
    """
    cluster = _cluster(eligible, seed)
    users = np.arange(1, len(eligible) + 1)
    owner = np.zeros(eligible.shape[1] + 1, np.int64)
    if holder is not None:
        machine = np.flatnonzero(holder >= 0)
        _hold(cluster, holder[machine] + 1, machine + 1)
        owner[machine + 1] = holder[machine] + 1
    _take(cluster, owner, now_ms=0)
    rng = np.random.default_rng(seed)
    shares = [int(n) for n in cluster.agents_held(users.tolist())]
    last, worsened, step = 0, 0, 0
    while owner.any() and step < last + _QUIET * eligible.shape[1]:
        step += 1
        one = rng.choice(np.flatnonzero(owner), 1)
        cluster.release(owner[one], one, np.array([[_MACHINE]]))
        owner[one] = 0
        _take(cluster, owner, now_ms=step, agents=one)
        before, shares = sorted(shares), [int(n) for n in cluster.agents_held(users.tolist())]
        last = step if sorted(shares) > before else last
        worsened += sorted(shares) < before
    return Run(np.array(shares), last, worsened)


def figures(seed: int = 0, trials: int = TRIALS) -> Report:
    """Figures 1, 3 and 5, and the example of section 5: offline, and as Choosy's fixed points."""
    rows: list[Row] = []
    for name, example in EXAMPLES.items():
        eligible = example.eligible
        count = np.ones(eligible.shape[1], np.int64)
        whole = sorted(max_min_whole.solve(eligible, count).machines.tolist())
        rows.append(Row(f"{name}, whole", exactly(whole, sorted(example.whole))))
        divisible = max_min.solve(eligible, count).machines.tolist()
        expected = example.divisible or example.whole
        rows.append(Row(f"{name}, divisible", exactly(divisible, list(expected))))
        alone = independent.solve(eligible, count).sum(axis=1).tolist()
        if example.independent:
            rows.append(Row(f"{name}, independent", exactly(alone, list(example.independent))))
        runs = [run(eligible, seed + trial) for trial in range(trials)]
        ends = np.sort([each.machines for each in runs], axis=1)
        rows.append(
            Row(
                f"{name}, Choosy, worst of {trials} runs",
                exactly(ends[np.lexsort(ends.T[::-1])[0]].tolist(), sorted(example.whole)),
            )
        )
        mean = float(np.mean([each.releases for each in runs]))
        rows.append(Row(f"{name}, Choosy, mean releases to get there", (Cell(mean),)))
    return Report(
        name="choosy-figures",
        title="Constrained max-min fair shares, in machines",
        source=f"{SOURCE}, sec. 2.2, 4 and 5.1 (Figures 1 to 5)",
        columns=("u1", "u2", "u3", "u4"),
        rows=tuple(rows),
        notes=(
            (
                "Whole machines and Choosy: shares in ascending order, for where users 1 and 2 of "
                "Figure 1 may change places the optimum is not unique."
            ),
            (
                "Choosy starts on an empty cluster whose machines come in random order; then one "
                "machine after another, drawn at random, falls free and is given anew. A run ends "
                f"after {_QUIET} releases a machine without an improvement."
            ),
            (
                "The paper gives the optimum of Figures 3 and 5 in whole machines only; divisible "
                "ones have the same."
            ),
        ),
    )


def theorem_4(seed: int = 0, trials: int = 10) -> Report:
    """Theorem 4: from any allocation, every share ends within 2 n machines of an optimal one."""
    rows = []
    for users, machines in ((2, 30), (4, 40), (8, 60)):
        found = [_from_anywhere(users, machines, seed + trial) for trial in range(trials)]
        rows.append(
            Row(
                f"{users} users, {machines} machines, {trials} graphs",
                (
                    Cell(float(max(short for short, _ in found)), 2 * users, at_most=True),
                    Cell(float(sum(worsened for _, worsened in found)), 0),
                ),
            )
        )
    return Report(
        name="choosy-theorem-4",
        title="Choosy from random allocations on random constraint graphs",
        source=f"{SOURCE}, sec. 6.1 and Theorem 4",
        columns=("machines short, at most 2n", "steps that worsened the vector"),
        rows=tuple(rows),
        notes=(
            (
                "At first the greediest users hold what they can use; the optimum is that of whole "
                "machines. Shares are compared in ascending order, for optima differ in who has "
                "which."
            ),
        ),
    )


def _from_anywhere(users: int, machines: int, seed: int) -> tuple[int, int]:
    """The largest shortfall at the end of a run, and steps that worsened."""
    rng = np.random.default_rng(seed)
    eligible = rng.random((users, machines)) < rng.uniform(0.1, 0.9, users)[:, None]
    greed = rng.random(users)  # a skewed start: some users hold nearly all that they can use
    claim = np.where(eligible, greed[:, None] + 0.2 * rng.random(eligible.shape), -1.0)
    holder = np.where(eligible.any(axis=0), claim.argmax(axis=0), -1)
    ended = run(eligible, seed, holder)
    best = max_min_whole.solve(eligible, np.ones(machines, np.int64)).machines
    short = np.sort(best) - np.sort(ended.machines)
    return int(short.max()), ended.worsened


def _cluster(eligible: Bools, seed: int) -> Online:
    policy = PolicySpec("choosy", "random", flat=True)
    cluster = Online(policy, ("cpus",), seed)
    for machine in range(eligible.shape[1]):
        cluster.add_agent(machine + 1, (_MACHINE,))
    for user, those in enumerate(eligible):
        hosts = "|".join(f"host-{machine + 1}" for machine in np.flatnonzero(those))
        cluster.add_framework(user + 1, f"u{user + 1}", "", f"hostname={hosts or 'none'}")
    return cluster


def _hold(cluster: Online, user: Ints, machine: Ints) -> None:
    cluster.hold(user, machine, np.full((len(user), 1), _MACHINE))


def _take(cluster: Online, owner: Ints, now_ms: int, agents: Ints | None = None) -> None:
    taken = cluster.allocate(now_ms, agents)
    owner[taken.agent] = taken.framework

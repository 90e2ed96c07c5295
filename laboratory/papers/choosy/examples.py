"""Choosy: examples of constrained max-min fairness, and how close the online policy comes.

The online policy runs on the real core. A machine is an agent that one framework uses whole; each
step ends the task on one machine, drawn at random, and the machine goes to the framework that the
policy Choosy ranks first among those that can use it.

Source: sections 2.2, 4, 5.1, 6.1 and Theorem 4 of the paper.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from allocator.core import Bools, Floats, Ints, PolicySpec
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from laboratory.papers.online import Online
from laboratory.papers.report import (
    Panel,
    PaperReport,
    PlotLine,
    Row,
    TableCell,
    averaged,
    beside,
    counter_examples,
    paragraphs,
)
from laboratory.solvers import independent
from laboratory.solvers.online_max_min import OnlineMaxMin
from laboratory.workloads.constraint_model import ConstraintModel
from laboratory.workloads.constraint_model import eligible as can_use

SOURCE = "Ghodsi et al., EuroSys 2013"
TRIALS = 20

_MACHINE = 1000  # one CPU, in thousandths; any size will do, as machines are used whole
_QUIET = 20  # a run ends after this many releases per machine without an improvement


@dataclass(frozen=True, slots=True)
class Example:
    """A constraint graph of the paper, and its published shares."""

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
class ExampleRun:
    """The state in which Choosy came to rest.

    machines (U,)
    releases: until the last improvement of the vector of shares in ascending order.
    worsened: steps after which that vector was smaller; none, by the proof of Theorem 4.
    """

    machines: Ints
    releases: int
    worsened: int


def run(eligible: Bools, seed: int, holder: Ints | None = None) -> ExampleRun:
    """End tasks at random until Choosy makes no improvement for long.

    eligible (U, M): whether each user can use each machine.
    holder (M,): the initial user of each machine; -1: none. By default all are free, and handed
        out in random order.
    """
    cluster = _cluster(eligible, seed)
    users = np.arange(1, len(eligible) + 1)
    owner = np.zeros(eligible.shape[1] + 1, np.int64)
    if holder is not None:
        machine = np.flatnonzero(holder >= 0)
        cluster.hold(holder[machine] + 1, machine + 1, np.full((len(machine), 1), _MACHINE))
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
    return ExampleRun(np.array(shares), last, worsened)


def figures(seed: int = 0, trials: int = TRIALS) -> PaperReport:
    """Figures 1, 3 and 5, and the example of section 5: offline, and as Choosy's fixed points."""
    rows: list[Row] = []
    for name, example in EXAMPLES.items():
        eligible = example.eligible
        count = np.ones(eligible.shape[1], np.int64)
        whole = sorted(max_min_whole.solve(eligible, count).machines.tolist())
        rows.append(Row(f"{name}, whole", beside(whole, sorted(example.whole))))
        divisible = max_min.solve(eligible, count).machines.tolist()
        expected = example.divisible or example.whole
        rows.append(Row(f"{name}, divisible", beside(divisible, list(expected))))
        alone = independent.solve(eligible, count).sum(axis=1).tolist()
        if example.independent:
            rows.append(Row(f"{name}, independent", beside(alone, list(example.independent))))
        runs = [run(eligible, seed + trial) for trial in range(trials)]
        ends = np.sort([each.machines for each in runs], axis=1)
        worst = beside(ends[np.lexsort(ends.T[::-1])[0]], sorted(example.whole))
        rows.append(Row(f"{name}, Choosy, worst of {trials} runs", worst))
        mean = float(np.mean([each.releases for each in runs]))
        rows.append(Row(f"{name}, Choosy, mean releases to get there", (TableCell(mean),)))
    return PaperReport(
        name="choosy-figures",
        title="Constrained max-min fair shares, in machines",
        source=f"{SOURCE}, sec. 2.2, 4 and 5.1 (Figures 1 to 5)",
        columns=("u1", "u2", "u3", "u4"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Rows for whole machines and for Choosy compare shares in ascending order, because the
            optimum is not unique where users 1 and 2 of Figure 1 are interchangeable.

            Choosy first allocates the machines of an empty cluster in random order. Then one
            machine after another, drawn at random, is released and allocated again. A run ends
            after {_QUIET} releases per machine without an improvement.

            For Figures 3 and 5 the paper gives the optimum only for whole machines. For divisible
            machines it is the same.
        """),
    )


def theorem_4(seed: int = 0, trials: int = 10) -> PaperReport:
    """Theorem 4: from any allocation, every share ends within 2 n machines of an optimal one."""
    rows = []
    for users, machines in ((2, 30), (4, 40), (8, 60)):
        found = [_from_anywhere(users, machines, seed + trial) for trial in range(trials)]
        short, worsened = zip(*found, strict=True)
        cells = (
            TableCell(float(max(short)), 2 * users, at_most=True),
            TableCell(float(sum(worsened)), 0),
        )
        rows.append(Row(f"{users} users, {machines} machines, {trials} graphs", cells))
    return PaperReport(
        name="choosy-theorem-4",
        title="Choosy from random allocations on random constraint graphs",
        source=f"{SOURCE}, sec. 6.1 and Theorem 4",
        columns=("machines short, at most 2n", "steps that worsened the vector"),
        rows=tuple(rows),
        notes=paragraphs("""
            At the start, the greediest users hold all machines that they can use. The optimum is
            for whole machines. Shares are compared in ascending order, because several optima exist
            that differ in which user has which share.
        """),
    )


def _from_anywhere(users: int, machines: int, seed: int) -> tuple[int, int]:
    """The largest shortfall at the end of a run, and the number of worsening steps."""
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


def _take(cluster: Online, owner: Ints, now_ms: int, agents: Ints | None = None) -> None:
    taken = cluster.allocate(now_ms, agents)
    owner[taken.agent] = taken.framework


# Theorems 1 to 3 as properties, on random clusters to which users contributed machines.
#
# Source: sec. 3 and 4, Theorems 1 to 3.


LIES = 10
"""Number of false claims that a user tries on each cluster."""

_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Pool:
    """A cluster of machines that users contributed.

    brought (U, T): machines of each type from each user, who can use them.
    eligible (U, T)
    """

    brought: Ints
    eligible: Bools

    @property
    def count(self) -> Ints:
        return self.brought.sum(axis=0)

    @property
    def entitled(self) -> Ints:
        """Machines that each user contributed."""
        return self.brought.sum(axis=1)


def draw(rng: np.random.Generator) -> Pool:
    """Draw two to six users, each with at least one contributed machine."""
    users, types = rng.integers(2, 7), rng.integers(2, 9)
    brought = rng.poisson(0.8, (users, types))
    brought[np.arange(users), rng.integers(0, types, users)] += 1
    return Pool(brought, (brought > 0) | (rng.random((users, types)) < 0.3))


def shortfall_independent(pool: Pool) -> float:
    """The largest shortfall of a user from what it contributed, under independent allocation."""
    got = independent.solve(pool.eligible, pool.count).sum(axis=1)
    return float((pool.entitled - got).max())


def shortfall_cmmf(pool: Pool) -> float:
    """The same under CMMF, weighted by the contributions."""
    weight = pool.entitled.astype(np.float64)
    got = max_min.solve(pool.eligible, pool.count, weight).machines
    return float((pool.entitled - got).max())


def gain_by_lying(pool: Pool, rng: np.random.Generator, *, cmmf: bool) -> float:
    """The maximum number of usable machines that a user gains by one of several false claims."""
    most = 0.0
    honest = _given(pool.eligible, pool.count, cmmf=cmmf).sum(axis=1)
    for _ in range(LIES):
        user = int(rng.integers(len(honest)))
        claim = pool.eligible.copy()
        claim[user] = rng.random(claim.shape[1]) < rng.random()
        got = _given(claim, pool.count, cmmf=cmmf)[user][pool.eligible[user]].sum()
        most = max(most, float(got - honest[user]))
    return most


def _given(eligible: Bools, count: Ints, *, cmmf: bool) -> Floats:
    solution = max_min.solve(eligible, count).given if cmmf else independent.solve(eligible, count)
    return np.asarray(solution, np.float64)


def theorems(seed: int = 0, trials: int = 200) -> PaperReport:
    """In how many percent of the clusters each statement fails."""
    rng = np.random.default_rng(seed)
    failed = np.zeros((trials, 4), np.bool_)
    for row in failed:
        pool = draw(rng)
        row[:] = (
            shortfall_independent(pool) > _SLACK,
            shortfall_cmmf(pool) > _SLACK,
            gain_by_lying(pool, rng, cmmf=True) > _SLACK,
            gain_by_lying(pool, rng, cmmf=False) > _SLACK,
        )
    one, two, three, other = (100 * failed.mean(axis=0)).tolist()
    return PaperReport(
        name="choosy-theorems",
        title="Theorems 1 to 3: in how many percent of random clusters each property fails",
        source="Ghodsi et al., EuroSys 2013, sec. 4, Theorems 1 to 3",
        columns=("percent",),
        rows=(
            Row(
                "Theorem 1: independent allocation, constrained sharing incentive",
                (counter_examples(one),),
            ),
            Row("Theorem 2: weighted CMMF, constrained sharing incentive", (TableCell(two, 0.0),)),
            Row("Theorem 3: CMMF, strategy-proofness", (TableCell(three, 0.0),)),
            Row("Appendix: independent allocation, strategy-proofness", (TableCell(other, 0.0),)),
        ),
        notes=paragraphs(f"""
            {trials} random clusters of two to six users. A published 0 means that the property is
            proved. 'Refused' means that, by the theorem, the property does not hold; each cluster
            in which it fails is a counter-example. For each cluster {LIES} false claims are tested:
            any set of types instead of the true one. Only machines that the user can really use
            count.
        """),
    )


# Processor time of the offline optimum (Figure 15).
#
# Source: sec. 7.4 and Figure 15.

USERS = (100, 1000, 5000)
MACHINES = (1000, 10_000, 100_000)
TYPES = (10, 100)

_MODEL = ConstraintModel(rarer=0.0)


def constraint_graph(
    users: int, machines: int, types: int, rng: np.random.Generator
) -> tuple[Bools, Ints]:
    """Random users and machine types after the distributions of section 7.1."""
    meets = _MODEL.draw_types(types, rng)
    needs = rng.random((users, _MODEL.constraints)) < _MODEL.wishes()
    popularity = rng.dirichlet(np.ones(types))
    return can_use(needs, meets), rng.multinomial(machines, popularity)


def figure_15(seed: int = 0, trials: int = 3) -> PaperReport:
    """Figure 15: time of the offline optimum, by users, machines and types."""
    # Compile the loops first.
    _seconds(20, 100, 5, seed)
    rows, lines = [], []
    for machines, types in product(MACHINES, TYPES):
        means = []
        for users in USERS:
            took = [_seconds(users, machines, types, seed + trial) for trial in range(trials)]
            cells = [averaged(each, 5.0, at_most=True) for each in zip(*took, strict=True)]
            rows.append(Row(f"{users} users, {machines} machines, {types} types", tuple(cells)))
            means.append(1000 * cells[0].computed)
        name = f"{machines} machines, {types} types"
        lines.append(
            PlotLine(name, tuple(map(float, USERS)), tuple(means), dashed=types == TYPES[0])
        )
    return PaperReport(
        name="choosy-fig-15",
        title="Seconds that the offline optimum takes, with its certificate",
        source=f"{SOURCE}, sec. 7.4 and Figure 15",
        columns=("divisible", "whole machines", "one user joins"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            Mean of {trials} random constraint graphs ({_MODEL.constraints} constraints,
            {_MODEL.per_job} a job, sec. 7.1), processor time of this machine; the text says less
            than 5 s at the largest size.

            The times are those of a decomposition of the optimum by minimum cuts, not of linear
            programs as in the paper, nor of a bisection with a maximum flow for each step
            (`tests/bench/bench_max_min.py` compares with the bisection).
        """),
        panels=(Panel("Figure 15, divisible", "users", "time (ms)", tuple(lines)),),
    )


def _seconds(users: int, machines: int, types: int, seed: int) -> tuple[float, float, float]:
    """Times of the divisible optimum, of that in whole machines, and of one user joining."""
    eligible, count = constraint_graph(users, machines, types, np.random.default_rng(seed))
    start = time.process_time()
    max_min.solve(eligible, count)
    between = time.process_time()
    max_min_whole.solve(eligible, count)
    end = time.process_time()
    shares = OnlineMaxMin(eligible[1:], count)
    begin = time.process_time()
    shares.join(eligible[0])
    return between - start, end - between, time.process_time() - begin

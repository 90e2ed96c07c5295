"""Dominant Resource Fairness with whole tasks on several agents: its bound of one maximal task.

In the fluid model, users who need some of everything have equal dominant shares. With whole tasks
on agents that have room for any user's task, the dominant shares of two users should differ by at
most that of the maximal task: the largest demand of every resource.

The policy itself fills the clusters, on several agents, and its grants are replayed one by one.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 5.
"""

from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats, Ints, PolicySpec
from allocator.policies import build
from allocator.testing import static_snapshot
from laboratory.papers.drf import drf
from laboratory.papers.report import PaperReport, Row, TableCell, paragraphs

AGENTS = (1, 2, 5, 20)

MAXIMAL_TASKS = 8
"""An agent has room for at most this many of them, and at least one."""


@dataclass(frozen=True, slots=True)
class DiscreteCluster:
    """Users and agents: demands (U, R), each above 0, and capacities (A, R)."""

    demand: Ints
    capacity: Ints

    @property
    def total(self) -> Floats:
        """Capacity of the whole cluster, (R,)."""
        return self.capacity.sum(axis=0).astype(np.float64)

    @property
    def maximal_share(self) -> float:
        """Dominant share of the maximal task."""
        return float((self.demand.max(axis=0) / self.total).max())


@dataclass(frozen=True, slots=True)
class Found:
    """Largest differences of dominant shares, in multiples of the maximal task's.

    while_all_can: between two users, as long as every user's next task fits somewhere.
    at_the_end: between two users, when no task fits any more.
    from_fluid: between a user and its share in the fluid model, at the end.
    """

    while_all_can: float
    at_the_end: float
    from_fluid: float


def draw(rng: np.random.Generator, agents: int) -> DiscreteCluster:
    """Draw two to five users of two or three resources, and agents of different sizes."""
    users, resources = rng.integers(2, 6), rng.integers(2, 4)
    demand = rng.integers(1, 11, (users, resources))
    room = rng.uniform(1, MAXIMAL_TASKS, (agents, resources))
    return DiscreteCluster(demand, np.floor(demand.max(axis=0) * room).astype(np.int64))


def grants(cluster: DiscreteCluster, selection: str = "joint") -> list[tuple[int, int]]:
    """User and agent of each task, in DRF's order."""
    snapshot = static_snapshot(capacity=cluster.capacity, demand=cluster.demand)
    policy = build(PolicySpec("drf", selection, mode="characterised", flat=True))
    given = policy.allocate(snapshot, 0)
    # Agents' rows begin with 1.
    rows = zip(given.client.tolist(), (given.agent - 1).tolist(), given.tasks.tolist(), strict=True)
    return [(user, agent) for user, agent, tasks in rows for _ in range(tasks)]


def follow(cluster: DiscreteCluster, given: list[tuple[int, int]]) -> Found:
    """Replay grants, and measure how far shares diverge."""
    task_share = (cluster.demand / cluster.total).max(axis=1)
    share, free = np.zeros(len(cluster.demand)), cluster.capacity.copy()
    most, all_can = 0.0, True
    for user, agent in given:
        all_can = all_can and bool(_fits(cluster.demand, free).all())
        share[user] += task_share[user]
        free[agent] -= cluster.demand[user]
        if all_can:
            most = max(most, float(np.ptp(share)))
    assert (free >= 0).all()
    assert not _fits(cluster.demand, free).any()
    fluid = drf(cluster.demand.astype(np.float64), cluster.total) * task_share
    ends = float(np.ptp(share)), float(np.abs(share - fluid).max())
    return Found(*(each / cluster.maximal_share for each in (most, *ends)))


def _fits(demand: Ints, free: Ints) -> Bools:
    """Whether each user's task fits on some agent, (U,)."""
    return np.asarray(np.any(np.all(demand[:, None, :] <= free[None], axis=2), axis=1))


_REST = (
    "The bound holds until some user's next task fits nowhere. DRF then continues with the "
    "others, whose smaller tasks still fit, until no user can use what is left."
)
_FRAGMENTS = (
    "The bound can also be read as comparing each user with its own share in the fluid model."
    " Read like this, it does not hold on several agents: the fluid model treats all agents"
    " as one pool, but on each real agent up to one maximal task stays free, or goes to"
    " users with small tasks."
)
_AGENT_FIRST = (
    "Selections that take the agent first, as Mesos does, give the rest of an agent to any user "
    "whose task fits there, although the user with the least share could be served on another "
    "agent."
)

ROWS = (
    ("joint", "while_all_can", "user first: two users, while all can go on", ""),
    ("best_fit", "while_all_can", "user first, best fit: two users, while all can go on", ""),
    ("joint", "at_the_end", "user first: two users, at the end", _REST),
    ("joint", "from_fluid", "user first: a user from its fluid share, at the end", _FRAGMENTS),
    ("random", "while_all_can", "agent first: two users, while all can go on", _AGENT_FIRST),
)
"""Selection, attribute of `Found`, name of the row, and known reason for a difference."""


def found(selection: str, agents: int, seed: int, trials: int) -> list[Found]:
    """Fill random clusters."""
    rng = np.random.default_rng(seed)
    clusters = [draw(rng, agents) for _ in range(trials)]
    return [follow(each, grants(each, selection)) for each in clusters]


def whole_tasks(seed: int = 0, trials: int = 200) -> PaperReport:
    """Section 5: the bound of one maximal task."""
    by_selection = {
        selection: [found(selection, agents, seed, trials) for agents in AGENTS]
        for selection in dict.fromkeys(row[0] for row in ROWS)
    }
    rows = []
    for selection, what, name, departure in ROWS:
        worst = [max(getattr(each, what) for each in of) for of in by_selection[selection]]
        cells = tuple(TableCell(each, 1.0, at_most=True) for each in worst)
        rows.append(Row(name, cells, departure))
    return PaperReport(
        name="drf-whole-tasks",
        title="Whole tasks: how far dominant shares are apart, in those of the maximal task",
        source="Ghodsi et al., NSDI 2011, sec. 5",
        columns=tuple(f"{agents} agent{'s' * (agents > 1)}" for agents in AGENTS),
        rows=tuple(rows),
        notes=paragraphs(f"""
            The largest found on {trials} random clusters for each number of agents: two to five
            users who need some of two or three resources each, and agents with room for one to
            {MAXIMAL_TASKS} maximal tasks. The maximal task has the largest demand of each resource.
            In the fluid model these users have equal dominant shares.

            'User first': the selections `joint` and `best_fit`; 'agent first': `random`. 'While all
            can go on': until some user's next task fits on no agent.
        """),
    )

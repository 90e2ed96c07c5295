"""Figures of a day: waiting times, shares of the cluster, utilisation.

The fair share of a role is that of weighted max-min fairness of dominant shares among the roles
that want something at that moment, up to what it wants. For this the cluster counts as one pool:
constraints and sizes of agents are ignored, so that all policies are measured alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from allocator.core import Bools, Floats, Ints
from laboratory.resources import lineage
from laboratory.solvers import water_filling
from laboratory.workloads.recorded_day import Day, Ran

SAMPLES = 240
"""Number of moments sampled in a day."""

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Tasks as columns; times are in ms from the beginning of the day.

    roles: paths of the roles.
    who: pairs of a framework's id and a role.
    role, of (T,): index of each task's entry in `roles`, and in `who`.
    need (T, R), thousandths.
    wanted, start, end (T,): infinite if it did not happen.
    """

    roles: tuple[str, ...]
    who: tuple[tuple[str, str], ...]
    role: Ints
    of: Ints
    need: Floats
    wanted: Floats
    start: Floats
    end: Floats

    def rows(self, mask: Bools) -> "TaskTable":
        columns = ("role", "of", "need", "wanted", "start", "end")
        return replace(self, **{name: getattr(self, name)[mask] for name in columns})


def table_of(ran: Sequence[Ran], kinds: Sequence[str], begin_ms: int = 0) -> TaskTable:
    """Make columns of tasks; times of -1 did not happen."""
    roles = tuple(sorted({task.role for task in ran}))
    who = tuple(sorted({(task.framework, task.role) for task in ran}))
    number = {role: index for index, role in enumerate(roles)}
    place = {each: index for index, each in enumerate(who)}

    def when(times_ms: list[int]) -> Floats:
        column = np.array(times_ms, np.float64)
        return np.where(column < 0, NEVER, np.maximum(column - begin_ms, 0))

    return TaskTable(
        roles,
        who,
        np.array([number[task.role] for task in ran], np.int64),
        np.array([place[task.framework, task.role] for task in ran], np.int64),
        np.array([[task.need.get(k, 0) for k in kinds] for task in ran], float).reshape(
            -1, len(kinds)
        ),
        when([task.wanted_ms for task in ran]),
        when([task.start_ms for task in ran]),
        when([task.end_ms for task in ran]),
    )


def amounts_at(need: Floats, begin: Floats, end: Floats, at_ms: Floats) -> Floats:
    """Total amount of the tasks active at some moments, from their begin to their end.

    need (T, R); begin, end (T,); at_ms (S,).
    Returns (S, R).
    """
    total = np.zeros((len(at_ms), need.shape[1]))
    for times, sign in ((begin, 1.0), (end, -1.0)):
        order = np.argsort(times, kind="stable")
        sums = np.vstack([np.zeros(need.shape[1]), np.cumsum(need[order], axis=0)])
        total += sign * sums[np.searchsorted(times[order], at_ms, side="right")]
    return np.maximum(total, 0.0)


def count_at(begin: Floats, end: Floats, at_ms: Floats) -> Floats:
    """Number of tasks active at some moments, (S,)."""
    return amounts_at(np.ones((len(begin), 1)), begin, end, at_ms)[:, 0]


def moments(span_ms: int) -> Floats:
    """The moments at which a day is sampled, (S,)."""
    middle: Floats = (np.arange(SAMPLES, dtype=np.float64) + 0.5) * (span_ms / SAMPLES)
    return middle


def agents_of(day: Day) -> tuple[Floats, Floats, Floats]:
    """Make columns of the agents: capacity, (A, R), and times of arrival and departure, (A,) ms."""
    agents = day.agents.values()
    size = np.array([[a.capacity.get(k, 0) for k in day.kinds] for a in agents], float)
    came = [agent.came_ms - day.begin_ms for agent in agents]
    left = [NEVER if agent.left_ms < 0 else agent.left_ms - day.begin_ms for agent in agents]
    return size.reshape(-1, len(day.kinds)), np.array(came, float), np.array(left, float)


def capacity_at(day: Day, at_ms: Floats) -> Floats:
    """The cluster's capacity, (S, R)."""
    size, came, left = agents_of(day)
    return amounts_at(size, np.maximum(came, 0), left, at_ms)


def weights_of(day: Day, roles: Sequence[str]) -> Floats:
    """The final weights of roles, multiplied by those of their ancestors."""
    weight: dict[str, float] = {}
    for _, change in day.weights:
        weight |= change
    above = [lineage(role) for role in roles]
    return np.array([np.prod([weight.get(each, 1.0) for each in path]) for path in above])


def fair_shares(wants: Floats, total: Floats, weight: Floats) -> Floats:
    """The fair dominant share of each role, if the cluster were one pool.

    wants (n, R): maximum that each would use.
    total (R,); weight (n,).
    Returns (n,).

    Examples
    --------
    The first wants little, so the others share the rest, one part to two.

    >>> wants, total = np.array([[1.0], [9.0], [9.0]]), np.array([10.0])
    >>> fair_shares(wants, total, np.array([1.0, 1.0, 2.0])).round(3).tolist()
    [0.1, 0.3, 0.6]
    """
    part = np.divide(wants, total, out=np.zeros(wants.shape), where=total > 0)
    largest = part.max(axis=1)
    shares = np.zeros(len(wants))
    some = np.flatnonzero(largest > 0)
    if len(some):
        # An extra resource of capacity one limits each to what it wants.
        need = np.hstack([part[some], np.eye(len(some))])
        rate = weight[some] / largest[some]
        pool = np.concatenate([(total > 0).astype(float), np.ones(len(some))])
        shares[some] = water_filling.solve(need, pool, rate).tasks * largest[some]
    return shares


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """Figures of a role.

    tasks, never_began: number of its tasks, and how many of them never started.
    wait_s: from when a task was wanted to its start.
    stay_s: to its end.
    share, fair: its mean dominant share, and its fair share, while it wanted something.
    short: the fraction of its fair share that it lacked.
    """

    tasks: float
    never_began: float
    wait_s: float
    stay_s: float
    share: float
    fair: float
    short: float


@dataclass(frozen=True, slots=True)
class DayFigures:
    """Figures of a day.

    stay_s: of a role's tasks, from when they were wanted to their ends; the geometric mean over the
        roles, so that each role counts alike.
    last_s: end of the last task, from the beginning of the day.
    packed: used fraction of the cluster's fullest resource while tasks waited; NaN if none did.
    used: used fraction of each resource, mean over the recorded time.
    """

    roles: Mapping[str, RoleFigures]
    tasks: int
    never_began: int
    wait_s: float
    wait_p95_s: float
    stay_s: float
    last_s: float
    packed: float
    used: Mapping[str, float]


def measure(day: Day, table: TaskTable, end_ms: float) -> DayFigures:
    """Compute the figures of a day.

    end_ms: its end; tasks that have not started count as waiting until then.
    """
    span_ms = max(day.end_ms - day.begin_ms, 1)
    at_ms = moments(span_ms)
    total = capacity_at(day, at_ms)
    roles = range(len(table.roles))
    some = [table.rows(table.role == role) for role in roles]
    wants = np.stack([amounts_at(t.need, t.wanted, t.end, at_ms) for t in some], axis=1)
    held = np.stack([amounts_at(t.need, t.start, t.end, at_ms) for t in some], axis=1)
    weight = weights_of(day, table.roles)
    fair = np.array([fair_shares(w, t, weight) for w, t in zip(wants, total, strict=True)])
    part = np.divide(held, total[:, None], out=np.zeros(held.shape), where=total[:, None] > 0)
    share = part.max(axis=2)
    figures = {
        name: _of_role(some[role], share[:, role], fair[:, role], end_ms)
        for role, name in enumerate(table.roles)
    }
    waiting = count_at(table.wanted, table.start, at_ms)
    full = part.sum(axis=1)
    wait_s = (_by(table.start, end_ms) - table.wanted) / 1000
    stays = [max(each.stay_s, 1e-3) for each in figures.values()]
    return DayFigures(
        roles=figures,
        tasks=len(table.wanted),
        never_began=int(np.isinf(table.start).sum()),
        wait_s=float(wait_s.mean()),
        wait_p95_s=float(np.percentile(wait_s, 95)),
        stay_s=float(np.exp(np.mean(np.log(stays)))),
        last_s=float(_by(table.end, end_ms).max()) / 1000,
        packed=float(full[waiting > 0].max(axis=1).mean()) if (waiting > 0).any() else np.nan,
        used=dict(zip(day.kinds, full.mean(axis=0).tolist(), strict=True)),
    )


def _by(times: Floats, end_ms: float) -> Floats:
    """Replace infinite times, of events that did not happen, by the end of the day."""
    return np.where(np.isinf(times), end_ms, times)


def _of_role(tasks: TaskTable, share: Floats, fair: Floats, end_ms: float) -> RoleFigures:
    wait_s = (_by(tasks.start, end_ms) - tasks.wanted) / 1000
    stay_s = (_by(tasks.end, end_ms) - tasks.wanted) / 1000
    wanting = fair > 0
    lacking = np.maximum(fair - share, 0.0)
    return RoleFigures(
        tasks=len(wait_s),
        never_began=int(np.isinf(tasks.start).sum()),
        wait_s=float(wait_s.mean()),
        stay_s=float(stay_s.mean()),
        share=float(share[wanting].mean()) if wanting.any() else 0.0,
        fair=float(fair[wanting].mean()) if wanting.any() else 0.0,
        short=float(lacking.sum() / fair.sum()) if wanting.any() else 0.0,
    )

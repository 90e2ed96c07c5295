"""Which constraints are the bottleneck: the cuts of the constraint graph, over a recorded day.

At each of some moments in which something waits, those who want something and the agents that they
may use are a constraint graph. Constrained max-min fairness cuts it (see
`allocator.solvers.max_min`): those of its lowest cut can use no agents but those of the cut, use
them up, and stand lower than all others. Where such a cut is not the whole cluster, and agents
outside it have room, the constraints are what they wait for.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from allocator.core import Bools, Floats, Ints
from allocator.lab.advise.measuring import (
    NEVER,
    TaskTable,
    amounts_at,
    moments,
    table_of,
)
from allocator.lab.workloads.recorded_day import Day
from allocator.solvers.max_min import max_min

OFTEN = 0.05
"""A cut that is met at a smaller part of the moments is not told."""

ROOM = 0.1
"""Agents outside a cut have room where this part of them, at least, is free."""

LOWER = 0.9
"""Whoever stands below this part of the next level stands lower."""


@dataclass(slots=True)
class Bottleneck:
    """Agents that are all that some frameworks may use, and too few for them.

    agents: host names.
    of: how many agents there are.
    frameworks, roles: who has to do with these.
    part: of the moments looked at in which it was met.
    waiting: how many of their tasks waited then, on average.
    level: agents that each of them would have in the fairest case; `next_level`: those who stand
        next, infinite where all others have what they want.
    free: part of the other agents that was free then.
    """

    agents: tuple[str, ...]
    of: int
    frameworks: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    part: float = 0.0
    waiting: float = 0.0
    level: float = 0.0
    next_level: float = 0.0
    free: float = 0.0


@dataclass(frozen=True, slots=True)
class _Met:
    """A cut at one moment."""

    agents: tuple[str, ...]
    users: tuple[int, ...]
    waiting: float
    level: float
    next_level: float
    free: float


def bottlenecks_of(days: Sequence[Day]) -> list[Bottleneck]:
    """Find the bottlenecks of some days, that which most often is one first."""
    found: dict[tuple[str, ...], Bottleneck] = {}
    looked = 0
    for day in days:
        table = table_of(day.ran, day.kinds, day.begin_ms)
        met, count = _of_day(day, table)
        looked += count
        of = len(day.agents)
        for cut in met:
            each = found.setdefault(cut.agents, Bottleneck(cut.agents, of))
            _add(each, cut, day, table)
    for each in found.values():
        times = each.part
        for name in ("waiting", "level", "next_level", "free"):
            setattr(each, name, getattr(each, name) / times)
        each.part = times / looked
    told = [each for each in found.values() if each.part >= OFTEN]
    return sorted(told, key=lambda each: -each.part)


def _add(each: Bottleneck, cut: _Met, day: Day, table: TaskTable) -> None:
    each.part += 1
    each.waiting += cut.waiting
    each.level += cut.level
    each.next_level += cut.next_level
    each.free += cut.free
    for user in cut.users:
        framework, role = table.who[user]
        known = day.frameworks.get(framework)
        each.frameworks.add(known.name if known else framework)
        each.roles.add(role)


def _of_day(day: Day, table: TaskTable) -> tuple[list[_Met], int]:
    """The cuts of a day, and at how many moments it was looked at."""
    at_ms = moments(max(day.end_ms - day.begin_ms, 1))
    if not any(each.allowed for each in day.frameworks.values()):
        return [], len(at_ms)
    agents = list(day.agents.values())
    place = {agent.agent_id: row for row, agent in enumerate(agents)}
    eligible = np.ones((len(table.who), len(agents)), bool)
    for user, (framework, role) in enumerate(table.who):
        known = day.frameworks.get(framework)
        allowed = known.allowed.get(role) if known else None
        if allowed is not None:
            eligible[user] = False
            eligible[user, [place[each] for each in allowed if each in place]] = True
    looked = _Looked.at(day, table, at_ms)
    met = (_lowest(looked, eligible, moment) for moment in range(len(at_ms)))
    return [cut for cut in met if cut is not None], len(at_ms)


@dataclass(frozen=True, slots=True)
class _Looked:
    """A day at its moments.

    there (S, A): which agents are.
    size (A, R): of each agent.
    wants, waits, count (S, U, R) (S, U, R) (S, U): what each user wants, what of that waits, and
        how many tasks these are.
    free (S, A): part of each agent that is free, of its fullest resource.
    """

    names: tuple[str, ...]
    there: Bools
    size: Floats
    wants: Floats
    waits: Floats
    count: Floats
    free: Floats

    @staticmethod
    def at(day: Day, table: TaskTable, at_ms: Floats) -> "_Looked":
        agents = list(day.agents.values())
        size = np.array([[a.capacity.get(k, 0) for k in day.kinds] for a in agents], float)
        came = np.array([agent.came_ms - day.begin_ms for agent in agents], float)
        left = np.array(
            [NEVER if a.left_ms < 0 else a.left_ms - day.begin_ms for a in agents], float
        )
        there = (came <= at_ms[:, None]) & (at_ms[:, None] < left)
        users = [table.rows(table.of == user) for user in range(len(table.who))]
        one = [np.ones((len(t.wanted), 1)) for t in users]
        return _Looked(
            names=tuple(agent.hostname for agent in agents),
            there=there,
            size=size,
            wants=np.stack([amounts_at(t.need, t.wanted, t.end, at_ms) for t in users], 1),
            waits=np.stack([amounts_at(t.need, t.wanted, t.start, at_ms) for t in users], 1),
            count=np.stack(
                [
                    amounts_at(ones, t.wanted, t.start, at_ms)[:, 0]
                    for ones, t in zip(one, users, strict=True)
                ],
                1,
            ),
            free=_free(day, table, size, at_ms),
        )


def _free(day: Day, table: TaskTable, size: Floats, at_ms: Floats) -> Floats:
    """What part of each agent is free, of its fullest resource, (S, A)."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, task in enumerate(day.ran):
        rows[task.agent].append(row)
    free = np.ones((len(at_ms), len(size)))
    for column, agent in enumerate(day.agents):
        mine = np.array(rows.get(agent, []), np.int64)
        used = amounts_at(table.need[mine], table.start[mine], table.end[mine], at_ms)
        has = size[column] > 0
        if has.any():
            free[:, column] = 1 - (used[:, has] / size[column, has]).max(axis=1)
    return np.maximum(free, 0.0)


def _lowest(looked: _Looked, eligible: Bools, moment: int) -> _Met | None:
    """The lowest cut at a moment, if it is a bottleneck."""
    there = np.flatnonzero(looked.there[moment])
    users = np.flatnonzero(looked.wants[moment].any(axis=1))
    if not looked.count[moment].any() or len(there) < 2:
        return None
    may = eligible[np.ix_(users, there)]
    limit = _machines(looked.wants[moment, users], may, looked.size[there])
    solved = max_min.solve(may, np.ones(len(there), np.int64), None, limit)
    graph, cuts = solved.classes.graph, solved.classes.cuts
    short = solved.machines < limit - 1e-6
    for number, cut in enumerate(cuts):
        mine = np.isin(graph.class_of_user, cut.classes) & short
        waiting = float(looked.count[moment, users[mine]].sum())
        inside = np.isin(graph.group_of_type, cut.groups)
        outside = ~inside
        if not mine.any() or not waiting or not outside.any():
            continue
        free = float(looked.free[moment, there[outside]].mean())
        following = min((each.level for each in cuts[number + 1 :]), default=np.inf)
        if free < ROOM and cut.level > LOWER * following:
            continue
        names = tuple(sorted(looked.names[row] for row in there[inside].tolist()))
        return _Met(names, _all(users[mine]), waiting, cut.level, float(following), free)
    return None


def _all(rows: Ints) -> tuple[int, ...]:
    return tuple(rows.tolist())


def _machines(wants: Floats, may: Bools, size: Floats) -> Floats:
    """How many of the agents that it may use each user wants: of its largest part, (U,)."""
    mean = may @ size / np.maximum(may.sum(axis=1, keepdims=True), 1)
    part = np.divide(wants, mean, out=np.zeros(wants.shape), where=mean > 0)
    return part.max(axis=1)

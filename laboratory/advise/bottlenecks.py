"""Which constraints are the bottleneck: cuts of the constraint graph over a recorded day.

At several moments with waiting tasks, frameworks with demand and the agents they may use form a
constraint graph. Constrained max-min fairness cuts it (see `allocator.solvers.max_min`): the users
of its lowest cut can use only the agents of the cut, use them completely, and have a lower level
than all others. If such a cut is not the whole cluster, and agents outside it have room,
constraints cause the wait.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats
from allocator.solvers.max_min import max_min
from laboratory.advise.measuring import (
    TaskTable,
    agents_of,
    amounts_at,
    count_at,
    moments,
    table_of,
)
from laboratory.workloads.recorded_day import Day

OFTEN = 0.05
"""Cuts found at a smaller fraction of the moments are not reported."""

ROOM = 0.1
"""Agents outside a cut have room if at least this fraction of them is free."""

LOWER = 0.9
"""A level below this fraction of the next one counts as lower."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A set of agents too small for the frameworks that may use no others.

    agents: host names.
    of: number of all agents.
    frameworks, roles: those limited to these agents.
    waiting: mean number of their waiting tasks at these moments.
    level: number of agents that each of these frameworks would have in the fairest allocation.
    next_level: the level of the next cut; infinite if all other frameworks have what they want.
    free: fraction of the other agents that was free.
    part: fraction of all moments at which it was found.
    """

    agents: tuple[str, ...]
    of: int
    frameworks: frozenset[str]
    roles: frozenset[str]
    waiting: float
    level: float
    next_level: float
    free: float
    part: float = 0.0


def bottlenecks_of(days: Sequence[Day]) -> list[Bottleneck]:
    """Find the bottlenecks of some days, the most frequent first."""
    met: defaultdict[tuple[str, ...], list[Bottleneck]] = defaultdict(list)
    looked = 0
    for day in days:
        cuts, count = _of_day(day)
        looked += count
        for cut in cuts:
            met[cut.agents].append(cut)
    found = [_together(cuts, len(cuts) / looked) for cuts in met.values()]
    return sorted((each for each in found if each.part >= OFTEN), key=lambda each: -each.part)


def _together(cuts: Sequence[Bottleneck], part: float) -> Bottleneck:
    """Merge the findings about a bottleneck over all moments."""

    def mean(name: str) -> float:
        return sum(getattr(cut, name) for cut in cuts) / len(cuts)

    return Bottleneck(
        cuts[0].agents,
        cuts[0].of,
        frozenset().union(*(cut.frameworks for cut in cuts)),
        frozenset().union(*(cut.roles for cut in cuts)),
        mean("waiting"),
        mean("level"),
        mean("next_level"),
        mean("free"),
        part,
    )


def _of_day(day: Day) -> tuple[list[Bottleneck], int]:
    """The cuts of a day, and the number of moments examined."""
    table = table_of(day.ran, day.kinds, day.begin_ms)
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
    """A day at its sampled moments.

    names, users: of the agents; framework and role of each user.
    there (S, A): which agents are present.
    size (A, R): of each agent.
    wants, waits, count (S, U, R) (S, U, R) (S, U): what each user wants, the part of it that waits,
        and the number of waiting tasks.
    free (S, A): free fraction of each agent, of its fullest resource.
    """

    names: tuple[str, ...]
    users: tuple[tuple[str, str], ...]
    there: Bools
    size: Floats
    wants: Floats
    waits: Floats
    count: Floats
    free: Floats

    @staticmethod
    def at(day: Day, table: TaskTable, at_ms: Floats) -> "_Looked":
        size, came, left = agents_of(day)
        there = (came <= at_ms[:, None]) & (at_ms[:, None] < left)
        users = [table.rows(table.of == user) for user in range(len(table.who))]
        names = {framework: known.name for framework, known in day.frameworks.items()}
        return _Looked(
            names=tuple(agent.hostname for agent in day.agents.values()),
            users=tuple((names.get(framework, framework), role) for framework, role in table.who),
            there=there,
            size=size,
            wants=np.stack([amounts_at(t.need, t.wanted, t.end, at_ms) for t in users], 1),
            waits=np.stack([amounts_at(t.need, t.wanted, t.start, at_ms) for t in users], 1),
            count=np.stack([count_at(t.wanted, t.start, at_ms) for t in users], 1),
            free=_free(day, table, size, at_ms),
        )


def _free(day: Day, table: TaskTable, size: Floats, at_ms: Floats) -> Floats:
    """Free fraction of each agent, of its fullest resource, (S, A)."""
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


def _lowest(looked: _Looked, eligible: Bools, moment: int) -> Bottleneck | None:
    """The lowest cut at a moment that is a bottleneck, if any."""
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
        who = [looked.users[user] for user in users[mine].tolist()]
        frameworks, roles = (frozenset(each) for each in zip(*who, strict=True))
        of = len(looked.names)
        level = cut.level, float(following)
        return Bottleneck(names, of, frameworks, roles, waiting, *level, free)
    return None


def _machines(wants: Floats, may: Bools, size: Floats) -> Floats:
    """The number of its eligible agents that each user wants, by its largest resource, (U,)."""
    mean = may @ size / np.maximum(may.sum(axis=1, keepdims=True), 1)
    part = np.divide(wants, mean, out=np.zeros(wants.shape), where=mean > 0)
    return part.max(axis=1)

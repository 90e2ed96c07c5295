"""Constrained max-min fairness maintained while users join and leave, and machines come and go.

After each change, the decomposition starts from the previous optimum's flow and cuts, which usually
need little repair. The solution and its certificate are those of `max_min.solve`.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 4.2 and 7.4.
"""

from collections.abc import Iterator

import numpy as np

from allocator.core.numba.compiled import loop
from allocator.solvers.max_min.constraint_graph import (
    UNLIMITED,
    Bools,
    Floats,
    Graph,
    Ints,
    check,
    of_classes,
)
from allocator.solvers.max_min.cuts import MARGIN, Cut, Decomposition, merged
from allocator.solvers.max_min.max_min import (
    ClassSolution,
    MaxMinSolution,
    proved,
    solve_classes,
)

_GONE = -1


class OnlineMaxMin:
    """Solver that keeps the max-min fair shares of the current users, by number, up to date.

    `solution`: the current optimum, with a row per user in the order of `users`.

    Examples
    --------
    Figure 3 of [1]_; then user 1 leaves.

    >>> shares = OnlineMaxMin(np.array([[1, 1, 0], [0, 1, 1]], bool), np.array([2, 1, 7]))
    >>> shares.solution.machines.tolist()
    [3.0, 7.0]
    >>> shares.leave(0)
    >>> shares.solution.machines.tolist()
    [8.0]
    """

    def __init__(
        self,
        eligible: Bools,
        count: Ints,
        weight: Floats | None = None,
        limit: Floats | Ints | None = None,
    ) -> None:
        """Solve for the initial users, numbered from 0; arguments are as in `max_min.solve`."""
        eligible, count = np.asarray(eligible, np.bool_), np.asarray(count, np.int64)
        weight, limit = check(eligible, count, weight, limit)
        # Users of a class must agree even on types without machines, which may get machines later.
        keys = list(_keys(eligible, weight, limit))
        self._row_of = {key: row for row, key in enumerate(dict.fromkeys(keys))}
        self._class_of = np.array([self._row_of[key] for key in keys], np.int64)
        _, first = np.unique(self._class_of, return_index=True)
        self._eligible, self._weight, self._limit = eligible[first], weight[first], limit[first]
        self._size = np.bincount(self._class_of, minlength=len(first))
        self._count = count
        self.solution = MaxMinSolution(solve_classes(self._graph()))

    @property
    def users(self) -> Ints:
        return np.flatnonzero(self._class_of != _GONE)

    def join(self, eligible: Bools, weight: float = 1.0, limit: float = UNLIMITED) -> int:
        """Add a user and update the solution; return the user's number, the lowest free one.

        `eligible` (T,): whether the user can use machines of type t.
        `weight`, > 0; `limit`, >= 0.
        Raises ValueError as `max_min.solve`; then nothing has changed.
        """
        row = np.asarray(eligible, np.bool_)[None, :]
        check(row, self._count, np.array([weight]), np.array([limit]))
        key = next(_keys(row, np.array([weight], np.float64), np.array([limit], np.float64)))
        at = self._row_of.setdefault(key, len(self._size))
        if at == len(self._size):
            self._eligible = np.concatenate([self._eligible, row])
            self._weight = np.append(self._weight, float(weight))
            self._limit = np.append(self._limit, float(limit))
            self._size = np.append(self._size, 0)
        self._size[at] += 1
        free = np.flatnonzero(self._class_of == _GONE)
        user = int(free[0]) if len(free) else len(self._class_of)
        if not len(free):
            self._class_of = np.append(self._class_of, _GONE)
        self._class_of[user] = at
        self._solve()
        return user

    def leave(self, user: int) -> None:
        """Remove a user and update the solution. Raises KeyError if there is no such user."""
        if not 0 <= user < len(self._class_of) or self._class_of[user] == _GONE:
            raise KeyError(f"there is no user {user}")
        at = int(self._class_of[user])
        self._class_of[user] = _GONE
        self._size[at] -= 1
        if self._size[at]:
            self._solve()
            return
        # Without the last user of a class, remove its row; later rows move up.
        self._eligible = np.delete(self._eligible, at, axis=0)
        self._weight, self._limit = np.delete(self._weight, at), np.delete(self._limit, at)
        self._size = np.delete(self._size, at)
        self._class_of -= self._class_of > at
        self._row_of = {k: r - (r > at) for k, r in self._row_of.items() if r != at}
        self._solve(gone=at)

    def resize(self, count: Ints) -> None:
        """Set the number of machines of each type, (T,), and update the solution."""
        count = np.asarray(count, np.int64)
        check(self._eligible, count, self._weight, self._limit)
        self._count = count
        self._solve()

    def _graph(self) -> Graph:
        class_of_user = self._class_of[self._class_of != _GONE]
        sizes = self._size.copy(), self._weight, self._limit
        return of_classes(self._eligible, self._count, *sizes, class_of_user)

    def _solve(self, gone: int | None = None) -> None:
        """Solve from the previous optimum; `gone`: the previous row of a class that was removed."""
        graph, before = self._graph(), self.solution.classes
        cuts = before.cuts if gone is None else tuple(_without(cut, gone) for cut in before.cuts)
        flow = _same_groups(before, graph, gone)
        if flow is None:
            flow = _other_groups(before, graph, gone)
        work = Decomposition(graph)
        self.solution = MaxMinSolution(proved(work, _mended(work, flow, cuts)))


def _same_groups(before: ClassSolution, graph: Graph, gone: int | None) -> Floats | None:
    """Convert the previous flow to the edges of the current graph; None if groups have changed.

    The row `gone` of a class may have been removed; a new class has no flow.
    """
    if not np.array_equal(before.graph.group_of_type, graph.group_of_type):
        return None
    start = before.edges.start
    if gone is not None:
        return np.delete(before.flow, np.s_[start[gone] : start[gone + 1]])
    more = int(graph.eligible[len(before.graph.size) :].sum())
    return np.concatenate([before.flow, np.zeros(more)])


def _other_groups(before: ClassSolution, graph: Graph, gone: int | None) -> Floats:
    """Convert the previous flow to the edges of the current graph if groups have changed.

    The flow of a previous group is divided among its types in proportion to their machines; then
    the types of each current group are summed.
    """
    was, is_now = before.graph.group_of_type, graph.group_of_type
    held = before.given if gone is None else np.delete(before.given, gone, axis=0)
    kept = np.flatnonzero((was >= 0) & (is_now >= 0))
    part = before.graph.type_count[kept] / before.graph.count[was[kept]]
    given = np.zeros(graph.eligible.shape)
    for kind, of_group in zip(kept.tolist(), part.tolist(), strict=True):
        given[: len(held), is_now[kind]] += held[:, was[kind]] * of_group
    return given[graph.eligible]


def _keys(eligible: Bools, weight: Floats, limit: Floats) -> Iterator[tuple[bytes, float, float]]:
    """Yield a key for each user; users with equal keys belong to the same class."""
    rows = np.packbits(eligible, axis=1)
    for row, heavy, most in zip(rows, weight.tolist(), limit.tolist(), strict=True):
        yield row.tobytes(), heavy, most


def _without(cut: Cut, row: int) -> Cut:
    """Remove a class from a cut; the numbers of later classes decrease by 1."""
    classes = cut.classes[cut.classes != row]
    return Cut(cut.level, classes - (classes > row), cut.groups)


def _mended(work: Decomposition, flow: Floats, cuts: tuple[Cut, ...]) -> list[Cut]:
    """Solve the graph starting from the optimum of a similar graph; return its cuts.

    `flow` (E,), `cuts`: that optimum, in edges and rows of this graph.
    """
    # A part has the groups that the classes of its cut can use and the classes of lower cuts
    # cannot.
    before = np.full(len(work.graph.size), len(cuts))
    for number, cut in enumerate(cuts):
        before[cut.classes] = number
    edges, flows = work.edges, (work.flow, work.load)
    of_class, of_group = _parts(
        edges.start, edges.group, before, flow, work.room, work.unit, *flows
    )
    solved: list[Cut] = []
    for number in range(len(cuts) + 1):
        rows, columns = np.flatnonzero(of_class == number), np.flatnonzero(of_group == number)
        found = work.decompose(rows, columns)
        # Levels must ascend: solve this part together with a predecessor of a higher level.
        while found and solved and found[0].level <= solved[-1].level:
            last = solved.pop()
            rows = np.concatenate([last.classes, *(cut.classes for cut in found)])
            columns = np.concatenate([last.groups, *(cut.groups for cut in found)])
            found = work.decompose(rows, columns)
        solved += found
    return merged(solved)


@loop
def _parts(
    start: Ints,
    group: Ints,
    before: Ints,
    given: Floats,
    room: Ints,
    unit: int,
    flow: Ints,
    load: Ints,
) -> tuple[Ints, Ints]:
    """Divide the graph into parts by the previous optimum's cuts.

    A group belongs to the part with the number of the lowest cut whose classes can use it. A class
    belongs to the highest part that has a group it can use.

    `start` (C + 1,), `group` (E,): as in `Edges`.
    `before` (C,): the number of each class's previous cut.
    `given` (E,): the previous flow, in machines.
    `room` (G,): units of each group.
    `unit`: units per machine.
    `flow` (E,), `load` (G,): receive the previous flow within the parts, in units, scaled down
        where it exceeds the room; initially 0.
    Returns the part of each class, (C,), and of each group, (G,).
    """
    classes, groups = len(before), len(load)
    held = np.zeros(groups)
    of_class, of_group = np.full(classes, -1), np.full(groups, before.max() if classes else 0)
    for row in range(classes):
        for edge in range(start[row], start[row + 1]):
            of_group[group[edge]] = min(of_group[group[edge]], before[row])
            held[group[edge]] += given[edge]
    for row in range(classes):
        for edge in range(start[row], start[row + 1]):
            of_class[row] = max(of_class[row], of_group[group[edge]])
        for edge in range(start[row], start[row + 1]):
            g = group[edge]
            if of_group[g] == of_class[row] and given[edge] > 0:
                fits = min(1.0, room[g] / unit / held[g]) * (1 - MARGIN)
                flow[edge] = int(given[edge] * fits * unit)
                load[g] += flow[edge]
    return of_class, of_group

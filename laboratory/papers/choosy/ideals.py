"""Choosy and the ideal schedulers that it is compared with, on machines of several types.

Every machine runs one task. Users have tasks, and can use some types. When machines become free or
a user arrives, one of these decides:

- ``choosy``: each free machine goes to the user with the fewest machines among those that can use
  it and have waiting tasks;
- ``restricted``: the best allocation vector without touching running tasks, over all machines that
  are free at that moment;
- ``migration``: as ``restricted``, and tasks may move to other machines at no cost;
- ``preemption``: as ``migration``, and tasks may be paused at no cost;
- ``periodic``: an optimal allocation is planned when a user arrives or leaves, and free machines go
  to users whose plan has more of their type.

Vectors are compared in ascending order, the smallest entry first. All ideals follow augmenting
paths: a user gets one more machine as others exchange theirs. At the end no such path is left that
helps the poorest, so the vector is optimal.

Source: sections 6, 7.1 and 7.2 of the paper.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from allocator.core import Ints
from allocator.solvers.max_min import whole as max_min_whole

# Users of the simulations, and the record of a run.


@dataclass(slots=True, eq=False)
class IdealTask:
    """A running task. `due`: the time of its end; NaN after it was paused or cancelled."""

    user: "User"
    type: int
    due: float


@dataclass(slots=True, eq=False)
class User:
    """A user of machines.

    types: those that it can use.
    waiting: durations of the tasks that have not started; perhaps endless.
    left: their number; a very large number stands for endless ones.
    paused: remaining times of paused tasks.
    running: by type, in the order of their starts.
    held: number of machines.
    can, on: bit sets of the types that it can use, and on which it runs something.
    """

    name: int
    types: tuple[int, ...]
    waiting: Iterator[float]
    left: int
    running: list[dict[IdealTask, None]]
    came: float = 0.0
    gone: float | None = None
    held: int = 0
    paused: list[float] = field(default_factory=list)
    can: int = 0
    on: int = 0

    @property
    def wants(self) -> bool:
        return bool(self.paused) or self.left > 0


@dataclass(frozen=True, slots=True)
class Coming:
    """A user that will arrive.

    count: of the durations.
    leaves: when it releases everything.
    """

    at: float
    types: tuple[int, ...]
    durations: Iterable[float]
    count: int
    leaves: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The record of a run.

    stay (U,): from arrival to departure of each user; NaN: it was present at the end.
    held (S, U): machines of each user at each sampled moment.
    there (S, U)
    """

    stay: NDArray[np.float64]
    held: Ints
    there: NDArray[np.bool_]


SCHEDULERS = ("choosy", "restricted", "migration", "preemption", "periodic")


class Machines:
    """Types of machines, users, and a scheduler."""

    def __init__(self, count: Sequence[int], scheduler: str, seed: int) -> None:
        self.idle = list(count)
        self._count = np.array(count, np.int64)
        self._scheduler = scheduler
        self._rng = np.random.default_rng(seed)
        self._users: list[User] = []
        self._events: list[tuple[float, int, IdealTask]] = []
        self._number = 0
        self._now = 0.0
        self._plan: dict[User, Ints] = {}

    def play(
        self, coming: Sequence[Coming], moments: Sequence[float], until: float = np.inf
    ) -> History:
        """Let users arrive, run and leave; sample their machines at some moments, ascending."""
        users = [self._make(number, each) for number, each in enumerate(coming)]
        agenda = sorted(
            [(each.at, n, True) for n, each in enumerate(coming)]
            + [(each.leaves, n, False) for n, each in enumerate(coming) if each.leaves is not None]
        )
        agenda.reverse()
        held = np.zeros((len(moments), len(users)), np.int64)
        there = np.zeros((len(moments), len(users)), np.bool_)
        looked = 0
        while agenda or self._events:
            task_at = self._events[0][0] if self._events else np.inf
            now = min(task_at, agenda[-1][0] if agenda else np.inf, until)
            while looked < len(moments) and moments[looked] < now:
                held[looked] = [user.held for user in users]
                there[looked] = [user in self._users for user in users]
                looked += 1
            if now >= until:
                break
            self._now = now
            if agenda and agenda[-1][0] <= now:
                # Arrivals and departures at one moment are handled together.
                while agenda and agenda[-1][0] <= now:
                    _, number, comes = agenda.pop()
                    self._come(users[number]) if comes else self._cancel(users[number])
                self._schedule()
            else:
                self._end(heapq.heappop(self._events)[2])
        stay = [np.nan if user.gone is None else user.gone - user.came for user in users]
        return History(np.array(stay), held, there)

    def _make(self, number: int, coming: Coming) -> User:
        running: list[dict[IdealTask, None]] = [{} for _ in self.idle]
        can = sum(1 << kind for kind in coming.types)
        return User(number, coming.types, iter(coming.durations), coming.count, running, can=can)

    # Events.

    def _come(self, user: User) -> None:
        user.came = self._now
        self._users.append(user)
        self._replan()

    def _cancel(self, user: User) -> None:
        if user not in self._users:
            return
        for tasks in user.running:
            for task in tasks:
                self.idle[task.type] += 1
                task.due = np.nan
            tasks.clear()
        user.held = user.on = 0
        self._go(user)

    def _end(self, task: IdealTask) -> None:
        if not task.due <= self._now:
            return
        user = task.user
        self._off(user, task)
        user.held -= 1
        self.idle[task.type] += 1
        if not user.held and not user.wants:
            self._go(user)
        self._schedule()

    def _go(self, user: User) -> None:
        user.gone = self._now
        self._users.remove(user)
        self._plan.pop(user, None)
        self._replan()

    # Scheduling.

    def _schedule(self) -> None:
        match self._scheduler:
            case "choosy":
                self._greedy(lambda user, _type: user.held)
            case "periodic":
                self._greedy(self._behind_plan)
            case "restricted":
                self._augment(movable=set())
            case "migration":
                self._augment(movable=None)
            case "preemption":
                self._augment(movable=None)
                self._take_from_the_rich()

    def _greedy(self, score: Callable[[User, int], float]) -> None:
        """Give each idle machine, in random order, to the user with the lowest score."""
        wanting = [user for user in self._users if user.wants]
        usable = {kind for user in wanting for kind in user.types if self.idle[kind]}
        free = [kind for kind in sorted(usable) for _ in range(self.idle[kind])]
        if len(free) > 1:
            self._rng.shuffle(free)
        full: set[int] = set()
        for kind in free:
            if not wanting:
                return
            if kind in full:
                continue
            able = [user for user in wanting if kind in user.types]
            if not able:
                full.add(kind)
                continue
            user = min(able, key=lambda each: score(each, kind))
            self._begin(user, kind)
            if not user.wants:
                wanting.remove(user)

    def _behind_plan(self, user: User, kind: int) -> float:
        """Score: below zero if the plan has more of the type for the user, else Choosy's."""
        planned = self._plan[user][kind] if user in self._plan else 0
        behind = len(user.running[kind]) < planned
        return user.held - (10**9 if behind else 0)

    def _replan(self) -> None:
        if self._scheduler != "periodic" or not self._users:
            return
        eligible = np.zeros((len(self._users), len(self._count)), np.bool_)
        for row, user in enumerate(self._users):
            eligible[row, list(user.types)] = True
        found = max_min_whole.solve(eligible, self._count).given
        self._plan = {user: found[row] for row, user in enumerate(self._users)}

    def _augment(self, movable: set[IdealTask] | None) -> None:
        """Give idle machines to the poorest users that can get one more, if necessary by exchange.

        `movable` are the tasks that may change machines: those started in this round, or all if it
        is None.
        """
        while True:
            idle = sum(1 << kind for kind, count in enumerate(self.idle) if count)
            within = self._leading_to(idle, movable)
            wanting = [user for user in self._users if user.can & within and user.wants]
            if not wanting:
                return
            user = min(wanting, key=lambda each: each.held)
            path = self._path(user, movable, ends_at=None)
            assert path is not None
            task = self._follow(user, path, movable)
            if movable is not None:
                movable.add(task)

    def _leading_to(self, types: int, movable: set[IdealTask] | None) -> int:
        """Types on which moves that end on one of these types can make room, as bits."""
        if movable is None:
            moves = [(user.on, user.can) for user in self._users]
        else:
            moves = [(1 << task.type, task.user.can) for task in movable]
        again = True
        while again:
            again = False
            for on, can in moves:
                if can & types and on & ~types:
                    types |= on
                    again = True
        return types

    def _take_from_the_rich(self) -> None:
        """Pause tasks of users with at least two machines more than a user who could use them."""
        while (poor := self._who_may_take()) is not None:
            path = self._path(poor, None, ends_at=poor.held + 2)
            assert path is not None
            self._follow(poor, path, None)

    def _who_may_take(self) -> User | None:
        """The poorest user who can get a machine from one with two more."""
        for user in sorted(self._users, key=lambda each: each.held):
            if not user.wants:
                continue
            rich = 0
            for other in self._users:
                if other.held >= user.held + 2:
                    rich |= other.on
            if rich and user.can & self._leading_to(rich, None):
                return user
        return None

    def _path(
        self, user: User, movable: set[IdealTask] | None, ends_at: int | None
    ) -> list[tuple[int, User | None]] | None:
        """Find the shortest path by which the user gets one more machine.

        Each step is a type and the user whose task leaves it. The last one is idle (None), or, if
        `ends_at` is given, of a user with at least that many machines, who loses it.
        """
        before: dict[int, tuple[int, User] | None] = dict.fromkeys(user.types)
        queue = list(user.types)
        for kind in queue:
            if self.idle[kind] and ends_at is None:
                return self._back(before, kind, None)
            for other in self._users:
                tasks = other.running[kind]
                if not tasks:
                    continue
                if ends_at is not None and other.held >= ends_at:
                    return self._back(before, kind, other)
                if movable is not None and movable.isdisjoint(tasks):
                    continue
                for following in other.types:
                    if following not in before:
                        before[following] = kind, other
                        queue.append(following)
        return None

    def _back(
        self, before: dict[int, tuple[int, User] | None], kind: int, last: User | None
    ) -> list[tuple[int, User | None]]:
        path: list[tuple[int, User | None]] = [(kind, last)]
        while (step := before[kind]) is not None:
            kind, mover = step
            path.append((kind, mover))
        return path[::-1]

    def _follow(
        self, user: User, path: list[tuple[int, User | None]], movable: set[IdealTask] | None
    ) -> IdealTask:
        """Make room at the beginning of the path, from its end on; then start a task there."""
        kind, loser = path[-1]
        if loser is not None:
            self._pause(loser, kind)
        for (kind, mover), (following, _) in zip(path[-2::-1], path[:0:-1], strict=True):
            assert mover is not None
            tasks = mover.running[kind]
            task = next(each for each in tasks if movable is None or each in movable)
            self._off(mover, task)
            task.type = following
            self._on(mover, task)
            self.idle[following] -= 1
            self.idle[kind] += 1
        return self._begin(user, path[0][0])

    def _begin(self, user: User, kind: int) -> IdealTask:
        if user.paused:
            duration = user.paused.pop()
        else:
            duration = next(user.waiting)
            user.left -= 1
        task = IdealTask(user, kind, self._now + duration)
        self._on(user, task)
        user.held += 1
        self.idle[kind] -= 1
        self._number += 1
        heapq.heappush(self._events, (task.due, self._number, task))
        return task

    def _pause(self, user: User, kind: int) -> None:
        task = next(reversed(user.running[kind]))
        self._off(user, task)
        user.paused.append(task.due - self._now)
        task.due = np.nan
        user.held -= 1
        self.idle[kind] += 1

    @staticmethod
    def _on(user: User, task: IdealTask) -> None:
        user.running[task.type][task] = None
        user.on |= 1 << task.type

    @staticmethod
    def _off(user: User, task: IdealTask) -> None:
        del user.running[task.type][task]
        if not user.running[task.type]:
            user.on &= ~(1 << task.type)

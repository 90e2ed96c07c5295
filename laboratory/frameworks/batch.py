"""Batch jobs as frameworks: tasks of several sizes, gangs, whole offers, and cancellation."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count, islice, permutations, repeat
from typing import NamedTuple

from laboratory.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Identity,
    Master,
    Offer,
    Quantities,
    Task,
    fit,
)
from laboratory.resources import Amount, minus


@dataclass(frozen=True, slots=True)
class Work:
    """Tasks of one size.

    need: thousandths
    durations_ms: one for each task, in launch order.
    """

    need: Quantities
    durations_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task to run.

    need: thousandths
    """

    need: Quantities
    wanted_ms: int
    lasts_ms: int


@dataclass(frozen=True, slots=True)
class Manner:
    """How a job handles its offers.

    gang: launch this many tasks together or not at all, including after tasks were lost; of several
        sizes, as many of each as its part of all tasks.
    requests_gang: state the tasks of a gang by a REQUEST call.
    holds_ms: how long to hold offers while a gang is incomplete.
    greedy: take offers whole, run as many tasks in each as fit, and return it when no task is left
        to run there.
    refuse_ms: filter on unused resources.
    cancelled_after_ms: leave at this age, even if tasks run.
    """

    gang: int = 1
    requests_gang: bool = False
    holds_ms: int = 30_000
    greedy: bool = False
    refuse_ms: int = REFUSE_DEFAULT_MS
    cancelled_after_ms: int | None = None


class StageRun(NamedTuple):
    """A running task of the job; tasks are numbered in the order in which they were wanted."""

    number: int
    task: Wanted
    begun_ms: int


@dataclass(slots=True, eq=False)
class Place:
    """A Mesos task, in which one task of the job runs, or several if offers are taken whole.

    size: the need of each task of the job that runs in it.
    lanes: number of tasks of the job that it started with.
    """

    size: Amount
    lanes: int
    running: list[StageRun]


Launch = tuple[Amount, Amount, int]
"""A Mesos task to launch: need of each task of the job in it, total amount, most tasks in it."""


ORDERS_MAX = 120
"""Orders of sizes in which the tasks of a gang are tried to be placed."""


def _placed(offers: Sequence[Offer], wanted: list[tuple[Amount, int]]) -> list[list[Launch]] | None:
    """Place tasks by first fit: what to launch in each offer; None: they do not fit so."""
    launches: list[list[Launch]] = [[] for _ in offers]
    left = [offer.amount for offer in offers]
    for size, number in wanted:
        missing = number
        for at, amount in enumerate(left):
            some = min(fit(amount, size), missing)
            launches[at] += [(size, size, 1)] * some
            left[at] = minus(amount, tuple(some * each for each in size))
            missing -= some
        if missing:
            return None
    return launches


class BatchJob:
    """A job that leaves after its last task, or when it is cancelled.

    It suppresses offers while no task waits. Tasks lost with their agent run again.

    left: called once when the framework has left, with True if it was cancelled.
    started: called once when the first task starts.
    """

    def __init__(
        self,
        identity: Identity,
        work: Sequence[Work],
        manner: Manner,
        left: Callable[[bool], None] = lambda _cancelled: None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self.manner = manner
        self.work = work
        self._left = left
        self._started: Callable[[], None] | None = started
        # Numbered tasks by size, in order.
        self._waiting: dict[Amount, deque[tuple[int, Wanted]]] = {}
        self._number = count()
        self._unfinished = sum(len(each.durations_ms) for each in work)
        self.running: dict[Task, Place] = {}
        self._held: list[Offer] = []
        self._gone = False

    @property
    def waits(self) -> bool:
        """Whether tasks wait to be launched."""
        return bool(self._waiting)

    def subscribed(self, master: Master) -> None:
        """Remember the master, and schedule the cancellation."""
        self._master = master
        for each in self.work:
            tasks = map(Wanted, repeat(each.need), repeat(0), each.durations_ms)
            numbered = deque(zip(self._number, tasks, strict=False))
            self._waiting.setdefault(master.amount(each.need), deque()).extend(numbered)
        of_gang = self._of_gang()
        self._together = {master.amount(each.need): number for each, number in of_gang}
        if self.manner.requests_gang:
            master.request(self, *(each.need for each, number in of_gang for _ in range(number)))
        after_ms = self.manner.cancelled_after_ms
        if after_ms is not None:
            master.event_heap.after(after_ms, partial(self._leave, cancelled=True))

    def _of_gang(self) -> list[tuple[Work, int]]:
        """List how many tasks of each size a gang has."""
        total = sum(len(each.durations_ms) for each in self.work)
        return [(each, len(each.durations_ms) * self.manner.gang // total) for each in self.work]

    def offered(self, offers: list[Offer]) -> None:
        """Launch waiting tasks that fit; decline the rest, or hold it for a gang."""
        if self.manner.gang > 1 and self.waits:
            self._hold(offers)
        else:
            self._take(offers)
        if not self.waits and not self._gone:
            self._master.suppress(self)

    def lost(self, tasks: list[Task]) -> None:
        """Queue them again, to run from the beginning."""
        had_none = not self.waits
        for task in tasks:
            place = self.running.pop(task)
            queue = self._waiting.setdefault(place.size, deque())
            queue.extendleft(run[:2] for run in place.running)
        if had_none and self.waits:
            self._master.revive(self)

    # Single tasks.

    def _take(self, offers: list[Offer]) -> None:
        useless = []
        for offer in offers:
            launches = self._whole(offer) if self.manner.greedy else self._fitting(offer)
            if launches:
                self._launch(offer, launches)
            else:
                useless.append(offer)
        if useless:
            self._master.decline(useless, self.manner.refuse_ms)

    def _fitting(self, offer: Offer) -> list[Launch]:
        """Each task that fits, in the order in which they were wanted."""
        free, launches = offer.amount, []
        taken = dict.fromkeys(self._waiting, 0)
        # Tasks of one size share a queue: if one does not fit, none of them does.
        fronts = [(queue[0][0], size) for size, queue in self._waiting.items()]
        heapify(fronts)
        while fronts:
            size = heappop(fronts)[1]
            if not fit(free, size):
                continue
            free = minus(free, size)
            launches.append((size, size, 1))
            taken[size] += 1
            if taken[size] < len(self._waiting[size]):
                heappush(fronts, (self._waiting[size][taken[size]][0], size))
        return launches

    def _whole(self, offer: Offer) -> list[Launch]:
        """The whole offer, for as many tasks as fit of the first size that fits."""
        sizes = sorted(self._waiting, key=lambda size: self._waiting[size][0][0])
        fitting = ((size, fit(offer.amount, size)) for size in sizes)
        return [(size, offer.amount, lanes) for size, lanes in fitting if lanes][:1]

    # Gangs.

    def _hold(self, offers: list[Offer]) -> None:
        """Hold the offers, and launch complete gangs."""
        self._held = [offer for offer in self._held if offer.live] + offers
        while self._waiting and self._begin_gang():
            pass
        if not self._waiting:
            self._give_up(self._held)
        elif offers:
            after_ms = self.manner.holds_ms
            self._master.event_heap.after(after_ms, partial(self._give_up, offers))

    def _begin_gang(self) -> bool:
        wanted = {
            size: len(queue) % self._together[size] or self._together[size]
            for size, queue in self._waiting.items()
        }
        for sizes in islice(permutations(wanted), ORDERS_MAX):
            placed = _placed(self._held, [(size, wanted[size]) for size in sizes])
            if placed is not None:
                break
        else:
            return False
        kept = []
        for offer, launches in zip(self._held, placed, strict=True):
            if launches:
                self._launch(offer, launches)
            else:
                kept.append(offer)
        self._held = kept
        return True

    def _give_up(self, offers: list[Offer]) -> None:
        """Decline offers that were held long enough."""
        over = [offer for offer in offers if offer.live and offer in self._held]
        if over and not self._gone:
            self._held = [offer for offer in self._held if offer not in over]
            self._master.decline(over, self.manner.refuse_ms)

    # Running tasks.

    def _launch(self, offer: Offer, launches: Sequence[Launch]) -> None:
        amounts = [amount for _, amount, _ in launches]
        tasks = self._master.accept(offer, amounts, self.manner.refuse_ms)
        if self._started is not None:
            self._started()
            self._started = None
        for task, (size, _, lanes) in zip(tasks, launches, strict=True):
            several = min(lanes, len(self._waiting[size]))
            self.running[task] = place = Place(size, several, [])
            for _ in range(several):
                self._begin(task, place)

    def _begin(self, task: Task, place: Place) -> None:
        """Start the next waiting task of the size that the place runs."""
        queue, heap = self._waiting[place.size], self._master.event_heap
        run = StageRun(*queue.popleft(), heap.now_ms)
        if not queue:
            del self._waiting[place.size]
        place.running.append(run)
        heap.after(run.task.lasts_ms, partial(self._finish, task, run))

    def _finish(self, task: Task, run: StageRun) -> None:
        if not task.live:
            return
        place = self.running[task]
        place.running.remove(run)
        self._unfinished -= 1
        self._finished(task, place, run)
        if self.manner.greedy and place.size in self._waiting:
            self._begin(task, place)
        if place.running:
            return
        del self.running[task]
        self._master.end(task)
        if not self._unfinished:
            self._leave(cancelled=False)

    def _finished(self, task: Task, place: Place, run: StageRun) -> None:
        """Hook: a task of the job, part of a Mesos task, has ended."""

    def _leave(self, *, cancelled: bool) -> None:
        if not self._gone:
            self._gone = True
            self._master.unsubscribe(self)
            self._left(cancelled)


class TaskQueue(BatchJob):
    """A job of equal tasks, each a Mesos task of its own. It leaves an agent when asked to.

    need: thousandths
    durations_ms: one for each task, in launch order.
    refuse_ms: filter on unused resources.
    left: called once when the framework has left.
    """

    def __init__(
        self,
        identity: Identity,
        need: Quantities,
        durations_ms: Sequence[int],
        refuse_ms: int = REFUSE_DEFAULT_MS,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self.need = need
        work = [Work(need, tuple(durations_ms))]
        super().__init__(identity, work, Manner(refuse_ms=refuse_ms), lambda _cancelled: left())

    def asked_to_leave(self, agent: int) -> None:
        """Kill its tasks there, and queue them again."""
        self._master.answer_inverse_offer(self, agent, accept=True, refuse_ms=0)
        tasks = [task for task in self.running if task.agent == agent]
        for task in tasks:
            self._master.end(task)
        if tasks:
            self.lost(tasks)


class RecordedFramework(BatchJob):
    """A framework that repeats recorded tasks in one role, each at its time.

    A task lost with its agent is queued again, behind the others.

    ran: called with each task that ended, what it held, and when it started.
    left: called once when the framework has left.
    refuse_ms: filter on unused resources.
    gang: number of tasks that start together; fewer, if fewer are wanted.
    keeps_whole: take offers whole if a task fits, until no task is left to run there; all tasks
        then have one size.
    """

    def __init__(
        self,
        identity: Identity,
        tasks: Sequence[Wanted],
        ran: Callable[[Wanted, Quantities, int], None],
        left: Callable[[], None],
        *,
        refuse_ms: int = REFUSE_DEFAULT_MS,
        gang: int = 1,
        keeps_whole: bool = False,
    ) -> None:
        manner = Manner(gang=gang, greedy=keeps_whole, refuse_ms=refuse_ms)
        super().__init__(identity, (), manner, lambda _cancelled: left())
        self._tasks = tasks
        self._ran = ran
        self._unfinished = len(tasks)

    def unended(self) -> list[tuple[Wanted, int]]:
        """List waiting and running tasks with their start times; -1: not started."""
        waiting = [(task, -1) for queue in self._waiting.values() for _, task in queue]
        return waiting + [run[1:] for place in self.running.values() for run in place.running]

    def subscribed(self, master: Master) -> None:
        """Remember the master, and schedule when each task is wanted."""
        super().subscribed(master)
        gang = self.manner.gang
        self._together = {master.amount(task.need): gang for task in self._tasks}
        now_ms = master.event_heap.now_ms
        for task in self._tasks:
            master.event_heap.at(max(task.wanted_ms, now_ms), partial(self._want, task))

    def lost(self, tasks: list[Task]) -> None:
        """Queue lost tasks again, to run from the beginning."""
        for begun in tasks:
            for run in self.running.pop(begun).running:
                self._want(run.task)

    def _want(self, task: Wanted) -> None:
        had_none = not self.waits
        queue = self._waiting.setdefault(self._master.amount(task.need), deque())
        queue.append((next(self._number), task))
        if had_none:
            self._master.revive(self)

    def _finished(self, task: Task, place: Place, run: StageRun) -> None:
        """Report what it held: an equal part of an offer taken whole."""
        held = run.task.need
        if self.manner.greedy:
            whole = self._master.resources_of(task.amount)
            held = {each.name: amount // place.lanes for each, amount in whole.items()}
        self._ran(run.task, held, run.begun_ms)

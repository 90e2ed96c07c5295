"""A job as a framework: tasks of several sizes, gangs, whole offers, and an end by cancellation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from allocator.lab.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Identity,
    Master,
    Offer,
    Quantities,
    Task,
    fit,
)
from allocator.lab.master.resources import Amount, minus


@dataclass(frozen=True, slots=True)
class Work:
    """Tasks of one size.

    need: thousandths
    durations_ms: one for each task, in the order in which they are launched.
    """

    need: Quantities
    durations_ms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a job deals with its offers.

    gang: so many tasks begin together or not at all.
    holds_ms: how long offers are kept while a gang is not complete.
    greedy: it keeps the whole of each offer that it takes, runs as many tasks in it as fit, and
        gives it back when it has nothing left to run there.
    refuse_ms: filter on what it cannot use.
    cancelled_after_ms: it leaves so long after it came, whatever runs.
    """

    gang: int = 1
    holds_ms: int = 30_000
    greedy: bool = False
    refuse_ms: int = REFUSE_DEFAULT_MS
    cancelled_after_ms: int | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    """What waits of one size."""

    amount: Amount
    durations_ms: list[int]


@dataclass(slots=True, eq=False)
class _Place:
    """A task of Mesos: it runs one task of the job, or, where whole offers are kept, several."""

    work: _Waiting
    running: dict[int, int] = field(default_factory=dict)


class BatchJob:
    """A job that leaves after its last task, or when it is cancelled.

    It suppresses offers while nothing waits. Tasks that are lost with their agent run again.

    left: called once when the framework has left; with whether it was cancelled.
    started: called once when its first task begins.
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
        self._work = work
        self._left = left
        self._started: Callable[[], None] | None = started
        self._waiting: list[_Waiting] = []
        self.running: dict[Task, _Place] = {}
        self._held: list[Offer] = []
        self._ticket = 0
        self._gone = False

    @property
    def waiting(self) -> int:
        """Tasks that have not begun."""
        return sum(len(each.durations_ms) for each in self._waiting)

    def subscribed(self, master: Master) -> None:
        """Remember the master, and plan the cancellation."""
        self._master = master
        self._waiting = [
            _Waiting(master.amount(each.need), list(reversed(each.durations_ms)))
            for each in self._work
        ]
        after_ms = self.manner.cancelled_after_ms
        if after_ms is not None:
            master.event_heap.after(after_ms, partial(self._leave, cancelled=True))

    def offered(self, offers: list[Offer]) -> None:
        """Launch what fits and waits; decline the rest, or hold it for a gang."""
        if self.manner.gang > 1 and self.waiting:
            self._hold(offers)
        else:
            self._take(offers)
        if not self.waiting and not self._gone:
            self._master.suppress(self)

    def lost(self, tasks: list[Task]) -> None:
        """Run them again, from their beginning."""
        had_none = not self.waiting
        for task in tasks:
            place = self.running.pop(task)
            place.work.durations_ms += place.running.values()
        if had_none and self.waiting:
            self._master.revive(self)

    # Tasks one by one.

    def _take(self, offers: list[Offer]) -> None:
        useless = []
        for offer in offers:
            launches = self._whole(offer) if self.manner.greedy else self._fitting(offer)
            if not launches:
                useless.append(offer)
                continue
            self._launch(offer, launches)
        if useless:
            self._master.decline(useless, self.manner.refuse_ms)

    def _fitting(self, offer: Offer) -> list[tuple[_Waiting, Amount, int]]:
        """Each task that fits, as its size, what it takes, and how many run in it."""
        free, launches = offer.amount, []
        for work in self._waiting:
            count = min(fit(free, work.amount), len(work.durations_ms))
            for _ in range(count):
                free = minus(free, work.amount)
            launches += [(work, work.amount, 1)] * count
        return launches

    def _whole(self, offer: Offer) -> list[tuple[_Waiting, Amount, int]]:
        """The whole offer, for as many tasks of the first size as fit."""
        for work in self._waiting:
            lanes = fit(offer.amount, work.amount)
            if lanes and work.durations_ms:
                return [(work, offer.amount, lanes)]
        return []

    # Gangs.

    def _hold(self, offers: list[Offer]) -> None:
        """Keep the offers, and launch the gangs that are complete."""
        self._held = [offer for offer in self._held if offer.live] + offers
        (work,) = self._waiting
        while len(work.durations_ms) >= self.manner.gang and self._begin_gang(work):
            pass
        if not work.durations_ms:
            self._give_up(self._held)
        elif offers:
            after_ms = self.manner.holds_ms
            self._master.event_heap.after(after_ms, partial(self._give_up, offers))

    def _begin_gang(self, work: _Waiting) -> bool:
        room = [fit(offer.amount, work.amount) for offer in self._held]
        if sum(room) < self.manner.gang:
            return False
        left, kept = self.manner.gang, []
        for offer, count in zip(self._held, room, strict=True):
            launched = min(count, left)
            left -= launched
            if launched:
                self._launch(offer, [(work, work.amount, 1)] * launched)
            else:
                kept.append(offer)
        self._held = kept
        return True

    def _give_up(self, offers: list[Offer]) -> None:
        """Decline offers that were kept long enough."""
        over = [offer for offer in offers if offer.live and offer in self._held]
        if over and not self._gone:
            self._held = [offer for offer in self._held if offer not in over]
            self._master.decline(over, self.manner.refuse_ms)

    # How tasks run.

    def _launch(self, offer: Offer, launches: list[tuple[_Waiting, Amount, int]]) -> None:
        amounts = [amount for _, amount, _ in launches]
        tasks = self._master.accept(offer, amounts, self.manner.refuse_ms)
        if self._started is not None:
            self._started()
            self._started = None
        for task, (work, _, lanes) in zip(tasks, launches, strict=True):
            self.running[task] = place = _Place(work)
            for _ in range(min(lanes, len(work.durations_ms))):
                self._begin(task, place)

    def _begin(self, task: Task, place: _Place) -> None:
        duration_ms = place.work.durations_ms.pop()
        self._ticket += 1
        place.running[self._ticket] = duration_ms
        self._master.event_heap.after(duration_ms, partial(self._finish, task, self._ticket))

    def _finish(self, task: Task, ticket: int) -> None:
        if not task.live:
            return
        place = self.running[task]
        del place.running[ticket]
        if self.manner.greedy and place.work.durations_ms:
            self._begin(task, place)
            return
        if place.running:
            return
        del self.running[task]
        self._master.end(task)
        if not self.running and not self.waiting:
            self._leave(cancelled=False)

    def _leave(self, *, cancelled: bool) -> None:
        if not self._gone:
            self._gone = True
            self._master.unsubscribe(self)
            self._left(cancelled)


class TaskQueue(BatchJob):
    """So many equal tasks, each of which gives back what it used. Asked to leave an agent it does.

    need: thousandths
    durations_ms: one for each task, in the order in which they are launched.
    refuse_ms: filter on what it cannot use.
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
        """Kill what runs there, to be run again elsewhere."""
        self._master.answer_inverse_offer(self, agent, accept=True, refuse_ms=0)
        tasks = [task for task in self.running if task.agent == agent]
        for task in tasks:
            self._master.end(task)
        if tasks:
            self.lost(tasks)

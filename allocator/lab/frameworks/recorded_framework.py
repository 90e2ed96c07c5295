"""A framework that wants again what it ran before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from allocator.lab.master.ledger_rows import Amount, minus


@dataclass(frozen=True, slots=True)
class Wanted:
    """A task to run.

    need: thousandths
    """

    need: Quantities
    wanted_ms: int
    lasts_ms: int


class RecordedFramework:
    """Launches each of its tasks on the first offer that holds it, once it is wanted.

    It suppresses offers while nothing waits, and leaves after its last task. A task that is lost
    with its agent is run again.

    identity: with one role.
    ran: called with each task that ended, and when it had begun.
    left: called once when the framework has left.
    """

    def __init__(
        self,
        identity: Identity,
        tasks: Sequence[Wanted],
        ran: Callable[[Wanted, int], None],
        left: Callable[[], None],
    ) -> None:
        self.identity = identity
        self._tasks = tasks
        self._ran = ran
        self._left = left
        self._unfinished = len(tasks)
        self._waiting: list[tuple[Wanted, Amount]] = []
        self._running: dict[Task, tuple[Wanted, int]] = {}

    def subscribed(self, master: Master) -> None:
        """Remember the master, and plan when each task is wanted."""
        self._master = master
        now_ms = master.event_heap.now_ms
        for task in self._tasks:
            master.event_heap.at(max(task.wanted_ms, now_ms), partial(self._want, task))

    def offered(self, offers: list[Offer]) -> None:
        """Launch what fits, in the order in which it was wanted; decline the rest."""
        useless = []
        for offer in offers:
            launched = self._fill(offer)
            if not launched:
                useless.append(offer)
                continue
            amounts = [need for _, need in launched]
            begun = self._master.accept(offer, amounts, REFUSE_DEFAULT_MS)
            for task, (wanted, _) in zip(begun, launched, strict=True):
                self._start(task, wanted)
        if useless:
            self._master.decline(useless, REFUSE_DEFAULT_MS)
        if not self._waiting:
            self._master.suppress(self)

    def lost(self, tasks: list[Task]) -> None:
        """Run them again, from their beginning."""
        for task in tasks:
            self._want(self._running.pop(task)[0])

    def _want(self, task: Wanted) -> None:
        self._waiting.append((task, self._master.amount(task.need)))
        if len(self._waiting) == 1:
            self._master.revive(self)

    def _fill(self, offer: Offer) -> list[tuple[Wanted, Amount]]:
        """Take what fits into an offer out of those that wait."""
        free, launched, waiting = offer.amount, [], []
        for task in self._waiting:
            if fit(free, task[1]):
                launched.append(task)
                free = minus(free, task[1])
            else:
                waiting.append(task)
        self._waiting = waiting
        return launched

    def _start(self, task: Task, wanted: Wanted) -> None:
        now_ms = self._master.event_heap.now_ms
        self._running[task] = wanted, now_ms
        self._master.event_heap.after(wanted.lasts_ms, partial(self._finish, task))

    def _finish(self, task: Task) -> None:
        if not task.live:
            return
        wanted, begun_ms = self._running.pop(task)
        self._ran(wanted, begun_ms)
        self._unfinished -= 1
        self._master.end(task)
        if not self._unfinished:
            self._master.unsubscribe(self)
            self._left()

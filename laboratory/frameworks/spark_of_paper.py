"""Spark on Mesos in coarse-grained mode, as the experiment of Kesidis et al. needs it.

A simplification of `spark`: executors have one size, and offers are not revived when they end. A
job takes offers in whole executors, one at a time round-robin over its offers, up to
``spark.cores.max``, and keeps every executor to its end. Then the driver asks the executors to stop
and waits for them (``spark.mesos.coarse.shutdownTimeout``, 10 s), so they stop one by one; then it
leaves.

Offers that it cannot use are declined with Mesos's default filter of 5 s; at the maximum, with
``spark.mesos.rejectOfferDurationForReachedMaxCores``, 120 s.

References
----------
.. [1] Apache Spark 2.2, MesosCoarseGrainedSchedulerBackend: resourceOffers, handleMatchedOffers,
   buildMesosTasks, stop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from laboratory.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Identity,
    Master,
    Offer,
    Quantities,
    Task,
    fit,
)
from laboratory.frameworks.spark import Executor, ExecutorPool
from laboratory.resources import Amount, minus

REFUSE_AT_MAXIMUM_MS = 120_000


@dataclass(frozen=True, slots=True)
class Habits:
    """Driver behaviour that depends on Spark, its settings or its version.

    refuse_ms: filter on declined offers before the job has all its executors.
    hoard_ms: how long an unused offer is held before it is declined.
    launches_max: limit on executors launched in one round of offers.
    one_per_agent: one executor an agent, which takes all CPUs of its offer: Spark 1.6, and later
        versions without ``spark.executor.cores``.
    whole_offers: the last executor on an offer also holds its rest until the job ends, as a
        framework "configured to accept all resources offered to it".
    release_idle: an idle executor stops when the stage has no task left to start, not at the end
        of the job.
    """

    refuse_ms: int = REFUSE_DEFAULT_MS
    hoard_ms: int = 0
    launches_max: int | None = None
    one_per_agent: bool = False
    whole_offers: bool = False
    release_idle: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a Spark application.

    executor: thousandths that one executor takes of an agent.
    slots: Spark tasks that an executor runs at once (its cores).
    stages_ms: durations of the tasks of each stage; a stage begins when the previous one is done.
    start_ms: from the launch of an executor until it takes tasks.
    stop_ms: how long executors take to stop after the job, used in turn; none: at once.
    """

    executor: Quantities
    slots: int
    executors_max: int
    stages_ms: tuple[tuple[int, ...], ...]
    start_ms: int = 0
    stop_ms: tuple[int, ...] = (0,)
    habits: Habits = field(default_factory=Habits)

    def framework(self, identity: Identity, left: Callable[[], None]) -> "SparkJob":
        return SparkJob(identity, self, left)


class SparkJob(ExecutorPool):
    """A job as a framework."""

    def __init__(self, identity: Identity, job: Job, left: Callable[[], None]) -> None:
        super().__init__(identity, job.stages_ms, job.start_ms, job.stop_ms, left)
        self.job = job

    def subscribed(self, master: Master) -> None:
        super().subscribed(master)
        self._amount: Amount = master.amount(self.job.executor)

    def offered(self, offers: list[Offer]) -> None:
        """Launch executors round-robin over the offers; decline the others."""
        if self.stopping or self._has_enough():
            self._decline(offers)
            return
        launches = self._round_robin(offers)
        useless = [offer for offer, count in zip(offers, launches, strict=True) if not count]
        for offer, count in zip(offers, launches, strict=True):
            if not count:
                continue
            taken = executors_of(offer.amount, self._amount, count, self.job)
            refuse_ms = self.job.habits.refuse_ms
            amounts = [amount for amount, _ in taken]
            tasks = self._master.accept(offer, amounts, refuse_ms)
            for task, (_, slots) in zip(tasks, taken, strict=True):
                self._begin(Executor(task, slots, gpus=0))
        if useless and self.job.habits.hoard_ms:
            after_ms = self.job.habits.hoard_ms
            self._master.event_heap.after(after_ms, partial(self._decline, useless))
        elif useless:
            self._decline(useless)

    def lost(self, tasks: list[Task]) -> None:
        """Queue the tasks of lost executors again."""
        self._forget(tasks)
        for executor in self.executors.values():
            self._pull(executor)
        if self.stopping:
            self._executor_ended()

    def _decline(self, offers: Sequence[Offer]) -> None:
        """Decline the offers that are still live."""
        live = [offer for offer in offers if offer.live]
        full = len(self.executors) >= self.job.executors_max and not self.stopping
        if live:
            refuse_ms = REFUSE_AT_MAXIMUM_MS if full else self.job.habits.refuse_ms
            self._master.decline(live, refuse_ms)

    def _has_enough(self) -> bool:
        """Whether more executors would be idle; always False unless idle ones are released."""
        return self.job.habits.release_idle and not self.stages.waiting

    def _round_robin(self, offers: Sequence[Offer]) -> list[int]:
        """How many executors to launch on each offer: round-robin over all of them."""
        habits = self.job.habits
        room = [fit(offer.amount, self._amount) for offer in offers]
        if habits.one_per_agent:
            there = {task.agent for task in self.executors}
            room = [
                min(count, offer.agent not in there)
                for count, offer in zip(room, offers, strict=True)
            ]
        launches = [0] * len(offers)
        wanted = self.job.executors_max - len(self.executors)
        if habits.launches_max is not None:
            wanted = min(wanted, habits.launches_max)
        while wanted > 0 and any(room):
            for i in range(len(offers)):
                if room[i] > 0 and wanted > 0:
                    room[i] -= 1
                    launches[i] += 1
                    wanted -= 1
        return launches

    def _pull(self, executor: Executor) -> None:
        """Let the executor take tasks; release it if it finds none."""
        super()._pull(executor)
        idle = not executor.running and not self.stages.waiting
        if self.job.habits.release_idle and idle and self.stages.running:
            self._release(executor)

    def _stop(self) -> None:
        """Stop the executors: all stages are done."""
        for number, executor in enumerate(self.executors.values()):
            self._end_in_turn(executor, number)

    def _release(self, executor: Executor) -> None:
        """Stop an executor before the end of the job."""
        executor.idle = 0
        self._end_in_turn(executor, len(self.executors))

    def _executor_ended(self) -> None:
        """Leave after the last executor."""
        if not self.executors:
            self._leave()


def executors_of(offered: Amount, need: Amount, count: int, job: Job) -> list[tuple[Amount, int]]:
    """Amount and task slots of each of `count` executors on an offer."""
    habits = job.habits
    if habits.one_per_agent:
        # The first resource is CPUs.
        cpus = offered[0]
        slots = job.slots * (cpus // need[0])
        return [(offered if habits.whole_offers else (cpus, *need[1:]), slots)]
    taken = [(need, job.slots)] * count
    if habits.whole_offers:
        left = offered
        for _ in range(count - 1):
            left = minus(left, need)
        taken[-1] = (left, job.slots)
    return taken

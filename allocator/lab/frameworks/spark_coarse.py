"""Spark on Mesos in coarse-grained mode, as Spark 2.4 and 3.5 behave.

Each job is a framework of its own. Offers are split by the constraints; those that do not match are
declined for ``rejectOfferDurationForUnmetConstraints``. On the others executors are placed one by
one, round-robin, while any fits. What is offered beyond is declined: for
``rejectOfferDurationForReachedMaxCores`` where the job has all its cores, else with Mesos's default
of 5 s, and so is everything while the job has as many executors as dynamic allocation asks for, or
is stopping. An executor that ends makes the driver revive its offers, also those of a job that is
stopping: so every filter is gone, and a round of offers is made for nothing. Spark never suppresses
offers.

Left out, for nothing here needs it: data locality (``spark.locality.wait``), and agents on which
executors fail.

References
----------
.. [1] Apache Spark 2.4 and 3.5, MesosCoarseGrainedSchedulerBackend: resourceOffers,
   handleMatchedOffers, buildMesosTasks, canLaunchTask, statusUpdate, stopSchedulerBackend.
.. [2] The same, ExecutorAllocationManager.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from allocator.core import MILLI
from allocator.lab.frameworks.base import REFUSE_DEFAULT_MS, Identity, Master, Offer, Task
from allocator.lab.frameworks.spark_offers import OpenOffer, split
from allocator.lab.frameworks.spark_settings import SparkSettings
from allocator.lab.frameworks.spark_stages import Stages

UNBOUNDED = 2**31


@dataclass(slots=True, eq=False)
class Executor:
    """An executor that runs.

    idle: tasks that it could run more at once; 0 before it has started.
    running: duration in ms of each task that it runs, by a number of its own.
    idle_since_ms: since when it runs nothing.
    ending: it was asked to stop.
    """

    task: Task
    cores: int
    gpus: int
    idle: int = 0
    running: dict[int, int] = field(default_factory=dict)
    idle_since_ms: int = 0
    ending: bool = False


class CoarseSpark:
    """A job as a framework.

    stages_ms: durations of the tasks of each stage, on one core.
    left: called once when the framework has left.
    start_ms: from the launch of an executor until it takes tasks.
    stop_ms: how long executors take to stop, drawn from in turn.
    started: called once when its first executor is launched.
    """

    def __init__(
        self,
        identity: Identity,
        settings: SparkSettings,
        stages_ms: Sequence[Sequence[int]],
        left: Callable[[], None],
        *,
        start_ms: int = 0,
        stop_ms: Sequence[int] = (0,),
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.stages = Stages(stages_ms)
        self.executors: dict[Task, Executor] = {}
        self.stopping = False
        dynamic = settings.dynamic
        self.target = dynamic.least if dynamic else UNBOUNDED
        """Executors that the job wants at most."""
        self._more = 1
        self._left = left
        self._started: Callable[[], None] | None = started
        self._gone = False
        self._start_ms = start_ms
        self._stop_ms = stop_ms
        self._ended = 0
        self._tickets = count()

    # What the master tells.

    def subscribed(self, master: Master) -> None:
        """Remember the master; begin to ask for executors. A job without tasks is over."""
        self._master = master
        if self.stages.done:
            self._stop()
        if self.settings.dynamic:
            self._master.event_heap.after(self.settings.dynamic.backlog_ms, self._adjust)

    def offered(self, offers: list[Offer]) -> None:
        """Launch executors round-robin over the offers that match; decline the others."""
        if self.stopping or len(self.executors) >= self.target:
            self._master.decline(offers, REFUSE_DEFAULT_MS)
            return
        matched, unmatched = split(self._master, self.settings, offers)
        if unmatched:
            self._master.decline(unmatched, self.settings.refuse_unmet_ms)
        opened = [OpenOffer(self._master, offer) for offer in matched]
        planned = self._place(opened)
        useless = []
        for each, cores_and_gpus in zip(opened, planned, strict=True):
            if not each.taken:
                useless.append(each.offer)
                continue
            tasks = self._master.accept(each.offer, each.taken, REFUSE_DEFAULT_MS)
            if self._started is not None:
                self._started()
                self._started = None
            for task, (cores, gpus) in zip(tasks, cores_and_gpus, strict=True):
                self.executors[task] = executor = Executor(task, cores, gpus)
                self._master.event_heap.after(self._start_ms, partial(self._ready, executor))
        if useless:
            full = self._cores() >= self._maximum()
            refuse_ms = self.settings.refuse_at_maximum_ms if full else REFUSE_DEFAULT_MS
            self._master.decline(useless, refuse_ms)

    def lost(self, tasks: list[Task]) -> None:
        """Executors are gone with their agent: run their tasks again."""
        for task in tasks:
            executor = self.executors.pop(task)
            self.stages.lose(list(executor.running.values()))
        self._executor_ended()
        for executor in list(self.executors.values()):
            self._pull(executor)

    # How executors are placed.

    def _cores(self) -> int:
        return sum(executor.cores for executor in self.executors.values())

    def _maximum(self) -> int:
        maximum = self.settings.maximum
        return UNBOUNDED if maximum is None else maximum

    def _place(self, opened: list[OpenOffer]) -> list[list[tuple[int, int]]]:
        """Take executors from the offers, one of each in turn; gives their cores and GPUs."""
        planned: list[list[tuple[int, int]]] = [[] for _ in opened]
        cores = self._cores()
        gpus = sum(executor.gpus for executor in self.executors.values())
        placed, again = len(self.executors), True
        while again:
            again = False
            for each, plan in zip(opened, planned, strict=True):
                own = self._cores_on(each, self._maximum() - cores)
                if not own or placed >= self.target or self._port_taken(each, plan):
                    continue
                taken = min(max(0, self.settings.gpus_max - gpus), each.whole("gpus"))
                each.take(cpus=own * MILLI, mem=self.settings.memory, gpus=taken * MILLI)
                plan.append((own, taken))
                cores, gpus, placed, again = cores + own, gpus + taken, placed + 1, True
        return planned

    def _cores_on(self, offer: OpenOffer, left: int) -> int:
        """Cores of an executor on what is left of an offer; 0 where none can be started."""
        there = offer.whole("cpus")
        fixed = self.settings.executor_cores
        cores = min(there, left) if fixed is None else fixed
        if cores > min(there, left) or self.settings.memory > offer.amount("mem"):
            return 0
        return max(cores, 0)

    def _port_taken(self, offer: OpenOffer, plan: list[tuple[int, int]]) -> bool:
        if not self.settings.fixed_port:
            return False
        return bool(plan) or any(task.agent == offer.offer.agent for task in self.executors)

    # How tasks run.

    def _ready(self, executor: Executor) -> None:
        """The executor has started, and takes tasks."""
        if executor.task.live and not executor.ending:
            executor.idle = executor.cores
            executor.idle_since_ms = self._master.event_heap.now_ms
            self._pull(executor)

    def _pull(self, executor: Executor) -> None:
        """Let the executor take tasks until it is full."""
        while executor.idle and self.stages.waiting and not executor.ending:
            duration_ms = self.stages.take()
            executor.idle -= 1
            ticket = next(self._tickets)
            executor.running[ticket] = duration_ms
            self._master.event_heap.after(duration_ms, partial(self._finish, executor, ticket))
        if self.stages.done:
            self._stop()

    def _finish(self, executor: Executor, ticket: int) -> None:
        if not executor.task.live:
            return
        del executor.running[ticket]
        executor.idle += 1
        if not executor.running:
            executor.idle_since_ms = self._master.event_heap.now_ms
        begins = self.stages.finish()
        for each in list(self.executors.values()) if begins else [executor]:
            self._pull(each)

    # How executors come and go.

    def _adjust(self) -> None:
        """Ask for more executors while tasks wait, for fewer when they do not; end idle ones."""
        dynamic = self.settings.dynamic
        assert dynamic is not None
        if self.stopping:
            return
        slots = self.settings.executor_cores or 1
        needed = min(max(-(-self.stages.left // slots), dynamic.least), dynamic.most)
        if needed <= self.target or not self.stages.waiting:
            self.target, self._more = min(self.target, needed), 1
        else:
            self.target, self._more = min(self.target + self._more, needed), self._more * 2
        now_ms = self._master.event_heap.now_ms
        staying = [each for each in self.executors.values() if not each.ending]
        spare = len(staying) - max(dynamic.least, needed)
        idle = [each for each in staying if each.idle and not each.running]
        overdue = [each for each in idle if now_ms - each.idle_since_ms >= dynamic.idle_ms]
        for executor in overdue[: max(spare, 0)]:
            self._end(executor)
        self._master.event_heap.after(dynamic.backlog_ms, self._adjust)

    def _end(self, executor: Executor) -> None:
        """Ask an executor to stop; it takes its time."""
        executor.ending = True
        delay_ms = self._stop_ms[self._ended % len(self._stop_ms)]
        self._ended += 1
        self._master.event_heap.after(delay_ms, partial(self._ended_itself, executor))

    def _ended_itself(self, executor: Executor) -> None:
        if executor.task.live:
            del self.executors[executor.task]
            self._master.end(executor.task)
            self._executor_ended()

    def _executor_ended(self) -> None:
        """The driver hears of it: it wants offers again, whatever it refused before."""
        self._master.revive(self)
        if self.stopping and not self.executors:
            self._leave()

    def _stop(self) -> None:
        """The job is done: end the executors, and wait for them, but not for ever."""
        if self.stopping:
            return
        self.stopping = True
        for executor in list(self.executors.values()):
            self._end(executor)
        wait_ms = self.settings.shutdown_timeout_ms if self.executors else 0
        self._master.event_heap.after(wait_ms, self._leave)

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._master.unsubscribe(self)
            self._left()

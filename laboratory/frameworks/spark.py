"""Spark on Mesos, coarse-grained and fine-grained, as Spark 2.4 and 3.5 behave.

References
----------
.. [1] Apache Spark 2.4 and 3.5, docs/running-on-mesos.md and docs/configuration.md;
   MesosSchedulerUtils: executorMemory, matchesAttributeRequirements, createSchedulerDriver.
.. [2] The same, MesosCoarseGrainedSchedulerBackend: resourceOffers, handleMatchedOffers,
   buildMesosTasks, canLaunchTask, statusUpdate, stopSchedulerBackend; ExecutorAllocationManager.
.. [3] The same, MesosFineGrainedSchedulerBackend: resourceOffers, createMesosTask,
   createExecutorInfo; TaskSchedulerImpl: submitTasks, resourceOffers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from allocator.core import MILLI
from laboratory.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Framework,
    Identity,
    Master,
    Offer,
    Quantities,
    Task,
)
from laboratory.resources import Amount, Resource

# Spark's settings on Mesos, and what follows from them [1].

OVERHEAD_PART = 0.1
OVERHEAD_LEAST_MIB = 384


@dataclass(frozen=True, slots=True)
class DynamicAllocation:
    """When Spark requests and releases executors (``spark.dynamicAllocation.*``).

    least, most: ``minExecutors``, also the initial number, and ``maxExecutors``.
    backlog_ms: ``schedulerBacklogTimeout``: while tasks wait, more executors are requested at this
        interval: one, then two, then four more, and so on.
    idle_ms: ``executorIdleTimeout``: an executor idle for this long is released.
    """

    least: int = 0
    most: int = 2**31
    backlog_ms: int = 1_000
    idle_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of a job, with Spark's defaults.

    executor_cores: ``spark.executor.cores``; None: an executor takes all cores of its offer.
    executor_memory_mib: ``spark.executor.memory``.
    memory_overhead_mib: ``spark.mesos.executor.memoryOverhead``; None: a tenth of the memory, and
        at least 384.
    cores_max: ``spark.cores.max``; None: no limit.
    gpus_max: ``spark.mesos.gpus.max``. An executor takes all GPUs of its offer up to this limit,
        and also starts without any.
    constraints: ``spark.mesos.constraints``: allowed values of an attribute; none: it must be
        present.
    fixed_port: whether a port is set (``spark.blockManager.port``): then one executor an agent.
    reject_ms, reject_unmet_ms, reject_at_maximum_ms: ``spark.mesos.rejectOfferDuration``, and the
        two ``For...`` settings that default to it.
    dynamic: ``spark.dynamicAllocation.enabled``.
    mesos_executor_cores: thousandths; ``spark.mesos.mesosExecutor.cores``, in fine-grained mode.
    shutdown_timeout_ms: ``spark.mesos.coarse.shutdownTimeout``.
    """

    executor_cores: int | None = None
    executor_memory_mib: int = 1024
    memory_overhead_mib: int | None = None
    cores_max: int | None = None
    gpus_max: int = 0
    constraints: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fixed_port: bool = False
    reject_ms: int = 120_000
    reject_unmet_ms: int | None = None
    reject_at_maximum_ms: int | None = None
    dynamic: DynamicAllocation | None = None
    mesos_executor_cores: int = MILLI
    shutdown_timeout_ms: int = 10_000

    @property
    def memory(self) -> int:
        """Memory of an executor with its overhead, in thousandths of a MiB."""
        overhead = self.memory_overhead_mib
        if overhead is None:
            overhead = max(int(OVERHEAD_PART * self.executor_memory_mib), OVERHEAD_LEAST_MIB)
        return (self.executor_memory_mib + overhead) * MILLI

    @property
    def maximum(self) -> int | None:
        """Limit on the job's cores: a multiple of an executor's cores."""
        if self.cores_max is None:
            return None
        return self.cores_max - self.cores_max % (self.executor_cores or 1)

    @property
    def executor(self) -> Quantities:
        """Demand vector of one executor; empty if its cores are not fixed."""
        if self.executor_cores is None:
            return {}
        return {"cpus": self.executor_cores * MILLI, "mem": self.memory}

    @property
    def refuse_unmet_ms(self) -> int:
        """Filter duration for an agent whose attributes do not match."""
        return self.reject_ms if self.reject_unmet_ms is None else self.reject_unmet_ms

    @property
    def refuse_at_maximum_ms(self) -> int:
        """Filter duration once the job has all its cores."""
        return self.reject_ms if self.reject_at_maximum_ms is None else self.reject_at_maximum_ms

    def accepts(self, attributes: Mapping[str, str]) -> bool:
        """Whether an agent's attributes, all of type text, meet the constraints."""
        return all(
            name in attributes and (not values or attributes[name] in values)
            for name, values in self.constraints.items()
        )

    def identity(self, name: str, role: str) -> Identity:
        """Spark's registration: one role, no label, and GPU_RESOURCES if it may take GPUs."""
        gpus = frozenset({"GPU_RESOURCES"}) if self.gpus_max else frozenset()
        return Identity(name, (role,), capabilities=gpus, several_roles=False)


# Work of a Spark job: stages of tasks, each of which begins when the previous one is done.


class Stages:
    """Waiting tasks, and the number of running ones.

    waiting: durations in ms of this stage's tasks that are not started, the next one last.
    done: all tasks of all stages are done.
    """

    def __init__(self, stages_ms: Sequence[Sequence[int]]) -> None:
        self._later = [list(reversed(stage)) for stage in reversed(stages_ms) if stage]
        self.waiting: list[int] = []
        self.running = 0
        self.done = False
        self._next()

    @property
    def left(self) -> int:
        """Tasks of this stage that wait or run."""
        return len(self.waiting) + self.running

    def take(self) -> int:
        """Start the next task; returns its duration in ms."""
        self.running += 1
        return self.waiting.pop()

    def finish(self) -> bool:
        """Mark a task as done; True if that ends its stage."""
        self.running -= 1
        return self._next()

    def lose(self, durations_ms: Sequence[int]) -> None:
        """Queue lost tasks again."""
        self.running -= len(durations_ms)
        self.waiting += durations_ms

    def _next(self) -> bool:
        if self.left:
            return False
        if self._later:
            self.waiting = self._later.pop()
        else:
            self.done = True
        return True


# How Spark reads and uses an offer.


class OpenOffer:
    """The rest of an offer while executors are placed on it.

    Like Spark it adds up amounts of one name, whatever role they are reserved to.
    """

    def __init__(self, master: Master, offer: Offer) -> None:
        self.offer = offer
        self._master = master
        self._left: dict[Resource, int] = master.resources_of(offer.amount)
        self.taken: list[Amount] = []

    def amount(self, name: str) -> int:
        """The rest of a resource, in thousandths."""
        return sum(amount for each, amount in self._left.items() if each.name == name)

    def whole(self, name: str) -> int:
        return self.amount(name) // MILLI

    def take(self, **wanted: int) -> None:
        """Take amounts by name, in thousandths, from the first resources of that name."""
        taken: dict[Resource, int] = {}
        for name, amount in wanted.items():
            missing = amount
            for each in [each for each in self._left if each.name == name]:
                part = min(missing, self._left[each])
                if part:
                    taken[each] = part
                    self._left[each] -= part
                    missing -= part
            assert not missing, f"{amount} of {name} is more than is left"
        self.taken.append(self._master.row(taken))


def open_matching(
    master: Master, settings: SparkSettings, offers: Iterable[Offer]
) -> list[OpenOffer]:
    """Open the offers whose agents meet the constraints; decline the others."""
    matched: list[OpenOffer] = []
    unmatched: list[Offer] = []
    for offer in offers:
        if settings.accepts(master.attributes(offer.agent)):
            matched.append(OpenOffer(master, offer))
        else:
            unmatched.append(offer)
    if unmatched:
        master.decline(unmatched, settings.refuse_unmet_ms)
    return matched


# Spark on Mesos in coarse-grained mode [2].
#
# Each job is a framework of its own. Offers whose agents do not meet the constraints are declined
# for ``rejectOfferDurationForUnmetConstraints``. On the others executors are placed one by one,
# round-robin, while any fits. The rest is declined: for ``rejectOfferDurationForReachedMaxCores``
# if the job has all its cores, else for Mesos's default of 5 s. While the job has as many executors
# as dynamic allocation wants, or is stopping, it declines every offer. When an executor ends, the
# driver revives its offers. It does so even if the job is stopping, which removes every filter and
# causes a useless round of offers. Spark never suppresses offers.
#
# Not modelled, as nothing here needs it: data locality (``spark.locality.wait``), and agents on
# which executors fail.

UNBOUNDED = 2**31


@dataclass(slots=True, eq=False)
class Executor:
    """A running executor.

    idle: free task slots; 0 before it has started.
    running: duration in ms of each running task, by ticket.
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


class ExecutorPool(Framework):
    """The common part of coarse-grained drivers: executors that pull tasks.

    stages_ms: durations of the tasks of each stage, on one core.
    start_ms: from the launch of an executor until it takes tasks.
    stop_ms: how long executors take to stop, used in turn.
    left: called once when the framework has left.
    """

    def __init__(
        self,
        identity: Identity,
        stages_ms: Sequence[Sequence[int]],
        start_ms: int,
        stop_ms: Sequence[int],
        left: Callable[[], None],
    ) -> None:
        self.identity = identity
        self.stages = Stages(stages_ms)
        self.executors: dict[Task, Executor] = {}
        self.stopping = False
        self._gone = False
        self._left = left
        self._start_ms = start_ms
        self._stop_ms = stop_ms
        self._tickets = count()

    def subscribed(self, master: Master) -> None:
        self._master = master

    def _begin(self, executor: Executor) -> None:
        self.executors[executor.task] = executor
        self._master.event_heap.after(self._start_ms, partial(self._ready, executor))

    def _ready(self, executor: Executor) -> None:
        if executor.task.live and not executor.ending:
            executor.idle = executor.cores
            executor.idle_since_ms = self._master.event_heap.now_ms
            self._pull(executor)

    def _pull(self, executor: Executor) -> None:
        """Let the executor take tasks until it is full or none wait; stop when the job is done."""
        while executor.idle and self.stages.waiting and not executor.ending:
            duration_ms = self.stages.take()
            executor.idle -= 1
            ticket = next(self._tickets)
            executor.running[ticket] = duration_ms
            self._master.event_heap.after(duration_ms, partial(self._finish, executor, ticket))
        if self.stages.done and not self.stopping:
            self.stopping = True
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

    def _forget(self, tasks: Sequence[Task]) -> None:
        """Queue the tasks of lost executors again."""
        for task in tasks:
            self.stages.lose(list(self.executors.pop(task).running.values()))

    def _stop(self) -> None:
        """Stop the executors: the job is done."""
        raise NotImplementedError

    def _end_in_turn(self, executor: Executor, number: int) -> None:
        """Ask an executor to stop; the number selects how long it takes."""
        delay_ms = self._stop_ms[number % len(self._stop_ms)]
        self._master.event_heap.after(delay_ms, partial(self._ended_itself, executor))

    def _ended_itself(self, executor: Executor) -> None:
        if executor.task.live:
            del self.executors[executor.task]
            self._master.end(executor.task)
            self._executor_ended()

    def _executor_ended(self) -> None:
        """Hook: the driver learns that an executor ended."""
        raise NotImplementedError

    def _leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._master.unsubscribe(self)
            self._left()


class CoarseSpark(ExecutorPool):
    """A job as a framework.

    started: called once when its first executor is launched.
    """

    def __init__(
        self,
        identity: Identity,
        settings: SparkSettings,
        stages_ms: Sequence[Sequence[int]],
        left: Callable[[], None],
        started: Callable[[], None] = lambda: None,
        *,
        start_ms: int = 0,
        stop_ms: Sequence[int] = (0,),
    ) -> None:
        super().__init__(identity, stages_ms, start_ms, stop_ms, left)
        self.settings = settings
        dynamic = settings.dynamic
        self.target = dynamic.least if dynamic else UNBOUNDED
        """Limit on the executors that the job wants."""
        self._more = 1
        self._started: Callable[[], None] | None = started
        self._ended = count()

    # Callbacks from the master.

    def subscribed(self, master: Master) -> None:
        """Remember the master; start dynamic allocation. A job without tasks stops at once."""
        super().subscribed(master)
        if self.stages.done:
            self.stopping = True
            self._stop()
        if self.settings.dynamic:
            self._master.event_heap.after(self.settings.dynamic.backlog_ms, self._adjust)

    def offered(self, offers: list[Offer]) -> None:
        """Launch executors round-robin over matching offers; decline the others."""
        if self.stopping or len(self.executors) >= self.target:
            self._master.decline(offers, REFUSE_DEFAULT_MS)
            return
        opened = open_matching(self._master, self.settings, offers)
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
                self._begin(Executor(task, cores, gpus))
        if useless:
            full = self._cores() >= self._maximum()
            refuse_ms = self.settings.refuse_at_maximum_ms if full else REFUSE_DEFAULT_MS
            self._master.decline(useless, refuse_ms)

    def lost(self, tasks: list[Task]) -> None:
        """Run the tasks of executors lost with their agent again."""
        self._forget(tasks)
        self._executor_ended()
        for executor in list(self.executors.values()):
            self._pull(executor)

    # Placement.

    def _cores(self) -> int:
        return sum(executor.cores for executor in self.executors.values())

    def _maximum(self) -> int:
        maximum = self.settings.maximum
        return UNBOUNDED if maximum is None else maximum

    def _place(self, opened: list[OpenOffer]) -> list[list[tuple[int, int]]]:
        """Take executors from the offers, one of each in turn; returns their cores and GPUs."""
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
        """Cores of an executor on the rest of an offer; 0 if none can start there."""
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

    # Dynamic allocation and shutdown.

    def _adjust(self) -> None:
        """Want more executors while tasks wait, fewer when none do; end idle ones."""
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
        executor.ending = True
        self._end_in_turn(executor, next(self._ended))

    def _executor_ended(self) -> None:
        """Revive offers: Spark's driver then removes every filter."""
        self._master.revive(self)
        if self.stopping and not self.executors:
            self._leave()

    def _stop(self) -> None:
        """End the executors, and wait for them until the shutdown timeout."""
        for executor in list(self.executors.values()):
            self._end(executor)
        wait_ms = self.settings.shutdown_timeout_ms if self.executors else 0
        self._master.event_heap.after(wait_ms, self._leave)


# Spark on Mesos in fine-grained mode [3], which both versions call deprecated.
#
# Each Spark task is a Mesos task with one core. The first on an agent also starts an executor that
# has the memory and its own cores (``spark.mesos.mesosExecutor.cores``) and stays until the job
# ends; later tasks take a core and no memory. So an offer of a single core is accepted only on an
# agent that has an executor.
#
# Tasks are placed round-robin over the offers. The rest of a used offer is refused for a second,
# any other offer for Mesos's default of 5 s, or for ``rejectOfferDurationForUnmetConstraints`` if
# the constraints do not match. When a stage begins, the driver revives its offers.

REFUSE_REST_MS = 1_000
TASK_CORES = 1


class FineSpark:
    """A job as a framework.

    stages_ms: durations of the tasks of each stage.
    left: called once when the framework has left.
    """

    def __init__(
        self,
        identity: Identity,
        settings: SparkSettings,
        stages_ms: Sequence[Sequence[int]],
        left: Callable[[], None],
    ) -> None:
        self.identity = identity
        self.settings = settings
        self.stages = Stages(stages_ms)
        self.executors: dict[int, Task] = {}
        """Executors by agent."""
        self.tasks: dict[Task, int] = {}
        self._left = left

    def subscribed(self, master: Master) -> None:
        self._master = master
        if self.stages.done:
            master.event_heap.after(0, self._leave)

    def offered(self, offers: list[Offer]) -> None:
        """Launch tasks round-robin over usable offers; decline the rest."""
        opened = open_matching(self._master, self.settings, offers)
        usable = [each for each in opened if self._is_enough(each)]
        self._place(usable)
        useless = [each.offer for each in opened if not each.taken]
        for each in usable:
            if each.taken:
                self._launch(each)
        if useless:
            self._master.decline(useless, REFUSE_DEFAULT_MS)

    def lost(self, tasks: list[Task]) -> None:
        """Run lost tasks again."""
        for task in tasks:
            if task in self.tasks:
                self.stages.lose([self.tasks.pop(task)])
            else:
                del self.executors[task.agent]
        self._master.revive(self)

    def _is_enough(self, offer: OpenOffer) -> bool:
        """Whether there is room for a task, and for an executor if the agent has none."""
        cores = offer.amount("cpus")
        if offer.offer.agent in self.executors:
            return cores >= TASK_CORES * MILLI
        least = self.settings.mesos_executor_cores + TASK_CORES * MILLI
        return cores >= least and offer.amount("mem") >= self.settings.memory

    def _place(self, usable: list[OpenOffer]) -> None:
        """Take room for waiting tasks, one on each offer in turn."""
        waiting, again = len(self.stages.waiting), True
        while again:
            again = False
            for each in usable:
                if not waiting:
                    return
                if not each.taken and each.offer.agent not in self.executors:
                    cores = self.settings.mesos_executor_cores
                    each.take(cpus=cores, mem=self.settings.memory)
                if each.whole("cpus") >= TASK_CORES:
                    each.take(cpus=TASK_CORES * MILLI)
                    waiting, again = waiting - 1, True

    def _launch(self, offer: OpenOffer) -> None:
        """Launch the tasks placed on an offer, the executor first."""
        launched = self._master.accept(offer.offer, offer.taken, REFUSE_REST_MS)
        agent = offer.offer.agent
        if agent not in self.executors:
            self.executors[agent] = launched.pop(0)
        for task in launched:
            duration_ms = self.stages.take()
            self.tasks[task] = duration_ms
            self._master.event_heap.after(duration_ms, partial(self._finish, task))

    def _finish(self, task: Task) -> None:
        if not task.live:
            return
        del self.tasks[task]
        self._master.end(task)
        begins = self.stages.finish()
        if self.stages.done:
            self._leave()
        elif begins:
            self._master.revive(self)

    def _leave(self) -> None:
        """Unsubscribe; the executors end with the framework."""
        self._master.unsubscribe(self)
        self._left()

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
from allocator.lab.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Framework,
    Identity,
    Master,
    Offer,
    Quantities,
    Task,
)
from allocator.lab.resources import Amount, Resource

# What an operator sets about Spark on Mesos, and what follows from it [1].

OVERHEAD_PART = 0.1
OVERHEAD_LEAST_MIB = 384


@dataclass(frozen=True, slots=True)
class DynamicAllocation:
    """How Spark asks for executors and gives them up (``spark.dynamicAllocation.*``).

    least, most: ``minExecutors``, with which it begins, and ``maxExecutors``.
    backlog_ms: ``schedulerBacklogTimeout``: tasks wait so long before more are asked for: one, then
        two, then four more, and so on.
    idle_ms: ``executorIdleTimeout``: then an executor is given up.
    """

    least: int = 0
    most: int = 2**31
    backlog_ms: int = 1_000
    idle_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of a job, with Spark's defaults.

    executor_cores: ``spark.executor.cores``; None: an executor takes all the cores of its offer.
    executor_memory_mib: ``spark.executor.memory``.
    memory_overhead_mib: ``spark.mesos.executor.memoryOverhead``; None: a tenth of the memory, and
        at least 384.
    cores_max: ``spark.cores.max``; None: all that it is offered.
    gpus_max: ``spark.mesos.gpus.max``. An executor takes all the GPUs of its offer up to that, and
        starts without one where there is none.
    constraints: ``spark.mesos.constraints``: values that an attribute may have; none: it must be
        there.
    fixed_port: whether a port is set (``spark.blockManager.port``): then one executor an agent.
    reject_ms, reject_unmet_ms, reject_at_maximum_ms: ``spark.mesos.rejectOfferDuration``, and the
        two ``For...`` that it is the default of.
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
        """What an executor takes of the agent's memory, in thousandths of a MiB."""
        overhead = self.memory_overhead_mib
        if overhead is None:
            overhead = max(int(OVERHEAD_PART * self.executor_memory_mib), OVERHEAD_LEAST_MIB)
        return (self.executor_memory_mib + overhead) * MILLI

    @property
    def maximum(self) -> int | None:
        """Cores that the job takes at most: a whole number of the smallest executors."""
        if self.cores_max is None:
            return None
        return self.cores_max - self.cores_max % (self.executor_cores or 1)

    @property
    def executor(self) -> Quantities:
        """The demand vector that an operator would state for the job, if it has one."""
        if self.executor_cores is None:
            return {}
        return {"cpus": self.executor_cores * MILLI, "mem": self.memory}

    @property
    def refuse_unmet_ms(self) -> int:
        """How long an agent whose attributes do not match is refused."""
        return self.reject_ms if self.reject_unmet_ms is None else self.reject_unmet_ms

    @property
    def refuse_at_maximum_ms(self) -> int:
        """How long offers are refused once the job has all its cores."""
        return self.reject_ms if self.reject_at_maximum_ms is None else self.reject_at_maximum_ms

    def accepts(self, attributes: Mapping[str, str]) -> bool:
        """Whether an agent's attributes meet the constraints; all of them are texts here."""
        return all(
            name in attributes and (not values or attributes[name] in values)
            for name, values in self.constraints.items()
        )

    def identity(self, name: str, role: str) -> Identity:
        """How Spark registers: in one role, with no label, and for GPUs where it may take some."""
        gpus = frozenset({"GPU_RESOURCES"}) if self.gpus_max else frozenset()
        return Identity(name, (role,), capabilities=gpus, several_roles=False)


# The work of a Spark job: stages of tasks, each of which begins when the one before is done.


class Stages:
    """Tasks that wait, and how many run.

    waiting: durations in ms of the tasks of this stage that nobody took yet, the next one last.
    done: all tasks of all stages are.
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
        """Begin the next task that waits; gives its duration in ms."""
        self.running += 1
        return self.waiting.pop()

    def finish(self) -> bool:
        """A task is done; True where that ends its stage."""
        self.running -= 1
        return self._next()

    def lose(self, durations_ms: Sequence[int]) -> None:
        """Tasks are gone with what ran them, and wait again."""
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


# What Spark reads in an offer, and what it takes of it.


class OpenOffer:
    """What is left of an offer while executors are placed on it.

    Amounts of one name add up, whatever role they are reserved to, as Spark adds them.
    """

    def __init__(self, master: Master, offer: Offer) -> None:
        self.offer = offer
        self._master = master
        self._left: dict[Resource, int] = master.resources_of(offer.amount)
        self.taken: list[Amount] = []

    def amount(self, name: str) -> int:
        """What is left of a resource, in thousandths."""
        return sum(amount for each, amount in self._left.items() if each.name == name)

    def whole(self, name: str) -> int:
        return self.amount(name) // MILLI

    def take(self, **wanted: int) -> None:
        """Take amounts by name, in thousandths, from the first resources that have some."""
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
# Each job is a framework of its own. Offers are split by the constraints; those that do not match
# are declined for ``rejectOfferDurationForUnmetConstraints``. On the others executors are placed
# one by one, round-robin, while any fits. What is offered beyond is declined: for
# ``rejectOfferDurationForReachedMaxCores`` where the job has all its cores, else with Mesos's
# default of 5 s, and so is everything while the job has as many executors as dynamic allocation
# asks for, or is stopping. An executor that ends makes the driver revive its offers, also those of
# a job that is stopping: so every filter is gone, and a round of offers is made for nothing. Spark
# never suppresses offers.
#
# Left out, for nothing here needs it: data locality (``spark.locality.wait``), and agents on which
# executors fail.

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


class ExecutorPool(Framework):
    """What drivers in coarse-grained mode have in common: executors that pull tasks.

    stages_ms: durations of the tasks of each stage, on one core.
    start_ms: from the launch of an executor until it takes tasks.
    stop_ms: how long executors take to stop, drawn from in turn.
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
        """Let the executor take tasks until it is full, or the job is over."""
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
        """Give back to the queue what ran on executors that are gone."""
        for task in tasks:
            self.stages.lose(list(self.executors.pop(task).running.values()))

    def _stop(self) -> None:
        """The job is done: end the executors."""
        raise NotImplementedError

    def _end_in_turn(self, executor: Executor, number: int) -> None:
        """Ask an executor to stop; it takes its time, which is that of this number."""
        delay_ms = self._stop_ms[number % len(self._stop_ms)]
        self._master.event_heap.after(delay_ms, partial(self._ended_itself, executor))

    def _ended_itself(self, executor: Executor) -> None:
        if executor.task.live:
            del self.executors[executor.task]
            self._master.end(executor.task)
            self._executor_ended()

    def _executor_ended(self) -> None:
        """The driver hears of it."""
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
        """Executors that the job wants at most."""
        self._more = 1
        self._started: Callable[[], None] | None = started
        self._ended = count()

    # What the master tells.

    def subscribed(self, master: Master) -> None:
        """Remember the master; begin to ask for executors. A job without tasks is over."""
        super().subscribed(master)
        if self.stages.done:
            self.stopping = True
            self._stop()
        if self.settings.dynamic:
            self._master.event_heap.after(self.settings.dynamic.backlog_ms, self._adjust)

    def offered(self, offers: list[Offer]) -> None:
        """Launch executors round-robin over the offers that match; decline the others."""
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
        """Executors are gone with their agent: run their tasks again."""
        self._forget(tasks)
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
        executor.ending = True
        self._end_in_turn(executor, next(self._ended))

    def _executor_ended(self) -> None:
        """The driver hears of it: it wants offers again, whatever it refused before."""
        self._master.revive(self)
        if self.stopping and not self.executors:
            self._leave()

    def _stop(self) -> None:
        """The job is done: end the executors, and wait for them, but not for ever."""
        for executor in list(self.executors.values()):
            self._end(executor)
        wait_ms = self.settings.shutdown_timeout_ms if self.executors else 0
        self._master.event_heap.after(wait_ms, self._leave)


# Spark on Mesos in fine-grained mode [3], which both versions call deprecated.
#
# Each Spark task is a Mesos task of one core. The first on an agent brings an executor along, which
# has the memory and a core of its own (``spark.mesos.mesosExecutor.cores``) and stays to the end of
# the job; later ones take a core and no memory. So the job accepts an offer of one core and nothing
# else where it has an executor, and nowhere else.
#
# Tasks are placed round-robin over the offers. What is left of an offer that was used is refused
# for a second, any other offer for Mesos's default of 5 s, or, where the constraints do not match,
# for ``rejectOfferDurationForUnmetConstraints``. When a stage begins, the driver revives its
# offers.

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
        """By agent."""
        self.tasks: dict[Task, int] = {}
        self._left = left

    def subscribed(self, master: Master) -> None:
        self._master = master
        if self.stages.done:
            master.event_heap.after(0, self._leave)

    def offered(self, offers: list[Offer]) -> None:
        """Launch tasks round-robin over what can be used; decline the rest."""
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
        """What ran on an agent is gone: run it again."""
        for task in tasks:
            if task in self.tasks:
                self.stages.lose([self.tasks.pop(task)])
            else:
                del self.executors[task.agent]
        self._master.revive(self)

    def _is_enough(self, offer: OpenOffer) -> bool:
        """Whether there is room for a task, and for an executor where there is none yet."""
        cores = offer.amount("cpus")
        if offer.offer.agent in self.executors:
            return cores >= TASK_CORES * MILLI
        least = self.settings.mesos_executor_cores + TASK_CORES * MILLI
        return cores >= least and offer.amount("mem") >= self.settings.memory

    def _place(self, usable: list[OpenOffer]) -> None:
        """Take room for the tasks that wait, one on each offer in turn."""
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
        """Launch what an offer has room for, the executor first."""
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
        """The executors end with the framework."""
        self._master.unsubscribe(self)
        self._left()

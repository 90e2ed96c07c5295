"""Spark on Mesos in fine-grained mode, as Spark 2.4 and 3.5 behave (both call it deprecated).

Each Spark task is a Mesos task of one core. The first on an agent brings an executor along, which
has the memory and a core of its own (``spark.mesos.mesosExecutor.cores``) and stays to the end of
the job; later ones take a core and no memory. So the job accepts an offer of one core and nothing
else where it has an executor, and nowhere else.

Tasks are placed round-robin over the offers. What is left of an offer that was used is refused for
a second, any other offer for Mesos's default of 5 s, or, where the constraints do not match, for
``rejectOfferDurationForUnmetConstraints``. When a stage begins, the driver revives its offers.

References
----------
.. [1] Apache Spark 2.4 and 3.5, MesosFineGrainedSchedulerBackend: resourceOffers, createMesosTask,
   createExecutorInfo; TaskSchedulerImpl: submitTasks, resourceOffers.
"""

from collections.abc import Callable, Sequence
from functools import partial

from allocator.core import MILLI
from allocator.lab.frameworks.base import REFUSE_DEFAULT_MS, Identity, Master, Offer, Task
from allocator.lab.frameworks.spark_offers import OpenOffer, split
from allocator.lab.frameworks.spark_settings import SparkSettings
from allocator.lab.frameworks.spark_stages import Stages

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
        """Remember the master; a job without tasks is over."""
        self._master = master
        if self.stages.done:
            master.event_heap.after(0, self._leave)

    def offered(self, offers: list[Offer]) -> None:
        """Launch tasks round-robin over what can be used; decline the rest."""
        matched, unmatched = split(self._master, self.settings, offers)
        if unmatched:
            self._master.decline(unmatched, self.settings.refuse_unmet_ms)
        opened = [OpenOffer(self._master, offer) for offer in matched]
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

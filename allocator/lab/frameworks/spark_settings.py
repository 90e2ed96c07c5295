"""What an operator sets about Spark on Mesos, and what follows from it.

References
----------
.. [1] Apache Spark 2.4 and 3.5, docs/running-on-mesos.md and docs/configuration.md.
.. [2] The same, MesosSchedulerUtils: executorMemory, matchesAttributeRequirements,
   createSchedulerDriver.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core import MILLI
from allocator.lab.frameworks.base import Identity, Quantities

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

"""Recorded workloads as scenarios: frameworks that arrive at given times, each with its tasks.

What a trace does not say is assumed here, and named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from allocator.core import MILLI
from allocator.lab.frameworks.base import Quantities, TaskQueue
from allocator.lab.master.gates import GPU_CAPABILITY
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Stage
from allocator.lab.workloads.spark_experiment import TYPE_1, TYPE_2, TYPE_3, lognormal_ms
from allocator.lab.workloads.traces import Node, Pod, SwimJob

# Frameworks that arrive at given times, each with its tasks: what traces are turned into.


@dataclass(frozen=True, slots=True)
class Arrival:
    """A framework with equal tasks.

    need: thousandths; of one task.
    durations_ms: one for each task.
    allowed: for each attribute named here, the values that an agent may have.
    """

    time_ms: int
    name: str
    role: str
    need: Quantities
    durations_ms: tuple[int, ...]
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Replay:
    """A cluster that is there from the beginning, and what arrives."""

    kinds: tuple[str, ...]
    agents: tuple[tuple[int, AgentSpec], ...]
    arrivals: tuple[Arrival, ...]

    @property
    def jobs(self) -> int:
        """How many frameworks arrive."""
        return len(self.arrivals)

    def begin(self, stage: Stage) -> None:
        """Plan all arrivals."""
        for arrival in self.arrivals:
            stage.at(arrival.time_ms, partial(_submit, stage, arrival))
        stage.at(max(arrival.time_ms for arrival in self.arrivals), stage.exhausted)


def _submit(stage: Stage, arrival: Arrival) -> None:
    plain = stage.identity(arrival.name, arrival.role, arrival.need)
    identity = replace(plain, allowed=arrival.allowed, capabilities=arrival.capabilities)
    left = partial(stage.ended, arrival.role)
    stage.submit(TaskQueue(identity, arrival.need, arrival.durations_ms, left=left))


# Recorded workloads as scenarios.
#
# What a trace does not say is assumed here, and named.

MAPS_MAX = 1_500
"""The largest jobs of the SWIM samples are cut off here; under 1 % of them have more maps."""

MAP_NEED = {"cpus": 1 * MILLI, "mem": 1_536 * MILLI}
MAP_MEAN_MS = 25_000.0
SWIM_ROLES = 10

GAP_S_MAX = 600
LIFE_S_MAX = 3_600


def swim(jobs: Sequence[SwimJob], agents: int, seed: int) -> Replay:
    """A MapReduce load on a cluster of three types of agents.

    Notes
    -----
    Assumed: a map task takes one CPU and 1.5 GiB for 25 s on average (lognormal, coefficient of
    variation 0.5), as maps over one 64 MB block did in those years; reduce tasks are left out; jobs
    belong to ten roles in turn, for the samples do not say whose they are.
    """
    chance = np.random.default_rng(seed)
    types = (TYPE_1, TYPE_2, TYPE_3)
    cluster = [AgentSpec(f"agent-{i + 1}", types[i % 3]) for i in range(agents)]
    arrivals = [
        Arrival(
            time_ms=job.submit_s * 1000,
            name=job.name,
            role=f"user-{number % SWIM_ROLES + 1}",
            need=MAP_NEED,
            durations_ms=tuple(lognormal_ms(chance, MAP_MEAN_MS, 0.5, job.maps(MAPS_MAX))),
        )
        for number, job in enumerate(jobs)
    ]
    return Replay(("cpus", "mem"), tuple((0, spec) for spec in cluster), tuple(arrivals))


def openb(nodes: Sequence[Node], pods: Sequence[Pod], span_s: int = 1_800) -> Replay:
    """A GPU cluster with constraints: each pod is a framework of one task, its QoS class its role.

    span_s: from the first arrival to the last.

    Notes
    -----
    The trace covers five months in which the cluster is mostly idle. Gaps between arrivals are cut
    to ten minutes, then all are shortened alike to fill `span_s`; lives are cut to an hour. So the
    scarcer models are in demand for more than there is. GPUs are one divisible amount an agent:
    which device of it a pod gets is not modelled. A pod that fits on no agent, not even an empty
    one, is left out.
    """
    pods = _runnable(pods, nodes)
    gaps = [min(b.create_s - a.create_s, GAP_S_MAX) for a, b in pairwise(pods)]
    when = np.concatenate([[0], np.cumsum(gaps)]).astype(float)
    when_ms = (when * (span_s * 1000 / max(when[-1], 1))).round().astype(int).tolist()
    arrivals = [
        Arrival(
            time_ms=time_ms,
            name=pod.name,
            role=pod.qos,
            need=pod.need,
            durations_ms=(max(1, min(pod.life_s, LIFE_S_MAX)) * 1000,),
            allowed={"gpu_model": pod.models} if pod.models else {},
            capabilities=frozenset({GPU_CAPABILITY} if "gpus" in pod.need else ()),
        )
        for time_ms, pod in zip(when_ms, pods, strict=True)
    ]
    cluster = [
        AgentSpec(node.name, node.capacity, {"gpu_model": node.model} if node.model else {})
        for node in nodes
    ]
    kinds = ("cpus", "mem", "gpus")
    return Replay(kinds, tuple((0, spec) for spec in cluster), tuple(arrivals))


def _runnable(pods: Sequence[Pod], nodes: Sequence[Node]) -> list[Pod]:
    """Pods that at least one node could run; nodes with GPUs are only for pods with GPUs."""
    sorts = {(node.model, tuple(sorted(node.capacity.items()))) for node in nodes}

    def fits(pod: Pod) -> bool:
        return any(
            ("gpus" in pod.need) >= bool(model)
            and (not pod.models or model in pod.models)
            and all(dict(capacity).get(name, 0) >= need for name, need in pod.need.items())
            for model, capacity in sorts
        )

    return [pod for pod in pods if fits(pod)]

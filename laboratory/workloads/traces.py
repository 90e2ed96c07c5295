"""Recorded workloads: readers of trace files, synthetic substitutes, and scenarios made of them.

The files are not part of the project. Errors name file, line and field, the bad value, and the
expected one. Assumptions beyond the traces are documented here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from allocator.core import MILLI, Ints
from laboratory.frameworks.base import Quantities
from laboratory.frameworks.batch import TaskQueue
from laboratory.master.gates import GPU_CAPABILITY
from laboratory.resources import AgentSpec
from laboratory.workloads.scenario import JobStage
from laboratory.workloads.spark_experiment import TYPE_1, TYPE_2, TYPE_3, lognormal_ms


class TraceError(ValueError):
    """A trace that cannot be read; names file, line and field, the value, and the expected one."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One line of a trace, by field name."""

    path: Path
    number: int
    fields: dict[str, str]

    def refuse(self, field: str, wanted: str) -> NoReturn:
        value = self.fields[field]
        raise TraceError(f"{self.path}:{self.number}: {field} is {value!r}; it must be {wanted}")

    def integer(self, field: str, *, least: int = 0, most: int = 2**53) -> int:
        text = self.fields[field]
        value = int(text) if text.isascii() and text.isdigit() else -1
        if not least <= value <= most:
            self.refuse(field, f"a whole number from {least} to {most}")
        return value

    def text(self, field: str) -> str:
        """Read a name, which must not be empty."""
        if not self.fields[field]:
            self.refuse(field, "a name")
        return self.fields[field]


def read_lines(
    path: Path, fields: Sequence[str], separator: str, *, header: bool
) -> Iterator[TraceLine]:
    """Read a table.

    fields: names of all columns, in order.
    header: whether the first line must have these names.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read as text ({error})") from error
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split(separator)
        if header and number == 1:
            if parts != list(fields):
                raise TraceError(f"{path}:1: columns are {parts}; they must be {list(fields)}")
            continue
        if len(parts) != len(fields):
            message = f"{path}:{number}: has {len(parts)} fields ({line!r}), not {len(fields)}"
            raise TraceError(message)
        yield TraceLine(path, number, dict(zip(fields, parts, strict=True)))


# Alibaba's openb cluster: GPU nodes of several models, and pods that may require certain models.
#
# Amounts are thousandths of a CPU, MiB, and thousandths of a GPU for each of a pod's GPUs. A pod's
# ``gpu_spec`` names the models that it can use, joined by ``|``; empty: any.
#
# Source: Weng, Yang, Yu, Wang, Tang, Yang, Zhang. "Beware of Fragmentation: Scheduling GPU-
# Sharing Workloads with Fragmentation Gradient Descent." USENIX ATC 2023. Data:
# github.com/alibaba/clusterdata, cluster-trace-gpu-v2023.

NODE_FIELDS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_FIELDS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


@dataclass(frozen=True, slots=True)
class Node:
    """A machine; `model` is empty if it has no GPU."""

    name: str
    capacity: Quantities
    model: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod: one task of a tenant.

    need: thousandths
    models: GPU models that it can use; empty: any.
    """

    name: str
    need: Quantities
    models: frozenset[str]
    qos: str
    create_s: int
    life_s: int


def _amounts(cpus: int, mem_mib: int, gpus: int) -> Quantities:
    """Quantities from thousandths of CPUs, MiB, and thousandths of GPUs, without zeros."""
    all_three = {"cpus": cpus, "mem": mem_mib * MILLI, "gpus": gpus}
    return {name: amount for name, amount in all_three.items() if amount}


def read_nodes(path: Path) -> list[Node]:
    nodes = []
    for line in read_lines(path, NODE_FIELDS, ",", header=True):
        gpus = line.integer("gpu", most=64)
        if bool(gpus) != bool(line.fields["model"]):
            line.refuse("model", "a GPU model exactly where there are GPUs")
        cpus, mem_mib = line.integer("cpu_milli", least=1), line.integer("memory_mib", least=1)
        capacity = _amounts(cpus, mem_mib, gpus * MILLI)
        nodes.append(Node(line.text("sn"), capacity, line.fields["model"]))
    if not nodes:
        raise TraceError(f"{path}: no nodes")
    return nodes


def read_pods(path: Path) -> list[Pod]:
    pods = [_pod(line) for line in read_lines(path, POD_FIELDS, ",", header=True)]
    if not pods:
        raise TraceError(f"{path}: no pods")
    return sorted(pods, key=lambda pod: pod.create_s)


def _pod(line: TraceLine) -> Pod:
    create_s = line.integer("creation_time")
    delete_s = line.integer("deletion_time")
    if delete_s < create_s:
        line.refuse("deletion_time", f"at least the creation_time, {create_s}")
    cpus, mem_mib = line.integer("cpu_milli"), line.integer("memory_mib")
    gpus = line.integer("num_gpu", most=64) * line.integer("gpu_milli", most=MILLI)
    need = _amounts(cpus, mem_mib, gpus)
    if not need:
        line.refuse("cpu_milli", "above 0 where the pod needs nothing else")
    return Pod(
        name=line.text("name"),
        need=need,
        models=frozenset(filter(None, line.fields["gpu_spec"].split("|"))),
        qos=line.text("qos"),
        create_s=create_s,
        life_s=delete_s - create_s,
    )


# The SWIM samples of Facebook's MapReduce load (Statistical Workload Injector for MapReduce).
#
# A file has one job a line, tab separated and without a header: id, submission in seconds, gap to
# the previous job in seconds, bytes into map, bytes shuffled, bytes out of reduce.
#
# Source: Chen, Ganapathi, Griffith, Katz. "The Case for Evaluating MapReduce Performance Using
# Workload Suites." MASCOTS 2011. Data: github.com/SWIMProjectUCB/SWIM.

FIELDS = ("job", "submit_s", "gap_s", "map_bytes", "shuffle_bytes", "reduce_bytes")
HOUR_S = 3600
BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class SwimJob:
    """One job.

    submit_s: from the beginning of the file, or of the selected hour.
    """

    name: str
    submit_s: int
    map_bytes: int
    shuffle_bytes: int
    reduce_bytes: int

    def maps(self, most: int) -> int:
        """Number of map tasks: one for each block of 64 MB, between one and `most`."""
        return max(1, min(most, -(-self.map_bytes // BLOCK_BYTES)))


def read_swim(path: Path, hour: int | None = None) -> list[SwimJob]:
    """Read a sample, or one hour of it.

    Raises TraceError if a line is wrong, or the hour has no jobs.
    """
    jobs = []
    last_s = 0
    for line in read_lines(path, FIELDS, "\t", header=False):
        submit_s = line.integer("submit_s")
        if submit_s < last_s:
            line.refuse("submit_s", f"at least that of the line before, {last_s}")
        last_s = submit_s
        job = SwimJob(
            name=line.text("job"),
            submit_s=submit_s if hour is None else submit_s - hour * HOUR_S,
            map_bytes=line.integer("map_bytes"),
            shuffle_bytes=line.integer("shuffle_bytes"),
            reduce_bytes=line.integer("reduce_bytes"),
        )
        if hour is None or 0 <= job.submit_s < HOUR_S:
            jobs.append(job)
    if not jobs:
        where = "" if hour is None else f" in hour {hour}; it ends at {last_s} s"
        raise TraceError(f"{path}: no jobs{where}")
    return jobs


# Synthetic substitutes, drawn from a seed, for machines without the trace files.
#
# The tables summarize the files: FB-2009 sample 1 for SWIM; for openb the node list, and the pod
# list with a third of the pods constrained. Samples have the same marginal distributions;
# correlations between columns are kept only within the rows of a table.

JOBS_PER_HOUR = 277

MAPS = (
    # Fraction of the jobs, minimum and maximum of map tasks.
    (0.813, 1, 1),
    (0.081, 2, 20),
    (0.021, 21, 60),
    (0.020, 61, 150),
    (0.022, 151, 300),
    (0.009, 301, 500),
    (0.024, 501, 1_500),
    (0.010, 1_501, 4_000),
)

NODES = (
    # Count, thousandths of CPUs, MiB, GPUs, model.
    (549, 96_000, 393_216, 8, "G2"),
    (387, 104_000, 524_288, 2, "T4"),
    (129, 32_000, 262_144, 0, ""),
    (107, 16_000, 122_880, 2, "P100"),
    (89, 96_000, 458_752, 0, ""),
    (39, 128_000, 786_432, 8, "G3"),
    (92, 64_000, 262_144, 0, ""),
    (35, 32_000, 131_072, 4, "V100M16"),
    (19, 8_000, 32_768, 1, "V100M16"),
    (24, 64_000, 262_144, 2, "P100"),
    (21, 96_000, 786_432, 8, "V100M32"),
    (17, 96_000, 393_216, 4, "T4"),
    (9, 48_000, 376_832, 4, "V100M32"),
    (6, 64_000, 262_144, 8, "V100M16"),
)

PODS = (
    # Count, thousandths of CPUs, MiB, GPUs, thousandths of each.
    (1_592, 3_152, 5_600, 1, 470),
    (787, 11_300, 30_517, 1, 1_000),
    (786, 11_908, 47_104, 1, 1_000),
    (1_148, 11_400, 49_152, 1, 1_000),
    (1_078, 8_000, 24_576, 1, 810),
    (666, 4_000, 22_888, 1, 320),
    (534, 12_500, 48_128, 1, 1_000),
    (377, 12_000, 57_344, 1, 650),
    (44, 64_000, 262_144, 8, 1_000),
    (32, 32_000, 131_072, 4, 1_000),
    (1_088, 8_000, 16_384, 0, 0),
)

MODELS = (
    # Fraction of the pods with GPUs, models that they can use.
    (0.662, ""),
    (0.183, "T4"),
    (0.047, "G2"),
    (0.040, "P100"),
    (0.023, "V100M16|V100M32"),
    (0.015, "P100|V100M16|V100M32"),
    (0.012, "G3"),
    (0.010, "P100|T4|V100M16|V100M32"),
    (0.008, "V100M32"),
)

QOS = ((0.57, "LS"), (0.417, "BE"), (0.012, "Burstable"), (0.001, "Guaranteed"))

LIFE_MEDIAN_S = 540.0
LIFE_SIGMA = 1.95


def swim_jobs(seed: int, hours: int = 1) -> list[SwimJob]:
    """Jobs that arrive as a Poisson process, with numbers of maps like the sample's."""
    chance = np.random.default_rng(seed)
    count = int(chance.poisson(JOBS_PER_HOUR * hours))
    submit_s = np.sort(chance.integers(0, HOUR_S * hours, count))
    bucket = _drawn(MAPS, count, chance)
    jobs = []
    for number in range(count):
        _, least, most = MAPS[bucket[number]]
        maps = round(float(np.exp(chance.uniform(np.log(least), np.log(most)))))
        jobs.append(SwimJob(f"job{number}", int(submit_s[number]), maps * BLOCK_BYTES, 0, 0))
    return jobs


def openb_nodes(count: int) -> list[Node]:
    """`count` nodes of all models in proportion, at least one of each if there is room."""
    share = np.array([row[0] for row in NODES], float)
    wanted = np.maximum(np.floor(share / share.sum() * count), 1).astype(int)
    rows = [index for index in range(len(NODES)) for _ in range(wanted[index])]
    rows = (rows + [0] * count)[:count] if len(rows) < count else rows[:count]
    nodes = []
    for number, index in enumerate(rows):
        _, cpus, mem_mib, gpus, model = NODES[index]
        capacity = _amounts(cpus, mem_mib, gpus * MILLI)
        nodes.append(Node(f"node-{number:04d}", capacity, model))
    return nodes


def openb_pods(seed: int, count: int) -> list[Pod]:
    """`count` pods at a mean rate of one a second; arrivals are rescaled later."""
    chance = np.random.default_rng(seed)
    shape, models, qos = (_drawn(table, count, chance) for table in (PODS, MODELS, QOS))
    life_s = np.exp(chance.normal(np.log(LIFE_MEDIAN_S), LIFE_SIGMA, count))
    gap_s = chance.exponential(1.0, count).cumsum()
    pods = []
    for number in range(count):
        _, cpus, mem_mib, gpus, gpu = PODS[shape[number]]
        spec = MODELS[models[number]][1] if gpus else ""
        pods.append(
            Pod(
                name=f"pod-{number:04d}",
                need=_amounts(cpus, mem_mib, gpus * gpu),
                models=frozenset(filter(None, spec.split("|"))),
                qos=QOS[qos[number]][1],
                create_s=int(gap_s[number]),
                life_s=max(1, round(float(life_s[number]))),
            )
        )
    return pods


def _drawn(table: Sequence[tuple[Any, ...]], count: int, chance: np.random.Generator) -> Ints:
    """Draw rows of a table with the weights in its first column."""
    share = np.array([row[0] for row in table], float)
    return chance.choice(len(table), count, p=share / share.sum())


# Frameworks that arrive at given times with their tasks: traces become these.


@dataclass(frozen=True, slots=True)
class Arrival:
    """A framework with equal tasks, and when it arrives.

    need: thousandths that one task needs.
    durations_ms: one for each task.
    allowed: values that an agent may have, for each attribute named.
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
    """A cluster that is complete from the beginning, and arriving frameworks."""

    kinds: tuple[str, ...]
    agents: tuple[tuple[int, AgentSpec], ...]
    arrivals: tuple[Arrival, ...]

    @property
    def jobs(self) -> int:
        return len(self.arrivals)

    def begin(self, stage: JobStage) -> None:
        for arrival in self.arrivals:
            stage.at(arrival.time_ms, partial(_submit, stage, arrival))
        stage.at(max(arrival.time_ms for arrival in self.arrivals), stage.exhausted)


def _submit(stage: JobStage, arrival: Arrival) -> None:
    plain = stage.identity(arrival.name, arrival.role, arrival.need)
    identity = replace(plain, allowed=arrival.allowed, capabilities=arrival.capabilities)
    left = partial(stage.ended, arrival.role)
    stage.submit(TaskQueue(identity, arrival.need, arrival.durations_ms, left=left))


MAPS_MAX = 1_500
"""Limit on the maps of a SWIM job; under 1 % of the jobs have more."""

MAP_NEED = {"cpus": 1 * MILLI, "mem": 1_536 * MILLI}
MAP_MEAN_MS = 25_000.0
SWIM_ROLES = 10

GAP_S_MAX = 600
LIFE_S_MAX = 3_600


def swim(jobs: Sequence[SwimJob], agents: int, seed: int) -> Replay:
    """A MapReduce load on a cluster of three types of agents.

    Notes
    -----
    Assumptions: a map task takes one CPU and 1.5 GiB for 25 s on average (lognormal, coefficient of
    variation 0.5), as maps over one 64 MB block did in those years; reduce tasks are left out; jobs
    belong to ten roles in turn, as the samples do not name users.
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
    The trace covers five months in which the cluster is mostly idle. Gaps between arrivals are
    limited to ten minutes, then scaled to fill `span_s`; durations are limited to an hour. So
    demand for the scarcer models exceeds the supply. GPUs are one divisible amount per agent: the
    device that a pod gets is not modelled. Pods that fit on no empty agent are left out.
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

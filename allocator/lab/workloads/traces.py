"""Readers of recorded workloads; the files are not part of the project.

Errors say where a bad value stands: file, line and field, the value, and what should be there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from allocator.core import MILLI
from allocator.lab.frameworks.base import Quantities


class TraceError(ValueError):
    """A trace that cannot be read: which file, line and field, what stands there, what should."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace, by field name."""

    path: Path
    number: int
    fields: dict[str, str]

    def refuse(self, field: str, wanted: str) -> NoReturn:
        """Raise the error for a field."""
        value = self.fields[field]
        message = f"{self.path}:{self.number}: {field} is {value!r}; it must be {wanted}"
        raise TraceError(message)

    def integer(self, field: str, *, least: int = 0, most: int = 2**53) -> int:
        """Read a whole number."""
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
) -> Iterator[Line]:
    """Read a table.

    fields: names of all columns, in order.
    header: whether the first line names the columns; then it must name these.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read as text ({error})"
        raise TraceError(message) from error
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split(separator)
        if header and number == 1:
            if parts != list(fields):
                message = f"{path}:1: columns are {parts}; they must be {list(fields)}"
                raise TraceError(message)
            continue
        if len(parts) != len(fields):
            message = f"{path}:{number}: has {len(parts)} fields ({line!r}), not {len(fields)}"
            raise TraceError(message)
        yield Line(path, number, dict(zip(fields, parts, strict=True)))


# Alibaba's openb cluster: GPU nodes of several models, and pods that may want certain models.
#
# Amounts come in thousandths of a CPU, MiB, and thousandths of a GPU for each of a pod's GPUs. A
# pod's ``gpu_spec`` names the models that it can use, joined by ``|``; empty: any.
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
    """A machine; `model` is empty where it has no GPU."""

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


def read_nodes(path: Path) -> list[Node]:
    """Read the machines."""
    nodes = []
    for line in read_lines(path, NODE_FIELDS, ",", header=True):
        gpus = line.integer("gpu", most=64)
        if bool(gpus) != bool(line.fields["model"]):
            line.refuse("model", "a GPU model exactly where there are GPUs")
        capacity = {
            "cpus": line.integer("cpu_milli", least=1),
            "mem": line.integer("memory_mib", least=1) * MILLI,
        }
        if gpus:
            capacity["gpus"] = gpus * MILLI
        nodes.append(Node(line.text("sn"), capacity, line.fields["model"]))
    if not nodes:
        message = f"{path}: no nodes"
        raise TraceError(message)
    return nodes


def read_pods(path: Path) -> list[Pod]:
    """Read the pods, in the order of their creation."""
    pods = [_pod(line) for line in read_lines(path, POD_FIELDS, ",", header=True)]
    if not pods:
        message = f"{path}: no pods"
        raise TraceError(message)
    return sorted(pods, key=lambda pod: pod.create_s)


def _pod(line: Line) -> Pod:
    create_s = line.integer("creation_time")
    delete_s = line.integer("deletion_time")
    if delete_s < create_s:
        line.refuse("deletion_time", f"at least the creation_time, {create_s}")
    need = {
        "cpus": line.integer("cpu_milli"),
        "mem": line.integer("memory_mib") * MILLI,
        "gpus": line.integer("num_gpu", most=64) * line.integer("gpu_milli", most=MILLI),
    }
    need = {name: amount for name, amount in need.items() if amount}
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
# the job before in seconds, bytes into map, bytes shuffled, bytes out of reduce.
#
# Source: Chen, Ganapathi, Griffith, Katz. "The Case for Evaluating MapReduce Performance Using
# Workload Suites." MASCOTS 2011. Data: github.com/SWIMProjectUCB/SWIM.

FIELDS = ("job", "submit_s", "gap_s", "map_bytes", "shuffle_bytes", "reduce_bytes")
HOUR_S = 3600
BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class SwimJob:
    """One job.

    submit_s: from the beginning of the file, or of the hour that was asked for.
    """

    name: str
    submit_s: int
    map_bytes: int
    shuffle_bytes: int
    reduce_bytes: int

    def maps(self, most: int) -> int:
        """Map tasks: one for each block of 64 MB, at least one, at most so many."""
        return max(1, min(most, -(-self.map_bytes // BLOCK_BYTES)))


def read_swim(path: Path, hour: int | None = None) -> list[SwimJob]:
    """Read a sample, or one hour of it.

    Raises TraceError where a line is wrong, or the hour has no jobs.
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
        message = f"{path}: no jobs{where}"
        raise TraceError(message)
    return jobs

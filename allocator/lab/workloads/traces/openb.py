"""Alibaba's openb cluster: GPU nodes of several models, and pods that may want certain models.

Amounts come in thousandths of a CPU, MiB, and thousandths of a GPU for each of a pod's GPUs. A
pod's ``gpu_spec`` names the models that it can use, joined by ``|``; empty: any.

References
----------
.. [1] Weng, Yang, Yu, Wang, Tang, Yang, Zhang. "Beware of Fragmentation: Scheduling GPU-Sharing
   Workloads with Fragmentation Gradient Descent." USENIX ATC 2023. Data:
   github.com/alibaba/clusterdata, cluster-trace-gpu-v2023.
"""

from dataclasses import dataclass
from pathlib import Path

from allocator.core import MILLI
from allocator.lab.frameworks.base import Quantities
from allocator.lab.workloads.traces.lines import Line, TraceError, read_lines

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

"""Readers of recorded workloads. The files are not part of the project."""

from allocator.lab.workloads.traces.lines import TraceError
from allocator.lab.workloads.traces.openb import Node, Pod, read_nodes, read_pods
from allocator.lab.workloads.traces.swim import SwimJob, read_swim

__all__ = ["Node", "Pod", "SwimJob", "TraceError", "read_nodes", "read_pods", "read_swim"]

"""Who has the allocator, for operators to read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SessionInfo:
    """Who has the allocator, and how far it is."""

    number: int
    peer: str
    master_id: str
    instance_id: str
    instance_started_us: int
    mesos_version: str
    module_version: str
    sequence: int
    clock_ms: int

"""Agents as they are described before they register."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.lab.master.ledger_rows import AGENT_CAPABILITIES
from allocator.lab.master.resources import Resource


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent to be.

    capacity: thousandths; of what is nobody's in particular, by name.
    special: thousandths; everything else: ports, reservations, disks, revocable resources.
    region, zone: its fault domain; empty where it has none.
    """

    hostname: str
    capacity: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[Resource, int] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = AGENT_CAPABILITIES

"""Agents as they are described before they register."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.lab.master.ledger_rows import AGENT_CAPABILITIES
from allocator.lab.master.resources import Resource


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent to be.

    Attributes
    ----------
    hostname : str
    capacity : mapping of str to int, thousandths
        Of what is nobody's in particular, by name.
    attributes : mapping of str to str
    special : mapping of Resource to int, thousandths
        Everything else: ports, reservations, disks, revocable resources.
    region, zone : str
        Its fault domain; empty where it has none.
    capabilities : frozenset of str
    """

    hostname: str
    capacity: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[Resource, int] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = AGENT_CAPABILITIES

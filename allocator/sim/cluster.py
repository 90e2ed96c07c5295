"""Agents as they are described before they register."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent to be.

    Attributes
    ----------
    hostname : str
    capacity : mapping of str to int, thousandths
    attributes : mapping of str to str
    """

    hostname: str
    capacity: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)

"""Events about agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core.events.base import Amounts


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """What is known of an agent beside its resources."""

    agent_id: str
    hostname: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AddAgent:
    """A new agent, all of it free."""

    agent: int
    info: AgentInfo
    capacity: Amounts
    active: bool = True
    unavailable_from_ms: int = -1
    unavailable_for_ms: int = 0


@dataclass(frozen=True, slots=True)
class UpdateAgent:
    """New information or a new capacity; None leaves the part as it is.

    What is held may exceed the new capacity for a while; then nothing is free.
    """

    agent: int
    hostname: str | None = None
    attributes: Mapping[str, str] | None = None
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] | None = None
    capacity: Amounts | None = None


@dataclass(frozen=True, slots=True)
class RemoveAgent:
    """The agent is gone, with all that was held on it."""

    agent: int


@dataclass(frozen=True, slots=True)
class ActivateAgent:
    """Whether the agent may be offered; nothing is freed by it."""

    agent: int
    active: bool


@dataclass(frozen=True, slots=True)
class SetWhitelist:
    """Only agents on these hosts may be offered; None: all may."""

    hostnames: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class SetUnavailability:
    """Maintenance of an agent; a start of -1 ends it."""

    agent: int
    start_ms: int
    duration_ms: int

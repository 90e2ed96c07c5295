"""Events about agents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from allocator.core.events.base import Amounts, Aside
from allocator.core.snapshot import Bools, Ints


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """Information about an agent, except its resources; `set_aside`: input that was ignored."""

    agent_id: str
    hostname: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = frozenset()
    set_aside: Aside = ()


@dataclass(frozen=True, slots=True)
class AddAgent:
    """A new agent; all of its resources are free."""

    agent: int
    info: AgentInfo
    capacity: Amounts
    active: bool = True
    unavailable_from_ms: int = -1
    unavailable_for_ms: int = 0


@dataclass(frozen=True, slots=True)
class AddAgents:
    """Several new agents; a cheaper form of one `AddAgent` each.

    `agent` (N,): handles.
    `kind` (K,): distinct.
    `capacity` (N, K), in thousandths: from 0 to `AMOUNT_MAX`.
    `active` (N,); `unavailable_from_ms`, `unavailable_for_ms` (N,).
    """

    agent: Ints
    info: tuple[AgentInfo, ...]
    kind: Ints
    capacity: Ints
    active: Bools
    unavailable_from_ms: Ints
    unavailable_for_ms: Ints

    @classmethod
    def of(cls, event: AddAgent) -> "AddAgents":
        return cls(
            agent=np.array([event.agent], np.int64),
            info=(event.info,),
            kind=np.array(list(event.capacity), np.int64),
            capacity=np.array([list(event.capacity.values())], np.int64),
            active=np.array([event.active], np.bool_),
            unavailable_from_ms=np.array([event.unavailable_from_ms], np.int64),
            unavailable_for_ms=np.array([event.unavailable_for_ms], np.int64),
        )


@dataclass(frozen=True, slots=True)
class UpdateAgent:
    """New information or a new capacity of an agent; None: unchanged.

    Holdings may exceed the new capacity for a while; then nothing is free.
    """

    agent: int
    hostname: str | None = None
    attributes: Mapping[str, str] | None = None
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] | None = None
    capacity: Amounts | None = None
    set_aside: Aside = ()


@dataclass(frozen=True, slots=True)
class RemoveAgent:
    """An agent was removed, with everything held on it."""

    agent: int


@dataclass(frozen=True, slots=True)
class ActivateAgent:
    """Whether an agent may be offered; holdings on it stay."""

    agent: int
    active: bool


@dataclass(frozen=True, slots=True)
class SetWhitelist:
    """Only agents on these hosts may be offered; None: all may."""

    hostnames: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class SetUnavailability:
    """Maintenance of an agent is scheduled; a start of -1 cancels it."""

    agent: int
    start_ms: int
    duration_ms: int

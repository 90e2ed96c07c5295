"""Events about the session as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core.events.frameworks import SetQuota
from allocator.core.resources import Kind


@dataclass(frozen=True, slots=True)
class Options:
    """How the master set up its allocator; the first event of a session."""

    allocation_interval_ms: int = 1000
    fairness_excluded: frozenset[str] = frozenset()
    filter_gpus: bool = True
    region: str = ""
    minimum: tuple[Mapping[str, int], ...] = ({"cpus": 10}, {"mem": 32_000})
    recovery_timeout_ms: int = 600_000
    agent_recovery_factor: float = 0.8


@dataclass(frozen=True, slots=True)
class Define:
    """Bind handles of kinds and roles; forget roles that nothing names any more."""

    kinds: Mapping[int, Kind] = field(default_factory=dict)
    roles: Mapping[int, str] = field(default_factory=dict)
    forgotten_roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SetPaused:
    """No cycle makes decisions while paused."""

    paused: bool


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """The master was elected and expects so many agents; its quotas are known."""

    expected_agents: int
    quotas: tuple[SetQuota, ...] = ()

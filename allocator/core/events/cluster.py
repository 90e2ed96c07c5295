"""Events about the session as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core.resources import Kind


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the master's allocator; the first event of a session."""

    allocation_interval_ms: int = 1000
    fairness_excluded: frozenset[str] = frozenset()
    filter_gpus: bool = True
    region: str = ""
    minimum: tuple[Mapping[str, int], ...] = ({"cpus": 10}, {"mem": 32_000})


@dataclass(frozen=True, slots=True)
class Define:
    """Bind handles of kinds and roles."""

    kinds: Mapping[int, Kind] = field(default_factory=dict)
    roles: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetPaused:
    """Pause or resume decisions; a paused cycle makes none."""

    paused: bool

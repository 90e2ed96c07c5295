"""Events about roles and frameworks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core.events.base import Aside


@dataclass(frozen=True, slots=True)
class FrameworkInfo:
    """Information about a framework; `set_aside`: input that was ignored."""

    framework_id: str
    name: str = ""
    user: str = ""
    principal: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()
    minimum: Mapping[int, tuple[Mapping[str, int], ...]] = field(default_factory=dict)
    set_aside: Aside = ()


@dataclass(frozen=True, slots=True)
class AddFramework:
    """A framework subscribes, or is known from before a failover."""

    framework: int
    info: FrameworkInfo
    roles: tuple[int, ...]
    suppressed_roles: tuple[int, ...] = ()
    active: bool = True


@dataclass(frozen=True, slots=True)
class UpdateFramework:
    """A framework subscribes again with other information or roles."""

    framework: int
    info: FrameworkInfo
    roles: tuple[int, ...]
    suppressed_roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoveFramework:
    """A framework was removed, with everything that it held."""

    framework: int


@dataclass(frozen=True, slots=True)
class ActivateFramework:
    """Whether a framework may be offered anything. Deactivation drops its filters."""

    framework: int
    active: bool


@dataclass(frozen=True, slots=True)
class Suppress:
    """A framework wants no offers in these roles; empty: in all its roles."""

    framework: int
    roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Revive:
    """A framework wants offers again in these roles (empty: all). Drops its filters there."""

    framework: int
    roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A framework states the needs of one task, or of several that start together.

    `agents`: the id of the only agent for each of `requests`; empty, or no ids at all: any agent.
    """

    framework: int
    requests: tuple[Mapping[str, int], ...]
    set_aside: Aside = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetWeights:
    """Weights of roles by path, each above 0; weights of unknown roles are kept for later."""

    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SetQuota:
    """Guarantee and limit of a role by path; two empty mappings remove the quota."""

    role: str
    guarantees: Mapping[str, int]
    limits: Mapping[str, int]

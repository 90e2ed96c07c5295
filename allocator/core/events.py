"""Everything that the allocator can be told.

Each event is one fact. Handles (agents, frameworks, roles: from 1; kinds: from 0) are the host's;
they are bound by the `Define`, `AddAgent` and `AddFramework` events and are the rows of the core's
arrays. Role 0 is the root. All amounts are int64 thousandths, all times milliseconds on the host's
clock.

A framework may hold resources before it is added: `Hold` then makes an empty, inactive row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allocator.core.policy import PolicySpec
from allocator.core.resources import Kind
from allocator.core.snapshot import Bools, Ints

Amounts = Mapping[int, int]
"""Kind to amount."""


class EventError(ValueError):
    """An event that cannot be applied; the state is as it was.

    Attributes
    ----------
    kind : str
        ``handle``, ``value``, ``books`` or ``limit``.
    field : str
        What part of the event is wrong, such as ``amount[3]``.
    message : str
        The value, and what would be right.
    """

    def __init__(self, kind: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.kind = kind
        self.field = field
        self.message = message


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
class FrameworkInfo:
    """What is known of a framework."""

    framework_id: str
    name: str = ""
    user: str = ""
    principal: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()
    minimum: Mapping[int, tuple[Mapping[str, int], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddFramework:
    """A framework subscribes, or is recovered."""

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
    """The framework is gone, with all that it held."""

    framework: int


@dataclass(frozen=True, slots=True)
class ActivateFramework:
    """Whether the framework may be offered anything. Deactivation drops its filters."""

    framework: int
    active: bool


@dataclass(frozen=True, slots=True)
class Holdings:
    """Amounts by (framework, role, agent), in columns.

    Attributes
    ----------
    framework, role, agent : (N,) int64
    kind : (K,) int64
    amount : (N, K) int64, thousandths
    """

    framework: Ints
    role: Ints
    agent: Ints
    kind: Ints
    amount: Ints


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources in use that the allocator learns of now."""

    holdings: Holdings


@dataclass(frozen=True, slots=True)
class Release:
    """Resources that come back: declined and rescinded offers, ended tasks.

    Attributes
    ----------
    released : Holdings
        Rows that name an unknown agent or framework are ignored: what they held went with them.
    refuse_ms : (N,) int64
        How long what is given back must not be offered again; -1 for no filter.
    allocated : (N,) bool
        Whether the resources were in use (a task ended) rather than offered.
    """

    released: Holdings
    refuse_ms: Ints
    allocated: Bools


@dataclass(frozen=True, slots=True)
class Transition:
    """Offered resources come into use. A framework of 0 is one that the host cannot tell."""

    used: Holdings


@dataclass(frozen=True, slots=True)
class UpdateAllocation:
    """An operation on resources; framework 0: on free ones, by an operator."""

    framework: int
    role: int
    agent: int
    consumed: Amounts
    converted: Amounts


@dataclass(frozen=True, slots=True)
class Suppress:
    """The framework wants no offers in these roles; none named: in all its roles."""

    framework: int
    roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Revive:
    """The framework wants offers again, and forgets what it refused in these roles."""

    framework: int
    roles: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exclude:
    """Pairs that may not meet, as the host evaluated offer constraints.

    Attributes
    ----------
    framework, role, agent : (N,) int64
    excluded : (N,) bool
        False takes an exclusion back.
    """

    framework: Ints
    role: Ints
    agent: Ints
    excluded: Bools


@dataclass(frozen=True, slots=True)
class Refuse:
    """Filters in force, as a snapshot carries them.

    Attributes
    ----------
    refused : Holdings
    expires_ms : (N,) int64
    """

    refused: Holdings
    expires_ms: Ints


@dataclass(frozen=True, slots=True)
class SetWhitelist:
    """Only agents on these hosts may be offered; None: all may."""

    hostnames: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class SetWeights:
    """Weights of roles by path, > 0; they stay for roles that are not known yet."""

    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SetQuota:
    """Guarantee and limit of a role by path; two empty mappings remove the quota."""

    role: str
    guarantees: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Request:
    """The framework says what it needs; the first request is its demand vector."""

    framework: int
    requests: tuple[Mapping[str, int], ...]


@dataclass(frozen=True, slots=True)
class SetUnavailability:
    """Maintenance of an agent; a start of -1 ends it."""

    agent: int
    start_ms: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class InverseOffer:
    """A framework answered an inverse offer (status as the wire has it)."""

    framework: int
    agent: int
    status: str
    refuse_ms: int


@dataclass(frozen=True, slots=True)
class SetPaused:
    """No cycle makes decisions while paused."""

    paused: bool


@dataclass(frozen=True, slots=True)
class BeginRecovery:
    """The master was elected and expects so many agents; its quotas are known."""

    expected_agents: int
    quotas: tuple[SetQuota, ...] = ()


@dataclass(frozen=True, slots=True)
class Settle:
    """What became of consecutive decisions.

    Attributes
    ----------
    first_decision : int
    offered : (N,) bool
        False: nothing was offered; all of it is free again.
    partial : (N,) bool
        Offered, but as `amount` says.
    kind : (K,) int64
    amount : (P, K) int64, thousandths
        One row for each partial decision, in order.
    """

    first_decision: int
    offered: Bools
    partial: Bools
    kind: Ints
    amount: Ints


# What operators set. These events outlive a session: they name things by text, not by handle.


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Decide by this policy from the next cycle on."""

    spec: PolicySpec


@dataclass(frozen=True, slots=True)
class SetDemand:
    """The demand vector of frameworks by shell patterns; an empty pattern matches all.

    None takes the rule back; an empty mapping says that the demand is unknown.
    """

    role: str
    framework_name: str
    demand: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class SetConstraint:
    """Which agents the frameworks that match may use; None takes the rule back."""

    role: str
    framework_name: str
    expression: str | None


Event = (
    Options
    | Define
    | AddAgent
    | UpdateAgent
    | RemoveAgent
    | ActivateAgent
    | AddFramework
    | UpdateFramework
    | RemoveFramework
    | ActivateFramework
    | Hold
    | Release
    | Transition
    | UpdateAllocation
    | Suppress
    | Revive
    | Exclude
    | Refuse
    | SetWhitelist
    | SetWeights
    | SetQuota
    | Request
    | SetUnavailability
    | InverseOffer
    | SetPaused
    | BeginRecovery
    | Settle
    | SetPolicy
    | SetDemand
    | SetConstraint
)

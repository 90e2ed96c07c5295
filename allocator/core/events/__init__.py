"""Events: all inputs of the allocator.

Each event is one fact. The host assigns handles: agents, frameworks and roles from 1, kinds from 0;
role 0 is the root. They are row numbers of the core's arrays; `Define`, `AddAgent` and
`AddFramework` bind them. All amounts are int64 thousandths; all times are milliseconds by the
host's clock. A framework may hold resources before it is added: `Hold` then creates an empty,
inactive row.

Start with `holdings`. Operators' changes are in `allocator.core.settings`.
"""

from allocator.core.events.agents import (
    ActivateAgent,
    AddAgent,
    AddAgents,
    AgentInfo,
    RemoveAgent,
    SetUnavailability,
    SetWhitelist,
    UpdateAgent,
)
from allocator.core.events.base import (
    FAILED,
    REASONS,
    TOO_DEEP,
    TOO_LONG,
    TOO_MANY,
    UNKNOWN,
    UNREADABLE,
    Amounts,
    Aside,
    EventError,
    SetAside,
    bounded,
)
from allocator.core.events.cluster import Define, Options, SetPaused
from allocator.core.events.frameworks import (
    ActivateFramework,
    AddFramework,
    FrameworkInfo,
    RemoveFramework,
    Request,
    Revive,
    SetQuota,
    SetWeights,
    Suppress,
    UpdateFramework,
)
from allocator.core.events.holdings import (
    AddFilters,
    Exclude,
    Hold,
    Holdings,
    InverseOffer,
    Move,
    Moves,
    Outcomes,
    Reason,
    Release,
    Transition,
    UpdateAllocation,
)
from allocator.core.settings import (
    OperatorChange,
    SetBudget,
    SetCap,
    SetClaim,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetGang,
    SetLimit,
    SetPause,
    SetPolicy,
    SetShadow,
    SetWeight,
)

Event = (
    Options
    | Define
    | AddAgent
    | AddAgents
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
    | AddFilters
    | SetWhitelist
    | SetWeights
    | SetQuota
    | Request
    | SetUnavailability
    | InverseOffer
    | SetPaused
    | Outcomes
    | OperatorChange
)

__all__ = [
    "FAILED",
    "REASONS",
    "TOO_DEEP",
    "TOO_LONG",
    "TOO_MANY",
    "UNKNOWN",
    "UNREADABLE",
    "ActivateAgent",
    "ActivateFramework",
    "AddAgent",
    "AddAgents",
    "AddFilters",
    "AddFramework",
    "AgentInfo",
    "Amounts",
    "Aside",
    "Define",
    "Event",
    "EventError",
    "Exclude",
    "FrameworkInfo",
    "Hold",
    "Holdings",
    "InverseOffer",
    "Move",
    "Moves",
    "OperatorChange",
    "Options",
    "Outcomes",
    "Reason",
    "Release",
    "RemoveAgent",
    "RemoveFramework",
    "Request",
    "Revive",
    "SetAside",
    "SetBudget",
    "SetCap",
    "SetClaim",
    "SetConstraint",
    "SetDemand",
    "SetDrain",
    "SetGang",
    "SetLimit",
    "SetPause",
    "SetPaused",
    "SetPolicy",
    "SetQuota",
    "SetShadow",
    "SetUnavailability",
    "SetWeight",
    "SetWeights",
    "SetWhitelist",
    "Suppress",
    "Transition",
    "UpdateAgent",
    "UpdateAllocation",
    "UpdateFramework",
    "bounded",
]

"""Events: all inputs of the allocator.

Each event is one fact. The host assigns handles: agents, frameworks and roles from 1, kinds from 0;
role 0 is the root. They are row numbers of the core's arrays; `Define`, `AddAgent` and
`AddFramework` bind them. All amounts are int64 thousandths; all times are milliseconds by the
host's clock. A framework may hold resources before it is added: `Hold` then creates an empty,
inactive row.

Start with `holdings`. Operators' changes are in `allocator.core.settings`.
"""

from allocator.core.events.agents import ActivateAgent as ActivateAgent
from allocator.core.events.agents import AddAgent as AddAgent
from allocator.core.events.agents import AddAgents as AddAgents
from allocator.core.events.agents import AgentInfo as AgentInfo
from allocator.core.events.agents import RemoveAgent as RemoveAgent
from allocator.core.events.agents import SetUnavailability as SetUnavailability
from allocator.core.events.agents import SetWhitelist as SetWhitelist
from allocator.core.events.agents import UpdateAgent as UpdateAgent
from allocator.core.events.base import FAILED as FAILED
from allocator.core.events.base import REASONS as REASONS
from allocator.core.events.base import TOO_DEEP as TOO_DEEP
from allocator.core.events.base import TOO_LONG as TOO_LONG
from allocator.core.events.base import TOO_MANY as TOO_MANY
from allocator.core.events.base import UNKNOWN as UNKNOWN
from allocator.core.events.base import UNREADABLE as UNREADABLE
from allocator.core.events.base import Amounts as Amounts
from allocator.core.events.base import Aside as Aside
from allocator.core.events.base import EventError as EventError
from allocator.core.events.base import SetAside as SetAside
from allocator.core.events.base import bounded as bounded
from allocator.core.events.cluster import Define as Define
from allocator.core.events.cluster import Options as Options
from allocator.core.events.cluster import SetPaused as SetPaused
from allocator.core.events.frameworks import ActivateFramework as ActivateFramework
from allocator.core.events.frameworks import AddFramework as AddFramework
from allocator.core.events.frameworks import FrameworkInfo as FrameworkInfo
from allocator.core.events.frameworks import RemoveFramework as RemoveFramework
from allocator.core.events.frameworks import Request as Request
from allocator.core.events.frameworks import Revive as Revive
from allocator.core.events.frameworks import SetQuota as SetQuota
from allocator.core.events.frameworks import SetWeights as SetWeights
from allocator.core.events.frameworks import Suppress as Suppress
from allocator.core.events.frameworks import UpdateFramework as UpdateFramework
from allocator.core.events.holdings import AddFilters as AddFilters
from allocator.core.events.holdings import Exclude as Exclude
from allocator.core.events.holdings import Hold as Hold
from allocator.core.events.holdings import Holdings as Holdings
from allocator.core.events.holdings import InverseOffer as InverseOffer
from allocator.core.events.holdings import Move as Move
from allocator.core.events.holdings import Moves as Moves
from allocator.core.events.holdings import Outcomes as Outcomes
from allocator.core.events.holdings import Reason as Reason
from allocator.core.events.holdings import Release as Release
from allocator.core.events.holdings import Transition as Transition
from allocator.core.events.holdings import UpdateAllocation as UpdateAllocation
from allocator.core.settings import OperatorChange as OperatorChange
from allocator.core.settings import SetBudget as SetBudget
from allocator.core.settings import SetCap as SetCap
from allocator.core.settings import SetClaim as SetClaim
from allocator.core.settings import SetConstraint as SetConstraint
from allocator.core.settings import SetDemand as SetDemand
from allocator.core.settings import SetDrain as SetDrain
from allocator.core.settings import SetGang as SetGang
from allocator.core.settings import SetLimit as SetLimit
from allocator.core.settings import SetPause as SetPause
from allocator.core.settings import SetPolicy as SetPolicy
from allocator.core.settings import SetShadow as SetShadow
from allocator.core.settings import SetWeight as SetWeight

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

"""What explanations say, as data: amounts in thousandths, times on the host's clock in ms."""

from collections.abc import Mapping
from dataclasses import dataclass

Amounts = Mapping[str, int]
"""Thousandths by name of the resource."""

NEVER = -1
"""A time that there is not, or is not known."""

REASONS = (
    "paused",
    "unsubscribed",
    "inactive",
    "suppressed",
    "agent inactive",
    "whitelist",
    "drained",
    "constraint",
    "capability",
    "too large",
    "limit",
    "cap",
    "headroom",
    "reserved",
    "filter",
    "full",
    "minimum",
    "outranked",
)
"""Why a client gets nothing of an agent, what lasts longest first."""


@dataclass(frozen=True)
class Blocker:
    """Something that keeps agents from a client.

    `reason`: one of `REASONS`.
    `cause`: what is behind it, for people.
    `agents`: how many agents it blocks.
    `alone`: how many of these nothing else blocks: they would be open if this were mended.
    `examples`: some of the agents.
    `since_ms`, `until_ms`: `NEVER` where it is not known, or does not end by itself.
    `mend`: what to do; empty where only waiting helps.
    """

    reason: str
    cause: str
    agents: int
    alone: int
    examples: tuple[str, ...] = ()
    since_ms: int = NEVER
    until_ms: int = NEVER
    mend: str = ""


@dataclass(frozen=True)
class OfferFate:
    """An offer that was decided, and what became of it.

    `amounts`: as decided.
    `outcome`: what the master's module made of it, such as ``offered`` or ``filtered``; empty: not
        known.
    `then`: ``accepted``, ``declined``, or ``held`` while it is still on offer.
    `then_ms`, `refused_ms`: when; and for how long it was refused.
    `whole`: it was all that the agent has.
    """

    cycle: int
    at_ms: int
    agent: str
    amounts: Amounts
    outcome: str
    then: str
    then_ms: int = NEVER
    refused_ms: int = 0
    whole: bool = False


@dataclass(frozen=True)
class Standing:
    """One of two that compete: a framework, or the role it is in where roles compete.

    `score`: by the policy's criterion when the cycle began, the smaller comes first; nan: there is
        none.
    `share`: dominant share of the framework when the cycle began, 0 to 1.
    """

    name: str
    score: float
    share: float


@dataclass(frozen=True)
class Loss:
    """Agents that a client could have been served on, and that went to another.

    `winner_role`: empty where they went to many others, who are told of together.
    """

    winner: Standing
    loser: Standing
    winner_framework: str
    winner_role: str
    agents: int
    examples: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Given:
    """What a cycle decided to offer to one framework on one agent."""

    framework: str
    role: str
    agent: str
    amounts: Amounts


@dataclass(frozen=True)
class CycleAccount:
    """A cycle, and what was in it for somebody.

    `whole`: it was about all agents.
    `candidates`, `decisions`: agents with something to give; offers decided.
    `given`: to whom it may concern; of an agent, to anybody.
    `others`: some of what others were given.
    `blocked`: of the candidates, how many were barred by what; empty where it is not kept any more.
    `policy_error`: why the fallback decided; empty where the policy did.
    """

    number: int
    at_ms: int
    whole: bool
    candidates: int
    decisions: int
    given: tuple[Given, ...]
    others: tuple[Given, ...]
    blocked: Mapping[str, int]
    losses: tuple[Loss, ...]
    policy_error: str


@dataclass(frozen=True)
class Holder:
    """Who holds what."""

    framework: str
    role: str
    held: Amounts
    offered: Amounts
    share: float


@dataclass(frozen=True)
class ClientAnswer:
    """One framework in one role.

    `verdict`: the whole answer in a sentence.
    `share`, `offered_share`: dominant, 0 to 1.
    `demand`: empty where unknown.
    `offered_ms`: when it was decided last to offer it something.
    `agents`, `open_agents`: all agents; and those that nothing blocks.
    `largest_free`: what is free on the agent that comes nearest to its demand, of those it may use.
    `blockers`: the most important first.
    `holders`: who holds most of the cluster, where agents are full.
    `offers`: the latest first.
    `cycles`: the latest first.
    """

    framework_id: str
    framework_name: str
    role: str
    verdict: str
    share: float
    offered_share: float
    demand: Amounts
    demand_source: str
    waited_cycles: int
    offered_ms: int
    agents: int
    open_agents: int
    largest_free: Amounts
    largest_free_agent: str
    blockers: tuple[Blocker, ...]
    holders: tuple[Holder, ...]
    offers: tuple[OfferFate, ...]
    cycles: tuple[CycleAccount, ...]


@dataclass(frozen=True)
class Tally:
    """How many frameworks (of a role, or on an agent) something keeps back."""

    reason: str
    cause: str
    frameworks: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class QuotaState:
    """The quota of a role; limits that there are not are left out."""

    role: str
    guarantee: Amounts
    limit: Amounts
    consumed: Amounts


@dataclass(frozen=True)
class WordsSetAside:
    """Words of a framework or an agent that are not taken, as in `SetAside`."""

    said_by: str
    field: str
    reason: str
    text: str


@dataclass(frozen=True)
class Answer:
    """What was asked.

    `notes`: what holds for everybody: paused, the fallback decides.
    `left_out`: clients of the role that were not looked at.
    `quotas`: of the roles that matter.
    `capacity`, `free`: of the agent.
    `holders`: of the agent.
    `cycles`: about the agent.
    `set_aside`: of the agent, or of the first frameworks.
    """

    kind: str
    name: str
    now_ms: int
    verdict: str
    notes: tuple[str, ...] = ()
    clients: tuple[ClientAnswer, ...] = ()
    left_out: int = 0
    tallies: tuple[Tally, ...] = ()
    quotas: tuple[QuotaState, ...] = ()
    capacity: Amounts | None = None
    free: Amounts | None = None
    holders: tuple[Holder, ...] = ()
    cycles: tuple[CycleAccount, ...] = ()
    set_aside: tuple[WordsSetAside, ...] = ()

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

    Attributes
    ----------
    reason : str
        One of `REASONS`.
    cause : str
        What is behind it, for people.
    agents : int
        How many agents it blocks.
    alone : int
        How many of these nothing else blocks: they would be open if this were mended.
    examples : tuple of str
        Some of the agents.
    since_ms, until_ms : int
        `NEVER` where it is not known, or does not end by itself.
    mend : str
        What to do; empty where only waiting helps.
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

    Attributes
    ----------
    cycle : int
    at_ms : int
    agent : str
    amounts : Amounts
        As decided.
    outcome : str
        What the master's module made of it, such as ``offered`` or ``filtered``; empty: not known.
    then : str
        ``accepted``, ``declined``, or ``held`` while it is still on offer.
    then_ms, refused_ms : int
        When; and for how long it was refused.
    """

    cycle: int
    at_ms: int
    agent: str
    amounts: Amounts
    outcome: str
    then: str
    then_ms: int = NEVER
    refused_ms: int = 0


@dataclass(frozen=True)
class Standing:
    """One of two that compete: a framework, or the role it is in where roles compete.

    Attributes
    ----------
    name : str
    score : float
        By the policy's criterion when the cycle began, the smaller comes first; nan: there is none.
    share : float
        Dominant share of the framework when the cycle began, 0 to 1.
    """

    name: str
    score: float
    share: float


@dataclass(frozen=True)
class Loss:
    """Agents that a client could have been served on, and that went to another.

    Attributes
    ----------
    winner, loser : Standing
    winner_framework, winner_role : str
    agents : int
    examples : tuple of str
    why : str
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

    Attributes
    ----------
    number, at_ms : int
    whole : bool
        It was about all agents.
    candidates, decisions : int
        Agents with something to give; offers decided.
    given : tuple of Given
        To whom it may concern; of an agent, to anybody.
    others : tuple of Given
        Some of what others were given.
    blocked : mapping of str to int
        Of the candidates, how many were barred by what; empty where it is not kept any more.
    losses : tuple of Loss
    policy_error : str
        Why the fallback decided; empty where the policy did.
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

    Attributes
    ----------
    framework_id, framework, role : str
    verdict : str
        The whole answer in a sentence.
    share, offered_share : float
        Dominant, 0 to 1.
    demand : Amounts
        Empty where unknown.
    demand_source : str
    waited_cycles : int
    offered_ms : int
        When it was decided last to offer it something.
    agents, open : int
        All agents; and those that nothing blocks.
    largest_free : Amounts
        What is free on the agent that comes nearest to its demand, of those it may use.
    largest_free_agent : str
    blockers : tuple of Blocker
        The most important first.
    holders : tuple of Holder
        Who holds most of the cluster, where agents are full.
    offers : tuple of OfferFate
        The latest first.
    cycles : tuple of CycleAccount
        The latest first.
    """

    framework_id: str
    framework: str
    role: str
    verdict: str
    share: float
    offered_share: float
    demand: Amounts
    demand_source: str
    waited_cycles: int
    offered_ms: int
    agents: int
    open: int
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

    Attributes
    ----------
    kind, name : str
    now_ms : int
    verdict : str
    notes : tuple of str
        What holds for everybody: paused, the fallback decides.
    clients : tuple of ClientAnswer
    left_out : int
        Clients of the role that were not looked at.
    tallies : tuple of Tally
    quotas : tuple of QuotaState
        Of the roles that matter.
    capacity, free : Amounts
        Of the agent.
    holders : tuple of Holder
        Of the agent.
    cycles : tuple of CycleAccount
        About the agent.
    set_aside : tuple of WordsSetAside
        Of the agent, or of the first frameworks.
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

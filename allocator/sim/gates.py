"""The gates that a decision passes before an offer is made of it.

They are the module's (`DESIGN.md`): evaluated against the books as they are when the decision
arrives, so that no answer, however late or wrong, can over-commit an agent.
"""

from dataclasses import dataclass
from enum import IntEnum

from allocator.sim.books import AgentRow, Amount, FrameworkRow, reaches
from allocator.sim.ledger import Ledger

AMOUNT_MAX = 2**53
GPUS = "gpus"
GPU_CAPABILITY = "GPU_RESOURCES"


class Reason(IntEnum):
    """What became of a decision; the numbers are those of the protocol's OutcomeReason."""

    OFFERED = 1
    PARTIAL = 2
    PAUSED = 3
    UNKNOWN_FRAMEWORK = 4
    INACTIVE_FRAMEWORK = 5
    BAD_ROLE = 6
    SUPPRESSED = 7
    UNKNOWN_AGENT = 8
    INACTIVE_AGENT = 9
    CONSTRAINT = 10
    CAPABILITY = 11
    NOTHING_AVAILABLE = 12
    BELOW_MINIMUM = 13
    FILTERED = 14
    LIMIT = 15
    HEADROOM = 16
    MALFORMED = 17
    STALE = 18


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of what the sidecar decided.

    Attributes
    ----------
    framework, role, agent : int
        Handles.
    kinds : tuple of int
        Which kinds the amounts are of.
    amounts : tuple of int, thousandths
    """

    framework: int
    role: int
    agent: int
    kinds: tuple[int, ...]
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What comes of a decision.

    Attributes
    ----------
    reason : Reason
    amount : Amount
        What is to be offered; empty where nothing is.
    """

    reason: Reason
    amount: Amount = ()


def judge(ledger: Ledger, decision: Decision, sequence: int, now_ms: int) -> Verdict:
    """Pass a decision through the gates; the books are not touched.

    Parameters
    ----------
    ledger : Ledger
    decision : Decision
    sequence : int
        The batch that the decision answers: handles bound since then have another bearer.
    now_ms : int
    """
    reason = _who(ledger, decision, sequence) or _where(ledger, decision, sequence)
    if reason is not None:
        return Verdict(reason)
    wanted = _wanted(ledger, decision)
    if wanted is None:
        return Verdict(Reason.MALFORMED)
    available = ledger.agents[decision.agent].available()
    given = tuple(map(min, wanted, available))
    if not any(given):
        return Verdict(Reason.NOTHING_AVAILABLE)
    if not offerable(ledger, given):
        return Verdict(Reason.BELOW_MINIMUM)
    filters = ledger.filters[decision.framework].get((decision.role, decision.agent), ())
    if any(f.expires_ms >= now_ms and f.covers(given) for f in filters):
        return Verdict(Reason.FILTERED)
    return Verdict(Reason.OFFERED if given == wanted else Reason.PARTIAL, given)


def allows(framework: FrameworkRow, agent: AgentRow) -> bool:
    """Whether the agent has one of the allowed values of each attribute that is constrained."""
    return all(agent.attributes.get(name) in values for name, values in framework.allowed.items())


def offerable(ledger: Ledger, amount: Amount) -> bool:
    """Whether the amount reaches one of the minima."""
    if not ledger.minimum:
        return any(amount)
    return any(reaches(amount, least) for least in ledger.minimum)


def _who(ledger: Ledger, decision: Decision, sequence: int) -> Reason | None:
    if ledger.paused:
        return Reason.PAUSED
    framework = ledger.frameworks.get(decision.framework)
    if framework is None:
        return Reason.UNKNOWN_FRAMEWORK
    if framework.bound_sequence > sequence:
        return Reason.STALE
    if not framework.active:
        return Reason.INACTIVE_FRAMEWORK
    if decision.role not in framework.roles:
        return Reason.BAD_ROLE
    return Reason.SUPPRESSED if decision.role in framework.suppressed else None


def _where(ledger: Ledger, decision: Decision, sequence: int) -> Reason | None:
    agent = ledger.agents.get(decision.agent)
    if agent is None:
        return Reason.UNKNOWN_AGENT
    if agent.bound_sequence > sequence:
        return Reason.STALE
    if not agent.active:
        return Reason.INACTIVE_AGENT
    framework = ledger.frameworks[decision.framework]
    excluded = (decision.role, decision.agent) in ledger.excluded[decision.framework]
    if excluded or not allows(framework, agent):
        return Reason.CONSTRAINT
    if ledger.filter_gpus and GPU_CAPABILITY not in framework.capabilities and _gpus(ledger, agent):
        return Reason.CAPABILITY
    return None


def _gpus(ledger: Ledger, agent: AgentRow) -> int:
    return agent.capacity[ledger.kinds.index(GPUS)] if GPUS in ledger.kinds else 0


def _wanted(ledger: Ledger, decision: Decision) -> Amount | None:
    if len(decision.kinds) != len(decision.amounts):
        return None
    wanted = [0] * len(ledger.kinds)
    for kind, amount in zip(decision.kinds, decision.amounts, strict=True):
        if not (0 <= amount <= AMOUNT_MAX and 0 <= kind < len(wanted)):
            return None
        wanted[kind] += amount
    return tuple(wanted) if any(wanted) else None

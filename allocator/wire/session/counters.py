"""What happened since the sidecar began, in numbers."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """Totals over all sessions; they only grow.

    Attributes
    ----------
    messages : int
        Messages from modules, whatever they held.
    batches, cycles, decisions : int
    reclaims : int
        Frameworks that the last cycle over all agents asked to leave agents, counted with each.
    policy_errors : int
        Cycles that the fallback served because the policy failed.
    policy_error : str
        What failed last.
    sessions_opened : int
    events : Counter of str
        By the name of the field in `Event`, such as ``release``.
    outcomes : Counter of str
        By reason, such as ``offered`` or ``filtered``.
    errors : Counter of str
        Errors that were answered, by code, such as ``value``.
    mended : Counter of str
        Values that were put right instead of refused, by field (`mending.FIELDS`).
    sessions_closed : Counter of str
        By the code of the error that ended them, or ``left``.
    """

    messages: int = 0
    batches: int = 0
    cycles: int = 0
    decisions: int = 0
    reclaims: int = 0
    policy_errors: int = 0
    policy_error: str = ""
    sessions_opened: int = 0
    events: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    sessions_closed: Counter[str] = field(default_factory=Counter)

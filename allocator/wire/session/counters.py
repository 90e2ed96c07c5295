"""What happened since the sidecar began, in numbers."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """Totals over all sessions; they only grow.

    `messages`: messages from modules, whatever they held.
    `reclaims`: frameworks that the last cycle over all agents asked to leave agents, counted with
        each.
    `policy_errors`: cycles that the fallback served because the policy failed.
    `policy_error`: what failed last.
    `events`: by the name of the field in `Event`, such as ``release``.
    `outcomes`: by reason, such as ``offered`` or ``filtered``.
    `errors`: errors that were answered, by code, such as ``value``.
    `mended`: values that were put right instead of refused, by field (`mending.FIELDS`).
    `sessions_closed`: by the code of the error that ended them, or ``left``.
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

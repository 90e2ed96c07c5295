"""Topics: the keys under which demands and durations are remembered for similar frameworks."""

import re
from functools import lru_cache
from typing import TypeAlias

from allocator.core.events import FrameworkInfo

Topic: TypeAlias = tuple[str, str, str]
"""A role's path; ``name``, ``principal`` or ``user``; the pattern of the name, or the value."""

_NUMBERS = re.compile(r"[0-9]+(?:[-_.:/ ]?[0-9]+)*")


@lru_cache(maxsize=4096)
def name_pattern(name: str) -> str:
    """Return the part of a name that similar jobs share.

    >>> name_pattern("pi-2-17"), name_pattern("report 2026-11-22")
    ('pi-#', 'report #')
    """
    return _NUMBERS.sub("#", name)


def name_topic(role: str, info: FrameworkInfo) -> Topic:
    return role, "name", name_pattern(info.name)


def wide_topics(role: str, info: FrameworkInfo) -> list[Topic]:
    """Return the topics of the same principal, and of the same user."""
    both = (("principal", info.principal), ("user", info.user))
    return [(role, kind, who) for kind, who in both if who]

"""Topics: keys under which what was learnt from frameworks is remembered for similar ones."""

import re
from functools import lru_cache
from typing import TypeAlias

from allocator.core.events import FrameworkInfo

Topic: TypeAlias = tuple[str, str, str]
"""Path of a role; ``name``, ``principal`` or ``user``; and which."""

_NUMBERS = re.compile(r"[0-9]+(?:[-_.:/ ]?[0-9]+)*")


@lru_cache(maxsize=4096)
def name_pattern(name: str) -> str:
    """Return the part of a name that similar jobs share.

    >>> name_pattern("pi-2-17"), name_pattern("report 2026-11-22")
    ('pi-#', 'report #')
    """
    return _NUMBERS.sub("#", name)


def name_topic(role: str, info: FrameworkInfo) -> Topic:
    """The topic of frameworks with the same name."""
    return role, "name", name_pattern(info.name)


def wide_topics(role: str, info: FrameworkInfo) -> list[Topic]:
    """The topics of frameworks of any name, by the same principal or user."""
    both = (("principal", info.principal), ("user", info.user))
    return [(role, kind, who) for kind, who in both if who]

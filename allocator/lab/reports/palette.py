"""How policies and modes look in pictures: the same everywhere.

The first eight colours are those of Okabe and Ito, which the colour-blind tell apart.
"""

import zlib
from typing import Any

from allocator.policies import POLICIES

COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b8a800"),
    *("#7f7f7f", "#8c564b", "#6a3d9a", "#b2182b", "#1b7837"),
)

_DASHED = "oblivious"


def colour_of(policy: str) -> str:
    """Give a policy's colour; one that is a plugin has always the same one, too."""
    known = list(POLICIES)
    place = known.index(policy) if policy in known else zlib.crc32(policy.encode())
    return COLOURS[place % len(COLOURS)]


def line_of(name: str) -> dict[str, Any]:
    """Give colour and line style to a run whose name begins with its policy and mode.

    Examples
    --------
    >>> line_of("drf oblivious")
    {'color': '#0072b2', 'linestyle': '--'}
    >>> line_of("drf characterised staged")
    {'color': '#0072b2', 'linestyle': '-'}
    """
    policy, _, rest = name.partition(" ")
    return {"color": colour_of(policy), "linestyle": "--" if rest.startswith(_DASHED) else "-"}


def bar_of(name: str) -> dict[str, Any]:
    """Give colour and hatching to a bar of such a run."""
    look = line_of(name)
    return {"color": look["color"], "hatch": "//" if look["linestyle"] == "--" else ""}

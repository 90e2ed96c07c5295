"""What a file may hold that no configuration does: it is refused before anything looks at it."""

from collections.abc import Iterator
from typing import Any

BYTES_MAX = 4 * 2**20
"""A larger file is no configuration; a thousand rules take a fortieth of it."""

DEPTH_MAX = 16
"""Tables in tables; the options need four. Much deeper ones exhaust the stack of who walks them."""

VALUE_LINES_MAX = 1000
"""Lines of one value. What stands behind a longer one is told without its line."""

PROBLEMS_MAX = 100
"""So many problems are told of one file."""

TOO_DEEP = f"is nested too deeply; {DEPTH_MAX} levels are enough for every option"


def unlikely(tree: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Say where a tree is too deep, and which texts the system cannot take: key, and the mend."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), tree)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, str) and "\0" in value:
            yield key, "holds a NUL character; leave it out"
        elif isinstance(value, dict | list) and len(key) >= DEPTH_MAX:
            yield key[:2], TOO_DEEP
            return
        elif isinstance(value, dict):
            pending += (((*key, name), part) for name, part in value.items())
        elif isinstance(value, list):
            pending += (((*key, place), part) for place, part in enumerate(value))

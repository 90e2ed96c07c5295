"""A copy of the agents and of their allocation, for display.

`take` copies on the books' thread; everything else works on the copy, on any thread.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from allocator.core import Allocator, Bools, Floats, Ints
from allocator.explain import agent_name


class AgentRows(NamedTuple):
    """A copy of n agents.

    `on` (n,): whether the agent may be offered: it is active, and on the whitelist.
    `capacity`, `used`, `offered` (n, R), in thousandths; offered amounts are not used.
    `counted` (R,): resources that count towards shares.
    """

    name: tuple[str, ...]
    on: Bools
    capacity: Ints
    used: Ints
    offered: Ints
    resources: tuple[str, ...]
    counted: Bools


def take(allocator: Allocator, handles: Ints | None = None) -> AgentRows:
    """Copy some or all agents; on the books' thread."""
    state = allocator.state
    agents, space, ledger = state.agents, state.space, state.ledger
    rows = np.flatnonzero(agents.bound) if handles is None else handles
    offered = space.by_column(ledger.offered_by_agent(), rows)
    return AgentRows(
        name=tuple([agent_name(agents.info[row], row) for row in rows.tolist()]),
        on=agents.ready[rows],
        capacity=space.by_column(agents.capacity, rows),
        used=space.by_column(ledger.books.agent_held, rows) - offered,
        offered=offered,
        resources=tuple(space.names),
        counted=space.counted.copy(),
    )


def part_of(amounts: Ints, capacity: Ints) -> Floats:
    """Return amounts (n, R) as fractions of capacity; 0 for resources that an agent lacks."""
    return np.divide(amounts, capacity, out=np.zeros(amounts.shape), where=capacity > 0)


@lru_cache(maxsize=1)
def order_of(names: tuple[str, ...]) -> Ints:
    """Order of names, (n,); cached, because agents change rarely and the page is loaded often."""
    return np.array(sorted(range(len(names)), key=lambda row: natural(names[row])), np.int64)


def natural(name: str) -> tuple[str, tuple[int, ...], str]:
    """Sort key by which numbers in names compare as numbers.

    >>> sorted(["rack-10", "gpu-2", "rack-9"], key=natural)
    ['gpu-2', 'rack-9', 'rack-10']
    """
    numbers = tuple(int(each) for each in re.findall(r"[0-9]{1,18}", name))
    return re.sub(r"[0-9]+", "0", name), numbers, name

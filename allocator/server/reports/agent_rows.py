"""A copy of the agents and what is held on them, for display.

`take` copies on the books' thread; the rest works on the copy, on any thread.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from allocator.core import Allocator, Bools, Floats, Ints
from allocator.explain import agent_name


class AgentRows(NamedTuple):
    """A copy of the agents, n of them.

    `name`: hosts, or ids.
    `on` (n,): may be offered: active, and on the whitelist.
    `capacity`, `used`, `offered` (n, R), in thousandths: what is on offer is not in use.
    `resources`, R names.
    `counted` (R,): which count towards shares.
    """

    name: tuple[str, ...]
    on: Bools
    capacity: Ints
    used: Ints
    offered: Ints
    resources: tuple[str, ...]
    counted: Bools


def take(allocator: Allocator, handles: Ints | None = None) -> AgentRows:
    """Copy some of the agents, or all of them; on the books' thread."""
    state = allocator.state
    agents, space, ledger = state.agents, state.space, state.ledger
    rows = np.flatnonzero(agents.bound) if handles is None else handles
    offered = space.by_column(ledger.offered_by_agent()[rows])
    return AgentRows(
        name=tuple([agent_name(agents.info[row], row) for row in rows.tolist()]),
        on=agents.ready[rows],
        capacity=space.by_column(agents.capacity[rows]),
        used=space.by_column(ledger.books.agent_held[rows]) - offered,
        offered=offered,
        resources=tuple(space.names),
        counted=space.counted.copy(),
    )


def part_of(amounts: Ints, capacity: Ints) -> Floats:
    """Amounts (n, R) as parts of capacity; 0 of what an agent has not."""
    return np.divide(amounts, capacity, out=np.zeros(amounts.shape), where=capacity > 0)


@lru_cache(maxsize=1)
def order_of(names: tuple[str, ...]) -> Ints:
    """Put names in order, (n,); agents change seldom, and the page is looked at often."""
    return np.array(sorted(range(len(names)), key=lambda row: natural(names[row])), np.int64)


def natural(name: str) -> tuple[str, tuple[int, ...], str]:
    """Sort by this, so that numbers in names count as numbers.

    Examples
    --------
    >>> sorted(["rack-10", "gpu-2", "rack-9"], key=natural)
    ['gpu-2', 'rack-9', 'rack-10']
    """
    numbers = tuple(int(each) for each in re.findall(r"[0-9]{1,18}", name))
    return re.sub(r"[0-9]+", "0", name), numbers, name

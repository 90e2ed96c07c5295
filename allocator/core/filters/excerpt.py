"""The filters on some agents, copied out of the table, for whoever looks at them later."""

import numpy as np

from allocator.core.numba.compiled import loop, loop_view
from allocator.core.snapshot import Bools, Filters, Indices, Ints


def excerpt(filters: Filters, agents: Ints, most: int) -> Filters | None:
    """Copy the filters on some agents.

    `agents` (J,): rows, ascending; of others the lists are empty.
    `most`: how many filters are copied at most.
    Returns None where there are more.
    """
    lists = loop_view(filters.head), loop_view(filters.next), loop_view(agents)
    rows, is_last = _gather(*lists, most)
    if len(rows) > most:
        return None
    # Neighbours in the copy are neighbours in the list; where one ends, the next agent's begins.
    following = np.arange(1, len(rows) + 1, dtype=np.int32)
    following[is_last] = -1
    head = np.full(len(filters.head), -1, np.int32)
    some = agents[filters.head[agents] >= 0]
    head[some] = np.flatnonzero(np.append(True, is_last[:-1])[: len(rows)])
    return filters._replace(
        head=head, next=following, client=filters.client[rows], amount=filters.amount[rows]
    )


@loop
def _gather(head: Indices, following: Indices, agents: Ints, most: int) -> tuple[Ints, Bools]:
    """Return the rows on agents, list by list, and which ends its list; at most one too many."""
    rows, is_last = np.empty(most + 1, np.int64), np.zeros(most + 1, np.bool_)
    count = 0
    for agent in agents:
        row = head[agent]
        while row >= 0 and count <= most:
            rows[count] = row
            row = following[row]
            is_last[count] = row < 0
            count += 1
    return rows[:count], is_last[:count]

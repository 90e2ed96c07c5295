"""Minimums of offers, as rows of amounts with the range of rows of each client."""

import numpy as np

from allocator.core.books.state import State
from allocator.core.demand.own_words import Minimum
from allocator.core.numba.compiled import loop, loop_view, part
from allocator.core.numba.memo import fixed
from allocator.core.snapshot import Bools, Ints


class MinimumRows:
    """Collects the minimums of all clients; unchanged ones are not converted again.

    A framework may keep changing one of sixteen alternatives in each of a thousand roles.
    """

    def __init__(self) -> None:
        self._columns: tuple[object, int] = (None, 0)
        self._read: dict[int, tuple[Minimum, bytes]] = {}

    def gather(self, state: State) -> tuple[Ints, Ints]:
        """Return the rows (M, R) of all minimums, and the range of rows of each client, (C, 2).

        The default rows come first. Clients with equal minimums share rows.
        """
        columns = state.space, len(state.space.names)
        if columns != self._columns:
            self._columns, self._read = columns, {}
        usual = state.options.minimum
        rows = [_rows(state, usual)]
        place, end = {(len(usual), rows[0]): (0, len(usual))}, len(usual)
        own, read = {}, {}
        for client, minimum in state.clients.minimum.items():
            known = self._read.get(client)
            if known is None or known[0] is not minimum:
                known = minimum, _rows(state, minimum)
            read[client], key = known, (len(minimum), known[1])
            if key not in place:
                place[key] = end, end + len(minimum)
                end += len(minimum)
                rows.append(known[1])
            own[client] = place[key]
        self._read = read
        of_client = np.tile(np.array([0, len(usual)]), (len(state.clients.framework), 1))
        of_client[list(own)] = np.array(list(own.values()), np.int64).reshape(-1, 2)
        table = np.frombuffer(b"".join(rows), np.int64).reshape(end, columns[1])
        return fixed(table), fixed(of_client)


def _rows(state: State, minimum: Minimum) -> bytes:
    """Convert one minimum to rows of columns, as bytes, for comparison and look-up."""
    return np.array([state.space.demanded(row) for row in minimum], np.int64).tobytes()


def reaches(amount: Ints, minimum: Ints) -> Bools:
    """Return which amounts (n, R) reach a row of the minimum (m, R), and are not empty."""
    rows = np.broadcast_to(np.array([0, len(minimum)]), (len(amount), 2))
    return reaches_own(amount, minimum, rows)


def reaches_own(amount: Ints, minimum: Ints, rows: Ints) -> Bools:
    """Return which amounts (n, R) reach a row in their ranges (n, 2) of rows of the minimum."""
    enough: Bools = _reached(loop_view(amount), loop_view(minimum), loop_view(rows))
    return enough


@loop
def _reached(amount: Ints, minimum: Ints, rows: Ints) -> Bools:
    enough = np.zeros(len(amount), np.bool_)
    for row in range(len(amount)):
        enough[row] = _is_offer(amount[row], minimum, rows[row, 0], rows[row, 1])
    return enough


@part()
def _is_offer(amount: Ints, minimum: Ints, first: int, end: int) -> bool:
    largest = 0
    for r in range(len(amount)):
        largest = max(largest, amount[r])
    if largest == 0 or first == end:
        return largest > 0
    for m in range(first, end):
        lacks = False
        for r in range(len(amount)):
            lacks |= amount[r] < minimum[m, r]
        if not lacks:
            return True
    return False

"""When filters expire: rows by the second in which they do, so that nothing else is looked at."""

import heapq

import numpy as np

from allocator.core.snapshot import Ints

_BITS = 10  # a page is 1024 ms
_SUPERFLUOUS_MAX = 1024
"""How many superfluous entries are allowed, beside one for each row in use."""


class Calendar:
    """Rows by the time at which they expire.

    When a row is freed before its time, its entry stays, and means nothing. Once most entries are
    such, everything is entered again.
    """

    def __init__(self) -> None:
        """Begin with nothing entered."""
        self._pages: dict[int, list[Ints]] = {}
        self._order: list[int] = []
        self._entered = 0

    def __len__(self) -> int:
        return self._entered

    def enter(self, rows: Ints, expires_ms: Ints) -> None:
        """Note when rows (N,) expire (N,)."""
        page = expires_ms >> _BITS
        # One list of rows for each page; the heap gives the earliest page.
        for number in np.unique(page).tolist():
            if number not in self._pages:
                self._pages[number] = []
                heapq.heappush(self._order, number)
            self._pages[number].append(rows[page == number])
        self._entered += len(rows)

    def due(self, now_ms: int) -> Ints:
        """Take out the rows of the pages that have begun before now, each once, ascending.

        What of them has not expired yet must be entered again.
        """
        found: list[Ints] = [np.empty(0, np.int64)]
        while self._order and self._order[0] << _BITS < now_ms:
            found += self._pages.pop(heapq.heappop(self._order))
        rows = np.concatenate(found)
        self._entered -= len(rows)
        return np.unique(rows)

    def is_overfull(self, live: int) -> bool:
        """Whether most entries are of rows that are gone, given how many rows are in use."""
        return self._entered > 2 * live + _SUPERFLUOUS_MAX

    def clear(self) -> None:
        """Take everything out."""
        self._pages.clear()
        self._order.clear()
        self._entered = 0

    def entered(self) -> dict[int, set[int]]:
        """All rows by page; for checks."""
        return {page: set(np.concatenate(rows).tolist()) for page, rows in self._pages.items()}

    @staticmethod
    def page_of(expires_ms: int) -> int:
        """The page of a time."""
        return expires_ms >> _BITS

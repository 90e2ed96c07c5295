"""The problem of a plan is copied by a forked process where that would hold the core for long.

Such a process has all memory as it was when it was forked. So the core waits for the fork alone.
Nothing that the process does changes this one, and its result is read on the thread that plans. In
a small cluster, or where no process can be forked, the core's thread makes the copy. No process is
forked while a solver is at work.
"""

from collections.abc import Callable
from typing import TypeVar

import structlog

from allocator.core import Allocator, nbytes_of
from allocator.server.system.disk import reason
from allocator.server.system.frozen import LARGE, ForkLaterError, Moment

RETRY_S = 60.0
"""After a process has failed, none is forked for this time."""

SIZE_S = 10.0
"""How long it is known how large the books are."""

_T = TypeVar("_T")
_log = structlog.get_logger()


class Apart:
    """Has problems of plans made by a process apart.

    `may_begin`: whether there may be such processes already: not while other threads load loops.
    `begun`, `failed`: processes that were forked, and those that gave no result.
    """

    def __init__(self, allocator: Callable[[], Allocator], clock: Callable[[], float]) -> None:
        """Look at this allocator; `clock` gives seconds."""
        self.may_begin: Callable[[], bool] = lambda: True
        self.begun = self.failed = 0
        self._allocator = allocator
        self._clock = clock
        self._failed_s: float | None = None
        self._size: tuple[float, int] | None = None

    def begin(self, work: Callable[[], _T]) -> Moment[_T] | None:
        """Begin a process that does some work; None if it is better done here."""
        if not self._wanted():
            return None
        try:
            moment = Moment(work, self._allocator().shared())
        except ForkLaterError:
            return None
        except OSError as error:
            self.fail(error)
            return None
        self.begun += 1
        return moment

    def fail(self, error: OSError) -> None:
        """Note that nothing came of a process; any thread may."""
        self.failed += 1
        self._failed_s = self._clock()
        _log.warning("the core's thread copies the problems of plans itself", error=reason(error))

    def _wanted(self) -> bool:
        now_s = self._clock()
        if not self.may_begin():
            return False
        if self._failed_s is not None and now_s - self._failed_s < RETRY_S:
            return False
        if self._size is None or now_s - self._size[0] >= SIZE_S:
            self._size = now_s, nbytes_of(self._allocator().kept())
        return self._size[1] >= LARGE

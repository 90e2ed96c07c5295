"""Work that would hold the core's thread for long is done by a forked process.

Such a process has all memory as it was when it was forked. So the core waits for the fork alone.
Nothing that the process does changes this one, and its result is read on the thread of whoever
asked. In a small cluster, or where no process can be forked, the core's thread does the work.

No process is forked while a solver is at work. In a large cluster a question waits for it on the
thread of whoever asked, up to `SOLVER_S`.
"""

import threading
from collections.abc import Callable
from typing import TypeVar, cast

import structlog

from allocator.core import Allocator, nbytes_of
from allocator.server.engine.commands import Ask
from allocator.server.system.disk import reason
from allocator.server.system.frozen import LARGE, ForkLaterError, Moment, may_fork

RETRY_S = 60.0
"""After a process has failed, so long none is forked."""

SOLVER_S = 1.0
"""A question waits so long for a solver; after that the core's thread answers it."""

SIZE_S = 10.0
"""How long it is known how large the books are."""

_T = TypeVar("_T")
_log = structlog.get_logger()


class Apart:
    """Has questions answered, and problems of plans made, by a process apart.

    `may_begin`: whether there may be such processes already: not while other threads load loops.
    `begun`, `failed`: processes that were forked, and those of which nothing came.
    """

    def __init__(self, allocator: Callable[[], Allocator], clock: Callable[[], float]) -> None:
        """Look at this allocator; `clock` gives seconds."""
        self.may_begin: Callable[[], bool] = lambda: True
        self.begun = self.failed = 0
        self._allocator = allocator
        self._clock = clock
        self._failed_s: float | None = None
        # One at a time: each may come to need as much memory as this process.
        self._place = threading.Lock()
        self._size: tuple[float, int] | None = None

    def ask(self, ask: Ask, work: Callable[[], _T], may: Callable[[], bool] = lambda: True) -> _T:
        """Have something worked out of one moment; on any thread but the core's.

        `ask`: has the core's thread do something.
        `work`: changes nothing, and gives what shares nothing with what changes. What it raises
            is raised here.
        `may`: whether it can be done apart from the core's thread, on which it is called.
        """
        with self._place:
            if self._is_large:
                may_fork(SOLVER_S)
            moment, found = ask(lambda: self._begun(work, may))
            if moment is None:
                return cast("_T", found)
            try:
                return moment.take()
            except OSError as error:
                self.fail(error)
        return ask(work)

    @property
    def _is_large(self) -> bool:
        """Whether a process was worth its fork when that was last looked at; on any thread."""
        return self._size is not None and self._size[1] >= LARGE

    # The core's thread.

    def begin(self, work: Callable[[], _T]) -> Moment[_T] | None:
        """Begin a process that does some work; None where it is better done here."""
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
        _log.warning("the core's thread works questions out itself", error=reason(error))

    def _begun(
        self, work: Callable[[], _T], may: Callable[[], bool]
    ) -> tuple[Moment[_T] | None, _T | None]:
        moment = self.begin(work) if may() else None
        return (moment, None) if moment else (None, work())

    def _wanted(self) -> bool:
        now_s = self._clock()
        if not self.may_begin():
            return False
        if self._failed_s is not None and now_s - self._failed_s < RETRY_S:
            return False
        if self._size is None or now_s - self._size[0] >= SIZE_S:
            self._size = now_s, nbytes_of(self._allocator().kept())
        return self._is_large

"""What bounds questions: a fifth of the core's time, and one answer in the making.

An answer is worked out on the thread of whoever asked. Where a dozen such threads run, the core's
waits for the interpreter's lock behind all of them, each time that it has let it go.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from allocator.server.engine.rpc_futures import fulfil

PART = 0.2
"""Part of the core's time that questions may take."""

SAVED_S = 0.5
"""What they took less is theirs later, up to this: one who asks now and then waits for nobody."""

_T = TypeVar("_T")


class Turn:
    """Whose turn it is to have an answer worked out."""

    def __init__(self) -> None:
        """Begin with nobody's."""
        self._lock = threading.Lock()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Wait so long for one's turn, which lasts as the context. Raises TimeoutError."""
        if not self._lock.acquire(timeout=max(seconds, 0.0)):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()


class Questions:
    """Questions that wait for the core's thread, which alone may touch them.

    Whoever may ask can ask without end, and each question holds decisions up for as long as it
    takes. So after one of t seconds the next waits for 4 t, unless there is time saved.

    `taken_s`: time that questions took so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with all that can be saved; `clock` gives seconds."""
        self.taken_s = 0.0
        self._clock = clock
        self._waiting: deque[tuple[Future[object], Callable[[], None]]] = deque()
        self._saved_s = SAVED_S
        self._seen_s = clock()

    def add(self, future: "Future[_T]", work: Callable[[], _T]) -> None:
        """Take a question; those that nobody waits for any more are forgotten."""
        self._waiting = deque(each for each in self._waiting if not each[0].cancelled())
        self._waiting.append((future, partial(fulfil, future, work)))  # type: ignore[arg-type]

    def rest_s(self) -> float | None:
        """How long until the next one may begin; None where none waits."""
        if not self._waiting:
            return None
        self._save()
        return max(-self._saved_s / PART, 0.0)

    def answer(self) -> None:
        """Answer the one that waits for longest."""
        _, answer = self._waiting.popleft()
        self._save()
        begun_s = self._clock()
        answer()
        took_s = self._clock() - begun_s
        self.taken_s += took_s
        self._saved_s -= took_s

    def answer_all(self) -> None:
        """Answer whoever waits, when there are no decisions to wait for any more."""
        while self._waiting:
            self.answer()

    def _save(self) -> None:
        now_s = self._clock()
        self._saved_s = min(self._saved_s + PART * (now_s - self._seen_s), SAVED_S)
        self._seen_s = now_s

"""Threads that restart after an unexpected error, which is logged and reported."""

import threading
import time
from collections.abc import Callable, Iterator

import structlog

AGAIN_S = (1.0, 60.0)

TOLD_S = 300.0

_log = structlog.get_logger()


class LastingThread(threading.Thread):
    """A thread of the server that restarts its work when that fails."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        """Set up the thread, without starting it.

        `work`: runs until the thread should end; if it raises, it is called again after a pause.
        """
        super().__init__(name=name, daemon=True)
        self._work = work
        self._ending = threading.Event()
        self._failed: tuple[float, str] | None = None

    def end(self) -> None:
        """End a pause, and do not call the work again if it fails."""
        self._ending.set()

    def pause(self, seconds: float) -> bool:
        """Pause the work; return whether to end."""
        return self._ending.wait(seconds)

    @property
    def failure(self) -> str:
        """The recent error; empty: none."""
        failed = self._failed
        return failed[1] if failed and time.monotonic() - failed[0] < TOLD_S else ""

    def run(self) -> None:
        pause_s, longest_s = AGAIN_S
        while True:
            begun_s, last = time.monotonic(), self._ending.is_set()
            try:
                self._work()
            except BaseException as error:  # noqa: BLE001 - no thread may die silently.
                self._failed = time.monotonic(), f"{type(error).__name__}: {error}"
                _log.exception("a thread failed and restarts", thread=self.name, in_s=pause_s)
            else:
                return
            if last:
                return
            if time.monotonic() - begun_s > longest_s:
                pause_s = AGAIN_S[0]
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, longest_s)


def failures() -> Iterator[tuple[str, str]]:
    for thread in threading.enumerate():
        if isinstance(thread, LastingThread) and thread.failure:
            yield thread.name, thread.failure


def log_what_threads_raise() -> None:
    def tell(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else ""
        _log.error("a thread ended with an error", thread=name, exc_info=args.exc_value)

    threading.excepthook = tell

"""Threads that restart after an unexpected error, which is logged and shown."""

import threading
import time
from collections.abc import Callable, Iterator

import structlog

AGAIN_S = (1.0, 60.0)
"""The pause after the first failure, and the longest one."""

TOLD_S = 300.0
"""How long `status` reports a failure."""

_log = structlog.get_logger()


class LastingThread(threading.Thread):
    """A thread of the server that restarts its work when it fails."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        """Prepare; nothing runs yet.

        `work`: runs until the thread is to end; if it raises it is called again, after a pause.
        """
        super().__init__(name=name, daemon=True)
        self._work = work
        self._ending = threading.Event()
        self._failed: tuple[float, str] | None = None

    def end(self) -> None:
        """Stop pausing: the next call of the work is the last one."""
        self._ending.set()

    @property
    def failure(self) -> str:
        """The recent error; empty if there was none."""
        failed = self._failed
        return failed[1] if failed and time.monotonic() - failed[0] < TOLD_S else ""

    def run(self) -> None:
        """Run the work, repeatedly if it fails."""
        pause_s, longest_s = AGAIN_S
        while True:
            begun_s, last = time.monotonic(), self._ending.is_set()
            try:
                self._work()
            except BaseException as error:  # noqa: BLE001 - none may die without a word.
                self._failed = time.monotonic(), f"{type(error).__name__}: {error}"
                _log.exception("a thread failed and begins again", thread=self.name, in_s=pause_s)
            else:
                return
            if last:
                return
            if time.monotonic() - begun_s > longest_s:
                pause_s = AGAIN_S[0]
            self._ending.wait(pause_s)
            pause_s = min(2 * pause_s, longest_s)


def failures() -> Iterator[tuple[str, str]]:
    """Names of threads that failed recently, with the errors."""
    for thread in threading.enumerate():
        if isinstance(thread, LastingThread) and thread.failure:
            yield thread.name, thread.failure


def log_what_threads_raise() -> None:
    """Log what ends any other thread."""

    def tell(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else ""
        _log.error("a thread ended with an error", thread=name, exc_info=args.exc_value)

    threading.excepthook = tell

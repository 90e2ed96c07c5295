"""The beginning and the end of a process that serves, and the signals that it receives."""

import os
import queue
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import structlog

from allocator.server.config import Config
from allocator.server.process import logs
from allocator.server.system import loop_cache
from allocator.server.system.compilation import Compilation
from allocator.server.system.lasting import log_what_threads_raise

EXIT_OK = 0
EXIT_FAILURE = 1

LOOK_S = 1.0

_log = structlog.get_logger()


def begin(config: Config, note: str) -> None:
    """Set up logging; `note`: a note for the operator, to be logged."""
    logs.configure(config.log.level, config.log.format)
    log_what_threads_raise()
    if note:
        _log.warning(note)


def end(compilation: Compilation, *, ended: bool = True) -> int:
    """Return the exit code, or exit at once if the compiler or another thread still runs.

    A normal exit would unload libraries that it uses.

    `ended`: whether all other threads have ended.
    """
    _log.info("done")
    if compilation.loads or not ended:
        loop_cache.remove_private()
        os._exit(EXIT_OK)
    return EXIT_OK


@contextmanager
def closing_children(compilation: Compilation) -> Iterator[Compilation]:
    try:
        yield compilation
    finally:
        compilation.stop()


class SignalInbox:
    """Received signals, until the process reads them."""

    def __init__(self) -> None:
        self.to_end = False
        self._to_reload = False
        # A signal handler may call `put`, but not `Event.set`: it would block forever if this
        # thread is inside `wait` or `clear` and holds the event's lock.
        self._any: queue.SimpleQueue[None] = queue.SimpleQueue()

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal; a second SIGINT ends the process at once."""
        if number == signal.SIGHUP:
            self._to_reload = True
        else:
            self.to_end = True
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
        self._any.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal; return whether to reload the configuration.

        If the system delivers a signal to another thread, this one handles it only after the
        timeout.
        """
        with suppress(queue.Empty):
            self._any.get(timeout=timeout_s)
        # A signal may arrive between any two steps, and must not be lost.
        if not self._to_reload:
            return False
        self._to_reload = False
        return not self.to_end


@contextmanager
def taking_signals() -> Iterator[SignalInbox]:
    inbox = SignalInbox()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, inbox.take) for number in numbers}
    try:
        yield inbox
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

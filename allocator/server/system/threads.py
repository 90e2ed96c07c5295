"""Runs users' code in threads: ignores the time of compilation, and keeps abandoned threads.

A thread cannot be ended from outside. If it still runs in a compiler when the interpreter ends, the
compiler's library is unloaded while in use.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from allocator.server.system import loop_cache

COMPILERS = ("numba", "llvmlite")
"""Packages that compile, load compiled code, or wait for another thread that does."""

LOOK_S = 0.05

PATIENCE_S = 2.0
"""Time after which the log says what is waited for; again after twice the time, and so on."""

_T = TypeVar("_T")

_left: list[threading.Thread] = []


def apart(
    name: str, work: Callable[[], _T], wait: Callable[[threading.Thread], None]
) -> tuple[_T] | None:
    """Run users' code in a new thread; None: it still runs after `wait`, and is abandoned.

    Raises what the code raises.
    """
    # Use lists, because the thread may still write to them after it is abandoned.
    found: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the calling thread.
            raised.append(error)

    # Copy the context, so that loops run in the thread as they do here.
    thread = threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True)
    thread.start()
    wait(thread)
    if raised:
        raise raised[0]
    if found:
        return (found[0],)
    leave(thread)
    return None


def wait_for(thread: threading.Thread, who: str, what: str, within_s: float) -> None:
    """Wait until a thread ends or has used its own time, without compilation; log the wait."""
    own_s, begun_s, said_s = 0.0, time.monotonic(), PATIENCE_S
    while thread.is_alive() and own_s < within_s:
        before_s = time.monotonic()
        compiling = compiles(thread)
        thread.join(LOOK_S)
        now_s = time.monotonic()
        if not compiling:
            own_s += now_s - before_s
        if now_s - begun_s > said_s and thread.is_alive():
            said_s *= 2
            _tell(who, "a compiler" if compiling else what, now_s - begun_s)


def _tell(who: str, what: str, waited_s: float) -> None:
    """Log what is waited for, or write it to stderr if logging is not set up."""
    import structlog  # slow to import, and not needed for `--help`

    if structlog.is_configured():
        structlog.get_logger().info(
            "users' code is being tried", code=who, waits_for=what, waited_s=round(waited_s)
        )
    else:
        sys.stderr.write(f"{who} is tried out: waiting for {what} for {waited_s:.0f} s\n")


def compiles(thread: threading.Thread) -> bool:
    """Whether a thread is in the compiler now, rather than in compiled code."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - no other way to look
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in COMPILERS:
            return True
        frame = frame.f_back
    return False


def leave(thread: threading.Thread) -> None:
    _left[:] = [each for each in _left if each.is_alive()]
    _left.append(thread)


def end_with(code: int) -> None:
    """End the process at once if an abandoned thread still runs."""
    if not any(each.is_alive() for each in _left):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    loop_cache.remove_private()
    os._exit(code)

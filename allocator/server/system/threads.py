"""Threads that run users' code: whether one compiles, and what becomes of those given up on.

A thread cannot be ended from outside. One that goes on while the interpreter ends may be in the
midst of a compiler, whose library is then torn down under it.
"""

import os
import sys
import threading

from allocator.server.system import loop_cache

COMPILERS = ("numba", "llvmlite")
"""Packages that compile, load what was compiled, or wait for another thread that does."""

_left: list[threading.Thread] = []


def compiles(thread: threading.Thread) -> bool:
    """Whether a thread is in a compiler now, and not in what it compiled."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001 - no other way to look
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in COMPILERS:
            return True
        frame = frame.f_back
    return False


def leave(thread: threading.Thread) -> None:
    """Give up on a thread, which may go on beside us."""
    _left[:] = [each for each in _left if each.is_alive()]
    _left.append(thread)


def end_with(code: int) -> None:
    """End the process at once where a thread goes on that was given up on; else do nothing."""
    if not any(each.is_alive() for each in _left):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    loop_cache.remove_private()
    os._exit(code)

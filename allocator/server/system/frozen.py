"""A frozen copy of this process, by fork.

A forked child has all memory as of that moment. Memory is shared until either side writes to
it, and then copied page by page. So the forking thread only waits for the copy of the page table.

The child has none of this process's other threads. So nothing may run there that waits for one of
them, or takes a library's lock: it only turns values into bytes.
"""

import gc
import os
import select
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from typing import NoReturn

SILENT_MS = 60_000
"""A child that is silent for longer is given up."""

LARGE = 1 << 24
"""Copying this many bytes takes longer than forking a process."""

_AT_ONCE = 1 << 16
_FILES_MAX = 1 << 20


def frozen(make: Callable[[], Iterator[bytes]]) -> Generator[bytes]:
    """Let a child produce pieces from the current state; any thread may read them.

    The child ends with the last reference to the iterator.

    Raises OSError: at once if there can be no child, later if it failed.
    """
    reads, writes = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns of threads, which our child does not touch.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
            if not child:
                _write(make, writes)
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    os.close(writes)
    pieces = _read(child, reads)
    next(pieces)  # it has started: from now on closing it ends the child
    return pieces


def _write(make: Callable[[], Iterator[bytes]], to: int) -> NoReturn:
    """Write all pieces; in the child."""
    status = 1
    try:
        # Do not run destructors of objects of other threads.
        gc.disable()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # A connection that the parent closes must not live on here.
        for before, after in pairwise((2, to, _FILES_MAX)):
            os.closerange(before + 1, after)
        for piece in make():
            _write_all(to, piece)
        status = 0
    except BaseException:  # noqa: BLE001 - no caller may go on in the child.
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _read(child: int, reads: int) -> Generator[bytes]:
    poll, status = select.poll(), None
    poll.register(reads, select.POLLIN)
    try:
        yield b""
        while True:
            if not poll.poll(SILENT_MS):
                raise TimeoutError(f"process {child} has written nothing for {SILENT_MS} ms")
            data = os.read(reads, _AT_ONCE)
            if not data:
                break
            yield data
        status = os.waitpid(child, 0)[1]
        if status:
            ended = os.waitstatus_to_exitcode(status)
            raise OSError(f"process {child}, which was forked, ended with {ended}")
    finally:
        os.close(reads)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _write_all(to: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(to, rest) :]

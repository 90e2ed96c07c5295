"""A moment of this process, kept by the operating system.

A child is forked: it has all memory as it was then. Memory is shared until either side writes to
it, and then copied page by page. So the forking thread waits for the page table alone.

Threads of this process are not there in the child. So nothing may run there that asks one of them,
or takes a lock of a library: what it does is to turn values into bytes.
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
    """Have pieces made by a child, of all that is as it is now; any thread may read them.

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
    next(pieces)  # it has begun: from now on closing it ends the child
    return pieces


def _write(make: Callable[[], Iterator[bytes]], to: int) -> NoReturn:
    """Write all pieces; in the child."""
    status = 1
    try:
        # No destructor of what belongs to other threads may run.
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

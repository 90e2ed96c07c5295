"""Makes a frozen copy of this process, by fork.

A forked child has all memory as of that moment. Memory is shared until one side writes to it, and
then copied page by page. So the forking thread only waits for the copy of the page table.

The child has none of this process's other threads. The code that runs in it must therefore not wait
for a thread, or take a library's lock: it only converts values to bytes.
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
"""Time without output after which a child is abandoned."""

LARGE = 1 << 24
"""Size in bytes above which forking is faster than copying."""

_AT_ONCE = 1 << 16
_FILES_MAX = 1 << 20


def frozen(make: Callable[[], Iterator[bytes]]) -> Generator[bytes]:
    """Let a child process produce pieces from the current state; any thread may read them.

    The child ends when the last reference to the iterator is dropped. Raises OSError, at once if no
    child can be made, later if the child fails.
    """
    reads, writes = os.pipe()
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns about other threads, which the child does not use.
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
    next(pieces)  # starts the generator, so that closing it ends the child
    return pieces


def _write(make: Callable[[], Iterator[bytes]], to: int) -> NoReturn:
    status = 1
    try:
        # Do not run destructors of other threads' objects.
        gc.disable()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # Close connections that are the parent's.
        for before, after in pairwise((2, to, _FILES_MAX)):
            os.closerange(before + 1, after)
        for piece in make():
            _write_all(to, piece)
        status = 0
    except BaseException:  # noqa: BLE001 - the child must not return to the caller.
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

"""Makes a frozen copy of this process, by fork.

A forked child has all memory as of that moment. Memory is shared until one side writes to it, and
then copied page by page. So the forking thread only waits for the copy of the page table.

The child has none of this process's other threads. The code that runs in it must therefore not wait
for a thread, or take a library's lock: it only converts values to bytes.
"""

import gc
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn

SILENT_S = 60.0
"""Time without output after which a child is abandoned."""

LARGE = 1 << 24
"""Size in bytes above which forking is faster than copying."""

_FILES_MAX = 1 << 20


def frozen(make: Callable[[], Iterator[bytes]]) -> Generator[bytes]:
    """Let a child process make pieces from the current state; return them, for any thread.

    The child ends when the last reference to the iterator is dropped. Raises OSError, at once if no
    child can be made, later if the child fails.
    """
    reads, writes = Pipe(duplex=False)
    try:
        with warnings.catch_warnings():
            # Python 3.12 warns about other threads, which the child does not use.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
            if not child:
                _write(make, writes)
    except OSError:
        reads.close()
        raise
    finally:
        writes.close()
    pieces = _read(child, reads)
    next(pieces)  # starts the generator, so that closing it ends the child
    return pieces


def _write(make: Callable[[], Iterator[bytes]], to: Connection) -> NoReturn:
    status = 1
    try:
        # Do not run destructors of other threads' objects.
        gc.disable()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # Close connections that are the parent's.
        for before, after in pairwise((2, to.fileno(), _FILES_MAX)):
            os.closerange(before + 1, after)
        for piece in make():
            to.send_bytes(piece)
        status = 0
    except BaseException:  # noqa: BLE001 - the child must not return to the caller.
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _read(child: int, reads: Connection) -> Generator[bytes]:
    status = None
    try:
        yield b""
        while True:
            if not reads.poll(SILENT_S):
                raise TimeoutError(f"process {child} has written nothing for {SILENT_S:g} s")
            try:
                piece = reads.recv_bytes()
            except EOFError:
                break
            yield piece
        status = os.waitpid(child, 0)[1]
        if status:
            ended = os.waitstatus_to_exitcode(status)
            raise OSError(f"process {child}, which was forked, ended with {ended}")
    finally:
        reads.close()
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

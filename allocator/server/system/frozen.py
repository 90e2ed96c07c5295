"""A moment of this process, kept by the operating system.

A child is forked: it has all memory as it was then. Memory is shared until either side writes to
it, and then copied page by page. So the forking thread waits for the page table alone.

Threads of this process are not there in the child. So nothing may run there that asks one of them,
or takes a lock of a library: what it does is to turn values into bytes.
"""

import gc
import io
import os
import pickle
import select
import signal
import struct
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, Generic, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

SILENT_MS = 60_000
"""A child that is silent for longer is given up."""

LARGE = 1 << 24
"""Copying this many bytes takes longer than forking a process."""

_AT_ONCE = 1 << 16
_FILES_MAX = 1 << 20

_T = TypeVar("_T")


class _Process:
    """Which process this is."""

    is_child = False


def is_child() -> bool:
    """Whether this is such a child: nothing changes here any more, and all that is done is lost."""
    return _Process.is_child


class ForkLaterError(OSError):
    """A solver is at work, and no process is forked meanwhile."""


class _Solving:
    """How many threads are inside a solver, and whether a process may be forked.

    Libraries that a solver calls may have threads and locks of their own, and a fork in the middle
    of such a call may never return. So both exclude each other.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """In a forked process there is neither a solver nor the fork that made it."""
        self._changed = threading.Condition(threading.Lock())
        self._threads = 0

    @contextmanager
    def solving(self) -> Iterator[None]:
        """Fork no process while this lasts; waits for a fork that is under way."""
        with self._changed:
            self._threads += 1
        try:
            yield
        finally:
            with self._changed:
                self._threads -= 1
                self._changed.notify_all()

    @contextmanager
    def forking(self) -> Iterator[None]:
        """Let no solver begin while this lasts. Raises ForkLaterError if one is at work."""
        with self._changed:
            if self._threads:
                raise ForkLaterError("a solver is at work")
            yield

    def may_fork(self, within_s: float = 0.0) -> bool:
        """Wait until no solver is at work, for a bounded time; returns whether none is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._threads, within_s)


_SOLVING = _Solving()
solving, may_fork = _SOLVING.solving, _SOLVING.may_fork


def frozen(make: Callable[[], Iterator[bytes]], files: Collection[int] = ()) -> Generator[bytes]:
    """Have pieces made by a child, of all that is as it is now; any thread may read them.

    The child ends with the last reference to the iterator.

    `files`: descriptors that the child needs.
    Raises OSError: at once where there can be no child, later where it failed. ForkLaterError where
    there can be none yet.
    """
    reads, writes = os.pipe()
    try:
        with _SOLVING.forking(), warnings.catch_warnings():
            # Python 3.12 warns of threads, which our child does not touch.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
            if not child:
                _SOLVING.begin_anew()
                _write(make, writes, files)
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    os.close(writes)
    pieces = _read(child, reads)
    next(pieces)  # it has begun: from now on closing it ends the child
    return pieces


def _write(make: Callable[[], Iterator[bytes]], to: int, files: Collection[int]) -> NoReturn:
    """Write all pieces; in the child."""
    status = 1
    _Process.is_child = True
    try:
        # No destructor of what belongs to other threads may run.
        gc.disable()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # A connection that the parent closes must not live on here.
        for before, after in pairwise((2, *sorted((to, *files)), _FILES_MAX)):
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


class Moment(Generic[_T]):
    """Something that a child computes of all that is as it is now; any thread may take it.

    What comes of it is pickled. Its arrays come through memory that both processes have, so that
    reading them holds no lock of the interpreter.
    """

    def __init__(self, make: Callable[[], _T], shared: Sequence[object] = ()) -> None:
        """Begin.

        `shared`: objects that never change; where they stand in the result, it has the very same.
            None stands for nothing.
        Raises OSError if there can be no child.
        """
        self._shared = shared
        self._memory = os.memfd_create("moment", os.MFD_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._memory)
        self._pieces = frozen(partial(_made, make, shared, self._memory), [self._memory])

    def take(self) -> _T:
        """Wait for the child, and give what it made; once.

        Raises what the work raised there, and OSError where the child failed.
        """
        try:
            for _ in self._pieces:
                pass  # it ends when all is written
            came, value = self._read()
        finally:
            self._close()
        if not came:
            raise cast("Exception", value)
        return cast("_T", value)

    def _read(self) -> tuple[bool, object]:
        """Read whether it came about, and what came of it."""
        try:
            at, size = _HEAD.unpack(os.pread(self._memory, _HEAD.size, 0))
            text = np.empty(size, np.uint8)
            _fill(self._memory, at, text)
            came, value = _Reader(io.BytesIO(text.data), self._memory, self._shared).load()
        except Exception as error:
            raise OSError(f"what a process has made cannot be read: {error}") from error
        return came, value


def _made(make: Callable[[], object], shared: Sequence[object], memory: int) -> Iterator[bytes]:
    """Work something out, and write it; in the child."""
    os.lseek(memory, _HEAD.size, os.SEEK_SET)
    try:
        result = True, make()
    except Exception as error:  # noqa: BLE001 - the caller gets it.
        result = False, error
    text = io.BytesIO()
    _Writer(text, memory, shared).dump(result)
    at = os.lseek(memory, 0, os.SEEK_CUR)
    _write_all(memory, text.getbuffer())
    os.pwrite(memory, _HEAD.pack(at, text.getbuffer().nbytes), 0)
    yield b""


_HEAD = struct.Struct("<QQ")
"""Where the pickled text begins, and its size; before it stand the arrays."""

_PLAIN = "biuf"


class _Writer(pickle.Pickler):
    """Writes arrays beside the text, each once, and of what is shared only which it is."""

    def __init__(self, text: io.BytesIO, memory: int, shared: Sequence[object]) -> None:
        super().__init__(text, pickle.HIGHEST_PROTOCOL)
        self._memory = memory
        places = enumerate(shared)
        self._shared = {id(each): place for place, each in places if each is not None}
        self._arrays: dict[int, tuple[int, str, tuple[int, ...], bool]] = {}
        # Keeps arrays alive: the `id` of one that is gone could be given to another one.
        self._seen: list[object] = []

    def persistent_id(self, value: Any) -> object:  # noqa: ANN401
        place = self._shared.get(id(value))
        if place is None and type(value) is np.ndarray and value.dtype.kind in _PLAIN:
            known = self._arrays.get(id(value))
            if known is None:
                known = self._arrays[id(value)] = self._written(value)
                self._seen.append(value)
            return known
        return place

    def _written(self, array: NDArray[Any]) -> tuple[int, str, tuple[int, ...], bool]:
        at = os.lseek(self._memory, 0, os.SEEK_CUR)
        if array.size:
            _write_all(self._memory, np.ascontiguousarray(array).reshape(-1).data.cast("B"))
        else:
            _write_all(self._memory, memoryview(b"\0"))  # no two stand at the same place
        return at, array.dtype.str, array.shape, array.flags.writeable


class _Reader(pickle.Unpickler):
    """The other side of it. Arrays own their memory, and may be written where they might there."""

    def __init__(self, text: io.BytesIO, memory: int, shared: Sequence[object]) -> None:
        super().__init__(text)
        self._memory = memory
        self._shared = shared
        self._arrays: dict[int, NDArray[Any]] = {}

    def persistent_load(self, which: Any) -> object:  # noqa: ANN401
        if isinstance(which, int):
            return self._shared[which]
        at, dtype, shape, writeable = which
        if at not in self._arrays:
            array = self._arrays[at] = np.empty(shape, dtype)
            if array.size:
                _fill(self._memory, at, array)
            array.flags.writeable = writeable
        return self._arrays[at]


def _write_all(to: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(to, rest) :]


def _fill(memory: int, at: int, array: NDArray[Any]) -> None:
    """Read an array, which is contiguous and not empty."""
    rest = array.reshape(-1).data.cast("B")
    while rest:
        count = os.preadv(memory, [rest], at)
        if not count:
            raise OSError("it is shorter than what was written")
        rest, at = rest[count:], at + count

"""The link between the deciding process and its observer, which it starts and restarts.

The observer is forked before any thread starts, so that it shares imported modules. If it ends, it
is restarted as a new program, because a process with threads cannot be forked safely.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import structlog

from allocator.server.config import Loaded
from allocator.server.config.exchange import write_loaded
from allocator.server.system import loop_cache

AGAIN_S = (1.0, 30.0)
"""First and longest pause before an observer that ended is restarted."""

END_S = 3.0
"""Time after SIGTERM at which an observer that has not ended is killed."""

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15

_log = structlog.get_logger()


class Link(NamedTuple):
    """The connection of the two processes.

    `directory`: has their sockets; only this user can enter it.
    `http`: file descriptor of the listening HTTP socket.
    """

    directory: Path
    http: int

    @property
    def decider(self) -> str:
        return f"unix:{self.directory}/decider"

    @property
    def observer(self) -> str:
        return f"unix:{self.directory}/observer"

    @property
    def configuration(self) -> Path:
        return self.directory / "configuration.json"


_PREFIX = "mesos-allocator-link-"
_ABANDONED_S = 60.0
"""Age from which a directory that is not locked was left by a process that was killed."""

_PATH_MAX = 60
"""Maximum length of the parent directory in bytes, since a socket's path has at most 107."""


def new_link(http: int) -> Link:
    """Make the directory, in the unit's or the system's temporary directory. Raises OSError.

    Removes those that killed processes of this user left there.
    """
    unit = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    places = [unit, tempfile.gettempdir(), "/tmp", "/dev/shm"]  # noqa: S108 - made for us alone
    for place in (each for each in places if each and len(os.fsencode(each)) <= _PATH_MAX):
        try:
            directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        except OSError:
            continue
        with suppress(OSError):  # on file systems without locks, directories are not removed
            _lock(directory)  # until this process ends
            _remove_abandoned(Path(place))
        return Link(directory, http)
    text = f"no directory for sockets can be made in {', '.join(filter(None, places))}"
    raise OSError(errno.EACCES, f"{text}; set TMPDIR to one that can be written")


def _lock(directory: Path) -> int:
    """Return the descriptor that holds the lock. Raises OSError."""
    found = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _remove_abandoned(place: Path) -> None:
    for found in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # locked, or removed meanwhile
            status = found.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _ABANDONED_S:
                lock = _lock(found)
                shutil.rmtree(found, ignore_errors=True)
                os.close(lock)


def call_process(name: str) -> None:
    """Set the name of this process for `ps` and `top`; at most 15 characters."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends.

    `parent`: the process of that thread, which may have ended already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class ObserverChild:
    """The observer's process, managed by the main thread of the deciding process."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._pid = 0
        self._pause_s, self._due_s = AGAIN_S[0], 0.0

    def fork(self, observe: Callable[[], int]) -> None:
        """Fork the observer; must be called before any thread starts. Raises OSError."""
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid:
            return
        code = 1
        try:
            end_with_parent(parent)
            code = observe()
        except BaseException:  # noqa: BLE001 - the child must not return into the parent's code.
            _log.exception("the observer failed")
        finally:
            os._exit(code)

    def look(self, loaded: Loaded) -> None:
        if self._pid:
            code = _ended(self._pid)
            if code is None:
                return
            self._pid, self._due_s = 0, time.monotonic() + self._pause_s
            _log.error("the observer ended and is restarted", code=code, in_s=self._pause_s)
            self._pause_s = min(2 * self._pause_s, AGAIN_S[1])
        if time.monotonic() >= self._due_s:
            self._start(loaded)

    def stop(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGTERM)
            until_s = time.monotonic() + END_S
            while _ended(self._pid) is None:
                if time.monotonic() > until_s:
                    os.kill(self._pid, signal.SIGKILL)
                time.sleep(0.01)
            self._pid = 0
        shutil.rmtree(self._link.directory, ignore_errors=True)

    def _start(self, loaded: Loaded) -> None:
        link = self._link
        try:
            link.configuration.write_text(write_loaded(loaded), "utf-8")
            module = "allocator.server.process.observing"
            self._pid = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", module, *map(str, (link.directory, link.http, os.getpid()))],
                stdin=subprocess.DEVNULL,
                pass_fds=(link.http,),
                env=os.environ | {"NUMBA_CACHE_DIR": loop_cache.directory()},
            ).pid
        except OSError as error:
            self._due_s = time.monotonic() + self._pause_s
            _log.error("the observer cannot be started", error=str(error), again_s=self._pause_s)


def _ended(pid: int) -> int | None:
    """Return the exit code of a child; None: it still runs."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1  # already reaped
    return os.waitstatus_to_exitcode(status) if found else None

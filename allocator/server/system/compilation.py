"""Loops that are compiled while the sidecar serves.

Where the cache is cold, child processes compile, and this process runs the same functions
interpreted: slowly, with the same decisions. When the children are done, the loops are loaded and
take over between two commands of the core; a cycle that is under way begins anew. Where that fails,
as without descriptors, it is tried again later.
"""

import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

import structlog

from allocator import core, explain, policies
from allocator.core.numba.compiled import compiled_here, interpret, supersede, tolerate_cache_errors
from allocator.server.system import loop_cache
from allocator.server.system.disk import reason

PARTS = ("agent-first", "client-first", "core", "plans")
"""What is compiled in a process of its own, what takes longest first."""

AGAIN_S = (60.0, 3600.0)
"""After a failure it is tried again: for the first time, and at the longest."""

_log = structlog.get_logger()


class Progress(NamedTuple):
    """How far the compiled loops of a process are.

    `state`: ``compiling``, ``loading``, ``compiled``; or ``failed``: until it is tried again the
        loops stay interpreted.
    `done`: how many of `PARTS` are compiled.
    """

    state: str
    done: int


COMPILED = Progress("compiled", len(PARTS))
"""That of a process that waits until its loops are compiled."""


def command(part: str) -> list[str]:
    """The command that compiles one part."""
    return [sys.executable, "-m", "allocator", "warm", "--part", part]


def command_aside(part: str) -> list[str]:
    """The same command at a lower priority, so that serving comes first."""
    return [*command(part), "--aside"]


def load(part: str = "") -> None:
    """Load all loops, or those of one part, in this process; compile what is not cached."""
    # Each call runs the loops once, which compiles them or takes them from the cache.
    if part in ("", "core"):
        core.warm(lambda _spec: core.GiveAll())
    if part in ("", "agent-first"):
        policies.warm("random")
        # Made of the same rules, which are understood once in a process.
        explain.warm()
    if part in ("", "client-first"):
        policies.warm("joint")
    if part in ("", "plans"):
        policies.warm_plans()


class Compilation:
    """How far the compiled loops of this process are.

    `done`: as in `Progress`.
    """

    def __init__(self, again_s: float = AGAIN_S[0]) -> None:
        """Begin interpreted; after a failure wait so long, then twice as long, and so on."""
        self.state = "compiling"
        self.done = 0
        self._loader: threading.Thread | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._begun_s = time.monotonic()
        self._again_s, self._due_s = again_s, 0.0
        interpret(True)
        tolerate_cache_errors()

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        return Progress(self.state, self.done)

    def remark(self) -> str:
        """What whoever asks for readiness should know; empty once the loops are compiled."""
        match self.state:
            case "compiling":
                return f"interpreted, loops compiled {self.done} of {len(PARTS)}"
            case "loading":
                return "interpreted, compiled loops are being loaded"
            case "failed":
                return "interpreted, the loops could not be compiled; see the log"
            case _:
                return ""

    @property
    def loads(self) -> bool:
        """Whether a thread is loading loops, which cannot be interrupted."""
        return self._loader is not None and self._loader.is_alive()

    def start(self) -> None:
        """Let children compile what is not cached; the calling thread must live on."""
        if loop_cache.is_complete():
            self.done = len(PARTS)
            return
        _log.info(
            "compiling the loops; until then they run interpreted, which decides the same, slowly",
            parts=len(PARTS),
        )
        try:
            for part in PARTS:
                self._children[part] = subprocess.Popen(  # noqa: S603 - our own command
                    command_aside(part), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
                )
        except OSError as error:
            self._fail(str(error))

    def look(self, operate: Callable[[Callable[[], None]], "Future[None]"]) -> None:
        """See how far the children are; when all are done, load what they compiled.

        After a failure, begin again when it is time.

        `operate`: runs a function between two commands of the core.
        """
        if self.state == "failed" and time.monotonic() >= self._due_s:
            self.state, self.done, self._begun_s = "compiling", 0, time.monotonic()
            self.start()
        for part, child in list(self._children.items()):
            code = child.poll()
            if code is None:
                continue
            del self._children[part]
            # One part failed: the others are stopped, and the loops stay interpreted.
            if code:
                self._fail(f"{part} ended with {_ending(code)}")
                return
            self.done += 1
            took_s = round(time.monotonic() - self._begun_s, 1)
            _log.info("compiled", part=part, done=self.done, of=len(PARTS), took_s=took_s)
        if self.state == "compiling" and not self._children:
            # All is in the cache: load it beside the core's thread, which goes on interpreted.
            self.state = "loading"
            try:
                loop_cache.mark_complete()
            except OSError as error:
                # What cannot be loaded is compiled here. The next process compiles again.
                _log.warning("the compiled loops cannot be kept", error=reason(error))
            try:
                loader = threading.Thread(
                    target=self._take_over, args=(operate,), name="loops", daemon=True
                )
                loader.start()
            except RuntimeError as error:  # no thread can be had now
                self._fail(str(error))
                return
            self._loader = loader

    def stop(self) -> None:
        """End the children."""
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.kill()
            child.wait()
        self._children.clear()

    def _take_over(self, operate: Callable[[Callable[[], None]], "Future[None]"]) -> None:
        """Load the loops, then let them take over; runs on a thread of its own."""
        try:
            _load_here()
            # A cycle that is under way is given up; then, between two commands, the switch is made.
            supersede()
            operate(lambda: interpret(False)).result()
        except BaseException as error:  # noqa: BLE001 - interpreted loops go on.
            self._fail(f"{type(error).__name__}: {error}")
            return
        # What was loaded stays for good: hundreds of thousands of objects. Every collection of
        # garbage that looked at them would stop the core for a tenth of a second.
        gc.freeze()
        self.state = "compiled"
        took_s = round(time.monotonic() - self._begun_s, 1)
        _log.info("the compiled loops have taken over", took_s=took_s)

    def _fail(self, why: str) -> None:
        self.stop()
        self._due_s = time.monotonic() + self._again_s
        self.state = "failed"
        _log.error(
            "the loops could not be compiled; they go on interpreted, which is slow with many"
            " agents; `mesos-allocator warm` shows why",
            error=why,
            again_in_s=self._again_s,
        )
        self._again_s = min(2 * self._again_s, AGAIN_S[1])


def _load_here() -> None:
    with compiled_here():
        load()


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

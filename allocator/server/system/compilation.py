"""Compiles and loads the loops before the sidecar accepts sessions.

If the loops are cached, they are loaded before the observer is forked, which then shares them
(`load_cached`). Otherwise child processes compile them, and each process loads them in a thread.
Until then the master's module decides; the few loops that queries about empty books need run as
plain Python. Failures, for example for lack of file descriptors, are retried later.
"""

import gc
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import NamedTuple

import structlog

from allocator import core, policies
from allocator.core.numba.compiled import (
    cached_only_here,
    compiled_here,
    interpret,
    tolerate_cache_errors,
)
from allocator.policies.filling import servable_pairs
from allocator.server.system import loop_cache
from allocator.server.system.disk import reason

PARTS = ("agent-first", "client-first", "core", "plans")
"""The parts, each compiled in a separate process, the slowest first."""

AGAIN_S = (60.0, 3600.0)

MEANWHILE = "no session begins until they are, and the master's module decides"

_log = structlog.get_logger()


class CompileProgress(NamedTuple):
    """The progress of a process's compiled loops.

    `state`: ``compiling``, ``loading``, ``compiled``; ``failed``: will be retried; ``plain``: loops
        run as plain Python, because NUMBA_DISABLE_JIT is set.
    `done`: number of `PARTS` that are compiled.
    `problem`: why no session can begin; empty: one can.
    """

    state: str
    done: int
    problem: str = ""


COMPILED = CompileProgress("compiled", len(PARTS))


def command(part: str) -> list[str]:
    return [sys.executable, "-m", "allocator", "warm", "--part", part]


RUN_IN = loop_cache.PACKAGE.parent
"""Working directory of the command: `-m` searches it first, so it should have these sources."""


def command_aside(part: str) -> list[str]:
    """Return the command with a lower priority, so that it does not slow down the master."""
    return [*command(part), "--aside"]


def load(part: str = "") -> None:
    """Load all loops, or those of one part, in this process; compile what is not cached."""
    # Each call runs loops once, which compiles them or loads them from the cache.
    if part in ("", "core"):
        core.warm(lambda _spec: core.GiveAll())
    if part in ("", "agent-first"):
        policies.warm("random")
        # It shares the rules of these loops, which are parsed once per process.
        servable_pairs.warm()
    if part in ("", "client-first"):
        policies.warm("joint")
    if part in ("", "plans"):
        policies.warm_plans()


def load_cached() -> None:
    """Load all loops in about a second if they are cached; a `Compilation` loads the rest."""
    if loop_cache.is_off() or not loop_cache.is_complete():
        return
    tolerate_cache_errors()
    # If the cache is damaged, or no descriptor is left, `Compilation` tries again and reports it.
    with suppress(Exception), cached_only_here(), compiled_here():
        load()
    _spare_the_core()


def _spare_the_core() -> None:
    """Exclude all present objects from garbage collection, and collect new ones more rarely.

    To examine the loops' hundreds of thousands of objects takes a tenth of a second. With Python's
    own thresholds, collections take a seventh of the time that a large cluster's arrival needs.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


class Compilation:
    """The compilation and loading of this process's loops; fields as in `CompileProgress`."""

    def __init__(self, again_s: float = AGAIN_S[0], meanwhile: str = MEANWHILE) -> None:
        """Start without loading.

        `again_s`: pause after a failure; doubled each time.
        `meanwhile`: consequence of a failure, for the log.
        """
        self._meanwhile = meanwhile
        self.state = "compiling"
        self.done = 0
        self._loader: threading.Thread | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._begun_s = time.monotonic()
        self._again_s, self._due_s = again_s, 0.0
        self._failure = ""
        interpret(True)
        tolerate_cache_errors()

    @property
    def progress(self) -> CompileProgress:
        return CompileProgress(self.state, self.done, self.problem())

    @property
    def ready(self) -> bool:
        return self.state in {"compiled", "plain"}

    def problem(self) -> str:
        """Return why no session can begin; empty: one can."""
        for_s = time.monotonic() - self._begun_s
        match self.state:
            case "compiling":
                done = f"{self.done} of {len(PARTS)} parts done after {for_s:.0f} s"
                return f"compiling (about a minute, once): {done}"
            case "loading":
                return f"loading the compiled loops, after {for_s:.0f} s"
            case "failed":
                in_s = max(0.0, self._due_s - time.monotonic())
                why = f"the loops could not be compiled ({self._failure})"
                return f"{why}; retried in {in_s:.0f} s"
            case _:
                return ""

    @property
    def loads(self) -> bool:
        """Whether a thread is loading loops, which cannot be interrupted."""
        return self._loader is not None and self._loader.is_alive()

    def start(self) -> None:
        """Load cached loops, or start children that compile; the calling thread must stay alive."""
        if loop_cache.is_off():
            self.state, self.done = "plain", len(PARTS)
            _log.warning("NUMBA_DISABLE_JIT is set: loops run as plain Python, which is slow")
            return
        if loop_cache.is_complete():
            self.done = len(PARTS)
            self._begin_to_load()
            return
        _log.info("compiling the loops (about a minute, once)", parts=len(PARTS))
        try:
            for part in PARTS:
                self._children[part] = subprocess.Popen(  # noqa: S603 - our own command
                    command_aside(part),
                    cwd=RUN_IN,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
        except OSError as error:
            self._fail(str(error))

    def look(self) -> None:
        """Check on the children; when all are done, load the loops. Retry after a failure."""
        if self.state == "failed" and time.monotonic() >= self._due_s:
            self.state, self.done, self._begun_s = "compiling", 0, time.monotonic()
            self.start()
        for part, child in list(self._children.items()):
            code = child.poll()
            if code is None:
                continue
            del self._children[part]
            if code:  # `_fail` stops the others
                self._fail(f"{part} ended with {_ending(code)}")
                return
            self.done += 1
            took_s = round(time.monotonic() - self._begun_s, 1)
            _log.info("compiled", part=part, done=self.done, of=len(PARTS), took_s=took_s)
        if self.state == "compiling" and not self._children:
            try:
                loop_cache.mark_complete()
            except OSError as error:
                # Loops that cannot be loaded are compiled here; the next process compiles again.
                _log.warning("the compiled loops cannot be kept", error=reason(error))
            self._begin_to_load()

    def follow(self) -> None:
        if self.state == "failed" and time.monotonic() >= self._due_s:
            self.state = "compiling"
        if loop_cache.is_off():
            self.state = "plain"
        elif self.state == "compiling" and loop_cache.is_complete():
            self._begin_to_load()

    def stop(self) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.kill()
            child.wait()
        self._children.clear()

    def _begin_to_load(self) -> None:
        """Load in a separate thread, so that signals and the watchdog are handled meanwhile."""
        self.state = "loading"
        try:
            loader = threading.Thread(target=self._load, name="loops", daemon=True)
            loader.start()
        except RuntimeError as error:  # the thread cannot be started
            self._fail(str(error))
            return
        self._loader = loader

    def _load(self) -> None:
        try:
            with compiled_here():
                load()
        except BaseException as error:  # noqa: BLE001 - the process continues, and tries again.
            self._fail(f"{type(error).__name__}: {error}")
            return
        _spare_the_core()
        interpret(False)
        self.state = "compiled"

    def _fail(self, why: str) -> None:
        self.stop()
        self._failure = why
        self._due_s = time.monotonic() + self._again_s
        self.state = "failed"
        _log.error(
            f"the loops could not be compiled; {self._meanwhile}; `mesos-allocator warm` shows why",
            error=why,
            again_in_s=self._again_s,
        )
        self._again_s = min(2 * self._again_s, AGAIN_S[1])


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"

"""The thread that keeps what outlives the process, and how it is read at the start."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog
from google.protobuf import json_format
from google.protobuf.message import Message

from allocator.core import DemandMemory
from allocator.server.config import Config
from allocator.server.config.checks import NOWHERE
from allocator.server.operators.state_files import StateDirectory, StateError, UnreadableError
from allocator.server.system.disk import reason
from allocator.server.system.lasting import LastingThread
from allocator.v1 import settings_pb2 as pb
from allocator.wire import WireError
from allocator.wire.settings.operator_overlay import (
    Learnt,
    Overlay,
    read_learnt,
    read_overlay,
    write_learnt,
)

SETTINGS = "settings.json"
LEARNT = "learnt.json"

ANSWER_S = 10.0
"""How long the core may take to copy what was learnt; else the next time does."""

RETRY_S = 10.0
"""What could not be written is tried again after this time."""

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")
_log = structlog.get_logger()


class RestoredState(NamedTuple):
    """What an earlier process kept."""

    directory: StateDirectory | None
    """None: nothing is kept."""
    overlay: Overlay
    memory: DemandMemory
    problem: str = ""
    """Why nothing is kept, where that was wanted."""


def restore(config: Config) -> RestoredState:
    """Take the state directory, and read what is in it.

    Raises StateError where the directory that is configured cannot be used.
    """
    path, _ = directory_of(config)
    if not path:
        return RestoredState(None, Overlay(), DemandMemory())
    try:
        directory = StateDirectory(Path(path))
    except StateError as error:
        return _do_without(config, error)

    def read_memory(message: pb.KeptDemands) -> DemandMemory:
        return read_learnt(message, _now_ms(), config.learn.priors_max)

    try:
        overlay = _read(directory, SETTINGS, pb.KeptSettings(), read_overlay, Overlay)
        memory = _read(directory, LEARNT, pb.KeptDemands(), read_memory, DemandMemory)
    except UnreadableError as error:
        # To go on with it would write over what may be whole.
        directory.close()
        return _do_without(config, error)
    return RestoredState(directory, overlay, memory)


def directory_of(config: Config) -> tuple[str, str]:
    """Which directory is used, and who named it; empty: none."""
    if config.state.directory:
        named = config.state.directory
        return ("", "") if named == NOWHERE else (named, "state.directory")
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]  # as systemd sets it
    if given:
        return given, "STATE_DIRECTORY"
    journal = config.journal.path
    return (str(Path(journal).absolute().parent), "journal.path") if journal else ("", "")


def _do_without(config: Config, error: StateError) -> RestoredState:
    """Go on without a directory, and say what is lost; end where somebody named it."""
    path, named_by = directory_of(config)
    if named_by == "state.directory":
        raise StateError(f"{error}; mend it, set {named_by} to another, or to '{NOWHERE}'")
    text = "what operators set and what is learnt ends with the process"
    _log.warning(text, directory=path, named_by=named_by, error=str(error))
    return RestoredState(None, Overlay(), DemandMemory(), str(error))


def _read(
    directory: StateDirectory,
    name: str,
    message: _M,
    read: Callable[[_M], _T],
    nothing: Callable[[], _T],
) -> _T:
    """Read a file; one that is broken is set aside, and says so in one line.

    Raises UnreadableError where it cannot be read now.
    """
    try:
        content = directory.read(name)
        if content is None:
            return nothing()
        return read(json_format.ParseDict(content, message))
    except UnreadableError:
        raise
    except (StateError, WireError, ValueError, json_format.ParseError, RecursionError) as error:
        aside = directory.set_aside(name)
        _log.error(
            "a state file cannot be used: what it kept does not count, and it was set aside",
            file=str(directory.path / name),
            error=str(error),
            set_aside=str(aside),
        )
        return nothing()


def _now_ms() -> int:
    return int(time.time() * 1000)


class StateStore:
    """Writes what operators set as it changes, and what was learnt now and then.

    `problem` says why the last write failed, and is empty where it did not; `errors` how many did.
    """

    def __init__(
        self, directory: StateDirectory, learnt: Callable[[], Future[Learnt]], save_s: float
    ) -> None:
        """Prepare; nothing runs yet.

        `learnt` asks the core's thread for a copy of what was learnt; it is saved every `save_s`.
        """
        self.directory = directory
        self.problem = ""
        self.errors = 0
        self._learnt = learnt
        self._save_s = save_s
        self._changed = threading.Condition()
        self._pending: pb.KeptSettings | None = None
        self._number = 0
        self._tried = 0
        self._kept = 0
        self._saved: Learnt | None = None
        self._closing = False
        self._answer_s = ANSWER_S
        self._thread = LastingThread("keeper", self._run)

    def start(self) -> None:
        """Begin to keep."""
        self._thread.start()

    def close(self, within_s: float = ANSWER_S) -> None:
        """Keep what is left to be kept, and end; for what was learnt the core must still answer."""
        with self._changed:
            self._closing, self._answer_s = True, within_s / 2
            self._changed.notify_all()
        self._thread.end()
        self._thread.join(within_s)
        if not self._thread.is_alive():
            self.directory.close()

    def settings_changed(self, content: pb.KeptSettings) -> int:
        """Keep this; of two in short order the later is enough. Gives its number."""
        with self._changed:
            self._number += 1
            self._pending = content
            self._changed.notify_all()
            return self._number

    def await_kept(self, number: int, within_s: float) -> str:
        """Wait until that is kept; says why it is not, empty where it is."""
        with self._changed:
            tried = self._changed.wait_for(lambda: self._tried >= number, within_s)
            if self._kept >= number:
                return ""
            return self.problem if tried else "it could not be written in time"

    def _run(self) -> None:
        due_s = time.monotonic() + self._save_s
        while True:
            with self._changed:
                retry = self._tried > self._kept
                left_s = due_s - time.monotonic()
                self._changed.wait_for(
                    lambda: self._closing or self._tried < self._number,
                    min(left_s, RETRY_S) if retry else left_s,
                )
                closing, number, content = self._closing, self._number, self._pending
            if content is not None and self._kept < number:
                self._write_settings(number, content)
            if closing or time.monotonic() >= due_s:
                self._save_learnt()
                due_s = time.monotonic() + self._save_s
            if closing:
                return

    def _write_settings(self, number: int, content: pb.KeptSettings) -> None:
        written = self._write(SETTINGS, content)
        with self._changed:
            self._tried = number
            self._kept = number if written else self._kept
            self._changed.notify_all()

    def _save_learnt(self) -> None:
        asked = self._learnt()
        try:
            learnt = asked.result(self._answer_s)
        except TimeoutError:
            asked.cancel()
            return  # The core is busy; the next time does.
        if self._saved is None or learnt.entries != self._saved.entries:
            if not learnt.entries and self._saved is None:
                return
            if self._write(LEARNT, write_learnt(learnt, _now_ms())):
                self._saved = learnt

    def _write(self, name: str, content: Message) -> bool:
        try:
            plain = json_format.MessageToDict(content, preserving_proto_field_name=True)
            self.directory.write(name, plain)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told and tried again.
            self.errors += 1
            self._tell(f"{self.directory.path / name} cannot be written: {reason(error)}")
            return False
        self._tell("")
        return True

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.error("what operators set is not kept", error=problem, retry_s=RETRY_S)
        elif self.problem and not problem:
            _log.info("what operators set is kept again")
        self.problem = problem

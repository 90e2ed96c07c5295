"""Saves state that outlives the process, in a separate thread, and reads it at the start.

A file of the state directory is JSON: a version, a checksum, and the content. A new file is written
beside the old one, synced to the disk, and renamed over it. So after a crash or a power cut there
is either the old file or the new one.
"""

import json
import os
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import structlog
from google.protobuf import json_format
from google.protobuf.message import Message

from allocator.core import DemandMemory
from allocator.server.config import Config
from allocator.server.config.checks import NOWHERE
from allocator.server.system.disk import create, lock, read_regular, reason, set_aside
from allocator.server.system.lasting import LastingThread
from allocator.v1 import settings_pb2 as pb
from allocator.wire import WireError
from allocator.wire.settings.history import History, read_history
from allocator.wire.settings.learnt_demands import NOTHING_LEARNT, Learnt, read_learnt, write_learnt
from allocator.wire.settings.overlay import Overlay, read_overlay

VERSION = 2

BYTES_MAX = 2**30
"""Maximum size of a file; a larger one was not written by this package."""


class StateError(RuntimeError):
    """A directory or a file cannot be used; the text has its path, the reason, and the fix."""


class UnreadableError(StateError):
    """A file cannot be read now; it may be intact, so it is not touched."""


class StateDirectory:
    """A directory that one process at a time uses."""

    def __init__(self, path: Path) -> None:
        """Create the directory if necessary, and lock it. Raises StateError."""
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            taken = lock(path / "lock")
        except OSError as error:
            raise StateError(f"{path} cannot be used ({reason(error)})") from None
        if taken is None:
            raise StateError(f"{path} is used by another process")
        self._lock = taken

    def close(self) -> None:
        os.close(self._lock)

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a file; None if there is none.

        Raises StateError if it is damaged or of another version, UnreadableError if it cannot be
            read.
        """
        path = self.path / name
        try:
            kept = json.loads(read_regular(path, BYTES_MAX, links=False))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError(f"{path} cannot be read ({reason(error)})") from None
        except (ValueError, RecursionError):
            raise StateError(f"{path} is broken: it is not JSON") from None
        if not isinstance(kept, dict) or not isinstance(kept.get("content"), dict):
            raise StateError(f"{path} is broken: it has no content")
        if kept.get("version") != VERSION:
            raise StateError(f"{path} has version {kept.get('version')}; {VERSION} can be read")
        if kept.get("checksum") != _checksum(kept["content"]):
            raise StateError(f"{path} is broken: its checksum is wrong")
        return kept["content"]

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a file, synced to the disk. Raises OSError; then the file is unchanged."""
        kept = {"version": VERSION, "checksum": _checksum(content), "content": content}
        new = self.path / f"{name}.new"
        with os.fdopen(create(new), "w") as file:
            json.dump(kept, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / name)
        # Sync the directory, too, so that the name is on the disk.
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def set_aside(self, name: str) -> Path:
        """Rename a file that cannot be used; return its new path. Raises UnreadableError."""
        path = self.path / name
        try:
            return set_aside(path)
        except OSError as error:
            raise UnreadableError(f"{path} cannot be set aside ({reason(error)})") from None


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


SETTINGS = "settings.json"
HISTORY = "history.json"
LEARNT = "learnt.json"

ANSWER_S = 10.0
"""Maximum time for the core to copy learnt demands; then they are saved the next time."""

RETRY_S = 10.0

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")
_log = structlog.get_logger()


class RestoredState(NamedTuple):
    """The state saved by an earlier process."""

    directory: StateDirectory | None
    """None: nothing is saved."""
    overlay: Overlay
    history: History
    memory: DemandMemory
    problem: str = ""
    """Why nothing is saved, although a directory was configured."""


def restore(config: Config) -> RestoredState:
    """Lock the configured state directory, if any, and read its content. Raises StateError."""
    path, _ = directory_of(config)
    if not path:
        return RestoredState(None, Overlay(), History(), DemandMemory())
    try:
        directory = StateDirectory(Path(path))
    except StateError as error:
        return _do_without(config, error)

    def read_memory(message: pb.KeptDemands) -> DemandMemory:
        return read_learnt(message, _now_ms(), config.learn.priors_max)

    try:
        overlay = _read(directory, SETTINGS, pb.KeptSettings(), read_overlay, Overlay)
        history = _read(directory, HISTORY, pb.KeptHistory(), read_history, History)
        memory = _read(directory, LEARNT, pb.KeptDemands(), read_memory, DemandMemory)
    except UnreadableError as error:
        # Continuing would overwrite a file that may be intact.
        directory.close()
        return _do_without(config, error)
    return RestoredState(directory, overlay, history, memory)


def directory_of(config: Config) -> tuple[str, str]:
    """Return the directory in use, and what names it; empty: none."""
    if config.state.directory:
        named = config.state.directory
        return ("", "") if named == NOWHERE else (named, "state.directory")
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]  # as systemd sets it
    if given:
        return given, "STATE_DIRECTORY"
    journal = config.journal.path
    return (str(Path(journal).absolute().parent), "journal.path") if journal else ("", "")


def _do_without(config: Config, error: StateError) -> RestoredState:
    """Continue without a directory, and log what is lost; raise if the configuration names one."""
    path, named_by = directory_of(config)
    if named_by == "state.directory":
        raise StateError(f"{error}; fix it, set {named_by} to another, or to '{NOWHERE}'")
    text = "operators' settings and learnt demands are lost when the process ends"
    _log.warning(text, directory=path, named_by=named_by, error=str(error))
    return RestoredState(None, Overlay(), History(), DemandMemory(), str(error))


def _read(
    directory: StateDirectory,
    name: str,
    message: _M,
    read: Callable[[_M], _T],
    nothing: Callable[[], _T],
) -> _T:
    """Read a file; a damaged one is set aside and logged. Raises UnreadableError."""
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
            "a state file cannot be used and was set aside; its content is ignored",
            file=str(directory.path / name),
            error=str(error),
            set_aside=str(aside),
        )
        return nothing()


def _now_ms() -> int:
    return int(time.time() * 1000)


class StateStore:
    """Writes operators' settings when they change, and learnt demands periodically.

    `problem`: why the last write failed; empty if it did not.
    `errors`: number of failed writes.
    """

    def __init__(
        self, directory: StateDirectory, learnt: Callable[[], Future[Learnt]], save_s: float
    ) -> None:
        """Prepare; nothing runs yet.

        `learnt`: asks the core's thread for a copy of what was learnt; it is saved every `save_s`.
        """
        self.directory = directory
        self.problem = ""
        self.errors = 0
        self._learnt = learnt
        self._save_s = save_s
        self._changed = threading.Condition()
        self._pending: tuple[pb.KeptSettings, pb.KeptHistory] | None = None
        self._number = 0
        self._tried = 0
        self._kept = 0
        self._saved: Learnt | None = None
        self._saves_wanted = self._saves_tried = 0
        self._learnt_problem = ""
        self._closing = False
        self._answer_s = ANSWER_S
        self._thread = LastingThread("state", self._run)

    def start(self) -> None:
        self._thread.start()

    def close(self, within_s: float = ANSWER_S) -> None:
        """Write what is pending, and end; the core must still respond."""
        with self._changed:
            self._closing, self._answer_s = True, within_s / 2
            self._changed.notify_all()
        self._thread.end()
        self._thread.join(within_s)
        if not self._thread.is_alive():
            self.directory.close()

    def settings_changed(self, content: pb.KeptSettings, history: pb.KeptHistory) -> int:
        """Queue the settings for writing, in place of queued earlier ones; return their number."""
        with self._changed:
            self._number += 1
            self._pending = content, history
            self._changed.notify_all()
            return self._number

    def await_kept(self, number: int, within_s: float) -> str:
        """Wait until settings are saved; return why they are not, or nothing."""
        with self._changed:
            tried = self._changed.wait_for(lambda: self._tried >= number, within_s)
            if self._kept >= number:
                return ""
            return self.problem if tried else "it could not be written in time"

    def save_learnt(self, within_s: float) -> str:
        """Save what was learnt now; return why it is not saved, or nothing."""
        with self._changed:
            self._saves_wanted += 1
            number = self._saves_wanted
            self._changed.notify_all()
            tried = self._changed.wait_for(lambda: self._saves_tried >= number, within_s)
            return self._learnt_problem if tried else "it could not be written in time"

    def _run(self) -> None:
        due_s = time.monotonic() + self._save_s
        while True:
            with self._changed:
                retry = self._tried > self._kept
                left_s = due_s - time.monotonic()
                self._changed.wait_for(
                    lambda: (
                        self._closing
                        or self._tried < self._number
                        or self._saves_tried < self._saves_wanted
                    ),
                    min(left_s, RETRY_S) if retry else left_s,
                )
                closing, number, content = self._closing, self._number, self._pending
                wanted = self._saves_wanted
            if content is not None and self._kept < number:
                self._write_settings(number, *content)
            is_asked = self._saves_tried < wanted
            if closing or is_asked or time.monotonic() >= due_s:
                problem = self._save_learnt(always=is_asked)
                due_s = time.monotonic() + self._save_s
                with self._changed:
                    self._saves_tried, self._learnt_problem = wanted, problem
                    self._changed.notify_all()
            if closing:
                return

    def _write_settings(
        self, number: int, content: pb.KeptSettings, history: pb.KeptHistory
    ) -> None:
        # History first, so that it has the previous value of every change in force.
        written = self._write(HISTORY, history) and self._write(SETTINGS, content)
        with self._changed:
            self._tried = number
            self._kept = number if written else self._kept
            self._changed.notify_all()

    def _save_learnt(self, *, always: bool) -> str:
        """Save what was learnt; return why it is not saved, or nothing.

        `always`: even if nothing was learnt by this process; the file may be of an earlier one.
        """
        asked = self._learnt()
        try:
            learnt = asked.result(self._answer_s)
        except TimeoutError:
            asked.cancel()
            return "the core is busy"  # Try again the next time.
        before = self._saved.content if self._saved else NOTHING_LEARNT
        if always or learnt.content != before:
            if not self._write(LEARNT, write_learnt(learnt, _now_ms())):
                return self.problem
            self._saved = learnt
        return ""

    def _write(self, name: str, content: Message) -> bool:
        try:
            plain = json_format.MessageToDict(content, preserving_proto_field_name=True)
            self.directory.write(name, plain)
        except Exception as error:  # noqa: BLE001 - any error is reported and retried.
            self.errors += 1
            self._tell(f"{self.directory.path / name} cannot be written: {reason(error)}")
            return False
        self._tell("")
        return True

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.error("operators' settings cannot be saved", error=problem, retry_s=RETRY_S)
        elif self.problem and not problem:
            _log.info("operators' settings can be saved again")
        self.problem = problem

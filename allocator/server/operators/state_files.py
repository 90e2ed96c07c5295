"""The directory in which a sidecar keeps what outlives it.

A file is JSON: a version, a checksum, and the content. It is written beside the old one, brought to
the disk, and takes the place of that in one step. So after a crash, or a loss of power, there is
the old file or the new one.
"""

import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

from allocator.server.system.disk import create, lock, read_regular, reason

VERSION = 1

BYTES_MAX = 2**30
"""A larger file is none of ours."""


class StateError(RuntimeError):
    """A directory or a file that cannot be used: which, why, and the mend."""


class UnreadableError(StateError):
    """A file that cannot be read now: it may be whole, and is left alone."""


class StateDirectory:
    """A directory that one process at a time uses."""

    def __init__(self, path: Path) -> None:
        """Make it where there is none, and take it.

        Raises StateError where it cannot be written, or another process has it.
        """
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
        """Let another process take it."""
        os.close(self._lock)

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a file; None where there is none.

        Raises StateError where it is broken, or of another version. Raises UnreadableError where it
        cannot be read now.
        """
        path = self.path / name
        try:
            kept = json.loads(read_regular(path, BYTES_MAX, links=False))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError(f"{path} cannot be read ({reason(error)})") from None
        except (ValueError, RecursionError):
            raise StateError(f"{path} is broken: it is no JSON") from None
        if not isinstance(kept, dict) or not isinstance(kept.get("content"), dict):
            raise StateError(f"{path} is broken: it has no content")
        if kept.get("version") != VERSION:
            raise StateError(f"{path} has version {kept.get('version')}; {VERSION} can be read")
        if kept.get("checksum") != _checksum(kept["content"]):
            raise StateError(f"{path} is broken: its checksum is another one")
        return kept["content"]

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a file, so that it is on the disk when this returns.

        Raises OSError; then the file is as it was.
        """
        kept = {"version": VERSION, "checksum": _checksum(content), "content": content}
        new = self.path / f"{name}.new"
        with os.fdopen(create(new), "w") as file:
            json.dump(kept, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / name)
        # The name is on the disk when the directory is.
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def set_aside(self, name: str) -> Path:
        """Keep a file that cannot be used under another name; gives that.

        Raises UnreadableError where it stays where it is.
        """
        path = self.path / name
        aside = self.path / f"{name}.broken-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        try:
            path.replace(aside)
        except OSError as error:
            raise UnreadableError(f"{path} cannot be set aside ({reason(error)})") from None
        return aside


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"

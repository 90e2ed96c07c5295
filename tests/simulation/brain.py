"""The module's brain in this process, through its C interface: lines in, lines out."""

import ctypes
import os
from pathlib import Path

LIBRARY = "MESOS_ALLOCATOR_BRAIN"
"""Environment variable with the path of the library; `.ci/module` builds it."""


def library_path() -> Path | None:
    """The path of the library; None if the variable is not set."""
    given = os.environ.get(LIBRARY)
    return Path(given) if given and Path(given).exists() else None


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.allocator_brain_new.restype = ctypes.c_void_p
    library.allocator_brain_delete.argtypes = [ctypes.c_void_p]
    library.allocator_brain_run.restype = ctypes.c_void_p
    library.allocator_brain_run.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]
    return library


class Brain:
    """One brain; its messages are bytes in hexadecimal."""

    def __init__(self, path: Path) -> None:
        """Start a master."""
        self._library = _load(path)
        self._brain = self._library.allocator_brain_new()
        assert self._brain, "no memory"
        self.run("bytes")

    def run(self, lines: str) -> list[str]:
        """Run lines of a script; returns the brain's effects.

        Raises AssertionError if a line is not a command: a defect of the simulation, not of the
            brain.
        """
        text, size = lines.encode(), ctypes.c_size_t()
        said = self._library.allocator_brain_run(self._brain, text, len(text), ctypes.byref(size))
        assert said, "no memory"
        # Untrusted role names need not be UTF-8, and may contain line separators.
        answer = ctypes.string_at(said, size.value).decode("utf-8", "surrogateescape").split("\n")
        del answer[-1]
        wrong = [each for each in answer if each.startswith("error:")]
        assert not wrong, f"{lines!r}: {wrong}"
        return answer

    def close(self) -> None:
        """Close it: the master is dead."""
        self._library.allocator_brain_delete(self._brain)
        self._brain = None

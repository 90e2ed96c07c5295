"""Chooses the directory in which compiled loops are cached.

Each state of the sources, versions and processor has a separate directory: numba only checks the
file that contains a loop, so it would still use a loop compiled with an older function of another
file.
"""

import atexit
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
COMPLETE = "complete"
"""Name of a file that marks a directory as containing all loops."""

_BASE = "NUMBA_CACHE_DIR"
_PREFIX = "loops-"
_HOLD_LOOPS = re.compile(rb"\bcompiled import\b")
_ALL_OF = ("core/numba/", "core/snapshot.py", "policies/filling/")
"""Sources that have loops' types and parts; other source files are found by their content."""


_private: list[Path] = []


def prepare() -> str:
    """Choose the directory, and set it for numba, which must not have been imported yet.

    Returns a note for the operator; empty: none.
    """
    name = _PREFIX + _state()
    directories = [place / name for place in _places()]
    complete = next((each for each in directories if (each / COMPLETE).exists()), None)
    directory = next(filter(_is_writable, directories), None)
    note = ""
    if directory is None:
        base = directories[-1].parent
        directory = _private_copy(name, complete)
        if directory is None:
            directory = directories[-1]
            note = (
                f"compiled loops cannot be kept: no directory can be written; {_BASE} names another"
            )
        else:
            note = (
                f"{base} cannot be written: compiled loops are kept in {directory.parent} until the"
                f" end; {_BASE} names another directory"
            )
    elif complete is not None and not (directory / COMPLETE).exists():
        _copy(complete, directory)
    os.environ[_BASE] = str(directory)
    return note


def _places() -> list[Path]:
    """Directories that may contain those of loops, in order of preference."""
    if given := os.environ.get(_BASE):
        # A parent process passes its directory of loops: use one beside it.
        base = Path(given).absolute()  # child processes run elsewhere
        return [base.parent if base.name.startswith(_PREFIX) else base]
    # A checkout has its own cache. An installed package stores loops beside Python's bytecode, or
    # in the user's cache if it must not write there.
    checkout = PACKAGE.parent
    if (checkout / "pyproject.toml").is_file():
        return [checkout / ".cache" / "numba", _users_cache()]
    return [PACKAGE / "__pycache__", _users_cache()]


def _copy(complete: Path, directory: Path) -> None:
    """Fill an empty writable directory with the loops of a complete, read-only one."""
    try:
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            # Rename atomically, because other processes may read it meanwhile.
            copy = Path(scratch) / directory.name
            _copy_writable(complete, copy)
            copy.rename(directory)
    except OSError:
        return  # the disk is full, or another process was faster: the loops will be compiled


def _copy_writable(complete: Path, directory: Path) -> None:
    """Copy a directory of loops as writable: numba tests whether it can write where it reads."""
    shutil.copytree(complete, directory)
    for each in (directory, *directory.iterdir()):
        if each.is_dir():
            each.chmod(0o755)


def _private_copy(name: str, complete: Path | None) -> Path | None:
    """Make a directory of this process, as a copy of a complete one if there is one."""
    for place in (None, "/dev/shm"):  # noqa: S108 - the directory is made for us alone
        try:
            private = Path(tempfile.mkdtemp(prefix="mesos-allocator-", dir=place)) / name
            _private.append(private.parent)
            # A complete cache that is read-only, for example in an image, saves the compilation.
            if complete is not None:
                _copy_writable(complete, private)
            else:
                private.mkdir()
        except OSError:
            continue
        return private
    return None


@atexit.register
def remove_private() -> None:
    while _private:
        shutil.rmtree(_private.pop(), ignore_errors=True)


def directory() -> str:
    return os.environ[_BASE]


def is_complete() -> bool:
    """Whether the directory that `prepare` chose has all loops, or none is compiled."""
    return is_off() or (Path(os.environ[_BASE]) / COMPLETE).exists()


def is_off() -> bool:
    """Whether nothing is compiled in this process, so that loops run as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}


def mark_complete() -> None:
    """Mark the directory as complete. Raises OSError if it was removed, or cannot be written."""
    if not is_complete():  # a complete directory may belong to another user
        (Path(os.environ[_BASE]) / COMPLETE).touch()


def _users_cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(  # noqa: PTH118 - "~" may stay
        os.environ.get("HOME", "/nonexistent"), ".cache"
    )
    return Path(home) / "mesos-allocator"


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


@cache
def _state() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    versions = [version(name) for name in ("numba", "llvmlite", "numpy")]
    chosen = [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    processor = chosen if any(chosen) else [_processor()]
    digest.update(repr([sys.version_info[:2], versions, platform.machine(), processor]).encode())
    return digest.hexdigest()[:16]


def sources() -> Iterator[Path]:
    rooms = ("core", "explain", "policies", "solvers")
    for path in sorted(chain.from_iterable((PACKAGE / room).rglob("*.py") for room in rooms)):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(_ALL_OF) or _HOLD_LOOPS.search(path.read_bytes()):
            yield path


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n", maxsplit=1)[0].splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(line for line in lines if line.startswith(("flags", "model name")))

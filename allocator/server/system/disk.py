"""Reads and creates files with checks, for untrusted content, and describes failures."""

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
}

_FULL = (errno.ENOSPC, errno.EDQUOT)


def read_regular(path: str | Path, bytes_max: int, *, links: bool = True) -> bytes:
    """Read a whole regular file; other types, which may block or never end, are rejected.

    `links`: whether the path may be a symbolic link.

    Raises OSError.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    number = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        # Close the descriptor here: `open` raises without closing it if it is a directory.
        with open(number, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
    finally:
        os.close(number)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"has more than {bytes_max} bytes", str(path))
    return data


def read_stream(path: str | Path, bytes_max: int) -> bytes:
    """Read a stream, such as a pipe, to its end. Raises OSError."""
    with Path(path).open("rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"has more than {bytes_max} bytes", str(path))
    return data


def create(path: str | Path) -> int:
    """Create a new file for reading and writing, and replace any other. Raises OSError."""
    with suppress(FileNotFoundError):
        Path(path).unlink()
    # Do not follow a link that another process may create here meanwhile.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def set_aside(path: Path) -> Path:
    """Rename a file that cannot be used; return the new name. Raises OSError."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return path.replace(path.with_name(f"{path.name}.broken-{stamp}"))


def lock(path: str | Path) -> int | None:
    """Lock a file until the process ends or closes it; None: another has it. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError:
        os.close(file)
        raise
    return file


def reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return str(error)


def is_full(error: Exception | None) -> bool:
    """Whether the disk was full, which may be temporary, unlike other errors."""
    return isinstance(error, OSError) and error.errno in _FULL

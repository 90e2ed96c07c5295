"""The files of a journal: PATH, and those before it as PATH.1, PATH.2 and so on.

A start begins a file, too. So that a few starts cannot push out what a crash left, files go by
their size and age, not by their number.
"""

import os
import stat
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple

FILES_MAX = 1000
"""More are not kept, however small: each is renamed when another begins."""


class Keeping(NamedTuple):
    """How much is kept.

    `bytes_max`: size of a file.
    `files`: so many are kept whatever their size, and more while all are not larger than so many
        full ones; 1: none but the present one.
    `keep_s`: what was written last before that goes; 0: never.
    """

    bytes_max: int
    files: int = 2
    keep_s: float = 0.0


def older_files(path: Path) -> list[Path]:
    """Those before the present one, the newest first."""
    found = []
    for number in count(1):
        older = Path(f"{path}.{number}")
        if not os.path.lexists(older):
            break
        found.append(older)
    return found


def shift(path: Path) -> None:
    """Rename the present file to ``.1``, that to ``.2``, and so on. Raises OSError."""
    names = [path, *older_files(path)]
    if os.path.lexists(path):
        for number in range(len(names), 0, -1):
            names[number - 1].replace(f"{path}.{number}")


def remove_old(path: Path, keeping: Keeping, now_s: float | None = None) -> None:
    """Remove the oldest files, as far as they are too many, too large or too old.

    Raises OSError.
    """
    now_s = time.time() if now_s is None else now_s
    room = (keeping.files - 1) * keeping.bytes_max
    for number, older in enumerate(older_files(path), start=1):
        status = older.lstat()
        room -= status.st_size if stat.S_ISREG(status.st_mode) else 0
        crowded = number >= keeping.files and (room < 0 or keeping.files == 1)
        many = number >= max(keeping.files, FILES_MAX)
        stale = keeping.keep_s and now_s - status.st_mtime > keeping.keep_s
        if crowded or many or stale:
            older.unlink()

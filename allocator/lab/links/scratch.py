"""A directory for as long as this process lives, whatever ends it."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Its standard input ends with us. Somebody may still write for a moment, so it tries again.
_SWEEPER = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


@contextmanager
def scratch_directory(prefix: str) -> Iterator[Path]:
    """Make a directory that is removed at the end, also where this process is killed."""
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as directory,
        # In a session of its own: Ctrl-C on the terminal ends us, not whoever sweeps behind us.
        subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-I", "-S", "-c", _SWEEPER, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ),
    ):
        yield Path(directory)

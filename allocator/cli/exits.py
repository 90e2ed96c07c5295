"""What the process ends with."""

import sys
from contextlib import suppress
from contextvars import ContextVar
from enum import IntEnum
from typing import NoReturn

from allocator.plain import json_text, printable


class Exit(IntEnum):
    """Exit codes of `mesos-allocator`."""

    OK = 0
    FAILURE = 1
    """Anything that has no code of its own."""
    USAGE = 2
    """The command line does not parse."""
    UNREACHABLE = 3
    """No sidecar at the target, or no answer in time."""
    REFUSED = 4
    """The sidecar says that the request is wrong, or cannot be met now."""
    CONFIG = 78
    """The configuration is wrong (EX_CONFIG of sysexits.h)."""


class Check(IntEnum):
    """What `status --check` ends with: the codes that monitoring plugins have."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    """The sidecar does not answer, or decides nothing."""
    UNKNOWN = 3
    """The question could not be asked."""


CHECKING = ContextVar("CHECKING", default=False)
"""Whether the command is a check of monitoring, which reads the first line of what is printed."""

JSON_WANTED = ContextVar("JSON_WANTED", default=False)
"""Whether answers are wanted as JSON, and so errors."""


def fail(code: Exit, *lines: str) -> NoReturn:
    """Print errors and end; as JSON where answers are, on the stream that errors go to."""
    if CHECKING.get():
        found = Check.CRITICAL if code is Exit.UNREACHABLE else Check.UNKNOWN
        sys.stdout.write(f"{found.name}: {printable('; '.join(lines))}\n")
        sys.exit(found)
    if JSON_WANTED.get():
        error = {"code": int(code), "reason": code.name.lower(), "message": "; ".join(lines)}
        lines = (json_text({"error": error}),)
    else:
        lines = tuple(f"error: {printable(line)}" for line in lines)
    with suppress(OSError):  # where nobody reads it, the code must do
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    sys.exit(code)

"""Describes exceptions in a policy's code in one line: error, file, line and last calls."""

import sysconfig
import traceback
from pathlib import Path

CALLS = 3
"""Maximum number of calls in a description: the innermost ones."""

_OURS = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


class UserCodeError(RuntimeError):
    """A user's code failed; the text says how and where."""


def describe(error: BaseException) -> str:
    """Describe an exception and where it was raised, if possible in the policy author's code.

    Examples
    --------
    >>> describe(KeyError("cpus"))
    "KeyError: 'cpus'"
    """
    if isinstance(error, UserCodeError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    others = [each for each in frames if not each.filename.startswith(_OURS)]
    own = [each for each in others if not each.filename.startswith(_LIBRARIES)]
    last = (own or others)[-CALLS:]
    text = f"{type(error).__name__}: {error}"
    if not last:
        return text
    *callers, innermost = last
    text += f" at {innermost.filename}:{innermost.lineno} in {innermost.name}"
    for each in reversed(callers):
        where = "line " if each.filename == innermost.filename else f"{each.filename}:"
        text += f", called from {where}{each.lineno} in {each.name}"
    return text

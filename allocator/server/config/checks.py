"""Checks of options beyond simple bounds.

Checks of single options return the value or raise a `ValueError` that names valid values.
"""

import re
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import NoReturn

from pydantic_core import PydanticCustomError

from allocator.core import PolicySpec, parse_constraint, parse_hours, parse_quantities, refuse_long
from allocator.near import suggestion
from allocator.server.system.disk import read_regular
from allocator.server.system.tls_files import FILE_BYTES_MAX

ANY_NAME = "*"

ELSEWHERE = ContextVar("ELSEWHERE", default=False)
"""Whether the configuration is that of another machine, so that its files must not be opened
here."""

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?")

NOWHERE = "-"
"""Value of a directory option: nothing is saved."""


def one_of(text: str, known: Iterable[str]) -> str:
    words = list(known)
    if text not in words:
        message = f"must be one of {', '.join(map(repr, words))}{suggestion(text, words)}"
        raise ValueError(message)
    return text


def reject_at(key: str | int, message: str) -> NoReturn:
    """Report an option that is invalid in combination with others of its section."""
    raise PydanticCustomError("section", "{message}", {"key": key, "message": message})


def non_empty(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts:
        raise ValueError("must not be empty")
    return texts


def non_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def short(text: str) -> str:
    refuse_long(text)
    return text


def role_path(text: str) -> str:
    refuse_long(text)
    if not text or not all(text.split("/")):
        raise ValueError("is not a role; write it as 'eng' or 'eng/ads'")
    return text


def owner(text: str) -> str:
    if text and not re.fullmatch(r"[\w.-]*(:[\w.-]+)?", text):
        message = "must be user:group, :group or user, as in 'root:mesos'"
        raise ValueError(message)
    return text


def host_name(text: str) -> str:
    if text != ANY_NAME and not _HOST_NAME.fullmatch(text):
        raise ValueError(
            "must be the name of a host, without port or path, as in 'sidecar.example.org', or '*'"
        )
    return text


def readable_file(text: str) -> str:
    """Check a file that is read at start; empty: none."""
    if text and not ELSEWHERE.get():
        try:
            read_regular(text, FILE_BYTES_MAX)
        except OSError as error:
            message = f"cannot be read ({error.strerror}); name a readable file"
            raise ValueError(message) from None
    return text


def no_directory(text: str) -> str:
    """Check the path of a file that is written; a directory would be renamed as an old file."""
    try:
        is_directory = bool(text) and not ELSEWHERE.get() and Path(text).is_dir()
    except OSError as error:  # such as a name that is too long
        raise ValueError(f"cannot be a file ({error.strerror}); name another one") from None
    if is_directory:
        raise ValueError(
            f"is a directory; name a file in it, as in {str(Path(text) / 'journal')!r}"
        )
    return text


def absolute_directory(text: str) -> str:
    if text and text != NOWHERE and not text.startswith("/"):
        message = "must be an absolute path, as in '/var/lib/mesos-allocator', or '-' for none"
        raise ValueError(message)
    return text


def plugin_file(text: str) -> str:
    """Load the policies of a file, so that options can name them."""
    from allocator.server.plugins.loading import load_file

    if not ELSEWHERE.get():
        load_file(text)
    return text


def policy_name(text: str) -> str:
    from allocator.policies import POLICIES

    return one_of(text, POLICIES)


def optional_policy_name(text: str) -> str:
    """Check the name of a policy; empty: none."""
    return text and policy_name(text)


def selection_name(text: str) -> str:
    """Check the name of an agent selection; empty: the policy's default."""
    from allocator.policies import SELECTIONS

    return text and one_of(text, SELECTIONS)


def spec_that_builds(spec: PolicySpec, deadline_s: float) -> None:
    from allocator.server.plugins.guarded_policy import GuardedRegistry

    try:
        GuardedRegistry(deadline_s).check(spec)
    except ValueError as error:
        key, _, message = str(error).partition(": ")
        reject_at(key, message)


def non_empty_quantities(text: str) -> str:
    if not any(parse_quantities(text).values()):
        message = "names no positive amount; write one task's needs, as in 'cpus:2;mem:2048'"
        raise ValueError(message)
    return text


def non_empty_hours(text: str) -> str:
    if not parse_hours(text):
        raise ValueError("names no resource; write resource-hours, as in 'gpus:500h;cpus:20000h'")
    return text


def constraint_expression(text: str) -> str:
    if not parse_constraint(text):
        message = "holds for every agent; write clauses, as in 'zone=a|b; gpu_model!=K80; ssd'"
        raise ValueError(message)
    return text

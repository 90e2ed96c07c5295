"""What a shell completes: names that are known here, and those that a running sidecar knows.

A sidecar is asked for at most a second, and where it does not answer nothing is completed: whoever
presses the key waits, and wants no error.

Names that a sidecar knows are strangers' words, and a shell puts what is completed into its command
line as it is (bash) or evaluates it (zsh). So only names of harmless characters are completed.
"""

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

import typer

if TYPE_CHECKING:
    from allocator.cli.remote.connection import Connection

Completer: TypeAlias = Callable[[typer.Context, str], list[str]]

TIMEOUT_S = 1.0

_HARMLESS = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:@%+=,-]{0,254}")
"""What no shell, and not our own command line, takes for anything but a word: no name begins like
an option."""


class Mode(StrEnum):
    """How much an offer holds: all that is free, or whole tasks."""

    OBLIVIOUS = "oblivious"
    CHARACTERISED = "characterised"


def _of_sidecar(kind: str) -> Completer:
    """Complete names of a kind that the sidecar knows."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _names(context, kind, incomplete)

    return complete


roles, frameworks, agents = map(_of_sidecar, ("role", "framework", "agent"))


def amounts(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the names of resources in ``cpus:2;mem:2048``."""
    before, separator, last = incomplete.rpartition(";")
    # Bash puts a word into the line as it is. There an open quote keeps a semicolon, which would
    # else end the command, and not the sign before it.
    if "\\;" in os.environ.get("COMP_WORDS", ""):
        return []
    return [f"{before}{separator}{each}:" for each in _names(context, "resource", last)]


def policies(context: typer.Context, incomplete: str) -> list[str]:
    """Complete names of policies, those of users that the sidecar loaded among them."""
    return _beginning(incomplete, _policies(context))


def selections(_context: typer.Context, incomplete: str) -> list[str]:
    from allocator.policies import SELECTIONS

    return _beginning(incomplete, SELECTIONS)


def subtrees(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a role, and the policy behind the equals sign."""
    role, equals, policy = incomplete.partition("=")
    if not equals:
        return [f"{each}=" for each in roles(context, role)]
    return [f"{role}={each}" for each in policies(context, policy)]


def among(*known: str) -> Completer:
    def complete(_context: typer.Context, incomplete: str) -> list[str]:
        return _beginning(incomplete, known)

    return complete


def joined(complete: Completer) -> Completer:
    """Complete the last of several words that commas join."""

    def complete_last(context: typer.Context, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        used = before.split(",")
        return [f"{before}{comma}{each}" for each in complete(context, last) if each not in used]

    return complete_last


def _beginning(text: str, known: Iterable[str]) -> list[str]:
    return [each for each in known if each.startswith(text)]


def _names(context: typer.Context, of: str, prefix: str) -> list[str]:
    return _asked(context, "ListNames", "names", of=of, prefix=prefix)


def _policies(context: typer.Context) -> Iterable[str]:
    found = _asked(context, "GetPolicy", "policies") if "target" in context.params else []
    if not found:
        from allocator.policies import POLICIES

        return POLICIES
    return found


def _asked(context: typer.Context, rpc: str, field: str, **request: str) -> list[str]:
    """Ask the sidecar that the command would speak to; nothing where that fails.

    Whatever it says is looked through here, and comes from nowhere else.
    """
    import grpc

    from allocator.cli.remote.connection import call
    from allocator.v1.admin_pb2_grpc import AdminServiceStub

    # A file that cannot be read ends commands with a line; here it only means no completion.
    silent = contextlib.redirect_stderr(io.StringIO())
    nothing = contextlib.suppress(grpc.RpcError, SystemExit)
    with silent, nothing, _connection(context).open() as channel:
        response = call(AdminServiceStub(channel), rpc, TIMEOUT_S, **request)
        return [each for each in getattr(response, field) if _HARMLESS.fullmatch(each)]
    return []


def _connection(context: typer.Context) -> "Connection":
    from allocator.cli.remote.connection import Connection
    from allocator.cli.remote.leading import leader

    given = {each.name: context.params.get(each.name) for each in fields(Connection)}
    made = Connection(**{name: value for name, value in given.items() if value is not None})
    return leader(replace(made, timeout=TIMEOUT_S).each())

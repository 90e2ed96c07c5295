"""Shell completion of fixed names, and of names that a running sidecar knows.

A request to a sidecar takes at most one second. If it fails, nothing is completed and no error is
printed, because the user waits at the prompt.

Names from a sidecar are untrusted, and shells insert a completion into the command line unquoted
(bash) or evaluate it (zsh). Therefore only names of harmless characters are completed.
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
"""Names that every shell, and our own command line, reads as one plain word, for example not as an
option."""


class Mode(StrEnum):
    """Size of an offer: all that is free on an agent, or whole tasks."""

    OBLIVIOUS = "oblivious"
    CHARACTERISED = "characterised"


def _of_sidecar(kind: str) -> Completer:
    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _names(context, kind, incomplete)

    return complete


roles, frameworks, agents = map(_of_sidecar, ("role", "framework", "agent"))


def amounts(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the names of resources in ``cpus:2;mem:2048``."""
    before, separator, last = incomplete.rpartition(";")
    # Bash inserts a completion unquoted: it would drop the backslash of an escaped semicolon, which
    # would then end the command.
    if "\\;" in os.environ.get("COMP_WORDS", ""):
        return []
    return [f"{before}{separator}{each}:" for each in _names(context, "resource", last)]


def policies(context: typer.Context, incomplete: str) -> list[str]:
    return _beginning(incomplete, _policies(context))


def selections(_context: typer.Context, incomplete: str) -> list[str]:
    from allocator.policies import SELECTIONS

    return _beginning(incomplete, SELECTIONS)


def subtrees(context: typer.Context, incomplete: str) -> list[str]:
    role, equals, policy = incomplete.partition("=")
    if not equals:
        return [f"{each}=" for each in roles(context, role)]
    return [f"{role}={each}" for each in policies(context, policy)]


def among(*known: str) -> Completer:
    def complete(_context: typer.Context, incomplete: str) -> list[str]:
        return _beginning(incomplete, known)

    return complete


def joined(complete: Completer) -> Completer:
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
    """Ask the sidecar that the command would use; return nothing if that fails.

    Every name from a sidecar passes through this function, which drops unsafe ones.
    """
    import grpc

    from allocator.cli.remote.connection import call
    from allocator.v1.admin_pb2_grpc import AdminServiceStub

    # An unreadable file would end a command with an error; here nothing is completed.
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

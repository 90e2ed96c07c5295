"""Finds which of several sidecars leads: the one with a master's session.

Each of several masters has a sidecar, and only the leading master's sidecar has a session.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from allocator.cli.remote.connection import Connection
from allocator.cli.remote.output import plain
from allocator.cli.tree import Exit, fail

if TYPE_CHECKING:
    from allocator.v1 import admin_pb2


class Asked(NamedTuple):
    """The answer of one sidecar; `status`: None if it did not answer, for the reason `problem`."""

    connection: Connection
    status: "admin_pb2.GetStatusResponse | None"
    problem: str

    @property
    def leads(self) -> bool:
        return self.status is not None and self.status.in_session


def ask_all(connections: Sequence[Connection]) -> list[Asked]:
    """Request the status of all sidecars at once, each within its timeout; end if none answers."""
    import grpc

    from allocator.v1 import admin_pb2
    from allocator.v1.admin_pb2_grpc import AdminServiceStub

    found = []
    with ExitStack() as until_asked:
        channels = [until_asked.enter_context(each.open()) for each in connections]
        calls = [
            AdminServiceStub(channel).GetStatus.future(
                admin_pb2.GetStatusRequest(), timeout=each.timeout
            )
            for each, channel in zip(connections, channels, strict=True)
        ]
        for each, call in zip(connections, calls, strict=True):
            try:
                found.append(Asked(each, call.result(), ""))
            except grpc.RpcError as error:
                found.append(Asked(each, None, each.reason(error)[1]))
    if not any(each.status for each in found):
        fail(Exit.UNREACHABLE, *(each.problem for each in found))
    return found


def rows(found: Sequence[Asked]) -> dict[str, Any]:
    return {
        "sidecars": [
            {
                "target": each.connection.address,
                "leads": each.leads,
                "problem": each.problem,
                "status": None if each.status is None else plain(each.status),
            }
            for each in found
        ]
    }


def leader(connections: Sequence[Connection]) -> Connection:
    """Find the leading sidecar; end if none or several lead. A single sidecar is not asked."""
    if len(connections) == 1:
        return connections[0]
    found = ask_all(connections)
    leading = [each.connection for each in found if each.leads]
    if len(leading) > 1:
        names = ", ".join(each.address for each in leading)
        fail(Exit.FAILURE, f"masters have sessions with {names}; name one of them by --target")
    if not leading:
        said = [each.problem or f"{each.connection.address}: no master's session" for each in found]
        fail(Exit.UNREACHABLE, f"none of {len(found)} sidecars leads", *said)
    return leading[0]

"""Names that there are, for completion in a shell."""

from collections.abc import Callable, Iterable
from itertools import islice

from allocator.core import Allocator
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.views.views import Ask, RefusedError
from allocator.v1 import admin_pb2 as pb

NAMES_MAX = 500
"""Nobody reads more, and an answer stays small."""


def _frameworks(allocator: Allocator) -> list[str]:
    infos = [info for info in allocator.state.frameworks.info if info is not None]
    return [each for info in infos for each in (info.name, info.framework_id)]


def _agents(allocator: Allocator) -> list[str]:
    infos = [info for info in allocator.state.agents.info if info is not None]
    return [each for info in infos for each in (info.hostname, info.agent_id)]


def _roles(allocator: Allocator) -> list[str]:
    return [path or "" for path in allocator.state.roles.path]


def _resources(allocator: Allocator) -> Iterable[str]:
    return list(allocator.state.space.names)


_OF: dict[str, Callable[[Allocator], Iterable[str]]] = {
    "framework": _frameworks,
    "role": _roles,
    "agent": _agents,
    "resource": _resources,
}


def listed(loop: CoreLoop, ask: Ask, request: pb.ListNamesRequest) -> pb.ListNamesResponse:
    """List the names of a kind that begin in a way; the core's thread only copies.

    Raises RefusedError where there is no such kind of names.
    """
    find = _OF.get(request.of)
    if find is None:
        choice = ", ".join(_OF)
        raise RefusedError(f"of = {request.of!r}: there are no such names; choose from {choice}")
    found = {each for each in ask(lambda: find(loop.allocator)) if each}
    fitting = sorted(each for each in found if each.startswith(request.prefix))
    return pb.ListNamesResponse(names=islice(fitting, NAMES_MAX))

"""Lists roles, with their weights, quotas, and their frameworks' holdings."""

from collections.abc import Iterator, Mapping

import numpy as np

from allocator.core import UNBOUNDED, Bools
from allocator.explain import UnknownSubjectError
from allocator.server.reports.report import Report, below, frameworks_below, quantities_of
from allocator.server.views.lists.bounds import most_of
from allocator.v1 import admin_pb2 as pb


def write(books: Report, request: pb.ListRolesRequest) -> pb.ListRolesResponse:
    """Choose, in order of paths, and write; on any thread.

    Raises RejectedError and UnknownSubjectError.
    """
    most, paths = most_of(request.limit), books.roles.path
    for name in (*request.names, *([request.role] if request.role else ())):
        if not name or name not in paths:
            raise UnknownSubjectError("role", name, [each for each in paths if each])
    wanted = below(books, request.role) & (books.roles.depth > 0)
    if request.names:
        wanted &= np.isin(np.array(paths, object), list(request.names))
    found = sorted(np.flatnonzero(wanted).tolist(), key=lambda row: paths[row].split("/"))
    return pb.ListRolesResponse(
        roles=_written(books, found[:most]), left_out=len(found) - len(found[:most])
    )


def _written(books: Report, rows: list[int]) -> Iterator[pb.ListedRole]:
    frameworks = _frameworks_below(books, np.ones(len(books.clients.role), np.bool_))
    waiting = _frameworks_below(books, books.clients.waited > 0)
    quotas = {path: index for index, path in enumerate(books.quotas.path)}
    for row in rows:
        path = books.roles.path[row]
        role = pb.ListedRole(
            role=path,
            weight=float(books.roles.weight[row]),
            held=quantities_of(books.resources, books.role_held[row]),
            offered=quantities_of(books.resources, books.role_offered[row]),
            share=float(books.role_share[row]),
            frameworks=len(frameworks.get(path, ())),
            frameworks_waiting=len(waiting.get(path, ())),
            paused=bool(books.roles.paused[row]),
        )
        if path in quotas:
            _write_quota(role, books, quotas[path])
        yield role


def _write_quota(role: pb.ListedRole, books: Report, index: int) -> None:
    quotas = books.quotas
    guarantee, limit = quotas.guarantee[index], quotas.limit[index]
    named = (guarantee > 0) | (limit < UNBOUNDED)
    role.guarantee.CopyFrom(quantities_of(books.resources, guarantee))
    role.limit.CopyFrom(quantities_of(books.resources, limit, limit < UNBOUNDED))
    role.consumed.CopyFrom(quantities_of(books.resources, quotas.consumed[index], named))


def _frameworks_below(books: Report, which: Bools) -> Mapping[str, set[int]]:
    roles, frameworks = books.clients.role[which].tolist(), books.clients.framework[which].tolist()
    return frameworks_below(zip(map(books.roles.path.__getitem__, roles), frameworks, strict=True))

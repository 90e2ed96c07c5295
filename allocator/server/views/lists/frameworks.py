"""Frameworks, with what they hold and need in each of their roles."""

import heapq
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from allocator.core import Allocator, FrameworkInfo, State
from allocator.explain import UnknownSubjectError, handle_of_agent, rows_of_role
from allocator.server.reports import report
from allocator.server.reports.agent_rows import natural
from allocator.server.reports.report import Report, quantities_of, write_client
from allocator.server.views.lists.bounds import PARTS_MAX, check_state, most_of, true_names
from allocator.v1 import admin_pb2 as pb

STATES = ("active", "inactive", "suppressed", "waiting")


def list_frameworks(
    allocator: Allocator, request: pb.ListFrameworksRequest
) -> pb.ListFrameworksResponse:
    """Choose and read.

    Raises UnknownWordError and UnknownSubjectError.
    """
    check_state(request.state, STATES)
    most = most_of(request.limit)
    books = report.read(allocator)
    rows = _rows_by_framework(allocator.state, books)
    found = [each for each in _chosen(allocator.state, request) if each in rows]
    states = {each: _states(allocator.state, books, each, rows[each]) for each in found}
    if request.state:
        found = [each for each in found if request.state in states[each]]
    infos = allocator.state.frameworks.info

    def name(handle: int) -> tuple[object, str]:
        info = infos[handle] or FrameworkInfo("")
        return natural(info.name or info.framework_id), info.framework_id

    shown = heapq.nsmallest(most, found, key=name)
    dominant = books.dominant_resource(books.clients.held)
    written = [_written(books, infos[each], rows[each], states[each], dominant) for each in shown]
    return pb.ListFrameworksResponse(frameworks=written, left_out=len(found) - len(shown))


def _rows_by_framework(state: State, books: Report) -> Mapping[int, list[int]]:
    """Rows of the report by the framework's handle; one without roles has none."""
    found: dict[int, list[int]] = {
        handle: [] for handle, info in enumerate(state.frameworks.info) if info is not None
    }
    for row, handle in enumerate(books.clients.framework.tolist()):
        found.setdefault(handle, []).append(row)
    return found


def _chosen(state: State, request: pb.ListFrameworksRequest) -> Iterable[int]:
    """Find the handles of the frameworks that are asked for, ascending."""
    found = set(range(len(state.frameworks.info)))
    if request.names:
        found &= set(_named(state, list(request.names)))
    if request.role:
        clients = rows_of_role(state, request.role)
        found &= {int(state.clients.framework[each]) for each in clients}
    if request.agent:
        ledger = state.ledger
        holdings = ledger.rows_of_agent(handle_of_agent(state, request.agent))
        found &= set(state.clients.framework[ledger.books.client[holdings]].tolist())
    return sorted(found)


def _named(state: State, names: list[str]) -> Iterator[int]:
    """Find the frameworks that have one of these ids or names."""
    missing = set(names)
    for handle, info in enumerate(state.frameworks.info):
        if info is not None and (mine := {info.framework_id, info.name}) & set(names):
            missing -= mine
            yield handle
    for name in (each for each in names if each in missing):
        infos = [info for info in state.frameworks.info if info is not None]
        known = [each for info in infos for each in (info.name, info.framework_id)]
        raise UnknownSubjectError("framework", name, known)


def _states(state: State, books: Report, handle: int, rows: list[int]) -> list[str]:
    active, clients = bool(state.frameworks.active[handle]), books.clients
    suppressed = bool(rows) and bool(clients.suppressed[rows].all())
    flags = (
        ("active", active and not suppressed),
        ("inactive", not active),
        ("suppressed", suppressed),
        ("waiting", bool((clients.waited[rows] > 0).any())),
    )
    return true_names(flags)


def _written(
    books: Report,
    info: FrameworkInfo | None,
    rows: list[int],
    states: list[str],
    dominant: list[str],
) -> pb.ListedFramework:
    clients, known = books.clients, info or FrameworkInfo("")
    largest = sorted(rows, key=lambda row: -books.weighted_share[row])[:PARTS_MAX]
    return pb.ListedFramework(
        framework_id=known.framework_id,
        name=known.name,
        user=known.user,
        principal=known.principal,
        states=states,
        held=quantities_of(books.resources, clients.held[rows].sum(axis=0)),
        offered=quantities_of(books.resources, clients.offered[rows].sum(axis=0)),
        waited_cycles=int(np.max(clients.waited[rows], initial=0)),
        role_count=len(rows),
        roles=[write_client(books, row, dominant[row]) for row in largest],
    )

"""Lists frameworks, with their holdings and demands in each of their roles."""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from allocator.core import Allocator, Bools, FrameworkInfo
from allocator.explain import handle_of_agent, rows_of_role
from allocator.server.reports import report
from allocator.server.reports.agent_rows import natural
from allocator.server.reports.report import Report, quantities_of, write_client
from allocator.server.views.lists.bounds import PARTS_MAX, check_state, most_of, named, true_names
from allocator.v1 import admin_pb2 as pb

STATES = ("active", "inactive", "suppressed", "paused", "waiting")


class FrameworksCopy(NamedTuple):
    """The frameworks to choose from, and their rows.

    `fitting`: handles of those in the requested role and on the requested agent.
    """

    books: Report
    info: list[FrameworkInfo | None]
    active: Bools
    fitting: set[int]


def copy(allocator: Allocator, request: pb.ListFrameworksRequest) -> FrameworksCopy:
    """Copy what is needed; on the books' thread.

    Raises RejectedError and UnknownSubjectError.
    """
    check_state(request.state, STATES)
    state = allocator.state
    fitting = set(range(len(state.frameworks.info)))
    if request.role:
        clients = rows_of_role(state, request.role)
        fitting &= {int(state.clients.framework[each]) for each in clients}
    if request.agent:
        ledger = state.ledger
        holdings = ledger.rows_of_agent(handle_of_agent(state, request.agent))
        fitting &= set(state.clients.framework[ledger.books.client[holdings]].tolist())
    books, info = report.read(allocator), list(state.frameworks.info)
    return FrameworksCopy(books, info, state.frameworks.active.copy(), fitting)


def write(copied: FrameworksCopy, request: pb.ListFrameworksRequest) -> pb.ListFrameworksResponse:
    """Choose, in order of names, and write; on any thread. Raises as `copy` does."""
    books, infos = copied.books, copied.info
    rows = _rows_by_framework(copied)
    found = [each for each in sorted(copied.fitting) if each in rows]
    if request.names:
        bearers = named(
            "framework", infos, request.names, lambda info: (info.name, info.framework_id)
        )
        found = [each for each in found if each in bearers]
    states = {each: _states(copied, each, rows[each]) for each in found}
    if request.state:
        found = [each for each in found if request.state in states[each]]

    def name(handle: int) -> tuple[object, str]:
        info = infos[handle] or FrameworkInfo("")
        return natural(info.name or info.framework_id), info.framework_id

    shown = heapq.nsmallest(most_of(request.limit), found, key=name)
    dominant = books.dominant_resource(books.clients.held)
    written = [_written(books, infos[each], rows[each], states[each], dominant) for each in shown]
    return pb.ListFrameworksResponse(frameworks=written, left_out=len(found) - len(shown))


def _rows_by_framework(copied: FrameworksCopy) -> Mapping[int, list[int]]:
    """Rows of the report, by the framework's handle; empty for frameworks without roles."""
    found: dict[int, list[int]] = {
        handle: [] for handle, info in enumerate(copied.info) if info is not None
    }
    for row, handle in enumerate(copied.books.clients.framework.tolist()):
        found.setdefault(handle, []).append(row)
    return found


def _states(copied: FrameworksCopy, handle: int, rows: list[int]) -> list[str]:
    active, clients = bool(copied.active[handle]), copied.books.clients
    suppressed = bool(rows) and bool(clients.suppressed[rows].all())
    paused = bool(rows) and bool(copied.books.roles.paused[clients.role[rows]].all())
    flags = (
        ("active", active and not suppressed and not paused),
        ("inactive", not active),
        ("suppressed", suppressed),
        ("paused", paused),
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

"""The report for operators on the decisions of the shadow policy."""

from dataclasses import replace
from math import nan
from typing import TypeAlias

from allocator.core import Detached, PolicySpec
from allocator.server.engine.commands import Ask
from allocator.server.following import fair_shares
from allocator.server.following.books import FollowedBooks
from allocator.server.following.shadow import Client, Tally
from allocator.server.reports import report
from allocator.v1 import admin_pb2 as pb
from allocator.wire.settings.operator_settings import write_policy

Dealt: TypeAlias = tuple[report.Report, report.Report]


def write_shadow_report(books: FollowedBooks, ask: Ask, *, fair: bool) -> pb.GetShadowResponse:
    """Write the results, on any thread; `fair`: also compare allocations from scratch."""

    def read() -> tuple[report.Report, PolicySpec | None, Detached | None]:
        allocator = books.allocator
        spec = allocator.settings.shadow
        copied = allocator.copied() if fair and spec is not None else None
        return report.read(allocator), spec, copied

    state, spec, copied = ask(read)
    tally = books.shadow.read()
    if tally.spec != spec:  # no cycle since this shadow was set
        tally = Tally(spec)
    response = pb.GetShadowResponse(
        policy=write_policy(state.policy),
        shadow=None if spec is None else write_policy(spec),
        counts=tally.counts,
        fair=copied is not None,
    )
    if spec is None:
        return response
    dealt = None
    if copied is not None:
        beside = replace(spec, flat=state.policy.flat)
        one, other = (fair_shares.deal(books, each, copied) for each in (state.policy, beside))
        dealt = one, other
    _write_clients(response, tally, state, dealt)
    _write_roles(response, tally, state, dealt)
    return response


def _rows(books: report.Report) -> dict[int, Client]:
    clients, paths = books.clients, books.roles.path
    roles = clients.role.tolist()
    return {
        row: (paths[roles[row]], info.framework_id) for row, info in enumerate(clients.info) if info
    }


def _write_clients(
    response: pb.GetShadowResponse, tally: Tally, books: report.Report, dealt: Dealt | None
) -> None:
    """Add the clients with their sums, including those that left; the largest difference first."""
    row_of = {client: row for row, client in _rows(books).items()}
    found = dict(tally.clients)
    for client, row in row_of.items():
        info = books.clients.info[row]
        if client not in found and info is not None:
            role, framework_id = client
            found[client] = pb.ShadowShare(
                role=role, framework_id=framework_id, framework_name=info.name
            )
    order = sorted(
        found, key=lambda each: (-abs(found[each].offered - found[each].offered_by_shadow), each)
    )
    for client in order:
        share, place = response.clients.add(), row_of.get(client)
        share.CopyFrom(found[client])
        share.share = 0.0 if place is None else float(books.share[place])
        share.fair_share = share.fair_share_by_shadow = nan
        if place is not None and dealt is not None:
            share.fair_share, share.fair_share_by_shadow = (float(d.share[place]) for d in dealt)


def _write_roles(
    response: pb.GetShadowResponse, tally: Tally, books: report.Report, dealt: Dealt | None
) -> None:
    """Add the roles, each with the sums of all clients in it and below it."""
    found: dict[str, pb.ShadowShare] = {}
    for role, path in enumerate(books.roles.path):
        if not role or not books.roles.bound[role]:
            continue
        one, other = (nan, nan) if dealt is None else (float(d.role_share[role]) for d in dealt)
        share = float(books.role_share[role])
        found[path] = pb.ShadowShare(
            role=path, share=share, fair_share=one, fair_share_by_shadow=other
        )
    for (of_client, _), sums in tally.clients.items():
        parts = of_client.split("/")
        for depth in range(len(parts)):
            row = found.get("/".join(parts[: depth + 1]))
            if row is not None:
                row.offered += sums.offered
                row.offered_by_shadow += sums.offered_by_shadow
                row.cycles += sums.cycles
                row.cycles_by_shadow += sums.cycles_by_shadow
    response.roles.extend(found[path] for path in sorted(found))

"""The families of metrics about frameworks: a bounded number of them has series of its own."""

import numpy as np

from allocator.core import Floats, Ints
from allocator.server.metrics.family import (
    OTHER,
    Numbers,
    Selection,
    amounts,
    amounts_of,
    gauge,
    label,
)
from allocator.server.reports.report import Report

_CLIENT = "{role,framework,framework_name}"

_WAITING_PART = 4
"""One in so many places is for those that wait longest, whatever their share."""

FRAMEWORKS = (
    gauge(
        f"framework_dominant_share{_CLIENT}",
        "Largest part of any resource that the framework holds in the role, 0 to 1.",
    ),
    gauge(
        f"framework_weighted_share{_CLIENT}",
        "Dominant share of the framework in the role, divided by its weight.",
    ),
    gauge(
        f"framework_offered_share{_CLIENT}",
        "Largest part of any resource that it is offered and does not use, 0 to 1.",
    ),
    gauge(
        f"framework_agents{_CLIENT}", "Agents on which the framework holds something in the role."
    ),
    gauge(
        f"framework_filters{_CLIENT}",
        "Refusals (offer filters) of the framework in the role that are in force.",
    ),
    gauge(
        f"framework_offer_age_seconds{_CLIENT}",
        "How long it has had something on offer without a break, on any one agent.",
    ),
    gauge(
        f"framework_waited_cycles{_CLIENT}",
        "Full cycles since its last offer that could have served it.",
    ),
    amounts(f"framework_held{_CLIENT}", "What the framework is offered or uses in the role"),
    amounts(f"framework_offered{_CLIENT}", "What the framework is offered and does not use"),
    amounts(
        f"framework_demand{_CLIENT}", "What one task of the framework needs, where that is known"
    ),
)


def frameworks(report: Report, limit: int) -> Numbers:
    """Give the numbers of frameworks (by role), at most `limit` of them and the others."""
    clients = report.clients
    top, rest = chosen(report.share, clients.waited, limit)
    values = [_client(report, row) for row in top.tolist()]
    shown = Selection(report, top, rest, values, ["", OTHER, ""])
    demand = clients.demand[top]
    return {
        "framework_dominant_share": shown.each(report.share),
        "framework_weighted_share": shown.each(report.weighted_share),
        "framework_offered_share": shown.each(report.offered_share),
        "framework_agents": shown.each(clients.agents),
        "framework_filters": shown.summed(clients.filters),
        "framework_offer_age_seconds": shown.largest(clients.offer_age_s),
        "framework_waited_cycles": shown.largest(clients.waited),
        "framework_held": shown.amounts(clients.held),
        "framework_offered": shown.amounts(clients.offered),
        "framework_demand": amounts_of(report, values, demand, report.common & (demand > 0)),
    }


def chosen(share: Floats, waited: Ints, limit: int) -> tuple[Ints, Ints]:
    """Choose which rows have series of their own: the largest shares, and the longest waiting.

    Who starves has the smallest share, so by shares alone those would vanish first that somebody
    should look at.

    `share`, `waited` (n,): lower rows first on ties.
    Returns `top`, `rest` (ascending rows).

    Examples
    --------
    >>> chosen(np.array([0.5, 0.4, 0.3, 0.0, 0.0]), np.array([0, 0, 0, 2, 9]), 3)
    (array([0, 1, 4]), array([2, 3]))
    """
    order = np.argsort(-waited, kind="stable")
    places = min(max(limit // _WAITING_PART, 1), limit)
    waiting = order[waited[order] > 0][:places]
    by_share = np.argsort(-share, kind="stable")
    others = by_share[~np.isin(by_share, waiting)][: limit - len(waiting)]
    top = np.sort(np.concatenate([waiting, others]))
    return top, np.setdiff1d(np.arange(len(share)), top)


def _client(report: Report, row: int) -> list[str]:
    clients = report.clients
    info = clients.info[row]
    role = label(report.roles.path[clients.role[row]])
    if info is None:
        return [role, f"handle {clients.framework[row]}", ""]
    return [role, label(info.framework_id), label(info.name)]

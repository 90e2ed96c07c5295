"""The families of metrics about frameworks: a bounded number of them has series of its own."""

from collections.abc import Iterator

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric

from allocator.core import Floats, Ints
from allocator.server.metrics.metric_building import OTHER, amounts_of, label, labelled
from allocator.server.reports.report import Report

_CLIENT = ["role", "framework", "framework_name"]

_WAITING_PART = 4
"""One in so many places is for those that wait longest, whatever their share."""


def frameworks(report: Report, limit: int) -> Iterator[Metric]:
    """Give the families about frameworks (by role), at most `limit` of them and the others."""
    clients = report.clients
    top, rest = shown(report.share, clients.waited, limit)
    values = [_client(report, row) for row in top.tolist()]
    for name, text, numbers in (
        (
            "framework_dominant_share",
            "Largest part of any resource that the framework holds in the role, 0 to 1.",
            report.share[top],
        ),
        (
            "framework_weighted_share",
            "Dominant share of the framework in the role, divided by its weight.",
            report.weighted_share[top],
        ),
        (
            "framework_offered_share",
            "Largest part of any resource that it is offered and does not use, 0 to 1.",
            report.offered_share[top],
        ),
        (
            "framework_agents",
            "Agents on which the framework holds something in the role.",
            clients.agents[top],
        ),
    ):
        pairs = zip(values, numbers.tolist(), strict=True)
        yield labelled(GaugeMetricFamily, name, text, _CLIENT, pairs)
    all_values = [*values, ["", OTHER, ""]]
    filters = [*clients.filters[top].tolist(), int(clients.filters[rest].sum())]
    pairs = zip(all_values, filters, strict=True)
    text = "Refusals (offer filters) of the framework in the role that are in force."
    yield labelled(GaugeMetricFamily, "framework_filters", text, _CLIENT, pairs)
    yield from _longest(report, top, rest, all_values)
    for name, text, amounts in (
        (
            "framework_held",
            "What the framework is offered or uses in the role, in the labelled unit.",
            clients.held,
        ),
        (
            "framework_offered",
            "What the framework is offered and does not use, in the labelled unit.",
            clients.offered,
        ),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        yield amounts_of(report, name, text, _CLIENT, all_values, both)
    known = top[clients.demand[top].any(axis=1)]
    known_values = [_client(report, row) for row in known.tolist()]
    text = "What one task of the framework needs, where that is known, in the labelled unit."
    demand = clients.demand[known]
    some = report.common & (demand > 0)
    yield amounts_of(report, "framework_demand", text, _CLIENT, known_values, demand, some)


def shown(share: Floats, waited: Ints, limit: int) -> tuple[Ints, Ints]:
    """Choose which rows have series of their own: the largest shares, and the longest waiting.

    Who starves has the smallest share, so by shares alone those would vanish first that somebody
    should look at.

    `share`, `waited` (n,): lower rows first on ties.
    Returns `top`, `rest` (ascending rows).

    Examples
    --------
    >>> shown(np.array([0.5, 0.4, 0.3, 0.0, 0.0]), np.array([0, 0, 0, 2, 9]), 3)
    (array([0, 1, 4]), array([2, 3]))
    """
    order = np.argsort(-waited, kind="stable")
    places = min(max(limit // _WAITING_PART, 1), limit)
    waiting = order[waited[order] > 0][:places]
    by_share = np.argsort(-share, kind="stable")
    others = by_share[~np.isin(by_share, waiting)][: limit - len(waiting)]
    top = np.sort(np.concatenate([waiting, others]))
    return top, np.setdiff1d(np.arange(len(share)), top)


def _longest(
    report: Report, top: Ints, rest: Ints, all_values: list[list[str]]
) -> Iterator[Metric]:
    """Times; of those that have no series, the longest."""
    clients = report.clients
    for name, text, each in (
        (
            "framework_offer_age_seconds",
            "How long it has had something on offer without a break, on any one agent.",
            clients.offer_age_s,
        ),
        (
            "framework_waited_cycles",
            "Full cycles since its last offer that could have served it.",
            clients.waited,
        ),
    ):
        pairs = zip(all_values, [*each[top].tolist(), each[rest].max(initial=0)], strict=True)
        yield labelled(GaugeMetricFamily, name, text, _CLIENT, pairs)


def _client(report: Report, row: int) -> list[str]:
    clients = report.clients
    info = clients.info[row]
    role = label(report.roles.path[clients.role[row]])
    if info is None:
        return [role, f"handle {clients.framework[row]}", ""]
    return [role, label(info.framework_id), label(info.name)]

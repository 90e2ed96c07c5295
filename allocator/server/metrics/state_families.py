"""Metrics of the cluster and its sessions, from one copy of the books.

Names begin with ``mesos_allocator_`` and follow Prometheus's conventions: counters end in
``_total``, times are in seconds, memory and disk in bytes. A resource is a label, as agents choose
its name; the label ``unit`` is the unit of its numbers (``core``, ``byte``, ``one``).

The number of series is bounded: the frameworks and roles with the largest shares, and the
frameworks that have waited longest, have their own series; the others are summed under the name
`OTHER`. A series ends when its subject leaves.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from allocator import __version__
from allocator.core import MILLI, NOWHERE, REASONS, UNBOUNDED, Bools, Floats, Ints
from allocator.server.engine.latency_histogram import BOUNDS_S
from allocator.server.metrics.family import (
    OTHER,
    Buckets,
    Families,
    Part,
    Selection,
    Series,
    amounts,
    amounts_of,
    counter,
    gauge,
    histogram,
    info,
    largest,
    unit_of,
    with_zeros,
)
from allocator.server.reports.report import Report
from allocator.v1 import session_pb2
from allocator.v1.records_pb2 import Figures
from allocator.wire.codec.sanitizing import FIELDS
from allocator.wire.session.sidecar_session import SessionCounts

_CLIENT = "{role,framework,framework_name}"

_WAITING_PART = 4
"""One in this many places is for those that have waited longest, independent of their share."""

FRAMEWORKS: Families[Selection] = (
    gauge(
        f"framework_dominant_share{_CLIENT}",
        "Dominant share of the framework in the role, 0 to 1.",
        lambda shown: shown.each(shown.report.share),
    ),
    gauge(
        f"framework_weighted_share{_CLIENT}",
        "Dominant share of the framework in the role, divided by its weight.",
        lambda shown: shown.each(shown.report.weighted_share),
    ),
    gauge(
        f"framework_offered_share{_CLIENT}",
        "Dominant share offered to the framework in the role, not in use, 0 to 1.",
        lambda shown: shown.each(shown.report.offered_share),
    ),
    gauge(
        f"framework_agents{_CLIENT}",
        "Agents on which the framework holds resources in the role.",
        lambda shown: shown.each(shown.report.clients.agents),
    ),
    gauge(
        f"framework_filters{_CLIENT}",
        "Refusals (offer filters) of the framework in the role that are in force.",
        lambda shown: shown.summed(shown.report.clients.filters),
    ),
    gauge(
        f"framework_offer_age_seconds{_CLIENT}",
        "Longest time for which the framework has had offers of one agent without"
        " interruption, in seconds.",
        lambda shown: shown.largest(shown.report.clients.offer_age_s),
    ),
    gauge(
        f"framework_waited_cycles{_CLIENT}",
        "Full cycles since its last offer that could have served it.",
        lambda shown: shown.largest(shown.report.clients.waited),
    ),
    amounts(
        f"framework_held{_CLIENT}",
        "Amount offered to or used by the framework in the role",
        lambda shown: shown.amounts(shown.report.clients.held),
    ),
    amounts(
        f"framework_offered{_CLIENT}",
        "Amount offered to and not used by the framework in the role",
        lambda shown: shown.amounts(shown.report.clients.offered),
    ),
    amounts(
        f"framework_demand{_CLIENT}",
        "Demand of one task of the framework, if known",
        lambda shown: shown.own(
            shown.report.clients.demand, shown.report.common & (shown.report.clients.demand > 0)
        ),
    ),
)


def chosen(share: Floats, waited: Ints, limit: int) -> tuple[Ints, Ints]:
    """Choose which rows have their own series: the largest shares, and the longest waiting.

    A starving framework has a small share, so by shares alone it would have no series.

    `share`, `waited` (n,): lower rows first on ties.

    Returns `top`, `rest` (ascending rows).

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


def _frameworks(report: Report, limit: int) -> Selection:
    top, rest = chosen(report.share, report.clients.waited, limit)
    values = [_client(report, row) for row in top.tolist()]
    return Selection(report, top, rest, values, ["", OTHER, ""])


def _client(report: Report, row: int) -> list[str]:
    clients = report.clients
    info = clients.info[row]
    role = report.roles.path[clients.role[row]]
    if info is None:
        return [role, f"handle {clients.framework[row]}", ""]
    return [role, info.framework_id, info.name]


ASKED_MAX = 20
"""Maximum number of requests to leave agents with series."""


@dataclass(frozen=True)
class Scrape:
    """The data of one scrape, all of the same moment.

    `figures`: of the deciding process. `rules`: number of rules in force, by kind.
    """

    report: Report
    counts: SessionCounts
    figures: Figures
    rules: Mapping[str, int]
    filters_forgotten: int
    in_session: bool
    age_s: float = 0.0

    @property
    def cycle_times(self) -> Buckets:
        times = self.figures.cycle_times
        totals = accumulate(times.buckets or (0,) * (len(BOUNDS_S) + 1))
        bounds = [*map(str, BOUNDS_S), "+Inf"]
        return list(zip(bounds, map(float, totals), strict=True)), times.total_s


def state_parts(
    scrape: Callable[[], Scrape | None], *, frameworks_max: int, roles_max: int
) -> Iterator[Part[Any]]:
    """Yield parts for the books; if there was no scrape yet (None), only for the build."""
    yield Part("build", BUILD, lambda: __version__)
    taken = scrape()
    if taken is None:
        return
    report = taken.report
    yield Part("counters", COUNTERS, lambda: taken)
    yield Part("cluster", CLUSTER, lambda: taken)
    yield Part("roles", ROLES, lambda: _roles(report, roles_max))
    yield Part("demands", DEMANDS, lambda: report)
    yield Part("quotas", QUOTAS, lambda: _quotas(report, roles_max))
    yield Part("frameworks", FRAMEWORKS, lambda: _frameworks(report, frameworks_max))


BUILD: Families[str] = (
    info("build{version}", "Version of the sidecar.", lambda version: {"version": version}),
)


def _enumerated(names: Iterable[str], prefix: str) -> list[str]:
    short = (name.removeprefix(prefix).lower() for name in names)
    return [name for name in short if name != "unspecified"]


_EVENTS = [field.name for field in session_pb2.Event.DESCRIPTOR.fields]
_REASONS = _enumerated(session_pb2.OutcomeReason.keys(), "OUTCOME_REASON_")
_CODES = _enumerated(session_pb2.ErrorCode.keys(), "ERROR_CODE_")

COUNTERS: Families[Scrape] = (
    counter("messages", "Messages that masters' modules sent.", lambda now: now.counts.messages),
    counter(
        "batches", "Batches of events that masters' modules sent.", lambda now: now.counts.batches
    ),
    counter(
        "events{type}",
        "Events that masters' modules sent, by type.",
        lambda now: with_zeros(_EVENTS, now.counts.events),
    ),
    counter(
        "cycles",
        "Allocation cycles, over all or some agents.",
        lambda now: now.counts.cycles,
    ),
    histogram(
        "cycle_duration_seconds",
        "How long allocation cycles took, in seconds.",
        lambda now: now.cycle_times,
    ),
    counter(
        "decisions",
        "Decisions to make an offer (for one framework and role, on one agent).",
        lambda now: now.counts.decisions,
    ),
    gauge(
        "reclaims",
        "Requests to frameworks to leave an agent, made by the last cycle over all agents.",
        lambda now: now.counts.reclaims,
    ),
    gauge(
        "reclaim_seconds{framework,agent,for}",
        "Time since a framework was asked to leave an agent for another one; the longest times.",
        lambda now: [
            ([row.framework_id, row.agent_id, ",".join(row.for_whom)], row.for_s)
            for row in now.report.asked[:ASKED_MAX]
        ],
    ),
    counter(
        "outcomes{reason}",
        "Decisions by their outcome at the master.",
        lambda now: with_zeros(_REASONS, now.counts.outcomes),
    ),
    counter(
        "sessions_opened",
        "Sessions of masters' modules that were opened.",
        lambda now: now.counts.sessions_opened,
    ),
    counter(
        "sessions_closed{reason}",
        "Ended sessions, by reason: ended by the module (left), or an error.",
        lambda now: with_zeros(["left", *_CODES], now.counts.sessions_closed),
    ),
    counter(
        "errors{code}",
        "Errors sent to masters' modules.",
        lambda now: with_zeros(_CODES, now.counts.errors),
    ),
    counter(
        "mended{field}",
        "Invalid values without effect on decisions, which were corrected instead of rejected.",
        lambda now: with_zeros(FIELDS, now.counts.mended),
    ),
    counter(
        "policy_errors",
        "Cycles in which the policy failed and the substitute decided.",
        lambda now: now.counts.policy_errors,
    ),
    counter(
        "journal_errors",
        "Failures to write the journal, each of which disables it for a minute.",
        lambda now: now.figures.journal.errors,
    ),
    counter(
        "filters_forgotten",
        "Refusals that were forgotten because there were too many.",
        lambda now: now.filters_forgotten,
    ),
)


CLUSTER: Families[Scrape] = (
    gauge("report_age_seconds", "Age of these metrics, in seconds.", lambda now: now.age_s),
    gauge(
        "sessions",
        "Open streams of masters' modules; one of them has the session.",
        lambda now: now.figures.sessions,
    ),
    gauge(
        "in_session",
        ("1 while a master has a session with this sidecar."),
        lambda now: now.in_session,
    ),
    info(
        "policy{name,selection,mode,competition}",
        "The policy in force.",
        lambda now: {
            "name": now.report.policy.name,
            "selection": now.report.policy.selection,
            "mode": now.report.policy.mode,
            "competition": "flat" if now.report.policy.flat else "hierarchical",
        },
    ),
    gauge(
        "agents{state}",
        "Agents by state: active, deactivated, not on the whitelist, or drained by operators.",
        lambda now: now.report.agents,
    ),
    gauge(
        "frameworks{state}",
        "Frameworks that subscribed to the master, by whether they are connected.",
        lambda now: {
            "active": now.report.frameworks_active,
            "inactive": now.report.frameworks - now.report.frameworks_active,
        },
    ),
    gauge(
        "roles",
        "Roles that the master reported, and their ancestors.",
        lambda now: now.report.role_count,
    ),
    gauge(
        "filters",
        "Refusals (offer filters) in force, of all frameworks on all agents.",
        lambda now: now.report.filters,
    ),
    gauge(
        "decisions_outstanding",
        "Decisions whose outcome is not known yet.",
        lambda now: now.report.open_decisions,
    ),
    gauge(
        "clients_overdue{kept_by}",
        "Clients that waited for an offer for starvation.patience_cycles.",
        lambda now: {
            kept_by: getattr(now.report.overdue, kept_by)
            for kept_by in ("filters", "limit", "nothing")
        },
    ),
    gauge(
        "budget_used_hours{role,resource,unit}",
        "Resource-hours of its budget that the role and its descendants used in the current"
        " period.",
        lambda now: _hours(now.report, "used"),
    ),
    gauge(
        "budget_hours{role,resource,unit}",
        "Resource-hours that the role may use in the current period, including the amount carried"
        " over and a credit.",
        lambda now: _hours(now.report, "budget"),
    ),
    gauge(
        "budget_runs_out_seconds{role}",
        "Time until the first resource of the role's budget is used up, if its holdings do not"
        " change; only if that is before the end of the period.",
        lambda now: {
            use.role: (use.runs_out_ms - now.report.now_ms) / 1000
            for use in now.report.budgets[:BUDGETS_MAX]
            if use.runs_out_ms
        },
    ),
    gauge(
        "gangs{state}",
        "Gangs that wait. collecting: resources are kept for them; too_large: they do not fit"
        " on empty agents or within a limit.",
        lambda now: {
            "collecting": now.report.gangs.collecting,
            "too_large": now.report.gangs.too_large,
        },
    ),
    amounts(
        "gangs_kept",
        "Free amount that is kept for collecting gangs",
        lambda now: _whole(now.report, now.report.gangs.kept),
    ),
    counter(
        "gang_backfills",
        "Offers of resources kept for a gang to frameworks whose tasks end before the gang starts.",
        lambda now: now.report.gangs.starts.lent,
    ),
    counter(
        "gang_forecasts{result}",
        "Forecasts of the latest start (p95) of collecting gangs, by result. held: the gang"
        " started before; late: after; missed: it did not start while it collected.",
        lambda now: {
            result: getattr(now.report.gangs.starts, result)
            for result in ("held", "late", "missed")
        },
    ),
    counter(
        "gang_start_error_seconds{side}",
        "Sum of the time between the expected and the actual start of collecting gangs, by"
        " whether they started early or late.",
        lambda now: {
            "early": now.report.gangs.starts.early_ms / 1000,
            "late": now.report.gangs.starts.late_ms / 1000,
        },
    ),
    gauge(
        "set_aside{reason}",
        "Inputs of frameworks and agents that are currently ignored, by reason; `explain`"
        " shows them.",
        lambda now: {why: now.report.aside.reasons.get(why, 0) for why in REASONS},
    ),
    amounts(
        "capacity",
        "Capacity of all agents, by resource",
        lambda now: _whole(now.report, now.report.total),
    ),
    amounts(
        "held",
        "Amount offered or in use on all agents",
        lambda now: _whole(now.report, now.report.held),
    ),
    amounts(
        "offered",
        "Amount offered and not in use on all agents",
        lambda now: _whole(now.report, now.report.offered),
    ),
    gauge(
        "utilisation_ratio{resource}",
        "Fraction of the cluster's capacity that is offered or in use, 0 to 1.",
        lambda now: _utilisation(now.report),
    ),
    gauge(
        "jain_index{among}",
        "Jain's fairness index of weighted dominant shares, 1: all equal.",
        lambda now: {"frameworks": now.report.jain_frameworks, "roles": now.report.jain_roles},
    ),
    gauge(
        "envy_max_tasks",
        "Largest envy: how many more tasks a framework could run with another one's holdings.",
        lambda now: now.report.envy_max,
    ),
    gauge(
        "rules{kind}",
        "Rules in force, of the configuration and of operators, by kind.",
        lambda now: now.rules,
    ),
)


BUDGETS_MAX = 500
"""Maximum number of roles with series of their budgets: those set first."""


def _hours(report: Report, field: str) -> Iterable[Series]:
    for use in report.budgets[:BUDGETS_MAX]:
        hours = getattr(use, field)
        for name, amount in zip(hours.name, hours.amount, strict=True):
            unit, factor = unit_of(name)
            yield (use.role, name, unit), amount * factor / MILLI


def _whole(report: Report, of_cluster: Ints) -> Iterable[Series]:
    there = np.array([[name != NOWHERE for name in report.resources]], np.bool_)
    return amounts_of(report, [[]], of_cluster[None], there)


def _utilisation(report: Report) -> Mapping[str, float]:
    columns = zip(report.resources, report.held.tolist(), report.total.tolist(), strict=True)
    return {name: held / total for name, held, total in columns if total}


ROLES: Families[Selection] = (
    gauge(
        "role_weight{role}",
        "Weight of the role among its siblings; 1 if the master set none.",
        lambda shown: shown.each(shown.report.roles.weight),
    ),
    gauge(
        "role_dominant_share{role}",
        "Dominant share of the role and its descendants, 0 to 1.",
        lambda shown: shown.each(shown.report.role_share),
    ),
    gauge(
        "role_used_share{role}",
        "Dominant share that the role and its descendants held on average, if fairness.half_life_s"
        " is set.",
        lambda shown: () if (used := shown.report.role_used_share) is None else shown.each(used),
    ),
    gauge(
        "role_weighted_share{role}",
        "Dominant share of the role, divided by its weight.",
        lambda shown: shown.each(shown.report.role_weighted_share),
    ),
    amounts(
        "role_held{role}",
        "Amount offered to or used by the role and its descendants",
        lambda shown: shown.amounts(shown.report.role_held),
    ),
    amounts(
        "role_offered{role}",
        "Amount offered to and not used by the role and its descendants",
        lambda shown: shown.amounts(shown.report.role_offered),
    ),
    gauge(
        "role_filters{role}",
        "Refusals in force of frameworks in the role and its descendants.",
        lambda shown: shown.summed(shown.report.role_filters),
    ),
)


def _roles(report: Report, limit: int) -> Selection:
    roles = report.roles
    rows = np.flatnonzero(roles.bound)
    named = np.array([roles.path[row] not in ("", OTHER) for row in rows.tolist()], np.bool_)
    top, _ = largest(report.role_share, rows[named], limit)
    # A role's numbers include its descendants, so all roles without series are covered by those
    # directly below the root, except descendants of a role with series, which are included there.
    rest = np.setdiff1d(np.flatnonzero(roles.bound & (roles.depth == 1)), top)
    return Selection(report, top, rest, [[roles.path[row]] for row in top.tolist()], [OTHER])


_SOURCES = ("request", "label", "operator", "learned", "prior", "unknown")


def _by_source(report: Report) -> Mapping[str, float]:
    known = Counter(source or "unknown" for source in report.clients.demand_source)
    return {source: known[source] for source in _SOURCES}


def _by_certainty(report: Report) -> Mapping[str, float]:
    rows = report.remembered.rows
    certain = sum(row["counts"] for row in rows)
    return {"yes": certain, "no": len(rows) - certain}


DEMANDS: Families[Report] = (
    gauge(
        "demand_clients{source}",
        "Clients (a framework in a role) by the source of their demand.",
        _by_source,
    ),
    gauge(
        "demands_remembered{certain}",
        "Remembered demands, by whether they are certain enough to be assumed for new frameworks.",
        _by_certainty,
    ),
    gauge(
        "durations_remembered{known}",
        "Framework names for which durations of tasks are learnt, by whether enough tasks"
        " have ended.",
        lambda report: dict(zip(("yes", "no"), report.remembered.durations, strict=True)),
    ),
    counter(
        "priors{result}",
        "Remembered demands, by whether a framework's first acceptance agreed with them.",
        lambda report: {
            "confirmed": report.remembered.confirmed,
            "refuted": report.remembered.refuted,
        },
    ),
    counter(
        "demand_probes",
        "Times that a framework's learnt demand was tested by a larger offer, because it had"
        " waited too long.",
        lambda report: report.remembered.probes,
    ),
)

QUOTAS: Families[Selection] = (
    amounts(
        "role_quota_guarantee{role}",
        "Guarantee of the role's quota",
        lambda shown: shown.amounts(shown.report.quotas.guarantee, _ruled(shown.report)),
    ),
    amounts(
        "role_quota_consumed{role}",
        "Amount that counts against the role's quota",
        lambda shown: shown.amounts(shown.report.quotas.consumed, _ruled(shown.report)),
    ),
    amounts(
        "role_quota_limit{role}",
        "Limit of the role, if it has one",
        lambda shown: shown.own(shown.report.quotas.limit, shown.report.quotas.limit < UNBOUNDED),
    ),
    amounts(
        "headroom_required",
        "Amount that must stay free for guarantees",
        lambda shown: _headroom(shown.report, shown.report.headroom),
    ),
    amounts(
        "headroom_available",
        "Free amount that counts against quotas",
        lambda shown: _headroom(shown.report, shown.report.quotas.available),
    ),
)


def _quotas(report: Report, limit: int) -> Selection:
    quotas = report.quotas
    row_of = {path: row for row, path in enumerate(report.roles.path)}
    share = np.append(report.role_share, 0.0)  # the last one is for roles without frameworks
    shares = share[[row_of.get(path, -1) for path in quotas.path]]
    named = np.flatnonzero([path != OTHER for path in quotas.path])
    top, _ = largest(shares, named, limit)
    # Roles below another one with a quota are counted there already.
    rest = np.setdiff1d(np.flatnonzero(quotas.above < 0), top)
    return Selection(report, top, rest, [[quotas.path[row]] for row in top.tolist()], [OTHER])


def _ruled(report: Report) -> Bools:
    """Resources (R,) to report in quotas: those that most agents have, or that a quota names."""
    quotas = report.quotas
    named = (quotas.guarantee > 0).any(axis=0) | (quotas.limit < UNBOUNDED).any(axis=0)
    return report.scalar & (report.common | named)


def _headroom(report: Report, amounts: Ints) -> Iterable[Series]:
    return amounts_of(report, [[]], amounts[None], _ruled(report))


GROUPS: Mapping[str, Families[Any]] = {
    "Version": BUILD,
    "Messages, cycles and decisions": COUNTERS,
    "Cluster": CLUSTER,
    "Roles": ROLES,
    "Demands": DEMANDS,
    "Quotas and limits": QUOTAS,
    "Frameworks": FRAMEWORKS,
}

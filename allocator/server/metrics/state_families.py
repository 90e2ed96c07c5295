"""The families of metrics about the cluster and its sessions, of one copy of what the core knows.

Names begin with ``mesos_allocator_`` and follow Prometheus's conventions: counters end in
``_total``, times are in seconds, memory and disk in bytes. A resource is a label, as the agents
choose its name; the label ``unit`` says what its numbers count (``core``, ``byte``, ``one``).

The number of series is bounded: the frameworks and roles with the largest shares, and the
frameworks that wait longest, have series of their own; the others are added up under the name
`OTHER`. Series end when what they are about ends.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from allocator import __version__
from allocator.core import NOWHERE, REASONS, UNBOUNDED, Floats, Ints
from allocator.server.metrics.family import (
    OTHER,
    Numbers,
    Part,
    Selection,
    Series,
    amounts,
    amounts_of,
    counter,
    gauge,
    histogram,
    info,
    label,
    largest,
    with_zeros,
)
from allocator.server.reports.report import Report
from allocator.v1 import session_pb2
from allocator.wire.codec.sanitizing import FIELDS
from allocator.wire.session.server_session import Counts

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


ASKED_MAX = 20
"""Of so many that are asked to leave agents there are series."""


@dataclass(frozen=True)
class Scrape:
    """What one scrape shows, all of the same moment.

    `cycle_buckets`: upper bounds in seconds, and how many cycles took at most as long.
    `in_session`: a master has this sidecar.
    `age_s`: how old all of this is.
    """

    report: Report
    counts: Counts
    cycle_buckets: Sequence[tuple[str, float]]
    cycle_total_s: float
    journal_errors: int
    sessions: int
    filters_forgotten: int
    in_session: bool
    age_s: float = 0.0


def state_parts(
    scrape: Callable[[], Scrape | None], *, frameworks_max: int, roles_max: int
) -> Iterator[Part]:
    """Say what the core reports; where it never answered so far (None) only what runs."""
    yield Part("build", BUILD, lambda: {"build": {"version": __version__}})
    taken = scrape()
    if taken is None:
        return
    report = taken.report
    yield Part("counters", COUNTERS, lambda: _counters(taken))
    yield Part("cluster", CLUSTER, lambda: _cluster(taken))
    yield Part("roles", ROLES, lambda: _roles(report, roles_max))
    yield Part("demands", DEMANDS, lambda: _demands(report))
    yield Part("quotas", QUOTAS, lambda: _quotas(report, roles_max))
    yield Part("frameworks", FRAMEWORKS, lambda: frameworks(report, frameworks_max))


BUILD = (info("build{version}", "Version of the sidecar."),)

COUNTERS = (
    counter("messages", "Messages that masters' modules sent."),
    counter("batches", "Batches of events that masters' modules sent."),
    counter("events{type}", "Events that masters' modules sent, by type."),
    counter("cycles", "Allocation cycles that were run, over all agents or some."),
    histogram("cycle_duration_seconds", "How long allocation cycles took, in seconds."),
    counter("decisions", "Offers that were decided (one framework, role and agent each)."),
    gauge(
        "reclaims",
        "Frameworks that the last cycle over all agents asked to leave agents, for each agent.",
    ),
    gauge(
        "reclaim_seconds{framework,agent,for}",
        "How long a framework has been asked to leave an agent for others; the longest ones.",
    ),
    counter("outcomes{reason}", "Decisions by what became of them at the master."),
    counter("sessions_opened", "Sessions of masters' modules that began."),
    counter(
        "sessions_closed{reason}",
        "Sessions ended: left by the module, or the error that ended them.",
    ),
    counter("errors{code}", "Errors that masters' modules were sent."),
    counter("mended{field}", "Values that only inform, put right instead of refused."),
    counter("policy_errors", "Cycles in which the policy failed and the fallback decided."),
    counter("journal_errors", "Failures to write the journal; it is off for a minute then."),
    counter("filters_forgotten", "Refusals that were forgotten because there were too many."),
)


def _enumerated(names: Iterable[str], prefix: str) -> list[str]:
    short = (name.removeprefix(prefix).lower() for name in names)
    return [name for name in short if name != "unspecified"]


_EVENTS = [field.name for field in session_pb2.Event.DESCRIPTOR.fields]
_REASONS = _enumerated(session_pb2.OutcomeReason.keys(), "OUTCOME_REASON_")
_CODES = _enumerated(session_pb2.ErrorCode.keys(), "ERROR_CODE_")


def _counters(scrape: Scrape) -> Numbers:
    counts = scrape.counts
    return {
        "messages": counts.messages,
        "batches": counts.batches,
        "events": with_zeros(_EVENTS, counts.events),
        "cycles": counts.cycles,
        "cycle_duration_seconds": (scrape.cycle_buckets, scrape.cycle_total_s),
        "decisions": counts.decisions,
        "reclaims": counts.reclaims,
        "reclaim_seconds": [
            ([row.framework_id, row.agent_id, ",".join(row.for_whom)], row.for_s)
            for row in scrape.report.asked[:ASKED_MAX]
        ],
        "outcomes": with_zeros(_REASONS, counts.outcomes),
        "sessions_opened": counts.sessions_opened,
        "sessions_closed": with_zeros(["left", *_CODES], counts.sessions_closed),
        "errors": with_zeros(_CODES, counts.errors),
        "mended": with_zeros(FIELDS, counts.mended),
        "policy_errors": counts.policy_errors,
        "journal_errors": scrape.journal_errors,
        "filters_forgotten": scrape.filters_forgotten,
    }


CLUSTER = (
    gauge("report_age_seconds", "How old these numbers are: the core is busy."),
    gauge(
        "sessions", "Streams of masters' modules that are open now; one of them has this sidecar."
    ),
    gauge("in_session", "1 while a master has this sidecar."),
    info("policy{name,selection,mode,competition}", "The policy in force."),
    gauge(
        "agents{state}",
        "Agents: active ones, those deactivated, not on the whitelist, or drained by operators.",
    ),
    gauge(
        "frameworks{state}",
        "Frameworks that subscribed to the master, by whether they are connected.",
    ),
    gauge("roles", "Roles that the master told of, with their ancestors."),
    gauge("filters", "Refusals (offer filters) in force, of all frameworks on all agents."),
    gauge("decisions_outstanding", "Decisions whose outcome is not known yet."),
    gauge(
        "clients_overdue{kept_by}",
        "Clients that waited for an offer for starvation.patience_cycles.",
    ),
    gauge(
        "set_aside{reason}",
        "What is set aside of frameworks' and agents' words now, by reason; see explain.",
    ),
    amounts("capacity", "What all agents have, by resource"),
    amounts("held", "What is offered or in use on all agents"),
    amounts("offered", "What is offered and not in use on all agents"),
    gauge(
        "utilisation_ratio{resource}",
        "Part of the cluster's capacity that is offered or in use, 0 to 1.",
    ),
    gauge("jain_index{among}", "Jain's fairness index of weighted dominant shares, 1: all equal."),
    gauge(
        "envy_max_tasks", "Most tasks more that a framework could run with what another one holds."
    ),
)


def _cluster(scrape: Scrape) -> Numbers:
    report, policy = scrape.report, scrape.report.policy
    there = np.array([[name != NOWHERE for name in report.resources]], np.bool_)

    def whole(of_cluster: Ints) -> Iterable[Series]:
        return amounts_of(report, [[]], of_cluster[None], there)

    columns = zip(report.resources, report.held.tolist(), report.total.tolist(), strict=True)
    active = report.frameworks_active
    return {
        "report_age_seconds": scrape.age_s,
        "sessions": scrape.sessions,
        "in_session": scrape.in_session,
        "policy": {
            "name": policy.name,
            "selection": policy.selection,
            "mode": policy.mode,
            "competition": "flat" if policy.flat else "hierarchical",
        },
        "agents": vars(report.agents),
        "frameworks": {"active": active, "inactive": report.frameworks - active},
        "roles": report.role_count,
        "filters": report.filters,
        "decisions_outstanding": report.outstanding,
        "clients_overdue": vars(report.overdue),
        "set_aside": {why: report.aside.reasons.get(why, 0) for why in REASONS},
        "capacity": whole(report.total),
        "held": whole(report.held),
        "offered": whole(report.offered),
        "utilisation_ratio": {name: held / total for name, held, total in columns if total},
        "jain_index": {"frameworks": report.jain_frameworks, "roles": report.jain_roles},
        "envy_max_tasks": report.envy_max,
    }


ROLES = (
    gauge(
        "role_weight{role}", "Weight of the role among its siblings; 1 where the master set none."
    ),
    gauge(
        "role_dominant_share{role}",
        "Largest part of any resource that the role and those below it hold, 0 to 1.",
    ),
    gauge("role_weighted_share{role}", "Dominant share of the role, divided by its weight."),
    amounts("role_held{role}", "What the role and those below it are offered or use"),
    amounts("role_offered{role}", "What the role and those below it are offered and do not use"),
    gauge("role_filters{role}", "Refusals in force of frameworks in the role and those below it."),
)


def _roles(report: Report, limit: int) -> Numbers:
    roles = report.roles
    rows = np.flatnonzero(roles.bound)
    named = np.array([roles.path[row] not in ("", OTHER) for row in rows.tolist()], np.bool_)
    top, _ = largest(report.role_share, rows[named], limit)
    # The roles below the root that are not shown hold what all roles not shown hold; one that is
    # not shown below one that is counts there.
    rest = np.setdiff1d(np.flatnonzero(roles.bound & (roles.depth == 1)), top)
    values = [[label(roles.path[row])] for row in top.tolist()]
    shown = Selection(report, top, rest, values, [OTHER])
    return {
        "role_weight": shown.each(roles.weight),
        "role_dominant_share": shown.each(report.role_share),
        "role_weighted_share": shown.each(report.role_weighted_share),
        "role_held": shown.amounts(report.role_held),
        "role_offered": shown.amounts(report.role_offered),
        "role_filters": shown.summed(report.role_filters),
    }


DEMANDS = (
    gauge(
        "demand_clients{source}",
        "Clients (a framework in a role) by where their demand comes from.",
    ),
    gauge(
        "demands_remembered{certain}",
        "Demands that are remembered of frameworks, and whether new ones begin with them.",
    ),
    counter(
        "priors{result}",
        "Remembered demands that a framework's first acceptance agreed with, or did not.",
    ),
    counter(
        "demand_probes",
        "Times that a framework got nothing for so long that its learnt demand was doubted.",
    ),
)

_SOURCES = ("request", "label", "operator", "learned", "prior", "unknown")


def _demands(report: Report) -> Numbers:
    remembered = report.remembered
    known = Counter(source or "unknown" for source in report.clients.demand_source)
    certain = sum(row.counts for row in remembered.rows)
    return {
        "demand_clients": {source: known[source] for source in _SOURCES},
        "demands_remembered": {"yes": certain, "no": len(remembered.rows) - certain},
        "priors": {"confirmed": remembered.confirmed, "refuted": remembered.refuted},
        "demand_probes": remembered.probes,
    }


QUOTAS = (
    amounts("role_quota_guarantee{role}", "What the role's quota guarantees it"),
    amounts("role_quota_consumed{role}", "What counts against the role's quota"),
    amounts("role_quota_limit{role}", "What the role is granted at most, where it has a limit"),
    amounts("headroom_required", "What has to stay free for guarantees"),
    amounts("headroom_available", "What is free and counts against quota"),
)


def _quotas(report: Report, limit: int) -> Numbers:
    quotas = report.quotas
    row_of = {path: row for row, path in enumerate(report.roles.path)}
    share = np.append(report.role_share, 0.0)  # the last one is for roles that nobody is in
    shares = share[[row_of.get(path, -1) for path in quotas.path]]
    named = np.flatnonzero([path != OTHER for path in quotas.path])
    top, _ = largest(shares, named, limit)
    # Roles below another one with a quota are counted there already.
    rest = np.setdiff1d(np.flatnonzero(quotas.outermost), top)
    values = [[label(quotas.path[row])] for row in top.tolist()]
    shown = Selection(report, top, rest, values, [OTHER])
    ruled = (quotas.guarantee > 0).any(axis=0) | (quotas.limit < UNBOUNDED).any(axis=0)
    used = quotas.bounded & (report.common | ruled)
    most = quotas.limit[top]
    return {
        "role_quota_guarantee": shown.amounts(quotas.guarantee, used),
        "role_quota_consumed": shown.amounts(quotas.consumed, used),
        "role_quota_limit": amounts_of(report, values, most, most < UNBOUNDED),
        "headroom_required": amounts_of(report, [[]], quotas.required[None], used),
        "headroom_available": amounts_of(report, [[]], quotas.available[None], used),
    }

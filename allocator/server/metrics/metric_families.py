"""The families of metrics: what Prometheus is told of one scrape.

Names begin with ``mesos_allocator_`` and follow Prometheus's conventions: counters end in
``_total``, times are in seconds, memory and disk in bytes. A resource is a label, as the agents
choose its name; the label ``unit`` says what its numbers count (``core``, ``byte``, ``one``).

The number of series is bounded: the frameworks and roles with the largest shares, and the
frameworks that wait longest, have series of their own; the others are added up under the name
`OTHER`. Series end when what they are about ends.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from prometheus_client.core import (
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from allocator import __version__
from allocator.core import NOWHERE, REASONS, UNBOUNDED, Ints
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.framework_families import frameworks
from allocator.server.metrics.metric_building import (
    OTHER,
    PREFIX,
    amounts_of,
    counted_by,
    counter,
    gauge,
    info_family,
    label,
    labelled,
    largest,
)
from allocator.server.reports.learned_demands import families as demand_families
from allocator.server.reports.report import Report
from allocator.v1 import session_pb2
from allocator.wire.codec.sanitizing import FIELDS
from allocator.wire.session.counters import Counts


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


class StateCollector:
    """Turns what the core reports into series, at each scrape."""

    def __init__(
        self, scrape: Callable[[], Scrape | None], *, frameworks_max: int, roles_max: int
    ) -> None:
        """Take scrapes from a function; None: the core never answered so far."""
        self._scrape = scrape
        self._frameworks_max = frameworks_max
        self._roles_max = roles_max

    def parts(self) -> Iterator[Part]:
        """Say what there is."""
        yield Part("build", _build)
        scrape = self._scrape()
        if scrape is None:
            return
        state, most = scrape.report, self._roles_max
        source = state.clients.demand_source
        yield Part("counters", lambda: _counters(scrape))
        yield Part("cluster", lambda: _cluster(scrape))
        yield Part("roles", lambda: _roles(state, most))
        yield Part("demands", lambda: demand_families(state.remembered, source))
        yield Part("quotas", lambda: _quotas(state, most))
        yield Part("frameworks", lambda: frameworks(state, self._frameworks_max))


def _build() -> Iterator[Metric]:
    yield info_family("build", "Version of the sidecar.", {"version": __version__})


def _enumerated(names: Iterable[str], prefix: str) -> list[str]:
    short = (name.removeprefix(prefix).lower() for name in names)
    return [name for name in short if name != "unspecified"]


ASKED_MAX = 20
"""Of so many that are asked to leave agents there are series."""

_EVENTS = [field.name for field in session_pb2.Event.DESCRIPTOR.fields]
_REASONS = _enumerated(session_pb2.OutcomeReason.keys(), "OUTCOME_REASON_")
_CODES = _enumerated(session_pb2.ErrorCode.keys(), "ERROR_CODE_")


def _asked(scrape: Scrape) -> Metric:
    """Say who is asked to leave agents."""
    text = "How long a framework has been asked to leave an agent for others; the longest ones."
    rows = (
        ([row.framework_id, row.agent_id, ",".join(row.for_whom)], row.for_s)
        for row in scrape.report.asked[:ASKED_MAX]
    )
    labels = ["framework", "agent", "for"]
    return labelled(GaugeMetricFamily, "reclaim_seconds", text, labels, rows)


def _counters(scrape: Scrape) -> Iterator[Metric]:
    counts = scrape.counts
    yield counter(
        "messages", "Messages that masters' modules sent, since the process began.", counts.messages
    )
    yield counter(
        "batches",
        "Batches of events that masters' modules sent, since the process began.",
        counts.batches,
    )
    yield counted_by(
        "events",
        "Events that masters' modules sent, by type, since the process began.",
        "type",
        counts.events,
        _EVENTS,
    )
    yield counter(
        "cycles",
        "Allocation cycles that were run, over all agents or some, since the process began.",
        counts.cycles,
    )
    yield HistogramMetricFamily(
        f"{PREFIX}cycle_duration_seconds",
        "How long allocation cycles took, in seconds, since the process began.",
        buckets=scrape.cycle_buckets,
        sum_value=scrape.cycle_total_s,
    )
    yield counter(
        "decisions",
        "Offers that were decided (one framework, role and agent each), since the process began.",
        counts.decisions,
    )
    yield gauge(
        "reclaims",
        "Frameworks that the last cycle over all agents asked to leave agents, for each agent.",
        counts.reclaims,
    )
    yield _asked(scrape)
    yield counted_by(
        "outcomes",
        "Decisions by what became of them at the master, since the process began.",
        "reason",
        counts.outcomes,
        _REASONS,
    )
    yield counter(
        "sessions_opened",
        "Sessions of masters' modules that began, since the process began.",
        counts.sessions_opened,
    )
    yield counted_by(
        "sessions_closed",
        "Sessions ended: left by the module, or the error that ended them.",
        "reason",
        counts.sessions_closed,
        ["left", *_CODES],
    )
    yield counted_by(
        "errors", "Errors that masters' modules were sent.", "code", counts.errors, _CODES
    )
    text = "Values that only inform, put right instead of refused."
    yield counted_by("mended", text, "field", counts.mended, FIELDS)
    text = "Cycles in which the policy failed and the fallback decided."
    yield counter("policy_errors", text, counts.policy_errors)
    text = "Failures to write the journal; it is off for a minute then."
    yield counter("journal_errors", text, scrape.journal_errors)
    text = "Refusals that were forgotten because there were too many."
    yield counter("filters_forgotten", text, scrape.filters_forgotten)


def _cluster(scrape: Scrape) -> Iterator[Metric]:
    report = scrape.report
    yield gauge("report_age_seconds", "How old these numbers are: the core is busy.", scrape.age_s)
    yield gauge(
        "sessions",
        "Streams of masters' modules that are open now; one of them has this sidecar.",
        scrape.sessions,
    )
    yield gauge("in_session", "1 while a master has this sidecar.", scrape.in_session)
    policy = report.policy
    labels = {
        "name": policy.name,
        "selection": policy.selection,
        "mode": policy.mode,
        "competition": "flat" if policy.flat else "hierarchical",
    }
    yield info_family("policy", "The policy in force.", labels)
    yield from _counts(report)
    there = np.array([name != NOWHERE for name in report.resources], np.bool_)
    for name, text, amounts in (
        (
            "capacity",
            "What all agents have, by resource, in the unit that the label says.",
            report.total,
        ),
        (
            "held",
            "What is offered or in use on all agents, in the unit that the label says.",
            report.held,
        ),
        (
            "offered",
            "What is offered and not in use on all agents, in the unit that the label says.",
            report.offered,
        ),
    ):
        yield amounts_of(report, name, text, [], [[]], amounts[None, :], there[None])
    rows = [
        ([resource], held / total)
        for resource, held, total in zip(
            report.resources, report.held.tolist(), report.total.tolist(), strict=True
        )
        if total
    ]
    text = "Part of the cluster's capacity that is offered or in use, 0 to 1."
    yield labelled(GaugeMetricFamily, "utilisation_ratio", text, ["resource"], rows)
    rows = [(["frameworks"], report.jain_frameworks), (["roles"], report.jain_roles)]
    text = "Jain's fairness index of weighted dominant shares, 1: all equal."
    yield labelled(GaugeMetricFamily, "jain_index", text, ["among"], rows)
    text = "Most tasks more that a framework could run with what another one holds."
    yield gauge("envy_max_tasks", text, report.envy_max)


def _counts(report: Report) -> Iterator[Metric]:
    """How many agents, frameworks, roles, refusals and decisions there are."""
    agents = vars(report.agents).items()
    rows = [([state], float(count)) for state, count in agents]
    text = "Agents: active ones, those deactivated, not on the whitelist, or drained by operators."
    yield labelled(GaugeMetricFamily, "agents", text, ["state"], rows)
    active = report.frameworks_active
    rows = [(["active"], active), (["inactive"], report.frameworks - active)]
    yield labelled(
        GaugeMetricFamily,
        "frameworks",
        "Frameworks that subscribed to the master, by whether they are connected.",
        ["state"],
        rows,
    )
    yield gauge(
        "roles",
        "Roles that the master told of, with their ancestors.",
        int(report.roles.bound.sum()) - 1,
    )
    yield gauge(
        "filters",
        "Refusals (offer filters) in force, of all frameworks on all agents.",
        report.filters,
    )
    text = "Decisions whose outcome is not known yet."
    yield gauge("decisions_outstanding", text, report.outstanding)
    rows = [([why], float(count)) for why, count in vars(report.overdue).items()]
    text = "Clients that waited for an offer for starvation.patience_cycles."
    yield labelled(GaugeMetricFamily, "clients_overdue", text, ["kept_by"], rows)
    text = "What is set aside of frameworks' and agents' words now, by reason; see explain."
    rows = [([why], float(report.aside.reasons.get(why, 0))) for why in REASONS]
    yield labelled(GaugeMetricFamily, "set_aside", text, ["reason"], rows)


def _roles(report: Report, limit: int) -> Iterator[Metric]:
    roles = report.roles
    rows = np.flatnonzero(roles.bound)
    named = np.array([roles.path[row] not in ("", OTHER) for row in rows.tolist()], np.bool_)
    top, _ = largest(report.role_share, rows[named], limit)
    values = [[label(roles.path[row])] for row in top.tolist()]
    share = report.role_share[top]
    for name, text, numbers in (
        (
            "role_weight",
            "Weight of the role among its siblings; 1 where the master set none.",
            roles.weight[top],
        ),
        (
            "role_dominant_share",
            "Largest part of any resource that the role and those below it hold, 0 to 1.",
            share,
        ),
        (
            "role_weighted_share",
            "Dominant share of the role, divided by its weight.",
            share / roles.weight[top],
        ),
    ):
        pairs = zip(values, numbers.tolist(), strict=True)
        yield labelled(GaugeMetricFamily, name, text, ["role"], pairs)
    # Those shown, and in one more row what all others hold.
    rest = _outermost(report, top)
    for name, text, amounts in (
        (
            "role_held",
            "What the role and those below it are offered or use, in the labelled unit.",
            report.role_held,
        ),
        (
            "role_offered",
            "What the role and those below it are offered and do not use, in the labelled unit.",
            report.role_offered,
        ),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        yield amounts_of(report, name, text, ["role"], [*values, [OTHER]], both)
    filters = [*report.role_filters[top].tolist(), int(report.role_filters[rest].sum())]
    pairs = zip([*values, [OTHER]], filters, strict=True)
    text = "Refusals in force of frameworks in the role and those below it."
    yield labelled(GaugeMetricFamily, "role_filters", text, ["role"], pairs)


def _quotas(report: Report, limit: int) -> Iterator[Metric]:
    quotas = report.quotas
    row_of = {path: row for row, path in enumerate(report.roles.path)}
    share = np.append(report.role_share, 0.0)  # the last one is for roles that nobody is in
    shares = share[[row_of.get(path, -1) for path in quotas.path]]
    named = np.flatnonzero([path != OTHER for path in quotas.path])
    top, _ = largest(shares, named, limit)
    # The others in one row; roles below another one with a quota are counted there already.
    rest = np.setdiff1d(np.flatnonzero(quotas.outermost), top)
    values = [[label(quotas.path[row])] for row in top.tolist()]
    ruled = (quotas.guarantee > 0).any(axis=0) | (quotas.limit < UNBOUNDED).any(axis=0)
    for name, text, amounts in (
        (
            "role_quota_guarantee",
            "What the role's quota guarantees it, in the unit that the label says.",
            quotas.guarantee,
        ),
        (
            "role_quota_consumed",
            "What counts against the role's quota, in the unit that the label says.",
            quotas.consumed,
        ),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        used = np.broadcast_to(quotas.bounded & (report.common | ruled), both.shape)
        yield amounts_of(report, name, text, ["role"], [*values, [OTHER]], both, used)
    text = "What the role is granted at most, where it has a limit."
    some = quotas.limit[top]
    yield amounts_of(report, "role_quota_limit", text, ["role"], values, some, some < UNBOUNDED)
    for name, text, amount in (
        (
            "headroom_required",
            "What has to stay free for guarantees, in the unit that the label says.",
            quotas.required,
        ),
        (
            "headroom_available",
            "What is free and counts against quota, in the unit that the label says.",
            quotas.available,
        ),
    ):
        used = quotas.bounded & (report.common | ruled)
        yield amounts_of(report, name, text, [], [[]], amount[None], used[None])


def _outermost(report: Report, shown: Ints) -> Ints:
    """Roles below the root that are not shown: they hold what all roles not shown hold.

    A role that is not shown below one that is counts there.
    """
    below_root = np.flatnonzero(report.roles.bound & (report.roles.depth == 1))
    return np.setdiff1d(below_root, shown)

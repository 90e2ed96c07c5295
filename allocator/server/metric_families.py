"""The families of metrics: what Prometheus is told of one scrape.

Names begin with ``mesos_allocator_`` and follow Prometheus's conventions: counters end in
``_total``, times are in seconds, memory and disk in bytes. A resource is a label, as the agents
choose its name; the label ``unit`` says what its numbers count (``core``, ``byte``, ``one``).

The number of series is bounded: the frameworks and roles with the largest shares have series of
their own, the others are added up under the name `OTHER`. Series end when what they are about ends.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from allocator import __version__
from allocator.core import MILLI, UNBOUNDED, Bools, Ints
from allocator.server.remembered import families as demand_families
from allocator.server.report import Report
from allocator.v1 import session_pb2
from allocator.wire.counters import Counts
from allocator.wire.mending import FIELDS

PREFIX = "mesos_allocator_"

OTHER = "other"
"""Stands for everything that has no series of its own."""

LABEL_LENGTH_MAX = 200
"""Longer texts are cut and end in a digest, so that they stay apart."""

_MIB = 2**20
_UNITS = {"cpus": ("core", 1.0), "mem": ("byte", _MIB), "disk": ("byte", _MIB)}


def unit_of(resource: str) -> tuple[str, float]:
    """Unit of a resource in metrics, and how many of them Mesos's own unit is.

    Examples
    --------
    >>> unit_of("cpus"), unit_of("mem"), unit_of("gpus")
    (('core', 1.0), ('byte', 1048576), ('one', 1.0))
    """
    return _UNITS.get(resource, ("one", 1.0))


def label(text: str) -> str:
    """A text of any length as the value of a label."""
    if len(text) <= LABEL_LENGTH_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{text[: LABEL_LENGTH_MAX - 13]}~{digest}"


@dataclass(frozen=True)
class Scrape:
    """What one scrape shows, all of the same moment.

    Attributes
    ----------
    report : Report
    counts : Counts
    cycle_buckets : sequence of (str, float)
        Upper bound in seconds and how many cycles took at most as long.
    cycle_total_s : float
    journal_errors, sessions, filters_forgotten : int
    in_session : bool
        A master has this sidecar.
    age_s : float
        How old all of this is.
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


class StateCollector(Collector):
    """Turns what the core reports into series, at each scrape."""

    def __init__(
        self, scrape: Callable[[], Scrape | None], *, frameworks_max: int, roles_max: int
    ) -> None:
        """Take scrapes from a function; None: the core never answered so far."""
        self._scrape = scrape
        self._frameworks_max = frameworks_max
        self._roles_max = roles_max

    def describe(self) -> Iterable[Metric]:
        """Say nothing ahead; else the registry would scrape at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Give all families."""
        yield _info("build", "Version of the sidecar.", {"version": __version__})
        scrape = self._scrape()
        if scrape is None:
            return
        yield from _counters(scrape)
        yield from _cluster(scrape)
        yield from _roles(scrape.report, self._roles_max)
        yield from demand_families(scrape.report.remembered, scrape.report.clients.demand_source)
        yield from _quotas(scrape.report, self._roles_max)
        yield from _frameworks(scrape.report, self._frameworks_max)


def _info(name: str, text: str, labels: Mapping[str, str]) -> Metric:
    return InfoMetricFamily(f"{PREFIX}{name}", text, value=dict(labels))


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{PREFIX}{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{PREFIX}{name}", text, value=value)


def _labelled(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str],
    rows: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    metric = family(f"{PREFIX}{name}", text, labels=labels)
    for values, number in rows:
        metric.add_metric(values, number)
    return metric


def _by(name: str, text: str, key: str, counts: Mapping[str, int], known: Iterable[str]) -> Metric:
    """A counter with one label, with a zero for everything that is known but did not happen."""
    values = dict.fromkeys(known, 0) | dict(counts)
    rows = (([value], number) for value, number in sorted(values.items()))
    return _labelled(CounterMetricFamily, name, text, [key], rows)


def _enumerated(names: Iterable[str], prefix: str) -> list[str]:
    short = (name.removeprefix(prefix).lower() for name in names)
    return [name for name in short if name != "unspecified"]


_EVENTS = [field.name for field in session_pb2.Event.DESCRIPTOR.fields]
_REASONS = _enumerated(session_pb2.OutcomeReason.keys(), "OUTCOME_REASON_")
_CODES = _enumerated(session_pb2.ErrorCode.keys(), "ERROR_CODE_")


def _counters(scrape: Scrape) -> Iterator[Metric]:
    counts = scrape.counts
    yield _counter("messages", "Messages from masters' modules.", counts.messages)
    yield _counter("batches", "Batches of events.", counts.batches)
    yield _by("events", "Events by type.", "type", counts.events, _EVENTS)
    yield _counter("cycles", "Allocation cycles.", counts.cycles)
    yield HistogramMetricFamily(
        f"{PREFIX}cycle_duration_seconds",
        "How long cycles took.",
        buckets=scrape.cycle_buckets,
        sum_value=scrape.cycle_total_s,
    )
    yield _counter("decisions", "Offers decided.", counts.decisions)
    yield _by("outcomes", "What became of decisions.", "reason", counts.outcomes, _REASONS)
    yield _counter("sessions_opened", "Sessions begun.", counts.sessions_opened)
    yield _by(
        "sessions_closed",
        "Sessions ended: left by the module, or the error that ended them.",
        "reason",
        counts.sessions_closed,
        ["left", *_CODES],
    )
    yield _by("errors", "Errors that masters' modules were sent.", "code", counts.errors, _CODES)
    text = "Values that only inform, put right instead of refused."
    yield _by("mended", text, "field", counts.mended, FIELDS)
    text = "Cycles in which the policy failed and the fallback decided."
    yield _counter("policy_errors", text, counts.policy_errors)
    text = "Failures to write the journal; it is off for a minute then."
    yield _counter("journal_errors", text, scrape.journal_errors)
    text = "Refusals that were forgotten because there were too many."
    yield _counter("filters_forgotten", text, scrape.filters_forgotten)


def _cluster(scrape: Scrape) -> Iterator[Metric]:
    report = scrape.report
    yield _gauge("report_age_seconds", "How old these numbers are: the core is busy.", scrape.age_s)
    yield _gauge("sessions", "Sessions now.", scrape.sessions)
    yield _gauge("in_session", "1 while a master has this sidecar.", scrape.in_session)
    policy = report.policy
    labels = {
        "name": policy.name,
        "selection": policy.selection,
        "mode": policy.mode,
        "competition": "flat" if policy.flat else "hierarchical",
    }
    yield _info("policy", "The policy in force.", labels)
    agents = vars(report.agents).items()
    rows = [([state], float(count)) for state, count in agents]
    text = "Agents: active ones, those deactivated, those not on the whitelist."
    yield _labelled(GaugeMetricFamily, "agents", text, ["state"], rows)
    active = report.frameworks_active
    rows = [(["active"], active), (["inactive"], report.frameworks - active)]
    yield _labelled(GaugeMetricFamily, "frameworks", "Frameworks.", ["state"], rows)
    yield _gauge("roles", "Roles.", int(report.roles.bound.sum()) - 1)
    yield _gauge("filters", "Refusals in force.", report.filters)
    text = "Decisions whose outcome is not known yet."
    yield _gauge("decisions_outstanding", text, report.outstanding)
    rows = [([why], float(count)) for why, count in vars(report.overdue).items()]
    text = "Clients that waited for an offer for starvation.patience_cycles."
    yield _labelled(GaugeMetricFamily, "clients_overdue", text, ["kept_by"], rows)
    for name, text, amounts in (
        ("capacity", "What all agents have.", report.total),
        ("held", "What is offered or in use.", report.held),
        ("offered", "What is offered and not in use.", report.offered),
    ):
        yield _amounts(report, name, text, [], [[]], amounts[None, :])
    rows = [
        ([resource], held / total)
        for resource, held, total in zip(
            report.resources, report.held.tolist(), report.total.tolist(), strict=True
        )
        if total
    ]
    text = "Part of the capacity that is offered or in use."
    yield _labelled(GaugeMetricFamily, "utilisation_ratio", text, ["resource"], rows)
    rows = [(["frameworks"], report.jain_frameworks), (["roles"], report.jain_roles)]
    text = "Jain's fairness index of weighted dominant shares, 1: all equal."
    yield _labelled(GaugeMetricFamily, "jain_index", text, ["among"], rows)
    text = "Most tasks more that a framework could run with what another one holds."
    yield _gauge("envy_max_tasks", text, report.envy_max)


def _amounts(
    report: Report,
    name: str,
    text: str,
    labels: Sequence[str],
    values: Sequence[Sequence[str]],
    amounts: Ints,
    given: Bools | None = None,
) -> Metric:
    """Amounts (n, R) of whatever the n lists of label values name, or those that are given."""
    metric = GaugeMetricFamily(f"{PREFIX}{name}", text, labels=[*labels, "resource", "unit"])
    units = [(resource, *unit_of(resource)) for resource in report.resources]
    shown = np.ones(amounts.shape, np.bool_) if given is None else given
    for row, column in np.argwhere(shown).tolist():
        resource, unit, factor = units[column]
        number = int(amounts[row, column]) * factor / MILLI
        metric.add_metric([*values[row], resource, unit], number)
    return metric


def _largest(share: np.ndarray, candidates: np.ndarray, limit: int) -> tuple[Ints, Ints]:
    """The rows with the largest shares, and the rest; lower rows first on ties."""
    order = candidates[np.argsort(-share[candidates], kind="stable")]
    return np.sort(order[:limit]), order[limit:]


def _roles(report: Report, limit: int) -> Iterator[Metric]:
    roles = report.roles
    rows = np.flatnonzero(roles.bound)
    named = np.array([roles.path[row] not in ("", OTHER) for row in rows.tolist()], np.bool_)
    top, _ = _largest(report.role_share, rows[named], limit)
    values = [[label(roles.path[row])] for row in top.tolist()]
    share = report.role_share[top]
    for name, text, numbers in (
        ("role_weight", "Weight of the role among its siblings.", roles.weight[top]),
        ("role_dominant_share", "Largest share that the role holds of any resource.", share),
        ("role_weighted_share", "Dominant share by weight.", share / roles.weight[top]),
    ):
        pairs = zip(values, numbers.tolist(), strict=True)
        yield _labelled(GaugeMetricFamily, name, text, ["role"], pairs)
    # Those shown, and in one more row what all others hold.
    rest = _outermost(report, top)
    for name, text, amounts in (
        ("role_held", "What the role and those below it are offered or use.", report.role_held),
        ("role_offered", "The part of it that is not in use.", report.role_offered),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        yield _amounts(report, name, text, ["role"], [*values, [OTHER]], both)
    filters = [*report.role_filters[top].tolist(), int(report.role_filters[rest].sum())]
    pairs = zip([*values, [OTHER]], filters, strict=True)
    text = "Refusals in force of frameworks in the role and those below it."
    yield _labelled(GaugeMetricFamily, "role_filters", text, ["role"], pairs)


def _quotas(report: Report, limit: int) -> Iterator[Metric]:
    quotas = report.quotas
    row_of = {path: row for row, path in enumerate(report.roles.path)}
    share = np.append(report.role_share, 0.0)  # the last one is for roles that nobody is in
    shares = share[[row_of.get(path, -1) for path in quotas.path]]
    named = np.flatnonzero([path != OTHER for path in quotas.path])
    top, _ = _largest(shares, named, limit)
    # The others in one row; roles below another one with a quota are counted there already.
    rest = np.setdiff1d(np.flatnonzero(quotas.outermost), top)
    values = [[label(quotas.path[row])] for row in top.tolist()]
    for name, text, amounts in (
        ("role_quota_guarantee", "What the role is guaranteed.", quotas.guarantee),
        ("role_quota_consumed", "What counts against the role's quota.", quotas.consumed),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        used = np.broadcast_to(quotas.bounded, both.shape)
        yield _amounts(report, name, text, ["role"], [*values, [OTHER]], both, used)
    text = "What the role is granted at most, where it has a limit."
    some = quotas.limit[top]
    yield _amounts(report, "role_quota_limit", text, ["role"], values, some, some < UNBOUNDED)
    for name, text, amount in (
        ("headroom_required", "What has to stay free for guarantees.", quotas.required),
        ("headroom_available", "What is free and counts against quota.", quotas.available),
    ):
        yield _amounts(report, name, text, [], [[]], amount[None], quotas.bounded[None])


def _outermost(report: Report, shown: Ints) -> Ints:
    """Roles below the root that are not shown: they hold what all roles not shown hold.

    A role that is not shown below one that is counts there.
    """
    below_root = np.flatnonzero(report.roles.bound & (report.roles.depth == 1))
    return np.setdiff1d(below_root, shown)


_CLIENT = ["role", "framework", "framework_name"]


def _frameworks(report: Report, limit: int) -> Iterator[Metric]:
    clients = report.clients
    top, rest = _largest(report.share, np.arange(len(clients.role)), limit)
    values = [_client(report, row) for row in top.tolist()]
    for name, text, numbers in (
        ("framework_dominant_share", "Largest share of any resource.", report.share[top]),
        ("framework_weighted_share", "Dominant share by weight.", report.weighted_share[top]),
        ("framework_offered_share", "Largest share on offer, unused.", report.offered_share[top]),
        ("framework_agents", "Agents on which it holds something.", clients.agents[top]),
    ):
        pairs = zip(values, numbers.tolist(), strict=True)
        yield _labelled(GaugeMetricFamily, name, text, _CLIENT, pairs)
    all_values = [*values, ["", OTHER, ""]]
    filters = [*clients.filters[top].tolist(), int(clients.filters[rest].sum())]
    pairs = zip(all_values, filters, strict=True)
    text = "Refusals of the framework in force."
    yield _labelled(GaugeMetricFamily, "framework_filters", text, _CLIENT, pairs)
    # Of those that are not shown, the longest time.
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
        yield _labelled(GaugeMetricFamily, name, text, _CLIENT, pairs)
    for name, text, amounts in (
        ("framework_held", "What the framework is offered or uses.", clients.held),
        ("framework_offered", "The part of it that is not in use.", clients.offered),
    ):
        both = np.vstack([amounts[top], amounts[rest].sum(axis=0)])
        yield _amounts(report, name, text, _CLIENT, all_values, both)
    known = top[clients.demand[top].any(axis=1)]
    known_values = [_client(report, row) for row in known.tolist()]
    text = "What one task needs, where it is known."
    yield _amounts(report, "framework_demand", text, _CLIENT, known_values, clients.demand[known])


def _client(report: Report, row: int) -> list[str]:
    clients = report.clients
    info = clients.info[row]
    role = label(report.roles.path[clients.role[row]])
    if info is None:
        return [role, f"handle {clients.framework[row]}", ""]
    return [role, label(info.framework_id), label(info.name)]

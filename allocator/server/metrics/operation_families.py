"""The families of metrics about the process and those beside it, rather than the books.

Changes, rules, the journal, the queue, plans, fair shares; and what the module says of itself.
"""

import resource
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from allocator.core import Floats, Ints, Reason
from allocator.server.engine.sessions import SessionInfo
from allocator.server.following.books import FollowedBooks
from allocator.server.following.fair_shares import Fairness, FairnessCounts, FairnessWatch
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.shadow import Reading
from allocator.server.grpc.calls import BOUNDS
from allocator.server.grpc.calls import REASONS as REFUSALS
from allocator.server.metrics.family import (
    OTHER,
    Families,
    Part,
    Series,
    counter,
    gauge,
    largest,
    with_zeros,
)
from allocator.server.operators.audit import RESULTS
from allocator.server.system.compilation import PARTS
from allocator.settable import KINDS, RULES
from allocator.v1 import records_pb2 as pb
from allocator.wire import MODULE_ENDS, ModuleFigures

_TOTALS = {
    "cycles": "Cycles that the module began, since its master began to lead.",
    "fallback_cycles": "Cycles that the module decided by itself, without a sidecar.",
    "fallback_offers": "Offers that the module made by itself.",
    "breaker_trips": "Times that the module ended a session because of bad decisions.",
    "barren_turns": "Turns that the module took because the sidecar left lie what is wanted.",
    "misfits": "Facts of the master that did not fit the module's books.",
    "attempts": "Times that the module called a sidecar.",
    "sessions": "Sessions in which a sidecar decided.",
    "resyncs": "Snapshots that the module sent after its first one.",
    "shadow_offers": "Offers of Mesos's own allocator, while the module was in its shadow.",
}
_NOW = {
    "queue_messages": "Messages that wait in the module to be sent.",
    "queue_bytes": "What waits in the module to be sent, in bytes.",
    "barren_intervals": "Intervals in a row without offers, though some framework would take one.",
    "unanswered": "Batches of the module that wait for their answer.",
    "breaker_open": "1 while the module takes no session because of bad decisions.",
    "shadow": "1 while Mesos's own allocator decides, and decisions are only compared.",
}

_REASONS = [each.name.lower() for each in Reason]


class _ModuleSaid(NamedTuple):
    """What the module of the present session said last, and the time on its clock."""

    figures: ModuleFigures
    clock_ms: int

    @property
    def fallback_last_s(self) -> float:
        since_ms, until_ms = self.figures.fallback_since_ms, self.figures.fallback_until_ms
        lasted_ms = (until_ms or self.clock_ms) - since_ms if since_ms else 0
        return max(lasted_ms, 0) / 1000


MODULE: Families[_ModuleSaid] = (
    *(
        counter(f"module_{name}", text, attrgetter(f"figures.{name}"))
        for name, text in _TOTALS.items()
    ),
    *(gauge(f"module_{name}", text, attrgetter(f"figures.{name}")) for name, text in _NOW.items()),
    counter(
        "module_shadow_decisions{given}",
        "Decisions in shadow, by whom Mesos's own allocator gave of the agent to meanwhile.",
        lambda now: {
            "same": now.figures.shadow_same,
            "other": now.figures.shadow_other,
            "none": now.figures.shadow_none,
        },
    ),
    gauge(
        "module_fallback_active",
        "1 while the module decides by itself, though a session lasts.",
        lambda now: bool(now.figures.fallback_since_ms) and not now.figures.fallback_until_ms,
    ),
    gauge(
        "module_fallback_last_seconds",
        "How long the module decided by itself the last time, in seconds; 0: it never did.",
        lambda now: now.fallback_last_s,
    ),
    counter(
        "module_session_ends{end}",
        "Sessions and attempts to have one that ended, by how, as the module saw it.",
        lambda now: with_zeros(MODULE_ENDS.values(), now.figures.ends),
    ),
    counter(
        "module_outcomes{reason}",
        "Decisions by what the module made of them, of all sidecars that it had.",
        lambda now: with_zeros(_REASONS, now.figures.outcomes),
    ),
    gauge(
        "module_round_trip_seconds{part}",
        "From a batch to its answer, as the module saw the latest ones, in seconds.",
        lambda now: {
            "p50": now.figures.round_trip_p50_us / 1e6,
            "p99": now.figures.round_trip_p99_us / 1e6,
            "max": now.figures.round_trip_max_us / 1e6,
        },
    ),
)


def module_parts(session: Callable[[], SessionInfo | None]) -> list[Part[Any]]:
    """Say what the module of the present session said last; nothing where it says nothing."""

    def said() -> _ModuleSaid | None:
        now = session()
        return _ModuleSaid(now.figures, now.clock_ms) if now and now.figures is not None else None

    return [Part("module", MODULE, said)]


LOOKS: Families[FairnessCounts] = (
    counter(
        "fair_shares{result}",
        "Times that fair shares were worked out for metrics, by what came of it.",
        lambda counts: {"done": counts.done, "failed": counts.failed},
    ),
    counter(
        "fair_shares_work_seconds",
        "Time that working fair shares out for metrics took in all, in seconds.",
        lambda counts: counts.total_s,
    ),
    gauge(
        "fair_shares_last_seconds",
        "Time that working fair shares out for metrics took the last time, in seconds.",
        lambda counts: counts.last_s,
    ),
)


@dataclass(frozen=True)
class _Shown:
    """The latest look, and the rows of roles with series of their own."""

    fairness: Fairness
    roles: Ints

    @property
    def errors(self) -> Mapping[str, Floats]:
        of_frameworks, of_roles = self.fairness.client_error, self.fairness.roles.error
        return {"frameworks": np.abs(of_frameworks), "roles": np.abs(of_roles)}

    def each(self, numbers: Floats) -> list[Series]:
        path = self.fairness.roles.path
        return [([path[row]], float(numbers[row])) for row in self.roles.tolist()]


FAIRNESS: Families[_Shown] = (
    gauge(
        "fair_shares_age_seconds",
        "How old the fair shares of the metrics are, in seconds.",
        lambda found: time.monotonic() - found.fairness.taken_s,
    ),
    gauge(
        "fairness_error_max{among}",
        "Largest difference of a dominant share from the fair one, either way, 0 to 1.",
        lambda found: {each: error.max(initial=0.0) for each, error in found.errors.items()},
    ),
    gauge(
        "fairness_error_mean{among}",
        "Mean of these differences, over all that hold something or should, 0 to 1.",
        lambda found: {
            each: error.mean() if len(error) else 0.0 for each, error in found.errors.items()
        },
    ),
    gauge(
        "role_fair_share{role}",
        "Dominant share of the role and its descendants in an allocation from scratch.",
        lambda found: found.each(found.fairness.roles.fair),
    ),
    gauge(
        "role_fairness_error{role}",
        "Dominant share of the role less the fair one: above 0 where it holds more.",
        lambda found: found.each(found.fairness.roles.error),
    ),
    gauge(
        "role_shortfall{role}",
        "What it lacks of its fair share, where a framework in it lacks some and refuses none.",
        lambda found: found.each(found.fairness.roles.shortfall),
    ),
)


def fairness_parts(watch: FairnessWatch, roles_max: int) -> list[Part[Any]]:
    """Say what came of the latest look, without waiting for the core.

    `roles_max`: at most this many roles, those that hold or should hold most, have series. An
        error of the others together would say nothing.
    """

    def shown() -> _Shown | None:
        latest = watch.latest
        if latest is None:
            return None
        roles = latest.roles
        named = np.flatnonzero([path != OTHER for path in roles.path])
        top, _ = largest(np.maximum(roles.share, roles.fair), named, roles_max)
        return _Shown(latest, top)

    return [
        Part("fairness", LOOKS, lambda: watch.counts),
        Part("fairness", FAIRNESS, shown),
    ]


COMPILATION: Families[pb.Loops] = (
    gauge(
        "compiled",
        "1 once the loops are compiled and loaded; no session begins before.",
        lambda now: now.state == "compiled",
    ),
    gauge(
        "compilation_progress",
        "How much of the loops is compiled, 0 to 1.",
        lambda now: now.parts_compiled / len(PARTS),
    ),
)


class Operation(NamedTuple):
    """What is known without asking the books."""

    books: FollowedBooks
    settings: FollowedSettings

    @property
    def said(self) -> pb.Figures:
        """What the process that decides said of itself last."""
        return self.books.figures

    def parts(self) -> list[Part[Any]]:
        said = self.said
        return [
            Part("compilation", COMPILATION, lambda: said.loops if said.sidecar_id else None),
            Part("changes", ADMIN_CHANGES, lambda: self),
            Part("keeping", KEEPING, lambda: said.state),
            Part("journal", JOURNAL, lambda: said.journal if said.sidecar_id else None),
            Part("planning", PLANNING, lambda: said.plans),
            Part("shadow", SHADOW, self.books.shadow.counts),
            Part("calls", CALLS, lambda: said),
            Part("core", CORE, lambda: said),
            Part("observer", OBSERVER, lambda: self.books),
        ]


def _by_pair(
    found: Mapping[tuple[str, str], int], first: Iterable[str], second: Collection[str]
) -> list[Series]:
    """Count for each value of the first label with each of the second."""
    return [((one, other), found.get((one, other), 0)) for one in first for other in second]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _counted(pairs: Iterable[pb.PairCount]) -> Mapping[tuple[str, str], int]:
    return {(each.first, each.second): each.count for each in pairs}


def _set_by_operators(settings: FollowedSettings) -> Mapping[str, float]:
    set_by = Counter(key[0] for key in settings.overlay.changes)
    return {kind: set_by[kind] for kind in KINDS}


ADMIN_CHANGES: Families[Operation] = (
    counter(
        "admin_changes{setting,result}",
        "Changes of settings that operators asked for, by result.",
        lambda now: _by_pair(_counted(now.said.admin_changes), KINDS, RESULTS),
    ),
    gauge(
        "rules{kind}",
        "Rules in force, of the configuration and of operators, by kind.",
        lambda now: {
            kind.name: len(getattr(now.books.allocator.settings, kind.plural)) for kind in RULES
        },
    ),
    gauge(
        "operator_settings{kind}",
        "Settings that operators set over the configuration, or took back, by kind.",
        lambda now: _set_by_operators(now.settings),
    ),
    counter(
        "config_reloads{result}",
        "Times that the configuration was read again on SIGHUP, by whether it was taken over.",
        lambda now: {each: now.said.reloads[each] for each in ("done", "refused")},
    ),
)

KEEPING: Families[pb.StateFigures] = (
    gauge(
        "state_kept",
        "1 while what operators set survives a restart; 0: it ends with the process.",
        lambda state: bool(state.directory) and not state.problem,
    ),
    counter("state_errors", "Failures to write a state file.", lambda state: state.errors),
)

JOURNAL: Families[pb.JournalFigures] = (
    gauge(
        "journal_on",
        "1 while the journal is written; 0: none is configured, or it failed and is tried again"
        " within a minute.",
        lambda journal: journal.on,
    ),
    gauge(
        "journal_file_bytes",
        "Size of the journal's present file, in bytes; rotated files are not in it.",
        lambda journal: journal.file_bytes,
    ),
)

PLANNING: Families[pb.PlanFigures] = (
    counter(
        "plans{result}",
        "Plans that a policy worked out beside the cycles, by what came of them: dropped ones"
        " came when another policy or session was there.",
        lambda planning: {
            "adopted": planning.adopted,
            "failed": planning.failed,
            "dropped": planning.dropped,
        },
    ),
    counter(
        "plans_late",
        "Plans that took longer than policy.plan_budget_ms, with any outcome.",
        lambda planning: planning.late,
    ),
    counter(
        "plan_work_seconds",
        "Time that plans took in all, in seconds.",
        lambda planning: planning.total_s,
    ),
    gauge(
        "plan_last_seconds",
        "Time that the last plan took, in seconds.",
        lambda planning: planning.last_s,
    ),
    gauge(
        "plan_running_seconds",
        "How long the plan takes so far that is being worked out; 0: none is.",
        lambda planning: planning.running_s,
    ),
    gauge(
        "plan_age_seconds",
        "How long ago the plan in force was good for the cluster, in seconds.",
        lambda planning: None if planning.age_s < 0 else planning.age_s,
    ),
)

SHADOW: Families[Reading] = (
    gauge(
        "shadow_on",
        "1 while there is a shadow policy, whose decisions have no effect.",
        lambda now: now.spec is not None,
    ),
    counter(
        "shadow_cycles{result}",
        "Cycles since the shadow policy was set, by whether it decided them, too.",
        lambda now: {
            "compared": now.counts.compared,
            "late": now.counts.late,
            "too_large": now.counts.too_large,
            "failed": now.counts.failed,
        },
    ),
    counter(
        "shadow_offers{by}",
        "Offers (a framework and an agent) in compared cycles, by who would have made them.",
        lambda now: {
            "both": now.counts.offers_of_both,
            "policy": now.counts.offers_of_policy,
            "shadow": now.counts.offers_of_shadow,
        },
    ),
    counter(
        "shadow_frameworks{only}",
        "Clients (a framework in a role each) that only one of the two offered anything in a cycle,"
        " cycle by cycle.",
        lambda now: {
            "policy": now.counts.clients_of_policy,
            "shadow": now.counts.clients_of_shadow,
        },
    ),
    counter(
        "shadow_share_apart",
        "Share of the cluster that the shadow policy would have offered to other clients, summed"
        " over compared cycles.",
        lambda now: now.counts.share_apart,
    ),
    counter(
        "shadow_seconds",
        "Time spent on the shadow policy, in seconds.",
        lambda now: now.counts.busy_s,
    ),
)

CALLS: Families[pb.Figures] = (
    counter(
        "calls_refused{kind,reason}",
        "Calls that were refused: no room for their kind, no right, others ask for too long.",
        lambda said: _by_pair(_counted(said.calls_refused), BOUNDS, REFUSALS),
    ),
)

CORE: Families[pb.Figures] = (
    gauge(
        "core_queue_depth",
        "Commands (messages, changes, plans) that wait for the thread that decides.",
        lambda said: said.queue_depth,
    ),
    gauge(
        "last_batch_timestamp_seconds",
        "When the latest batch of a master came, in seconds since 1970; 0: none came.",
        lambda said: said.last_batch_s,
    ),
)

OBSERVER: Families[FollowedBooks] = (
    counter(
        "observer_cpu_seconds",
        "Processor time of the observer's process, in seconds.",
        lambda _books: time.process_time(),
    ),
    gauge(
        "observer_resident_memory_bytes",
        "Memory of the observer's process, in bytes.",
        lambda _books: _resident_bytes(),
    ),
    gauge(
        "observer_current",
        "1 while the process that decides is heard of; 0: all other metrics are older.",
        lambda books: books.is_current,
    ),
    counter(
        "observer_restarts",
        "Times that the observer restarted from a checkpoint.",
        lambda books: max(books.lag.restarts, 0),
    ),
    counter(
        "observer_busy_seconds",
        "Processor time that following took, in seconds.",
        lambda books: books.lag.busy_s,
    ),
    counter(
        "observer_verified_cycles",
        "Cycles that the observer decided again.",
        lambda books: books.lag.verified,
    ),
    counter(
        "observer_differences",
        "Cycles that came out otherwise when they were decided again; please report each.",
        lambda books: books.lag.differences,
    ),
)

GROUPS: Mapping[str, Families[Any]] = {
    "Compiled loops": COMPILATION,
    "Settings": ADMIN_CHANGES,
    "State directory": KEEPING,
    "Journal": JOURNAL,
    "Plans": PLANNING,
    "Policy in shadow": SHADOW,
    "Refused calls": CALLS,
    "Core": CORE,
    "Observer": OBSERVER,
    "Module in the master": MODULE,
    "How fair shares are worked out": LOOKS,
    "Fair shares": FAIRNESS,
}
"""By what they tell of, in the order of a scrape."""

"""Metrics of the process and its surroundings, as opposed to the books.

Changes, rules, the journal, the queue, plans, fair shares; and the module's report about itself.
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
from allocator.rule_kinds import KINDS
from allocator.server.engine.sessions import SessionInfo
from allocator.server.following.books import FollowedBooks
from allocator.server.following.fair_shares import Fairness, FairnessCounts, FairnessWatch
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.shadow import Tally
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
from allocator.v1 import records_pb2 as pb
from allocator.wire import MODULE_ENDS, ModuleFigures

_TOTALS = {
    "cycles": "Cycles that the module began, since its master began to lead.",
    "fallback_cycles": "Cycles that the module decided itself, without a sidecar.",
    "fallback_offers": "Offers that the module decided itself.",
    "breaker_trips": "Times that the module ended a session because of bad decisions.",
    "barren_turns": (
        "Cycles that the module decided because the sidecar did not offer resources that"
        " frameworks want."
    ),
    "misfits": "Facts from the master that contradicted the module's books.",
    "attempts": "Times that the module called a sidecar.",
    "sessions": "Sessions in which a sidecar decided.",
    "resyncs": "Snapshots that the module sent after its first one.",
    "shadow_offers": "Offers of Mesos's own allocator while the module was in shadow mode.",
}
_NOW = {
    "queue_messages": "Messages waiting in the module to be sent.",
    "queue_bytes": "Size of the messages waiting in the module to be sent, in bytes.",
    "barren_intervals": "Consecutive intervals without offers although a framework wants one.",
    "unanswered": "Batches of the module without an answer so far.",
    "breaker_open": "1 while the module opens no session because of bad decisions.",
    "shadow": "1 in shadow mode: Mesos's own allocator decides, and decisions are only compared.",
}

_REASONS = [each.name.lower() for each in Reason]


class _ModuleSaid(NamedTuple):
    """The latest report of the current session's module, and the time on its clock."""

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
        "Decisions in shadow mode, by the framework to which Mesos's own allocator offered the"
        " agent.",
        lambda now: {
            "same": now.figures.shadow_same,
            "other": now.figures.shadow_other,
            "none": now.figures.shadow_none,
        },
    ),
    gauge(
        "module_fallback_active",
        "1 while the module decides itself during a session.",
        lambda now: bool(now.figures.fallback_since_ms) and not now.figures.fallback_until_ms,
    ),
    gauge(
        "module_fallback_last_seconds",
        "Duration of the module's latest fallback so far, in seconds; 0: none.",
        lambda now: now.fallback_last_s,
    ),
    counter(
        "module_session_ends{end}",
        "Ended sessions and attempts to open one, by reason, as seen by the module.",
        lambda now: with_zeros(MODULE_ENDS.values(), now.figures.ends),
    ),
    counter(
        "module_outcomes{reason}",
        "Decisions by the module's outcome, over all its sidecars.",
        lambda now: with_zeros(_REASONS, now.figures.outcomes),
    ),
    gauge(
        "module_round_trip_seconds{part}",
        "Time from a batch to its answer, over recent batches of the module, in seconds.",
        lambda now: {
            "p50": now.figures.round_trip_p50_us / 1e6,
            "p99": now.figures.round_trip_p99_us / 1e6,
            "max": now.figures.round_trip_max_us / 1e6,
        },
    ),
)


def module_parts(session: Callable[[], SessionInfo | None]) -> list[Part[Any]]:
    """Return parts for the latest report of the current session's module, if there is one."""

    def said() -> _ModuleSaid | None:
        now = session()
        return _ModuleSaid(now.figures, now.clock_ms) if now and now.figures is not None else None

    return [Part("module", MODULE, said)]


LOOKS: Families[FairnessCounts] = (
    counter(
        "fair_shares{result}",
        "Computations of fair shares for metrics, by result.",
        lambda counts: {"done": counts.done, "failed": counts.failed},
    ),
    counter(
        "fair_shares_work_seconds",
        "Total time of computations of fair shares for metrics, in seconds.",
        lambda counts: counts.total_s,
    ),
    gauge(
        "fair_shares_last_seconds",
        "Time of the last computation of fair shares for metrics, in seconds.",
        lambda counts: counts.last_s,
    ),
)


@dataclass(frozen=True)
class _Shown:
    """The latest computation, and the rows of roles with their own series."""

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
        "Age of the fair shares in the metrics, in seconds.",
        lambda found: time.monotonic() - found.fairness.taken_s,
    ),
    gauge(
        "fairness_error_max{among}",
        "Largest absolute difference of a dominant share from the fair share, 0 to 1.",
        lambda found: {each: error.max(initial=0.0) for each, error in found.errors.items()},
    ),
    gauge(
        "fairness_error_mean{among}",
        "Mean absolute difference of a dominant share from the fair share, over all that hold"
        " resources or should, 0 to 1.",
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
        "Dominant share of the role minus its fair share; above 0: it holds more.",
        lambda found: found.each(found.fairness.roles.error),
    ),
    gauge(
        "role_shortfall{role}",
        "Dominant share that the role lacks to its fair share, if a framework in it lacks"
        " some and refuses nothing.",
        lambda found: found.each(found.fairness.roles.shortfall),
    ),
)


def fairness_parts(watch: FairnessWatch, roles_max: int) -> list[Part[Any]]:
    """Return parts for the latest computation of fair shares, without waiting for the core.

    `roles_max`: maximum number of roles with series, those with the largest holdings or fair
        shares. The sum of the others' errors would mean nothing.
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
        "Fraction of the loops that is compiled, 0 to 1.",
        lambda now: now.parts_compiled / len(PARTS),
    ),
)


class Operation(NamedTuple):
    """Data that is available without asking the books."""

    books: FollowedBooks
    settings: FollowedSettings
    refused: Counter[tuple[str, str]]

    @property
    def said(self) -> pb.Figures:
        return self.books.figures

    def parts(self) -> list[Part[Any]]:
        said = self.said
        return [
            Part("compilation", COMPILATION, lambda: said.loops if said.sidecar_id else None),
            Part("changes", ADMIN_CHANGES, lambda: self),
            Part("keeping", KEEPING, lambda: said.state),
            Part("journal", JOURNAL, lambda: said.journal if said.sidecar_id else None),
            Part("planning", PLANNING, lambda: said.plans),
            Part("shadow", SHADOW, self.books.shadow.totals),
            Part("calls", CALLS, lambda: self),
            Part("core", CORE, lambda: said),
            Part("observer", OBSERVER, lambda: self.books),
        ]


def _by_pair(
    found: Mapping[tuple[str, str], int], first: Iterable[str], second: Collection[str]
) -> list[Series]:
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
        "Changes of settings that operators requested, by result.",
        lambda now: _by_pair(_counted(now.said.admin_changes), KINDS, RESULTS),
    ),
    gauge(
        "operator_settings{kind}",
        "Operators' settings, which override the configuration, by kind.",
        lambda now: _set_by_operators(now.settings),
    ),
    counter(
        "config_reloads{result}",
        "Reloads of the configuration by SIGHUP, by whether it was applied.",
        lambda now: {each: now.said.reloads[each] for each in ("done", "refused")},
    ),
)

KEEPING: Families[pb.StateFigures] = (
    gauge(
        "state_kept",
        "1 while operators' settings survive a restart; 0: they are lost when the process ends.",
        lambda state: bool(state.directory) and not state.problem,
    ),
    counter("state_errors", "Failures to write a state file.", lambda state: state.errors),
)

JOURNAL: Families[pb.JournalFigures] = (
    gauge(
        "journal_on",
        "1 while the journal is written; 0: none is configured, or it failed and is retried"
        " within a minute.",
        lambda journal: journal.on,
    ),
    gauge(
        "journal_file_bytes",
        "Size of the journal's current file, in bytes, without rotated files.",
        lambda journal: journal.file_bytes,
    ),
)

PLANNING: Families[pb.PlanFigures] = (
    counter(
        "plans{result}",
        "Plans computed in the background, by result; dropped: the policy or session had changed.",
        lambda planning: {
            "adopted": planning.adopted,
            "failed": planning.failed,
            "dropped": planning.dropped,
        },
    ),
    counter(
        "plans_late",
        "Plans that took longer than policy.plan_budget_ms, whatever their result.",
        lambda planning: planning.late,
    ),
    counter(
        "plan_work_seconds",
        "Total time of plans, in seconds.",
        lambda planning: planning.total_s,
    ),
    gauge(
        "plan_last_seconds",
        "Time that the last plan took, in seconds.",
        lambda planning: planning.last_s,
    ),
    gauge(
        "plan_running_seconds",
        "Time spent so far on the plan that is being computed; 0: none is.",
        lambda planning: planning.running_s,
    ),
    gauge(
        "plan_age_seconds",
        "Time since the plan in force last matched the cluster, in seconds.",
        lambda planning: None if planning.age_s < 0 else planning.age_s,
    ),
)

SHADOW: Families[Tally] = (
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
        "Offers (a framework and an agent) in compared cycles, by whether both policies made"
        " them or only one.",
        lambda now: {
            "both": now.counts.offers_of_both,
            "policy": now.counts.offers_of_policy,
            "shadow": now.counts.offers_of_shadow,
        },
    ),
    counter(
        "shadow_frameworks{only}",
        "Clients (a framework in a role) to which only one of the two policies offered anything"
        " in a cycle, summed over cycles.",
        lambda now: {
            "policy": now.counts.clients_of_policy,
            "shadow": now.counts.clients_of_shadow,
        },
    ),
    counter(
        "shadow_share_apart",
        "Share of the cluster that the shadow policy would have offered to other clients, summed"
        " over compared cycles.",
        lambda now: now.share_apart,
    ),
    counter(
        "shadow_seconds",
        "Time spent on the shadow policy, in seconds.",
        lambda now: now.counts.busy_s,
    ),
)

CALLS: Families[Operation] = (
    counter(
        "calls_refused{kind,reason}",
        "Refused calls, by kind and reason: too many calls of this kind, or no permission.",
        lambda now: _by_pair(
            now.refused + Counter(_counted(now.said.calls_refused)), BOUNDS, REFUSALS
        ),
    ),
)

CORE: Families[pb.Figures] = (
    gauge(
        "core_queue_depth",
        "Commands (messages, changes, plans) waiting for the deciding thread.",
        lambda said: said.queue_depth,
    ),
    gauge(
        "last_batch_timestamp_seconds",
        "Time of the latest batch of a master, in seconds since 1970; 0: none yet.",
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
        "1 while the observer receives records of the deciding process; 0: all other metrics are"
        " outdated.",
        lambda books: books.is_current,
    ),
    gauge(
        "observer_connected",
        "1 while the observer is connected to its source.",
        lambda books: books.lag.connected,
    ),
    gauge(
        "observer_lag_seconds",
        "Age of the observer's state: the time from when the latest records were written, by"
        " the clock of the deciding process, to when they were applied, by the clock of"
        " this machine. It grows while nothing is received.",
        lambda books: books.lag.behind_s,
    ),
    gauge(
        "observer_followers",
        "Observers on other machines that follow this one.",
        lambda books: len(books.relay),
    ),
    counter(
        "observer_restarts",
        "Times that the observer restarted from a checkpoint.",
        lambda books: max(books.lag.restarts, 0),
    ),
    counter(
        "observer_busy_seconds",
        "Processor time spent on applying records, in seconds.",
        lambda books: books.lag.busy_s,
    ),
    counter(
        "observer_verified_cycles",
        "Cycles that the observer recomputed.",
        lambda books: books.lag.verified,
    ),
    counter(
        "observer_differences",
        "Recomputed cycles with another result; please report each.",
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
    "Cost of fair shares": LOOKS,
    "Fair shares": FAIRNESS,
}

"""The families of metrics about the process itself: changes, rules, journal, queue."""

import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from allocator.core import Floats, Reason
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.fair_shares import FairnessWatch
from allocator.server.engine.planning import Planner
from allocator.server.engine.sessions import SessionInfo
from allocator.server.grpc.calls import BOUNDS, REASONS, Calls
from allocator.server.metrics.family import (
    OTHER,
    Numbers,
    Part,
    Series,
    counter,
    gauge,
    histogram,
    label,
    largest,
    with_zeros,
)
from allocator.server.operators.operators import RESULTS, Audit, Operators
from allocator.server.system.compilation import PARTS, Compilation
from allocator.settable import KINDS, RULES
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
    "barren_intervals": "Intervals in a row without offers, though somebody would take some.",
    "unanswered": "Batches of the module that wait for their answer.",
    "breaker_open": "1 while the module takes no session because of bad decisions.",
    "shadow": "1 while Mesos's own allocator decides, and decisions are only compared.",
}

MODULE = (
    *(counter(f"module_{name}", text) for name, text in _TOTALS.items()),
    *(gauge(f"module_{name}", text) for name, text in _NOW.items()),
    counter(
        "module_shadow_decisions{given}",
        "Decisions in shadow, by whom Mesos's own allocator gave of the agent to meanwhile.",
    ),
    gauge(
        "module_fallback_active", "1 while the module decides by itself, though a session lasts."
    ),
    gauge(
        "module_fallback_last_seconds",
        "How long the module decided by itself the last time, in seconds; 0: it never did.",
    ),
    counter(
        "module_session_ends{end}",
        "Sessions and attempts to have one that ended, by how, as the module saw it.",
    ),
    counter(
        "module_outcomes{reason}",
        "Decisions by what the module made of them, of all sidecars that it had.",
    ),
    gauge(
        "module_round_trip_seconds{part}",
        "From a batch to its answer, as the module saw the latest ones, in seconds.",
    ),
)

_REASONS = [each.name.lower() for each in Reason]


def module_parts(session: Callable[[], SessionInfo | None]) -> list[Part]:
    """Say what the module of the present session said last; nothing where it says nothing."""

    def numbers() -> Numbers | None:
        now = session()
        return _module(now.figures, now.clock_ms) if now and now.figures is not None else None

    return [Part("module", MODULE, numbers)]


def _module(figures: ModuleFigures, clock_ms: int) -> Numbers:
    since_ms, until_ms = figures.fallback_since_ms, figures.fallback_until_ms
    lasted_ms = (until_ms or clock_ms) - since_ms if since_ms else 0
    return {
        **{f"module_{name}": getattr(figures, name) for name in (*_TOTALS, *_NOW)},
        "module_shadow_decisions": {
            "same": figures.shadow_same,
            "other": figures.shadow_other,
            "none": figures.shadow_none,
        },
        "module_fallback_active": bool(since_ms) and not until_ms,
        "module_fallback_last_seconds": max(lasted_ms, 0) / 1000,
        "module_session_ends": with_zeros(MODULE_ENDS.values(), figures.ends),
        "module_outcomes": with_zeros(_REASONS, figures.outcomes),
        "module_round_trip_seconds": {
            "p50": figures.round_trip_p50_us / 1e6,
            "p99": figures.round_trip_p99_us / 1e6,
            "max": figures.round_trip_max_us / 1e6,
        },
    }


LOOKS = (
    counter(
        "fair_shares{result}",
        "Times that fair shares were worked out for metrics, by what came of it.",
    ),
    counter(
        "fair_shares_work_seconds",
        "Time that working fair shares out for metrics took in all, in seconds.",
    ),
    gauge(
        "fair_shares_last_seconds",
        "Time that working fair shares out for metrics took the last time, in seconds.",
    ),
    gauge(
        "fair_shares_copy_seconds",
        "How long the copy that they were worked out on held the core up, in seconds.",
    ),
)

FAIRNESS = (
    gauge("fair_shares_age_seconds", "How old the fair shares of the metrics are, in seconds."),
    gauge(
        "fairness_error_max{among}",
        "Largest difference of a dominant share from the fair one, either way, 0 to 1.",
    ),
    gauge(
        "fairness_error_mean{among}",
        "Mean of these differences, over all that hold something or should, 0 to 1.",
    ),
    gauge(
        "role_fair_share{role}",
        "What the policy would give the role and those below it, were all given out anew.",
    ),
    gauge(
        "role_fairness_error{role}",
        "Dominant share of the role less the fair one: above 0 where it holds more.",
    ),
    gauge(
        "role_shortfall{role}",
        "What it lacks of its fair share, where a framework in it lacks some and refuses none.",
    ),
)


def fairness_parts(watch: FairnessWatch, roles_max: int) -> list[Part]:
    """Say what came of the latest look, without waiting for the core.

    `roles_max`: so many roles at most have series of their own: those that hold most or should. An
        error of the others together would say nothing.
    """
    return [
        Part("fairness", LOOKS, lambda: _looks(watch)),
        Part("fairness", FAIRNESS, lambda: _fairness(watch, roles_max)),
    ]


def _looks(watch: FairnessWatch) -> Numbers:
    counts = watch.counts
    return {
        "fair_shares": {"done": counts.done, "failed": counts.failed},
        "fair_shares_work_seconds": counts.total_s,
        "fair_shares_last_seconds": counts.last_s,
        "fair_shares_copy_seconds": counts.held_s,
    }


def _fairness(watch: FairnessWatch, roles_max: int) -> Numbers | None:
    latest = watch.latest
    if latest is None:
        return None
    roles = latest.roles
    named = np.flatnonzero([path != OTHER for path in roles.path])
    top, _ = largest(np.maximum(roles.share, roles.fair), named, roles_max)

    def each(numbers: Floats) -> list[Series]:
        return [([label(roles.path[row])], float(numbers[row])) for row in top.tolist()]

    errors = {"frameworks": np.abs(latest.client_error), "roles": np.abs(roles.error)}
    return {
        "fair_shares_age_seconds": time.monotonic() - latest.taken_s,
        "fairness_error_max": {among: error.max(initial=0.0) for among, error in errors.items()},
        "fairness_error_mean": {
            among: error.mean() if len(error) else 0.0 for among, error in errors.items()
        },
        "role_fair_share": each(roles.fair),
        "role_fairness_error": each(roles.error),
        "role_shortfall": each(roles.shortfall),
    }


COMPILATION = (
    gauge("compiled", "1 while the loops run compiled, 0 while they run interpreted."),
    gauge("compilation_progress", "How much of the loops is compiled, 0 to 1."),
)


def compilation_parts(compilation: Compilation) -> list[Part]:
    """Say how far the compiled loops are."""

    def numbers() -> Numbers:
        return {
            "compiled": compilation.state == "compiled",
            "compilation_progress": compilation.done / len(PARTS),
        }

    return [Part("compilation", COMPILATION, numbers)]


CHANGES = (
    counter(
        "admin_changes{setting,result}", "Changes of settings that operators asked for, by result."
    ),
    gauge("rules{kind}", "Rules in force, of the configuration and of operators, by kind."),
    gauge(
        "operator_settings{kind}",
        "Settings that operators set over the configuration, or took back, by kind.",
    ),
    counter(
        "config_reloads{result}",
        "Times that the configuration was read again on SIGHUP, by whether it was taken over.",
    ),
)

KEEPING = (
    gauge(
        "state_kept", "1 while what operators set survives a restart; 0: it ends with the process."
    ),
    counter("state_errors", "Failures to write a state file."),
)

JOURNAL = (
    gauge(
        "journal_on",
        "1 while the journal is written; 0: it failed and is tried again within a minute.",
    ),
    gauge(
        "journal_file_bytes",
        "Size of the journal's present file, in bytes; rotated files are not in it.",
    ),
)

PLANNING = (
    counter(
        "plans{result}",
        "Plans that a policy worked out beside the cycles, by what came of them: dropped ones"
        " came when another policy or session was there.",
    ),
    counter(
        "plans_late", "Plans that took longer than policy.plan_budget_ms, whatever came of them."
    ),
    counter("plan_work_seconds", "Time that plans took in all, in seconds."),
    gauge("plan_last_seconds", "Time that the last plan took, in seconds."),
    gauge(
        "plan_running_seconds",
        "How long the plan takes so far that is being worked out; 0: none is.",
    ),
    gauge(
        "plan_age_seconds", "How long ago the plan in force was good for the cluster, in seconds."
    ),
)

SHADOW = (
    gauge(
        "shadow_on",
        "1 while a policy looks on beside the one in force; nothing comes of what it says.",
    ),
    counter(
        "shadow_cycles{result}",
        "Cycles since the policy that looks on was set, by whether it decided them, too.",
    ),
    counter(
        "shadow_offers{by}",
        "Offers (a framework and an agent) in compared cycles, by who would have made them.",
    ),
    counter(
        "shadow_frameworks{only}",
        "Frameworks that only one of the two offered anything in a cycle, cycle by cycle.",
    ),
    counter(
        "shadow_share_apart",
        "Share of the cluster that the policy that looks on would have offered to others, added"
        " up over compared cycles.",
    ),
    counter("shadow_seconds", "Time that asking the policy that looks on took, in seconds."),
)

CALLS = (
    counter(
        "calls_refused{kind,reason}",
        "Calls that were refused: no room for their kind, no right, others ask for too long.",
    ),
)

CORE = (
    gauge(
        "core_queue_depth",
        "Commands (messages, questions, changes) that wait for the core's thread.",
    ),
    counter(
        "core_questions_seconds",
        "Time of the core's thread that questions took; a fifth of its time at most.",
    ),
    histogram(
        "core_hold_seconds{kind}",
        "How long one piece of work held the core's thread, in seconds: a message with a cycle in"
        " it or without one, a question, a change, a plan, a copy of the books. Decisions wait so"
        " long.",
    ),
    gauge(
        "last_batch_timestamp_seconds",
        "When the latest batch of a master came, in seconds since 1970; 0: none came.",
    ),
)


class Operation(NamedTuple):
    """What is asked of any thread, without waiting for the core."""

    loop: CoreLoop
    operators: Operators
    audit: Audit
    planner: Planner
    calls: Calls

    def parts(self) -> list[Part]:
        return [
            Part("changes", CHANGES, self._changes),
            Part("keeping", KEEPING, self._keeping),
            Part("journal", JOURNAL, self._journal),
            Part("planning", PLANNING, self._planning),
            Part("shadow", SHADOW, self._shadow),
            Part("calls", CALLS, self._calls),
            Part("core", CORE, self._core),
        ]

    def _changes(self) -> Numbers:
        counts, settings = self.audit.counts(), self.loop.allocator.settings
        set_by = Counter(key[0] for key in list(self.operators.overlay.changes))
        return {
            "admin_changes": [
                ((kind, result), counts.get((kind, result), 0))
                for kind in KINDS
                for result in RESULTS
            ],
            "rules": {kind.name: len(getattr(settings, kind.plural)) for kind in RULES},
            "operator_settings": {kind: set_by[kind] for kind in KINDS},
            "config_reloads": {
                result: self.operators.reloads[result] for result in ("done", "refused")
            },
        }

    def _keeping(self) -> Numbers:
        return {
            "state_kept": bool(self.operators.directory) and not self.operators.problem,
            "state_errors": self.operators.state_errors,
        }

    def _journal(self) -> Numbers | None:
        journal = self.loop.journal
        if journal is None:
            return None
        return {"journal_on": journal.on, "journal_file_bytes": journal.size}

    def _planning(self) -> Numbers:
        planner, counts = self.planner, self.planner.counts
        return {
            "plans": {
                "adopted": counts.adopted,
                "failed": counts.failed,
                "dropped": counts.dropped,
            },
            "plans_late": counts.late,
            "plan_work_seconds": counts.total_s,
            "plan_last_seconds": counts.last_s,
            "plan_running_seconds": planner.running_s,
            "plan_age_seconds": planner.age_s,
        }

    def _shadow(self) -> Numbers:
        spec, counts = self.loop.shadow.counts()
        return {
            "shadow_on": spec is not None,
            "shadow_cycles": {
                "compared": counts.compared,
                "late": counts.late,
                "too_large": counts.too_large,
                "failed": counts.failed,
            },
            "shadow_offers": {
                "both": counts.offers_of_both,
                "policy": counts.offers_of_policy,
                "shadow": counts.offers_of_shadow,
            },
            "shadow_frameworks": {
                "policy": counts.clients_of_policy,
                "shadow": counts.clients_of_shadow,
            },
            "shadow_share_apart": counts.share_apart,
            "shadow_seconds": counts.busy_s,
        }

    def _calls(self) -> Numbers:
        found = self.calls.refused
        pairs = [(kind, reason) for kind in BOUNDS for reason in REASONS]
        return {"calls_refused": [(pair, found[pair]) for pair in pairs]}

    def _core(self) -> Numbers:
        return {
            "core_queue_depth": self.loop.commands.depth,
            "core_questions_seconds": self.loop.commands.questions_s,
            "core_hold_seconds": [
                ([kind], each.cumulative(), each.total_s)
                for kind, each in self.loop.holds.by_kind.items()
            ],
            "last_batch_timestamp_seconds": self.loop.last_batch_s,
        }

"""The families of metrics about the process itself: changes, rules, journal, queue."""

from collections import Counter
from typing import NamedTuple

from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.planning import Planner
from allocator.server.grpc.calls import BOUNDS, REASONS, Calls
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.family import Numbers, counter, gauge, histogram
from allocator.server.operators.audit import RESULTS, Audit
from allocator.server.operators.operators import Operators
from allocator.server.system.compilation import PARTS, Compilation
from allocator.settable import KINDS, RULES

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
        "core_hold_seconds",
        "How long the core's thread took for one message, question or change, in seconds; decisions"
        " wait so long.",
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
        """Say what there is."""
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
            "core_hold_seconds": (self.loop.holds.cumulative(), self.loop.holds.total_s),
            "last_batch_timestamp_seconds": self.loop.last_batch_s,
        }

"""The families of metrics about the process itself: changes, rules, journal, queue."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.planning import Planner
from allocator.server.grpc.calls import BOUNDS, REASONS, Calls
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.metric_building import counted_by, counter, gauge, labelled
from allocator.server.operators.audit import RESULTS, Audit
from allocator.server.operators.operators import Operators
from allocator.settable import KINDS, RULES


class OperationCollector:
    """Says what is asked of any thread, without waiting for the core."""

    def __init__(
        self, loop: CoreLoop, operators: Operators, audit: Audit, planner: Planner, calls: Calls
    ) -> None:
        """Read these."""
        self._planner = planner
        self._loop = loop
        self._operators = operators
        self._audit = audit
        self._calls = calls

    def parts(self) -> list[Part]:
        """Say what there is."""
        return [
            Part("changes", self._changes),
            Part("keeping", self._keeping),
            Part("journal", self._journal),
            Part("planning", self._planning),
            Part("shadow", self._shadow),
            Part("calls", self._refused),
            Part("core", self._core),
        ]

    def _core(self) -> Iterator[Metric]:
        text = "Commands (messages, questions, changes) that wait for the core's thread."
        yield gauge("core_queue_depth", text, self._loop.commands.depth)
        text = "Time of the core's thread that questions took; a fifth of its time at most."
        yield counter("core_questions_seconds", text, self._loop.commands.questions_s)
        text = "When the latest batch of a master came, in seconds since 1970; 0: none came."
        yield gauge("last_batch_timestamp_seconds", text, self._loop.last_batch_s)

    def _refused(self) -> Iterator[Metric]:
        text = "Calls that were refused: no room for their kind, no right, others ask for too long."
        found = self._calls.refused
        rows = [
            ([kind, reason], float(found[kind, reason])) for kind in BOUNDS for reason in REASONS
        ]
        yield labelled(CounterMetricFamily, "calls_refused", text, ["kind", "reason"], rows)

    def _changes(self) -> Iterator[Metric]:
        counts = self._audit.counts()
        rows = [
            ([kind, result], float(counts.get((kind, result), 0)))
            for kind in KINDS
            for result in RESULTS
        ]
        text = "Changes of settings that operators asked for, by result, since the process began."
        labels = ["setting", "result"]
        yield labelled(CounterMetricFamily, "admin_changes", text, labels, rows)
        settings = self._loop.allocator.settings
        text = "Rules in force, of the configuration and of operators, by kind."
        each = [([kind.name], float(len(getattr(settings, kind.plural)))) for kind in RULES]
        yield labelled(GaugeMetricFamily, "rules", text, ["kind"], each)
        set_by = Counter(key[0] for key in list(self._operators.overlay.changes))
        text = "Settings that operators set over the configuration, or took back, by kind."
        each = [([kind], float(set_by[kind])) for kind in KINDS]
        yield labelled(GaugeMetricFamily, "operator_settings", text, ["kind"], each)
        reloads = self._operators.reloads
        text = (
            "Times that the configuration was read again on SIGHUP, by whether it was taken over."
        )
        each = [([result], float(reloads[result])) for result in ("done", "refused")]
        yield labelled(CounterMetricFamily, "config_reloads", text, ["result"], each)

    def _keeping(self) -> Iterator[Metric]:
        keeps = bool(self._operators.directory) and not self._operators.problem
        text = "1 while what operators set survives a restart; 0: it ends with the process."
        yield gauge("state_kept", text, keeps)
        text = "Failures to write a state file, since the process began."
        yield counter("state_errors", text, self._operators.state_errors)

    def _journal(self) -> Iterator[Metric]:
        journal = self._loop.journal
        if journal is None:
            return
        text = "1 while the journal is written; 0: it failed and is tried again within a minute."
        yield gauge("journal_on", text, journal.on)
        text = "Size of the journal's present file, in bytes; rotated files are not in it."
        yield gauge("journal_file_bytes", text, journal.size)

    def _planning(self) -> Iterator[Metric]:
        planner, counts = self._planner, self._planner.counts
        results = {"adopted": counts.adopted, "failed": counts.failed, "dropped": counts.dropped}
        text = (
            "Plans that a policy worked out beside the cycles, by what came of them: dropped ones"
            " came when another policy or session was there."
        )
        rows = [([result], float(number)) for result, number in results.items()]
        yield labelled(CounterMetricFamily, "plans", text, ["result"], rows)
        text = "Plans that took longer than policy.plan_budget_ms, whatever came of them."
        yield counter("plans_late", text, counts.late)
        text = "Time that plans took in all, in seconds."
        yield counter("plan_work_seconds", text, counts.total_s)
        yield gauge("plan_last_seconds", "Time that the last plan took, in seconds.", counts.last_s)
        text = "How long the plan takes so far that is being worked out; 0: none is."
        yield gauge("plan_running_seconds", text, planner.running_s)
        age_s = planner.age_s
        if age_s is not None:
            text = "How long ago the plan in force was good for the cluster, in seconds."
            yield gauge("plan_age_seconds", text, age_s)

    def _shadow(self) -> Iterator[Metric]:
        spec, counts = self._loop.shadow.counts()
        text = "1 while a policy looks on beside the one in force; nothing comes of what it says."
        yield gauge("shadow_on", text, spec is not None)
        text = "Cycles since the policy that looks on was set, by whether it decided them, too."
        results = {
            "compared": counts.compared,
            "late": counts.late,
            "too_large": counts.too_large,
            "failed": counts.failed,
        }
        yield counted_by("shadow_cycles", text, "result", results, ())
        text = "Offers (a framework and an agent) in compared cycles, by who would have made them."
        by = {
            "both": counts.offers_of_both,
            "policy": counts.offers_of_policy,
            "shadow": counts.offers_of_shadow,
        }
        yield counted_by("shadow_offers", text, "by", by, ())
        text = "Frameworks that only one of the two offered anything in a cycle, cycle by cycle."
        only = {"policy": counts.clients_of_policy, "shadow": counts.clients_of_shadow}
        yield counted_by("shadow_frameworks", text, "only", only, ())
        text = (
            "Share of the cluster that the policy that looks on would have offered to others, added"
            " up over compared cycles."
        )
        yield counter("shadow_share_apart", text, counts.share_apart)
        text = "Time that asking the policy that looks on took, in seconds."
        yield counter("shadow_seconds", text, counts.busy_s)

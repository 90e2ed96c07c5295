"""The dashboard of operation: changes of settings, the module, the journal, both processes."""

from expressions import metric, rate
from panels import Page, Panel, Query

OPERATION = Page(
    uid="mesos-allocator-operation",
    title="Mesos allocator: operation",
    description="Operators' changes, the master's module, the journal, queues, and compiled loops.",
    rows={
        "Changes": (
            Panel(
                "Requested changes",
                "By setting and result: done, refused, or a dry run. The log mesos_allocator.audit"
                " names the authors.",
                (
                    Query(
                        f"sum by (setting, result) (increase({metric('admin_changes_total')}"
                        "[$__rate_interval]))",
                        "{{setting}} {{result}}",
                    ),
                ),
                shape="stacked",
            ),
            Panel(
                "Rules and operators' settings",
                "Rules in force, by kind; settings by operators, which override the configuration.",
                (
                    Query(metric("rules"), "rules: {{kind}}"),
                    Query(metric("operator_settings"), "operators: {{kind}}"),
                ),
            ),
            Panel(
                "Reloads of the configuration",
                "By SIGHUP. refused: the file contains an error, which the log names.",
                (
                    Query(
                        f"increase({metric('config_reloads_total')}[$__rate_interval])",
                        "{{result}}",
                    ),
                ),
            ),
            Panel(
                "Settings are saved",
                "1: operators' settings survive a restart. errors: failures to write a state file.",
                (
                    Query(metric("state_kept"), "saved"),
                    Query(f"increase({metric('state_errors_total')}[$__rate_interval])", "errors"),
                ),
            ),
        ),
        "The master's module": (
            Panel(
                "Cycles, and fallback",
                "The module reports these figures every few seconds during a session.",
                (
                    Query(rate("module_cycles_total"), "all"),
                    Query(rate("module_fallback_cycles_total"), "in fallback"),
                    Query(rate("module_fallback_offers_total"), "offers in fallback"),
                ),
            ),
            Panel(
                "Outcomes of decisions",
                "As counted by the module, without those that were offered.",
                (
                    Query(
                        "sum by (reason) (rate(mesos_allocator_module_outcomes_total"
                        '{instance=~"$instance", reason!="offered"}[$__rate_interval]))',
                        "{{reason}}",
                    ),
                ),
                shape="stacked",
            ),
            Panel(
                "Ended sessions",
                "Also attempts. silent: no answer in time; malformed, refused: the two disagree.",
                (
                    Query(
                        f"sum by (end) (increase({metric('module_session_ends_total')}"
                        "[$__rate_interval]))",
                        "{{end}}",
                    ),
                    Query(
                        f"increase({metric('module_resyncs_total')}[$__rate_interval])", "resyncs"
                    ),
                    Query(
                        f"increase({metric('module_breaker_trips_total')}[$__rate_interval])",
                        "breaker",
                    ),
                    Query(
                        f"increase({metric('module_misfits_total')}[$__rate_interval])", "misfits"
                    ),
                ),
                shape="stacked",
            ),
            Panel(
                "Time from a batch to its answer",
                "As measured by the module, including queues and the stream.",
                (Query(metric("module_round_trip_seconds"), "{{part}}"),),
                unit="s",
            ),
            Panel(
                "Queue of the module",
                "Messages waiting to be sent, and batches without an answer.",
                (
                    Query(metric("module_queue_messages"), "messages"),
                    Query(metric("module_unanswered"), "unanswered"),
                ),
            ),
            Panel(
                "Size of the module's queue",
                "A full queue ends the session, and the next one begins with a snapshot.",
                (Query(metric("module_queue_bytes"), "bytes"),),
                unit="bytes",
            ),
            Panel(
                "Attempts and sessions",
                "Since the master began to lead. If there are more attempts, the sidecar did not"
                " answer or refused them.",
                (
                    Query(metric("module_attempts_total"), "attempts"),
                    Query(metric("module_sessions_total"), "sessions"),
                ),
            ),
            Panel(
                "Circuit breaker, and fallback during a session",
                "open: no session because of bad decisions. in fallback: the module decides"
                " although a session is open.",
                (
                    Query(metric("module_breaker_open"), "open"),
                    Query(metric("module_fallback_active"), "in fallback"),
                ),
                most=1,
            ),
            Panel(
                "Consecutive intervals without offers",
                "Although frameworks want free resources, and no rule explains it.",
                (Query(metric("module_barren_intervals"), "intervals"),),
            ),
            Panel(
                "Duration of the last fallback",
                "How long no sidecar decided. After an upgrade: how long the upgrade took.",
                (Query(metric("module_fallback_last_seconds"), "seconds"),),
                unit="s",
            ),
        ),
        "Shadow mode of the module": (
            Panel(
                "Shadow mode",
                "1 while Mesos's own allocator decides, and decisions are only compared.",
                (Query(metric("module_shadow"), "shadow mode"),),
                most=1,
            ),
            Panel(
                "Decisions, compared with Mesos's own allocator",
                "It offered the agent to: the same framework (same), only others (other), or none"
                " within the interval (none).",
                (Query(rate("module_shadow_decisions_total"), "{{given}}"),),
                shape="stacked",
            ),
            Panel(
                "Decisions that Mesos's own allocator also made",
                "As a fraction of all compared decisions, over five minutes.",
                (
                    Query(
                        'sum(rate(mesos_allocator_module_shadow_decisions_total{instance=~"$instance",'
                        ' given="same"}[5m])) / sum(rate('
                        'mesos_allocator_module_shadow_decisions_total{instance=~"$instance"}[5m]))',
                        "the same",
                    ),
                ),
                most=1,
            ),
            Panel(
                "Offers of Mesos's own allocator",
                "Counted per framework and agent, during sessions.",
                (Query(rate("module_shadow_offers_total"), "offers"),),
            ),
        ),
        "Journal": (
            Panel(
                "Journal is written",
                "0: none is configured, or writing failed and will be retried.",
                (Query(metric("journal_on"), "on"),),
                most=1,
            ),
            Panel(
                "Size of the current file",
                "At each rotation it falls to the size of a checkpoint.",
                (Query(metric("journal_file_bytes"), "bytes"),),
                unit="bytes",
            ),
        ),
        "Shadow policy": (
            Panel(
                "Cycles compared by the shadow policy",
                "compared: it also decided them. late: it was still busy. too_large: too large to"
                " copy. on: 1 while there is a shadow policy.",
                (
                    Query(metric("shadow_on"), "on"),
                    Query(rate("shadow_cycles_total"), "{{result}} per second"),
                    Query(rate("shadow_seconds_total"), "seconds per second"),
                ),
            ),
            Panel(
                "Differences of the shadow policy",
                "Offers by the policy that makes them; frameworks that only one policy serves;"
                " share of the cluster that the shadow policy would have offered to others.",
                (
                    Query(rate("shadow_offers_total"), "offers: {{by}}"),
                    Query(rate("shadow_frameworks_total"), "frameworks: only {{only}}"),
                    Query(rate("shadow_share_apart_total"), "share apart"),
                ),
            ),
        ),
        "Core": (
            Panel(
                "Queue of the core",
                "Messages, changes and plans that wait for the core's thread. It should be near"
                " zero.",
                (Query(metric("core_queue_depth"), "commands"),),
                width=6,
            ),
            Panel(
                "Observer",
                "current, connected: 1 while it receives records, or has a connection. Also the age"
                " of its state, its followers, its processor time (all, and for applying records),"
                " and restarts from a checkpoint.",
                (
                    Query(metric("observer_current"), "current"),
                    Query(metric("observer_connected"), "connected"),
                    Query(metric("observer_lag_seconds"), "seconds behind"),
                    Query(metric("observer_followers"), "followers"),
                    Query(rate("observer_cpu_seconds_total"), "processors"),
                    Query(rate("observer_busy_seconds_total"), "applying records"),
                    Query(rate("observer_restarts_total"), "restarts per second"),
                ),
                width=6,
            ),
            Panel(
                "Verified cycles",
                "Cycles that the observer recomputed, and those with another result: please report"
                " each.",
                (
                    Query(rate("observer_verified_cycles_total"), "verified per second"),
                    Query(metric("observer_differences_total"), "differences"),
                ),
                width=6,
            ),
            Panel(
                "Memory of the observer",
                "For the deciding process, see process_resident_memory_bytes.",
                (Query(metric("observer_resident_memory_bytes"), "resident"),),
                unit="bytes",
                width=6,
            ),
            Panel(
                "Calls refused",
                "room: too many calls of the kind at a time. right: the caller lacks permission.",
                (Query(rate("calls_refused_total"), "{{kind}}: {{reason}}"),),
                unit="ops",
            ),
            Panel(
                "Time since the last batch",
                "A module sends a batch in each allocation interval, even without events.",
                (Query(f"time() - ({metric('last_batch_timestamp_seconds')} > 0)", "seconds"),),
                unit="s",
            ),
            Panel(
                "Messages and new sessions",
                "A new session begins with the master's whole state, so there should be few.",
                (
                    Query(rate("messages_total"), "messages"),
                    Query(rate("sessions_opened_total"), "new sessions"),
                ),
                unit="ops",
            ),
            Panel(
                "Compiled loops",
                "Fraction of the loops that is compiled; 1 once they are in use, before which no"
                " session begins.",
                (
                    Query(metric("compilation_progress"), "compiled"),
                    Query(metric("compiled"), "in use"),
                ),
                most=1,
            ),
        ),
    },
)

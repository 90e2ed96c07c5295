"""The dashboard of what operators do, and of what keeps the sidecar going."""

from expressions import metric, rate
from panels import Page, Panel, Query

OPERATION = Page(
    uid="mesos-allocator-operation",
    title="Mesos allocator: operation",
    description="What operators changed, what is kept, what waits, and whether loops are compiled.",
    rows={
        "Changes": (
            Panel(
                "Changes asked for",
                "By what was to be changed, and whether it was done, refused, or a dry run. The log"
                " mesos_allocator.audit says who.",
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
                "Rules in force, and what operators set",
                "Rules of the configuration and of operators; settings over the configuration.",
                (
                    Query(metric("rules"), "rules: {{kind}}"),
                    Query(metric("operator_settings"), "operators: {{kind}}"),
                ),
            ),
            Panel(
                "Configuration read again",
                "SIGHUP. refused: something was wrong, the log says what, and nothing changed.",
                (
                    Query(
                        f"increase({metric('config_reloads_total')}[$__rate_interval])",
                        "{{result}}",
                    ),
                ),
            ),
            Panel(
                "Kept across a restart",
                "1: what operators set survives a restart. Errors: a state file was not written.",
                (
                    Query(metric("state_kept"), "kept"),
                    Query(f"increase({metric('state_errors_total')}[$__rate_interval])", "errors"),
                ),
            ),
        ),
        "The master's module": (
            Panel(
                "Cycles, and those that it decided by itself",
                "The module says it every few seconds of a session; an older one does not.",
                (
                    Query(rate("module_cycles_total"), "all"),
                    Query(rate("module_fallback_cycles_total"), "by itself"),
                    Query(rate("module_fallback_offers_total"), "offers by itself"),
                ),
            ),
            Panel(
                "What it made of decisions",
                "Outcomes as the module counts them; offered ones are left out.",
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
                "How sessions ended",
                "Attempts, too. silent: no answer in time; malformed, refused: the two disagree.",
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
                "From a batch to its answer",
                "As the module sees it, the wait for the sidecar's thread and the stream included.",
                (Query(metric("module_round_trip_seconds"), "{{part}}"),),
                unit="s",
            ),
            Panel(
                "What waits in it",
                "Messages to be sent, and batches without an answer.",
                (
                    Query(metric("module_queue_messages"), "messages"),
                    Query(metric("module_unanswered"), "unanswered"),
                ),
            ),
            Panel(
                "Bytes that wait in it",
                "A queue that is full ends the session, and the next one begins with a snapshot.",
                (Query(metric("module_queue_bytes"), "bytes"),),
                unit="bytes",
            ),
            Panel(
                "Calls, and sessions that came of them",
                "Since the master began to lead. Calls without sessions: no answer in time.",
                (
                    Query(metric("module_attempts_total"), "calls"),
                    Query(metric("module_sessions_total"), "sessions"),
                ),
            ),
            Panel(
                "Breaker, and who decides",
                "open: it takes no session because of bad decisions. by itself: though one lasts.",
                (
                    Query(metric("module_breaker_open"), "open"),
                    Query(metric("module_fallback_active"), "by itself"),
                ),
                most=1,
            ),
            Panel(
                "Intervals that gave nothing",
                "Consecutive, although frameworks want free resources, and no rule explains it.",
                (Query(metric("module_barren_intervals"), "intervals"),),
            ),
            Panel(
                "By itself the last time",
                "How long no sidecar decided: at an upgrade, the time it took.",
                (Query(metric("module_fallback_last_seconds"), "seconds"),),
                unit="s",
            ),
        ),
        "In the shadow of Mesos's own allocator": (
            Panel(
                "In shadow",
                "1 while Mesos's own allocator decides, and decisions are only compared.",
                (Query(metric("module_shadow"), "in shadow"),),
                most=1,
            ),
            Panel(
                "Decisions, by whom Mesos's own allocator gave the agent to",
                "same: to the framework that was decided on. other: to others only. none: no offer"
                " within the interval.",
                (Query(rate("module_shadow_decisions_total"), "{{given}}"),),
                shape="stacked",
            ),
            Panel(
                "Decisions that it made as well",
                "As a share of all that were compared, over five minutes.",
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
                "Its offers",
                "To a framework of an agent each, while a sidecar was in session.",
                (Query(rate("module_shadow_offers_total"), "offers"),),
            ),
        ),
        "Journal": (
            Panel(
                "Written",
                "1 while it is written. 0: there is none, or it failed and is tried again.",
                (Query(metric("journal_on"), "on"),),
                most=1,
            ),
            Panel(
                "Size of the present file",
                "It falls to a checkpoint's size at each rotation.",
                (Query(metric("journal_file_bytes"), "bytes"),),
                unit="bytes",
            ),
        ),
        "Shadow": (
            Panel(
                "Cycles compared by the shadow policy",
                "compared: it decided them, too. late: they came too fast. too_large: they saw too"
                " much. on: 1 while there is a shadow policy.",
                (
                    Query(metric("shadow_on"), "on"),
                    Query(rate("shadow_cycles_total"), "{{result}} a second"),
                    Query(rate("shadow_seconds_total"), "seconds a second"),
                ),
            ),
            Panel(
                "How far it would decide otherwise",
                "Offers by who would have made them; frameworks that only one offered anything;"
                " share of the cluster that would have gone to others. Nothing comes of it.",
                (
                    Query(rate("shadow_offers_total"), "offers: {{by}}"),
                    Query(rate("shadow_frameworks_total"), "frameworks: only {{only}}"),
                    Query(rate("shadow_share_apart_total"), "share apart"),
                ),
            ),
        ),
        "Core": (
            Panel(
                "Commands that wait",
                "Messages, changes and plans before the core's thread. It should be near zero.",
                (Query(metric("core_queue_depth"), "commands"),),
                width=6,
            ),
            Panel(
                "Observer",
                "It follows, and answers questions: 1 while it hears of the deciding process,"
                " and while it is connected; how far it is behind; who follows it; processor time"
                " of all of it, and of following alone; new beginnings.",
                (
                    Query(metric("observer_current"), "current"),
                    Query(metric("observer_connected"), "connected"),
                    Query(metric("observer_lag_seconds"), "seconds behind"),
                    Query(metric("observer_followers"), "followers"),
                    Query(rate("observer_cpu_seconds_total"), "processors"),
                    Query(rate("observer_busy_seconds_total"), "of which following"),
                    Query(rate("observer_restarts_total"), "restarts a second"),
                ),
                width=6,
            ),
            Panel(
                "Verified",
                "Cycles that the observer decided again, and those that came out otherwise: each is"
                " a fault to be reported.",
                (
                    Query(rate("observer_verified_cycles_total"), "verified a second"),
                    Query(metric("observer_differences_total"), "differences"),
                ),
                width=6,
            ),
            Panel(
                "Memory of the observer",
                "That of the deciding process is process_resident_memory_bytes.",
                (Query(metric("observer_resident_memory_bytes"), "resident"),),
                unit="bytes",
                width=6,
            ),
            Panel(
                "Calls refused",
                "room: no place for their kind. right: the caller has none.",
                (Query(rate("calls_refused_total"), "{{kind}}: {{reason}}"),),
                unit="ops",
            ),
            Panel(
                "Since the last batch",
                "A module sends one each allocation interval, even where nothing happened.",
                (Query(f"time() - ({metric('last_batch_timestamp_seconds')} > 0)", "seconds"),),
                unit="s",
            ),
            Panel(
                "Messages and new sessions",
                "A new session begins with all that the master knows; there should be few.",
                (
                    Query(rate("messages_total"), "messages"),
                    Query(rate("sessions_opened_total"), "new sessions"),
                ),
                unit="ops",
            ),
            Panel(
                "Loops that are compiled",
                "Part that is compiled, and 1 once they run. Until then decisions are slow.",
                (
                    Query(metric("compilation_progress"), "part"),
                    Query(metric("compiled"), "in use"),
                ),
                most=1,
            ),
        ),
    },
)

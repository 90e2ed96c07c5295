"""The dashboard of the inputs of decisions: demands, headroom, plans and a shadow policy."""

from expressions import metric, rate
from panels import Page, Panel, Query

DECIDING = Page(
    uid="mesos-allocator-deciding",
    title="Mesos allocator: deciding",
    description="Sources of demands, headroom for guarantees, plans, and a shadow policy.",
    rows={
        "Demands": (
            Panel(
                "Sources of demands",
                "Clients (a framework in a role) by source. unknown: they are offered all free "
                "resources of an agent until a demand is learnt.",
                (Query(metric("demand_clients"), "{{source}}"),),
                shape="stacked",
            ),
            Panel(
                "Remembered demands",
                "Learnt from earlier frameworks. certain: similar new frameworks begin with them.",
                (Query(metric("demands_remembered"), "certain: {{certain}}"),),
                shape="stacked",
            ),
            Panel(
                "Accuracy of remembered demands",
                "First acceptances of new frameworks, by whether they agreed with it.",
                (Query(rate("priors_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Tested demands",
                "Frameworks that waited too long and were offered all free resources of an agent, "
                "because their learnt demand may be wrong.",
                (Query(rate("demand_probes_total"), "tested"),),
                unit="ops",
            ),
        ),
        "Roles and values": (
            Panel(
                "Headroom",
                "CPUs that must stay free for guarantees, and free CPUs that quotas count.",
                (
                    Query(metric("headroom_required", resource="cpus"), "required"),
                    Query(metric("headroom_available", resource="cpus"), "available"),
                ),
            ),
            Panel(
                "Roles, and corrected or ignored input",
                "Roles that the master reported; invalid values corrected, per second; inputs of "
                "frameworks and agents that are ignored now.",
                (
                    Query(metric("roles"), "roles"),
                    Query(rate("mended_total", "field"), "corrected: {{field}}"),
                    Query(metric("set_aside"), "ignored: {{reason}}"),
                ),
            ),
        ),
        "Plans": (
            Panel(
                "Plans",
                "By result. late: took longer than policy.plan_budget_ms.",
                (
                    Query(rate("plans_total", "result"), "{{result}}"),
                    Query(rate("plans_late_total"), "late"),
                ),
                unit="ops",
                width=8,
            ),
            Panel(
                "Duration and age of plans",
                "Duration of the last plan, and so far of the current one; processor time per"
                " second; time since the plan in force last matched the cluster.",
                (
                    Query(metric("plan_last_seconds"), "last"),
                    Query(metric("plan_age_seconds"), "age of the plan in force"),
                    Query(metric("plan_running_seconds"), "current, so far"),
                    Query(rate("plan_work_seconds_total"), "per second"),
                ),
                unit="s",
                width=8,
            ),
            Panel(
                "Requests to leave agents",
                "Number of framework-agent pairs for which the plan in force requests this.",
                (
                    Query(metric("reclaims"), "requests"),
                    Query(f"max({metric('reclaim_seconds')})", "longest-standing, s"),
                ),
                width=8,
            ),
        ),
        "Shadow": (
            Panel(
                "Cycles compared by the shadow policy",
                "compared, or the reason why not. on: 1 while there is a shadow policy.",
                (
                    Query(metric("shadow_on"), "on"),
                    Query(rate("shadow_cycles_total", "result"), "{{result}}"),
                ),
            ),
            Panel(
                "Offers by policy",
                "both: made by the policy in force and by the shadow policy.",
                (Query(rate("shadow_offers_total", "by"), "{{by}}"),),
                unit="ops",
                shape="stacked",
            ),
            Panel(
                "Frameworks that only one policy serves",
                "Clients per second, summed over cycles.",
                (Query(rate("shadow_frameworks_total", "only"), "{{only}}"),),
                unit="ops",
            ),
            Panel(
                "Cost and difference of the shadow policy",
                "Time that it takes, and share of the cluster that it would have offered to other"
                " clients, per second.",
                (
                    Query(rate("shadow_seconds_total"), "time"),
                    Query(rate("shadow_share_apart_total"), "share"),
                ),
            ),
        ),
    },
)

"""The dashboard of what decisions rest on: demands, headroom, plans, and a policy in shadow."""

from expressions import metric, rate
from panels import Page, Panel, Query

DECIDING = Page(
    uid="mesos-allocator-deciding",
    title="Mesos allocator: deciding",
    description="Where demands come from, what guarantees keep free, plans, and a shadow policy.",
    rows={
        "Demands": (
            Panel(
                "Where demands come from",
                "Frameworks by role. unknown: served obliviously until something is learnt.",
                (Query(metric("demand_clients"), "{{source}}"),),
                shape="stacked",
            ),
            Panel(
                "Demands that are remembered",
                "Of frameworks that were here; certain: new ones of their sort begin with them.",
                (Query(metric("demands_remembered"), "certain: {{certain}}"),),
                shape="stacked",
            ),
            Panel(
                "Whether remembered demands were right",
                "First acceptances of new frameworks that agreed with them, or did not.",
                (Query(rate("priors_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Demands that were doubted",
                "A framework got nothing for so long that it was offered all that is free.",
                (Query(rate("demand_probes_total"), "doubted"),),
                unit="ops",
            ),
        ),
        "Roles and values": (
            Panel(
                "Headroom",
                "CPUs that have to stay free for guarantees, and those that are free and count.",
                (
                    Query(metric("headroom_required", resource="cpus"), "required"),
                    Query(metric("headroom_available", resource="cpus"), "available"),
                ),
            ),
            Panel(
                "Roles, and values that were mended or set aside",
                "Roles that the master told of; values put right, a second; words not taken, now.",
                (
                    Query(metric("roles"), "roles"),
                    Query(rate("mended_total", "field"), "mended: {{field}}"),
                    Query(metric("set_aside"), "set aside: {{reason}}"),
                ),
            ),
        ),
        "Plans": (
            Panel(
                "Plans worked out",
                "By what came of them; late: longer than policy.plan_budget_ms.",
                (
                    Query(rate("plans_total", "result"), "{{result}}"),
                    Query(rate("plans_late_total"), "late"),
                ),
                unit="ops",
                width=8,
            ),
            Panel(
                "Time that plans take",
                "Of the last plan, of the one that is being worked out, and a second of time; and"
                " how long ago the plan in force was good for the cluster.",
                (
                    Query(metric("plan_last_seconds"), "last"),
                    Query(metric("plan_age_seconds"), "age of the one in force"),
                    Query(metric("plan_running_seconds"), "so far"),
                    Query(rate("plan_work_seconds_total"), "a second"),
                ),
                unit="s",
                width=8,
            ),
            Panel(
                "Asked to leave agents",
                "Frameworks that the plan in force asks, once for each agent.",
                (
                    Query(metric("reclaims"), "asked"),
                    Query(f"max({metric('reclaim_seconds')})", "asked for longest, s"),
                ),
                width=8,
            ),
        ),
        "Shadow": (
            Panel(
                "Cycles compared by the shadow policy",
                "compared, or why not; on: there is a shadow policy. Its decisions have no effect.",
                (
                    Query(metric("shadow_on"), "on"),
                    Query(rate("shadow_cycles_total", "result"), "{{result}}"),
                ),
            ),
            Panel(
                "Who would have made the offers",
                "both: the policy in force and the one in shadow make the same.",
                (Query(rate("shadow_offers_total", "by"), "{{by}}"),),
                unit="ops",
                shape="stacked",
            ),
            Panel(
                "Frameworks that only one of them serves",
                "A second, cycle by cycle.",
                (Query(rate("shadow_frameworks_total", "only"), "{{only}}"),),
                unit="ops",
            ),
            Panel(
                "What it costs, and how far they are apart",
                "Time that the shadow takes, and share of the cluster for others, a second.",
                (
                    Query(rate("shadow_seconds_total"), "time"),
                    Query(rate("shadow_share_apart_total"), "share"),
                ),
            ),
        ),
    },
)

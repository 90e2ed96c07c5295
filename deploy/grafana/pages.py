"""The dashboards. `python deploy/grafana/generate.py` writes them as JSON."""

from deciding import DECIDING
from expressions import ONE, cycle_time, metric, rate
from operations import OPERATION
from panels import Page, Panel, Query


def _amount(title: str, text: str, resource: str, unit: str) -> Panel:
    """Capacity, held and offered of one resource."""
    return Panel(
        title,
        text,
        tuple(
            Query(metric(name, resource=resource), name) for name in ("capacity", "held", "offered")
        ),
        unit=unit,
    )


def _used(name: str, by: str, **labels: str) -> str:
    """CPUs on average, by a label of a counter of usage."""
    counter = metric(f"{name}_total", resource="cpus", **labels)
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


OVERVIEW = Page(
    uid="mesos-allocator-overview",
    title="Mesos allocator: overview",
    description="Whether the sidecar decides, the cluster is used, and frameworks wait.",
    rows={
        "Now": (
            Panel(
                "In session",
                "1 while a master has a session with this sidecar. 0: the module decides.",
                (Query(metric("in_session")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Waiting frameworks",
                "Frameworks that got no offer for starvation.patience_cycles, although they could "
                "be served, refuse nothing, and are below their limits.",
                (Query(metric("clients_overdue", kept_by="nothing")),),
                shape="number",
                width=4,
                bad_from=1,
            ),
            Panel(
                "Agents",
                "Agents whose resources may be offered.",
                (Query(metric("agents", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Frameworks",
                "Connected frameworks.",
                (Query(metric("frameworks", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Cycle duration (p99)",
                "Offers wait for a cycle, so this should be far below the allocation interval.",
                (Query(cycle_time(0.99)),),
                unit="s",
                shape="number",
                width=4,
                bad_from=0.5,
            ),
            Panel(
                "Fairness among roles",
                "Jain's index of the weighted dominant shares of roles. 1: all are equal.",
                (Query(metric("jain_index", among="roles")),),
                shape="number",
                width=4,
                most=1,
            ),
        ),
        "Use of the cluster": (
            Panel(
                "Utilisation",
                "Fraction of the capacity that is offered or in use, by resource.",
                (Query(metric("utilisation_ratio"), "{{resource}}"),),
                unit="percentunit",
                most=1,
            ),
            _amount(
                "CPUs",
                "Capacity; held (offered or in use); offered and not in use.",
                "cpus",
                "short",
            ),
            _amount(
                "Memory",
                "Capacity; held (offered or in use); offered and not in use.",
                "mem",
                "bytes",
            ),
            Panel(
                "Roles by dominant share",
                "The largest share of any resource that each role holds.",
                (Query(metric("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Decisions": (
            Panel(
                "Decisions",
                "Offers that the sidecar decides to make, per second.",
                (Query(rate("decisions_total"), "decisions"),),
                unit="ops",
            ),
            Panel(
                "Outcomes of decisions",
                "By reason. Those other than offered and partial usually came too late.",
                (Query(rate("outcomes_total", "reason"), "{{reason}}"),),
                unit="ops",
                shape="stacked",
            ),
        ),
    },
)

FAIRNESS = Page(
    uid="mesos-allocator-fairness",
    title="Mesos allocator: fairness",
    description="Shares of roles and frameworks, and how far they are from fair.",
    rows={
        "Roles": (
            Panel(
                "Dominant share",
                "The role's largest share of any resource.",
                (Query(metric("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Dominant share divided by weight",
                "DRF equalizes it, as far as there is demand.",
                (Query(metric("role_weighted_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Frameworks": (
            Panel(
                "The ten largest weighted shares",
                "Only metrics.frameworks_max frameworks have series of their own.",
                (
                    Query(
                        f"topk(10, {metric('framework_weighted_share')})",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                unit="percentunit",
                shape="bars",
            ),
            Panel(
                "Longest waits",
                "Consecutive full cycles that could have served a framework and did not.",
                (
                    Query(
                        f"topk(10, {metric('framework_waited_cycles')} > 0)",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                shape="bars",
            ),
        ),
        "Over time": (
            Panel(
                "CPUs used, by role",
                "Averages of what tasks of the role's own frameworks used; `mesos-allocator usage "
                "show` has sums over days.",
                (Query(_used("usage_resource_seconds", "role", state="used"), "{{role}}"),),
                unit="short",
                shape="stacked",
            ),
            Panel(
                "CPUs by state",
                "Averages. unknown: no master had a session, so usage is not known.",
                (Query(_used("usage_cluster_resource_seconds", "state"), "{{state}}"),),
                unit="short",
                shape="stacked",
            ),
            Panel(
                "Budgets used",
                "Fraction of its budget that a role has used in the current period. At 100 % it is "
                "served last, or not at all.",
                (
                    Query(
                        f"{metric('budget_used_hours')} / {metric('budget_hours')}",
                        "{{role}} {{resource}}",
                    ),
                ),
                unit="percentunit",
            ),
            Panel(
                "Time until budgets are used up",
                "Time until the first resource of a budget is used up, if the role's holdings stay "
                "the same; only if that is before the end of the period.",
                (Query(metric("budget_runs_out_seconds"), "{{role}}"),),
                unit="s",
            ),
        ),
        "Fairness error": (
            Panel(
                "Fairness error of roles",
                "Dominant share minus fair share; below 0: too little. The fair share is what the "
                "policy would give in an allocation from scratch.",
                (Query(metric("role_fairness_error"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Roles below their fair share",
                "What they lack. 0 if only frameworks that refuse offers lack something.",
                (Query(f"topk(10, {metric('role_shortfall')} > 0)", "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Fair share of roles",
                "What the policy would give them in an allocation from scratch.",
                (Query(metric("role_fair_share"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Largest and mean fairness error",
                "Absolute values, over all roles or frameworks that hold resources or should.",
                (
                    Query(metric("fairness_error_max"), "largest of {{among}}"),
                    Query(metric("fairness_error_mean"), "mean of {{among}}"),
                ),
                unit="percentunit",
            ),
            Panel(
                "Age of fair shares",
                "Computed every metrics.fair_share_every_s, or less often.",
                (Query(metric("fair_shares_age_seconds"), "age"),),
                unit="s",
            ),
            Panel(
                "Cost of fair shares",
                "Duration of the last computation, and processor time per second.",
                (
                    Query(metric("fair_shares_last_seconds"), "last"),
                    Query(rate("fair_shares_work_seconds_total"), "per second"),
                    Query(rate("fair_shares_total", "result"), "{{result}} per second"),
                ),
                unit="s",
            ),
        ),
        "Fairness indices": (
            Panel(
                "Jain's index",
                "1: all weighted dominant shares are equal. If demands differ, it may be low.",
                (Query(metric("jain_index"), "{{among}}"),),
                most=1,
            ),
            Panel(
                "Largest envy",
                "How many more tasks a framework could run with another one's holdings, at most.",
                (Query(metric("envy_max_tasks"), "tasks"),),
            ),
        ),
    },
)

OFFERS = Page(
    uid="mesos-allocator-offers",
    title="Mesos allocator: offers and filters",
    description="Outstanding offers, filters, gangs, forecasts and unmet demand.",
    rows={
        "Offers": (
            Panel(
                "CPUs on offer and not in use, by role",
                "If a role has many for a long time, its frameworks hoard offers.",
                (Query(metric("role_offered", resource="cpus"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Oldest offers",
                "How long a framework has had offers without interruption.",
                (
                    Query(
                        f"topk(10, {metric('framework_offer_age_seconds')})",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Decisions without an outcome",
                "Decisions on their way to the master. It should stay near zero.",
                (Query(metric("decisions_outstanding"), "decisions"),),
            ),
            Panel(
                "Refused by the master",
                "Outcomes other than offered, by reason.",
                (
                    Query(
                        "sum by (reason) (rate(mesos_allocator_outcomes_total{"
                        'instance=~"$instance", reason!~"offered|partial"}[$__rate_interval]))',
                        "{{reason}}",
                    ),
                ),
                unit="ops",
            ),
        ),
        "Filters": (
            Panel(
                "Filters in force",
                "Refusals of frameworks that have not expired.",
                (Query(metric("filters"), "filters"),),
            ),
            Panel(
                "Filters by role",
                "If a role filters almost all agents, its frameworks wait by their own choice.",
                (Query(metric("role_filters"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Frameworks with most filters",
                "Refusals in force, of the ten frameworks that have most of them.",
                (
                    Query(
                        f"topk(10, {metric('framework_filters')} > 0)",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                shape="bars",
                width=24,
            ),
            Panel(
                "Waiting clients, by cause",
                "filters: they refuse some agents. limit: their role is at its limit. "
                "nothing: neither.",
                (Query(metric("clients_overdue"), "{{kept_by}}"),),
            ),
            Panel(
                "Waiting gangs",
                "collecting: resources that become free on some agents are kept for them. "
                "too_large: they would not fit even on an empty cluster.",
                (Query(metric("gangs"), "{{state}}"),),
            ),
            Panel(
                "Kept for gangs",
                "Fraction of the capacity that is free and kept for collecting gangs, by resource.",
                (Query(f"{metric('gangs_kept')} / {metric('capacity')}", "{{resource}}"),),
                unit="percentunit",
            ),
            Panel(
                "Backfill",
                "Offers of resources that are kept for a gang, to frameworks whose tasks end "
                "before it starts. None: no durations are learnt, or tasks run too long.",
                (Query(rate("gang_backfills_total"), "offers"),),
                unit="ops",
            ),
            Panel(
                "Forecasts of gangs' starts",
                "held: the gang started before the forecast's p95, as most should. late, missed: "
                "durations were underestimated; backfill then delays gangs.",
                (Query(rate("gang_forecasts_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Error of gangs' expected starts",
                "Time between the expected and the actual start, in seconds per second.",
                (Query(rate("gang_start_error_seconds_total"), "{{side}}"),),
            ),
            Panel(
                "Forecasts of next offers",
                "late: after the p95, as one in twenty should be. early: before the median, as "
                "half should be.",
                (Query(rate("offer_forecasts_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Agents missing",
                "Minimum number of additional agents that would satisfy the unmet demand.",
                (Query(metric("agents_missing"), "{{shape}}"),),
            ),
            Panel(
                "Unmet demand",
                "Demand for which no agent has room: a lower bound, as a fraction of the capacity.",
                (
                    Query(
                        f"sum by (role, resource) ({metric('unmet')}) / on (resource) group_left "
                        f"sum by (resource) ({metric('capacity')})",
                        "{{role}} {{resource}}",
                    ),
                ),
                unit="percentunit",
                width=24,
            ),
            Panel(
                "Learnt durations",
                "Framework names, by whether durations are known: enough tasks have ended.",
                (Query(metric("durations_remembered"), "known: {{known}}"),),
            ),
            Panel(
                "Filters forgotten",
                "limits.filters is reached, so frameworks are offered what they refused.",
                (Query(rate("filters_forgotten_total"), "filters"),),
                unit="ops",
            ),
        ),
    },
)

HEALTH = Page(
    uid="mesos-allocator-health",
    title="Mesos allocator: latency and health",
    description="Duration of cycles, sessions, errors, memory and processor.",
    rows={
        "Latency": (
            Panel(
                "Cycle duration",
                "Percentiles of the duration of allocation cycles.",
                tuple(Query(cycle_time(part), f"{part:.0%}") for part in (0.5, 0.9, 0.99)),
                unit="s",
            ),
            Panel(
                "Age of the metrics",
                "How long the core has been busy. Above a few seconds, a cycle hangs.",
                (Query(metric("report_age_seconds"), "age"),),
                unit="s",
                bad_from=5,
            ),
            Panel(
                "Events",
                "Events from the master, by type.",
                (Query(rate("events_total", "type"), "{{type}}"),),
                unit="ops",
                shape="stacked",
            ),
            Panel(
                "Cycles and batches",
                "A module sends a batch in each allocation interval, and more under load.",
                (Query(rate("cycles_total"), "cycles"), Query(rate("batches_total"), "batches")),
                unit="ops",
            ),
        ),
        "Sessions and errors": (
            Panel(
                "Sessions",
                "Open streams, and whether a master has a session.",
                (Query(metric("sessions"), "open"), Query(metric("in_session"), "in session")),
            ),
            Panel(
                "Ended sessions",
                "left: ended by the module. All other reasons are errors.",
                (Query(rate("sessions_closed_total", "reason"), "{{reason}}"),),
                unit="ops",
            ),
            Panel(
                "Errors sent to modules",
                "By code. The sidecar's log has the field and the value.",
                (Query(rate("errors_total", "code"), "{{code}}"),),
                unit="ops",
            ),
            Panel(
                "Errors of policy and journal",
                "Cycles in which the policy failed and DRF decided; failed writes of the journal.",
                (
                    Query(rate("policy_errors_total"), "policy errors"),
                    Query(rate("journal_errors_total"), "journal errors"),
                ),
                unit="ops",
            ),
        ),
        "Process": (
            Panel(
                "Memory",
                "Resident memory of the sidecar.",
                (Query(f"process_resident_memory_bytes{ONE}", "resident"),),
                unit="bytes",
            ),
            Panel(
                "Processor",
                "Processor time of the sidecar, in processors.",
                (Query(f"rate(process_cpu_seconds_total{ONE}[$__rate_interval])", "processors"),),
            ),
        ),
    },
)

ROLE = Page(
    uid="mesos-allocator-role",
    title="Mesos allocator: one role",
    description="One role: its holdings, quota and share, and its frameworks.",
    by_role=True,
    rows={
        "Role": (
            Panel(
                "CPUs",
                "Held, offered, and the quota's guarantee, limit and consumption.",
                tuple(
                    Query(
                        metric(f"role_{name}", role="$role", resource="cpus"),
                        name.replace("_", " "),
                    )
                    for name in (
                        "held",
                        "offered",
                        "quota_guarantee",
                        "quota_limit",
                        "quota_consumed",
                    )
                ),
            ),
            Panel(
                "Memory",
                "Held, offered, and the quota's guarantee, limit and consumption.",
                tuple(
                    Query(
                        metric(f"role_{name}", role="$role", resource="mem"), name.replace("_", " ")
                    )
                    for name in (
                        "held",
                        "offered",
                        "quota_guarantee",
                        "quota_limit",
                        "quota_consumed",
                    )
                ),
                unit="bytes",
            ),
            Panel(
                "Share and weight",
                "Dominant share; divided by the weight; and of average use over time.",
                (
                    Query(metric("role_dominant_share", role="$role"), "dominant share"),
                    Query(metric("role_weighted_share", role="$role"), "divided by weight"),
                    Query(metric("role_used_share", role="$role"), "over time"),
                ),
                unit="percentunit",
            ),
            Panel(
                "Filters",
                "Refusals in force, of the role's frameworks.",
                (Query(metric("role_filters", role="$role"), "filters"),),
            ),
        ),
        "Frameworks of the role": (
            Panel(
                "Dominant shares",
                "Each framework's largest share of any resource.",
                (Query(metric("framework_dominant_share", role="$role"), "{{framework_name}}"),),
                unit="percentunit",
            ),
            Panel(
                "Waiting",
                "Consecutive full cycles that could have served the framework and did not.",
                (Query(metric("framework_waited_cycles", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "CPUs of each framework",
                "Held, and the part of that which is on offer and not in use.",
                (
                    Query(
                        metric("framework_held", role="$role", resource="cpus"),
                        "{{framework_name}}",
                    ),
                    Query(
                        metric("framework_offered", role="$role", resource="cpus"),
                        "{{framework_name}} on offer",
                    ),
                ),
            ),
            Panel(
                "Weight",
                "Weight of the role among its siblings; 1 if the master set none.",
                (Query(metric("role_weight", role="$role"), "weight"),),
            ),
            Panel(
                "Agents",
                "Number of agents on which the framework holds resources.",
                (Query(metric("framework_agents", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "Demand of one task",
                "CPUs of the demand vector, if it is known: stated, learnt, or remembered.",
                (
                    Query(
                        metric("framework_demand", role="$role", resource="cpus"),
                        "{{framework_name}}",
                    ),
                ),
            ),
        ),
    },
)

PAGES = (OVERVIEW, FAIRNESS, OFFERS, DECIDING, HEALTH, OPERATION, ROLE)

"""What our dashboards show. `python deploy/grafana/generate.py` writes them as JSON."""

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
    description="Does the sidecar decide, is the cluster used, do frameworks wait?",
    rows={
        "Now": (
            Panel(
                "In session",
                "1 while a master's module has this sidecar. 0: the module allocates by itself.",
                (Query(metric("in_session")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Frameworks that wait",
                "They could be served, refuse nothing, are below their limits, and got nothing for "
                "longer than starvation.patience_cycles.",
                (Query(metric("clients_overdue", kept_by="nothing")),),
                shape="number",
                width=4,
                bad_from=1,
            ),
            Panel(
                "Agents",
                "Agents that may be offered.",
                (Query(metric("agents", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Frameworks",
                "Frameworks that are connected.",
                (Query(metric("frameworks", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "99 % of cycles take less than",
                "Offers wait for a cycle. Near the master's allocation interval it is too slow.",
                (Query(cycle_time(0.99)),),
                unit="s",
                shape="number",
                width=4,
                bad_from=0.5,
            ),
            Panel(
                "Fairness among roles",
                "Jain's index of the weighted dominant shares of roles. 1: all have the same.",
                (Query(metric("jain_index", among="roles")),),
                shape="number",
                width=4,
                most=1,
            ),
        ),
        "Use of the cluster": (
            Panel(
                "Utilisation",
                "Part of the capacity that is offered or in use, by resource.",
                (Query(metric("utilisation_ratio"), "{{resource}}"),),
                unit="percentunit",
                most=1,
            ),
            _amount(
                "CPUs",
                "What there is, what is held, what of that is offered only.",
                "cpus",
                "short",
            ),
            _amount("Memory", "Memory: see the panel beside it.", "mem", "bytes"),
            Panel(
                "Roles by dominant share",
                "The largest share of any resource that each role holds.",
                (Query(metric("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Decisions": (
            Panel(
                "Offers decided",
                "Offers that the sidecar decides on, a second.",
                (Query(rate("decisions_total"), "decisions"),),
                unit="ops",
            ),
            Panel(
                "What became of them",
                "Outcomes by reason. All but offered and partial are decisions that came too late.",
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
    description="Who has how much, measured as the policy measures it.",
    rows={
        "Roles": (
            Panel(
                "Dominant share",
                "The largest share of any resource.",
                (Query(metric("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Dominant share by weight",
                "What DRF makes equal where there is enough demand.",
                (Query(metric("role_weighted_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Frameworks": (
            Panel(
                "The ten largest weighted shares",
                "Frameworks beyond metrics.frameworks_max have no series of their own.",
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
                "Those that have waited longest",
                "Full cycles in a row that could have served a framework and did not.",
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
                "Averages of what tasks of the role's own frameworks held; for sums over days see "
                "`mesos-allocator usage show`.",
                (Query(_used("usage_resource_seconds", "role", state="used"), "{{role}}"),),
                unit="short",
                shape="stacked",
            ),
            Panel(
                "Where CPUs went",
                "Averages. Unknown: no master had a session, so who held what is not known.",
                (Query(_used("usage_cluster_resource_seconds", "state"), "{{state}}"),),
                unit="short",
                shape="stacked",
            ),
            Panel(
                "Used of budgets",
                "Part of its budget that a role used in the current period. At 100 % it is served "
                "last, or not at all.",
                (
                    Query(
                        f"{metric('budget_used_hours')} / {metric('budget_hours')}",
                        "{{role}} {{resource}}",
                    ),
                ),
                unit="percentunit",
            ),
            Panel(
                "Budgets run out in",
                "Time until the first resource of a budget is used up if the role continues to "
                "hold what it holds; only if that is before the end of the period.",
                (Query(metric("budget_runs_out_seconds"), "{{role}}"),),
                unit="s",
            ),
        ),
        "How far from fair": (
            Panel(
                "Fairness error of roles",
                "Share minus the fair share of an allocation from scratch; below 0: too little.",
                (Query(metric("role_fairness_error"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Roles that lack something",
                "By how much, where a framework that lacks some refuses nothing. Else 0.",
                (Query(f"topk(10, {metric('role_shortfall')} > 0)", "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Fair share of roles",
                "What they would have if they wanted as much as they may get.",
                (Query(metric("role_fair_share"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Fairness error of all",
                "Of all frameworks that hold resources or should: largest difference, and mean.",
                (
                    Query(metric("fairness_error_max"), "largest of {{among}}"),
                    Query(metric("fairness_error_mean"), "mean of {{among}}"),
                ),
                unit="percentunit",
            ),
            Panel(
                "How old these numbers are",
                "They are worked out every metrics.fair_share_every_s, or less often.",
                (Query(metric("fair_shares_age_seconds"), "age"),),
                unit="s",
            ),
            Panel(
                "What they cost",
                "The last time, and a second of time.",
                (
                    Query(metric("fair_shares_last_seconds"), "last"),
                    Query(rate("fair_shares_work_seconds_total"), "a second"),
                    Query(rate("fair_shares_total", "result"), "{{result}} a second"),
                ),
                unit="s",
            ),
        ),
        "In one number": (
            Panel(
                "Jain's index",
                "1: all weighted dominant shares are equal. Low is no fault where demands differ.",
                (Query(metric("jain_index"), "{{among}}"),),
                most=1,
            ),
            Panel(
                "Largest envy",
                "Most tasks more that some framework could run with what another one holds.",
                (Query(metric("envy_max_tasks"), "tasks"),),
            ),
        ),
    },
)

OFFERS = Page(
    uid="mesos-allocator-offers",
    title="Mesos allocator: offers and filters",
    description="What is on offer, what is refused, and who sits on offers.",
    rows={
        "Offers": (
            Panel(
                "On offer and not used, by role",
                "The part of the CPUs that lies in offers. Much of it for long is hoarding.",
                (Query(metric("role_offered", resource="cpus"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Oldest offers",
                "How long a framework has had something on offer without a break.",
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
                "On their way to the master. It should stay near zero.",
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
                "Refusals of frameworks that have not run out.",
                (Query(metric("filters"), "filters"),),
            ),
            Panel(
                "Filters by role",
                "Where a role filters almost everything its frameworks starve by their own choice.",
                (Query(metric("role_filters"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Those that refuse most",
                "Refusals in force of the ten frameworks that have most of them.",
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
                "Clients that wait, and what keeps them",
                "filters: they refuse some agents. limit: their role is at its limit. "
                "nothing: neither.",
                (Query(metric("clients_overdue"), "{{kept_by}}"),),
            ),
            Panel(
                "Gangs that wait for room",
                "collecting: what becomes free on some agents is kept for them. too_large: they "
                "would not fit even if nothing was held.",
                (Query(metric("gangs"), "{{state}}"),),
            ),
            Panel(
                "Kept for gangs",
                "Part of the capacity that is free and kept for gangs that collect, by resource.",
                (Query(f"{metric('gangs_kept')} / {metric('capacity')}", "{{resource}}"),),
                unit="percentunit",
            ),
            Panel(
                "Backfill: what gangs keep is offered to others",
                "Offers of agents on which a gang collects to frameworks whose tasks end before "
                "it begins. None: no durations are learnt, or tasks run too long.",
                (Query(rate("gang_backfills_total"), "offers"),),
                unit="ops",
            ),
            Panel(
                "Forecasts of gangs' starts",
                "held: it began before the latest time that was forecast (p95), as most should. "
                "late, missed: durations were misjudged; backfill then delays gangs.",
                (Query(rate("gang_forecasts_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Error of gangs' expected starts",
                "Seconds per second between the expected start and the start.",
                (Query(rate("gang_start_error_seconds_total"), "{{side}}"),),
            ),
            Panel(
                "Forecasts of next offers",
                "late: after the latest time that was forecast (p95), as one in twenty should be. "
                "early: before the median, as half should be.",
                (Query(rate("offer_forecasts_total"), "{{result}}"),),
                unit="ops",
            ),
            Panel(
                "Agents missing",
                "The least number of agents that would hold what frameworks want and fits nowhere.",
                (Query(metric("agents_missing"), "{{shape}}"),),
            ),
            Panel(
                "Unmet demand",
                "At least this part of the capacity is wanted and fits nowhere, by role.",
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
                "Names of frameworks. no: too few of their tasks have ended.",
                (Query(metric("durations_remembered"), "known: {{known}}"),),
            ),
            Panel(
                "Filters forgotten",
                "limits.filters is reached: frameworks are offered again what they refused.",
                (Query(rate("filters_forgotten_total"), "filters"),),
                unit="ops",
            ),
        ),
    },
)

HEALTH = Page(
    uid="mesos-allocator-health",
    title="Mesos allocator: latency and health",
    description="How fast it decides, and what goes wrong.",
    rows={
        "Latency": (
            Panel(
                "Cycles",
                "How long allocation cycles take.",
                tuple(Query(cycle_time(part), f"{part:.0%}") for part in (0.5, 0.9, 0.99)),
                unit="s",
            ),
            Panel(
                "Age of these numbers",
                "How long the core has been busy. Above some seconds a cycle hangs.",
                (Query(metric("report_age_seconds"), "age"),),
                unit="s",
                bad_from=5,
            ),
            Panel(
                "Events",
                "Events from the master by type.",
                (Query(rate("events_total", "type"), "{{type}}"),),
                unit="ops",
                shape="stacked",
            ),
            Panel(
                "Cycles and batches",
                "A module sends a batch each allocation interval, and more when much happens.",
                (Query(rate("cycles_total"), "cycles"), Query(rate("batches_total"), "batches")),
                unit="ops",
            ),
        ),
        "Sessions and errors": (
            Panel(
                "Sessions",
                "Streams that are open, and whether a master has the sidecar.",
                (Query(metric("sessions"), "open"), Query(metric("in_session"), "in session")),
            ),
            Panel(
                "Sessions that ended",
                "left: the module went by itself. Everything else is an error.",
                (Query(rate("sessions_closed_total", "reason"), "{{reason}}"),),
                unit="ops",
            ),
            Panel(
                "Errors sent to modules",
                "By code; the sidecar's log has the field and the value.",
                (Query(rate("errors_total", "code"), "{{code}}"),),
                unit="ops",
            ),
            Panel(
                "What should be zero",
                "The policy failed and another one decided; the journal could not be written.",
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
                "Processors in use by the sidecar.",
                (Query(f"rate(process_cpu_seconds_total{ONE}[$__rate_interval])", "processors"),),
            ),
        ),
    },
)

ROLE = Page(
    uid="mesos-allocator-role",
    title="Mesos allocator: one role",
    description="One role: what it has, what it is owed, and its frameworks.",
    by_role=True,
    rows={
        "Role": (
            Panel(
                "CPUs",
                "Held, offered, guaranteed and allowed.",
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
                "Memory: see the panel beside it.",
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
                "Dominant share, the same divided by the weight, and that of use over time.",
                (
                    Query(metric("role_dominant_share", role="$role"), "dominant share"),
                    Query(metric("role_weighted_share", role="$role"), "by weight"),
                    Query(metric("role_used_share", role="$role"), "over time"),
                ),
                unit="percentunit",
            ),
            Panel(
                "Filters",
                "Refusals in force of its frameworks.",
                (Query(metric("role_filters", role="$role"), "filters"),),
            ),
        ),
        "Frameworks of the role": (
            Panel(
                "Dominant shares",
                "The largest share of any resource, by framework.",
                (Query(metric("framework_dominant_share", role="$role"), "{{framework_name}}"),),
                unit="percentunit",
            ),
            Panel(
                "Waiting",
                "Full cycles in a row that could have served it and did not.",
                (Query(metric("framework_waited_cycles", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "CPUs of each framework",
                "Held, and the part of it that is on offer and not in use.",
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
                "Of the role among its siblings; 1 where the master set none.",
                (Query(metric("role_weight", role="$role"), "weight"),),
            ),
            Panel(
                "Agents",
                "On how many agents it holds something.",
                (Query(metric("framework_agents", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "What one task needs",
                "CPUs of the demand vector, where known: told, learnt, or remembered of others.",
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

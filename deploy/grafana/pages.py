"""What our dashboards show. `python deploy/grafana/generate.py` writes them as JSON."""

from panels import Page, Panel, Query

ONE = '{instance="$instance"}'
"""Every series of the sidecar that was chosen."""


def _m(name: str, **labels: str) -> str:
    """One of our metrics, of the chosen sidecar."""
    more = "".join(f', {key}="{value}"' for key, value in labels.items())
    return f'mesos_allocator_{name}{{instance="$instance"{more}}}'


def _rate(name: str, by: str = "") -> str:
    inner = f"rate({_m(name)}[$__rate_interval])"
    return f"sum by ({by}) ({inner})" if by else inner


def _cycle_time(part: float) -> str:
    """The time that this part of all cycles stays below."""
    return f"histogram_quantile({part}, {_rate('cycle_duration_seconds_bucket', 'le')})"


def _amount(title: str, text: str, resource: str, unit: str) -> Panel:
    """Capacity, held and offered of one resource."""
    return Panel(
        title,
        text,
        tuple(Query(_m(name, resource=resource), name) for name in ("capacity", "held", "offered")),
        unit=unit,
    )


OVERVIEW = Page(
    uid="mesos-allocator-overview",
    title="Mesos allocator: overview",
    description="Is it in charge, is the cluster used, does anybody wait?",
    rows={
        "Now": (
            Panel(
                "In session",
                "1 while a master's module has this sidecar. 0: the module allocates by itself.",
                (Query(_m("in_session")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Frameworks that wait",
                "They could be served, refuse nothing, are below their limits, and got nothing for "
                "longer than starvation.patience_cycles.",
                (Query(_m("clients_overdue", kept_by="nothing")),),
                shape="number",
                width=4,
                bad_from=1,
            ),
            Panel(
                "Agents",
                "Agents that may be offered.",
                (Query(_m("agents", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "Frameworks",
                "Frameworks that are connected.",
                (Query(_m("frameworks", state="active")),),
                shape="number",
                width=4,
            ),
            Panel(
                "99 % of cycles take less than",
                "Offers wait for a cycle. Near the master's allocation interval it is too slow.",
                (Query(_cycle_time(0.99)),),
                unit="s",
                shape="number",
                width=4,
                bad_from=0.5,
            ),
            Panel(
                "Fairness among roles",
                "Jain's index of the weighted dominant shares of roles. 1: all have the same.",
                (Query(_m("jain_index", among="roles")),),
                shape="number",
                width=4,
                most=1,
            ),
        ),
        "Use of the cluster": (
            Panel(
                "Utilisation",
                "Part of the capacity that is offered or in use, by resource.",
                (Query(_m("utilisation_ratio"), "{{resource}}"),),
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
                (Query(_m("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Decisions": (
            Panel(
                "Offers decided",
                "Offers that the sidecar decides on, a second.",
                (Query(_rate("decisions_total"), "decisions"),),
                unit="ops",
            ),
            Panel(
                "What became of them",
                "Outcomes by reason. All but offered and partial are decisions that came too late.",
                (Query(_rate("outcomes_total", "reason"), "{{reason}}"),),
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
                (Query(_m("role_dominant_share"), "{{role}}"),),
                unit="percentunit",
            ),
            Panel(
                "Dominant share by weight",
                "What DRF makes equal where there is enough demand.",
                (Query(_m("role_weighted_share"), "{{role}}"),),
                unit="percentunit",
            ),
        ),
        "Frameworks": (
            Panel(
                "The ten largest weighted shares",
                "Frameworks beyond metrics.frameworks_max have no series of their own.",
                (
                    Query(
                        f"topk(10, {_m('framework_weighted_share')})",
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
                        f"topk(10, {_m('framework_waited_cycles')} > 0)",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                shape="bars",
            ),
        ),
        "In one number": (
            Panel(
                "Jain's index",
                "1: all weighted dominant shares are equal. Low is no fault where demands differ.",
                (Query(_m("jain_index"), "{{among}}"),),
                most=1,
            ),
            Panel(
                "Largest envy",
                "Most tasks more that some framework could run with what another one holds.",
                (Query(_m("envy_max_tasks"), "tasks"),),
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
                (Query(_m("role_offered", resource="cpus"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Oldest offers",
                "How long a framework has had something on offer without a break.",
                (
                    Query(
                        f"topk(10, {_m('framework_offer_age_seconds')})",
                        "{{framework_name}} ({{role}})",
                    ),
                ),
                unit="s",
            ),
            Panel(
                "Decisions without an outcome",
                "On their way to the master. It should stay near zero.",
                (Query(_m("decisions_outstanding"), "decisions"),),
            ),
            Panel(
                "Refused by the master",
                "Outcomes other than offered, by reason.",
                (
                    Query(
                        "sum by (reason) (rate(mesos_allocator_outcomes_total{"
                        'instance="$instance", reason!~"offered|partial"}[$__rate_interval]))',
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
                (Query(_m("filters"), "filters"),),
            ),
            Panel(
                "Filters by role",
                "Where a role filters almost everything its frameworks starve by their own choice.",
                (Query(_m("role_filters"), "{{role}}"),),
                shape="stacked",
            ),
            Panel(
                "Clients that wait, and what keeps them",
                "filters: they refuse some agents. limit: their role is at its limit. "
                "nothing: neither.",
                (Query(_m("clients_overdue"), "{{kept_by}}"),),
            ),
            Panel(
                "Filters forgotten",
                "limits.filters is reached: frameworks are offered again what they refused.",
                (Query(_rate("filters_forgotten_total"), "filters"),),
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
                tuple(Query(_cycle_time(part), f"{part:.0%}") for part in (0.5, 0.9, 0.99)),
                unit="s",
            ),
            Panel(
                "Age of these numbers",
                "How long the core has been busy. Above some seconds a cycle hangs.",
                (Query(_m("report_age_seconds"), "age"),),
                unit="s",
                bad_from=5,
            ),
            Panel(
                "Events",
                "Events from the master by type.",
                (Query(_rate("events_total", "type"), "{{type}}"),),
                unit="ops",
                shape="stacked",
            ),
            Panel(
                "Cycles and batches",
                "A module sends a batch each allocation interval, and more when much happens.",
                (Query(_rate("cycles_total"), "cycles"), Query(_rate("batches_total"), "batches")),
                unit="ops",
            ),
        ),
        "Sessions and errors": (
            Panel(
                "Sessions",
                "Streams that are open, and whether a master has the sidecar.",
                (Query(_m("sessions"), "open"), Query(_m("in_session"), "in session")),
            ),
            Panel(
                "Sessions that ended",
                "left: the module went by itself. Everything else is an error.",
                (Query(_rate("sessions_closed_total", "reason"), "{{reason}}"),),
                unit="ops",
            ),
            Panel(
                "Errors sent to modules",
                "By code; the sidecar's log has the field and the value.",
                (Query(_rate("errors_total", "code"), "{{code}}"),),
                unit="ops",
            ),
            Panel(
                "What should be zero",
                "The policy failed and another one decided; the journal could not be written.",
                (
                    Query(_rate("policy_errors_total"), "policy errors"),
                    Query(_rate("journal_errors_total"), "journal errors"),
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
                    Query(_m(f"role_{name}", role="$role", resource="cpus"), name.replace("_", " "))
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
                    Query(_m(f"role_{name}", role="$role", resource="mem"), name.replace("_", " "))
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
                "Dominant share, and the same divided by the weight.",
                (
                    Query(_m("role_dominant_share", role="$role"), "dominant share"),
                    Query(_m("role_weighted_share", role="$role"), "by weight"),
                ),
                unit="percentunit",
            ),
            Panel(
                "Filters",
                "Refusals in force of its frameworks.",
                (Query(_m("role_filters", role="$role"), "filters"),),
            ),
        ),
        "Frameworks of the role": (
            Panel(
                "Dominant shares",
                "The largest share of any resource, by framework.",
                (Query(_m("framework_dominant_share", role="$role"), "{{framework_name}}"),),
                unit="percentunit",
            ),
            Panel(
                "Waiting",
                "Full cycles in a row that could have served it and did not.",
                (Query(_m("framework_waited_cycles", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "Agents",
                "On how many agents it holds something.",
                (Query(_m("framework_agents", role="$role"), "{{framework_name}}"),),
            ),
            Panel(
                "What one task needs",
                "CPUs of the demand vector, where known: told, learnt, or remembered of others.",
                (
                    Query(
                        _m("framework_demand", role="$role", resource="cpus"), "{{framework_name}}"
                    ),
                ),
            ),
        ),
    },
)

PAGES = (OVERVIEW, FAIRNESS, OFFERS, HEALTH, ROLE)

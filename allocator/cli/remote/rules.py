"""Commands that say what is set in a running sidecar, and change it."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing
from allocator.cli.remote.admin import quantities
from allocator.cli.remote.completing import Mode
from allocator.cli.remote.connection import Sidecar, group, printed_by, remote

if TYPE_CHECKING:
    from allocator.v1 import admin_pb2

RolePattern = Annotated[
    str,
    typer.Option(
        "--role",
        help="For frameworks in roles that this shell pattern matches.",
        autocompletion=completing.roles,
    ),
]
NamePattern = Annotated[
    str,
    typer.Option(
        "--framework-name",
        help="For frameworks with names that this shell pattern matches.",
        autocompletion=completing.frameworks,
    ),
]
Everybody = Annotated[
    bool, typer.Option("--all", help="For every framework; needed where no pattern is given.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, and say what the change would do.")
]
Role = Annotated[
    str, typer.Argument(help="Path of the role, such as eng/ads.", autocompletion=completing.roles)
]
PolicyName = Annotated[
    str,
    typer.Argument(help="Name; none: the same as now.", autocompletion=completing.policies),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="How the agent is chosen; empty: the policy's own.",
        autocompletion=completing.selections,
    ),
]
PolicyParameters = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--parameter",
        metavar="KEY=VALUE",
        help="A parameter of the policy, such as unit=tasks of choosy; may be repeated.",
    ),
]

_printed = partial(printed_by, "allocator.cli.render.setting_tables")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    policy = group(app, "policy", "The policy that decides.")
    remote(policy, "show", _printed("policy"))(policy_show)
    remote(policy, "set", _printed("policy"))(policy_set)
    demand = group(app, "demand", "Rules that say what one task of a framework needs.")
    remote(demand, "list", _printed("demands"))(demand_list)
    remote(demand, "set", _printed("demands"))(demand_set)
    remote(demand, "remove", _printed("demands"))(demand_remove)
    constraint = group(app, "constraint", "Rules that say which agents a framework may use.")
    remote(constraint, "list", _printed("constraints"))(constraint_list)
    remote(constraint, "set", _printed("constraints"))(constraint_set)
    remote(constraint, "remove", _printed("constraints"))(constraint_remove)
    limit = group(app, "limit", "What roles are granted at most, beside the master's quotas.")
    remote(limit, "list", _printed("limits"))(limit_list)
    remote(limit, "set", _printed("limits"))(limit_set)
    remote(limit, "remove", _printed("limits"))(limit_remove)
    weight = group(app, "weight", "Weights of frameworks, beside those of their roles.")
    remote(weight, "list", _printed("weights"))(weight_list)
    remote(weight, "set", _printed("weights"))(weight_set)
    remote(weight, "remove", _printed("weights"))(weight_remove)


def policy_show(sidecar: Sidecar) -> Message:
    """Show the policy, and which others there are."""
    return _policy(sidecar)


def _policy(sidecar: Sidecar) -> "admin_pb2.GetPolicyResponse":
    from allocator.v1 import admin_pb2

    return sidecar.stub.GetPolicy(admin_pb2.GetPolicyRequest(), timeout=sidecar.timeout_s)


def policy_set(
    sidecar: Sidecar,
    name: PolicyName = "",
    selection: Selection = None,
    mode: Annotated[
        Mode | None, typer.Option(help="Offer all that is free on an agent, or whole tasks.")
    ] = None,
    flat: Annotated[
        bool | None, typer.Option("--flat/--hierarchical", help="Who competes with whom.")
    ] = None,
    parameter: PolicyParameters = None,
    subtree: Annotated[
        list[str] | None,
        typer.Option(
            "--subtree",
            metavar="ROLE=POLICY",
            help="Decide otherwise below a role; ROLE= takes that back.",
            autocompletion=completing.subtrees,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Change nothing, and say how the next decisions would differ."
        ),
    ] = False,
) -> Message:
    """Decide by another policy from the next cycle on.

    What is not given stays as it is; but with another name, selection and parameters start from
    the new policy's own.
    """
    from allocator.v1 import admin_pb2

    policy = _policy(sidecar).policy
    if name and name != policy.name:
        policy.name, policy.selection = name, ""
        policy.parameters.clear()
    if selection is not None:
        policy.selection = selection
    if mode is not None:
        policy.mode = mode
    if flat is not None:
        policy.flat = flat
    policy.parameters.update(parameters(parameter or ()))
    for text in subtree or ():
        role, equals, other = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form role=policy")
        policy.subtrees.pop(role, None)
        if other:
            policy.subtrees[role] = other
    request = admin_pb2.SetPolicyRequest(policy=policy, dry_run=dry_run)
    return sidecar.stub.SetPolicy(request, timeout=sidecar.timeout_s)


def parameters(texts: Iterable[str]) -> dict[str, str]:
    """Read what is given as key=value; ends where something is not."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form key=value")
        found[key] = value
    return found


def demand_list(sidecar: Sidecar) -> Message:
    """List the rules."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListDemands(admin_pb2.ListDemandsRequest(), timeout=sidecar.timeout_s)


def demand_set(
    sidecar: Sidecar,
    resources: Annotated[
        str,
        typer.Argument(
            help="One task's needs, as in 'cpus:2;mem:2048'; empty: unknown.",
            autocompletion=completing.amounts,
        ),
    ],
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    override: Annotated[
        bool,
        typer.Option(
            "--override",
            help="Count before what frameworks state themselves (REQUEST call, label); else after.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> Message:
    """Say what one task needs, replacing the rule with the same patterns."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    demand = settings_pb2.Demand(
        role=role,
        framework_name=framework_name,
        demand=quantities(resources),
        override=override,
    )
    request = settings_pb2.SetDemandRequest(demand=demand, all=everybody, dry_run=dry_run)
    return sidecar.stub.SetDemand(request, timeout=sidecar.timeout_s)


def demand_remove(
    sidecar: Sidecar,
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    dry_run: DryRun = False,
) -> Message:
    """Take the rule with these patterns back."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    demand = settings_pb2.Demand(role=role, framework_name=framework_name)
    request = settings_pb2.SetDemandRequest(
        demand=demand, remove=True, all=everybody, dry_run=dry_run
    )
    return sidecar.stub.SetDemand(request, timeout=sidecar.timeout_s)


def constraint_list(sidecar: Sidecar) -> Message:
    """List the rules."""
    from allocator.v1 import admin_pb2

    request = admin_pb2.ListConstraintsRequest()
    return sidecar.stub.ListConstraints(request, timeout=sidecar.timeout_s)


def constraint_set(
    sidecar: Sidecar,
    agents: Annotated[
        str, typer.Argument(help="About agents' attributes, as in 'zone=a|b; gpu_model!=K80; ssd'.")
    ],
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    dry_run: DryRun = False,
) -> Message:
    """Say which agents may be used, replacing the rule with the same patterns."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    constraint = settings_pb2.Constraint(
        role=role, framework_name=framework_name, expression=agents
    )
    request = settings_pb2.SetConstraintRequest(
        constraint=constraint, all=everybody, dry_run=dry_run
    )
    return sidecar.stub.SetConstraint(request, timeout=sidecar.timeout_s)


def constraint_remove(
    sidecar: Sidecar,
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    dry_run: DryRun = False,
) -> Message:
    """Take the rule with these patterns back."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    constraint = settings_pb2.Constraint(role=role, framework_name=framework_name)
    request = settings_pb2.SetConstraintRequest(
        constraint=constraint, remove=True, all=everybody, dry_run=dry_run
    )
    return sidecar.stub.SetConstraint(request, timeout=sidecar.timeout_s)


def limit_list(sidecar: Sidecar) -> Message:
    """List the limits."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListLimits(admin_pb2.ListLimitsRequest(), timeout=sidecar.timeout_s)


def limit_set(
    sidecar: Sidecar,
    role: Role,
    resources: Annotated[
        str,
        typer.Argument(
            help="The limit, as in 'cpus:20;mem:65536'.", autocompletion=completing.amounts
        ),
    ],
    dry_run: DryRun = False,
) -> Message:
    """Grant a role, and those below it, at most so much."""
    from allocator.v1 import settings_pb2

    limit = settings_pb2.Limit(role=role, limit=quantities(resources))
    request = settings_pb2.SetLimitRequest(limit=limit, dry_run=dry_run)
    return sidecar.stub.SetLimit(request, timeout=sidecar.timeout_s)


def limit_remove(sidecar: Sidecar, role: Role, dry_run: DryRun = False) -> Message:
    """Take the limit of a role back."""
    from allocator.v1 import settings_pb2

    limit = settings_pb2.Limit(role=role)
    request = settings_pb2.SetLimitRequest(limit=limit, remove=True, dry_run=dry_run)
    return sidecar.stub.SetLimit(request, timeout=sidecar.timeout_s)


def weight_list(sidecar: Sidecar) -> Message:
    """List the rules."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListWeights(admin_pb2.ListWeightsRequest(), timeout=sidecar.timeout_s)


def weight_set(
    sidecar: Sidecar,
    weight: Annotated[float, typer.Argument(help="More than 0; 2: twice the share of others.")],
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    dry_run: DryRun = False,
) -> Message:
    """Give frameworks a weight, replacing the rule with the same patterns."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    rule = settings_pb2.FrameworkWeight(role=role, framework_name=framework_name, weight=weight)
    request = settings_pb2.SetWeightRequest(weight=rule, all=everybody, dry_run=dry_run)
    return sidecar.stub.SetWeight(request, timeout=sidecar.timeout_s)


def weight_remove(
    sidecar: Sidecar,
    role: RolePattern = "",
    framework_name: NamePattern = "",
    everybody: Everybody = False,
    dry_run: DryRun = False,
) -> Message:
    """Take the rule with these patterns back."""
    from allocator.v1 import settings_pb2

    _check_patterns(role, framework_name, everybody=everybody)
    rule = settings_pb2.FrameworkWeight(role=role, framework_name=framework_name)
    request = settings_pb2.SetWeightRequest(
        weight=rule, remove=True, all=everybody, dry_run=dry_run
    )
    return sidecar.stub.SetWeight(request, timeout=sidecar.timeout_s)


def _check_patterns(role: str, framework_name: str, *, everybody: bool) -> None:
    """End where a rule would be for everybody, and does not say so."""
    named = bool(role or framework_name)
    if not named and not everybody:
        text = "give --role or --framework-name; a rule for every framework needs --all"
        raise typer.BadParameter(text)
    if named and everybody:
        raise typer.BadParameter("--all does not go with --role and --framework-name")

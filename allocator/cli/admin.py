"""Commands for a running sidecar: what it does, why, and what operators set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allocator.cli import explain, top
from allocator.cli.connection import Sidecar, remote
from allocator.cli.exits import Exit, fail

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from allocator.v1 import types_pb2

RolePattern = Annotated[str, typer.Option("--role", help="Shell pattern of roles; empty: all.")]
NamePattern = Annotated[
    str, typer.Option("--framework-name", help="Shell pattern of framework names; empty: all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    remote(app, "status", _show("status"))(status)
    remote(app, "shares", _show("shares"))(shares)
    top.register(app)
    remote(app, "dump", None)(dump)
    explain.register(_group(app, "explain", "Why a framework, a role or an agent gets nothing."))
    policy = _group(app, "policy", "The policy that decides.")
    remote(policy, "show", _show("policy"))(policy_show)
    remote(policy, "set", _show("policy"))(policy_set)
    demand = _group(app, "demand", "Rules that say what one task of a framework needs.")
    remote(demand, "list", _show("demands"))(demand_list)
    remote(demand, "set", _show("demands"))(demand_set)
    remote(demand, "remove", _show("demands"))(demand_remove)
    constraint = _group(app, "constraint", "Rules that say which agents a framework may use.")
    remote(constraint, "list", _show("constraints"))(constraint_list)
    remote(constraint, "set", _show("constraints"))(constraint_set)
    remote(constraint, "remove", _show("constraints"))(constraint_remove)


def _group(app: typer.Typer, name: str, what: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name=name, help=what)
    return group


def _show(name: str) -> Any:  # noqa: ANN401
    """Print a response with the function of that name; tables are imported only then."""

    def show(data: dict[str, Any]) -> None:
        from allocator.cli import tables

        getattr(tables, name)(data)

    return show


def status(sidecar: Sidecar) -> "Message":
    """Show what the sidecar is doing."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=sidecar.timeout_s)


def shares(
    sidecar: Sidecar,
    role: Annotated[str, typer.Option(help="Only this role and those below it.")] = "",
    fair: Annotated[
        bool,
        typer.Option(
            "--fair",
            help="Also what the policy would give if the whole cluster were given out anew; costs"
            " about as much as one allocation.",
        ),
    ] = False,
    newcomer: Annotated[
        str, typer.Option(help="Also what a new framework in this role would be given.")
    ] = "",
    newcomer_demand: Annotated[
        str, typer.Option(help="What one task of it needs, as in 'cpus:2;mem:2048'; none: unknown.")
    ] = "",
) -> "Message":
    """Show who holds what."""
    from allocator.v1 import admin_pb2

    request = admin_pb2.GetSharesRequest(
        role=role,
        fair=fair,
        newcomer_role=newcomer,
        newcomer_demand=_quantities(newcomer_demand),
    )
    return sidecar.stub.GetShares(request, timeout=sidecar.timeout_s)


def dump(
    sidecar: Sidecar,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; none: standard output.")
    ] = None,
) -> None:
    """Write the whole state as JSON."""
    from allocator.v1 import admin_pb2

    pieces = sidecar.stub.Dump(admin_pb2.DumpRequest(), timeout=sidecar.timeout_s)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece.json)
        return
    try:
        with output.open("wb") as file:
            for piece in pieces:
                file.write(piece.json)
    except OSError as error:
        fail(Exit.FAILURE, f"{output}: {error.strerror}")


def policy_show(sidecar: Sidecar) -> "Message":
    """Show the policy, and which others there are."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.GetPolicy(admin_pb2.GetPolicyRequest(), timeout=sidecar.timeout_s)


def policy_set(
    sidecar: Sidecar,
    name: Annotated[str, typer.Argument(help="Name; none: the same as now.")] = "",
    selection: Annotated[
        str | None, typer.Option(help="How the agent is chosen; empty: the policy's own.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="oblivious or characterised.")] = None,
    flat: Annotated[
        bool | None, typer.Option("--flat/--hierarchical", help="Who competes with whom.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="KEY=VALUE")
    ] = None,
    subtree: Annotated[
        list[str] | None,
        typer.Option(
            "--subtree",
            metavar="ROLE=POLICY",
            help="Decide otherwise below a role; ROLE= takes that back.",
        ),
    ] = None,
) -> "Message":
    """Decide by another policy from the next cycle on.

    What is not given stays as it is; but with another name, selection and parameters start from
    the new policy's own.
    """
    from allocator.v1 import admin_pb2

    now = policy_show(sidecar)
    assert isinstance(now, admin_pb2.GetPolicyResponse)
    policy = now.policy
    if name and name != policy.name:
        policy.name, policy.selection = name, ""
        policy.parameters.clear()
    if selection is not None:
        policy.selection = selection
    if mode is not None:
        policy.mode = mode
    if flat is not None:
        policy.flat = flat
    for text in parameter or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form key=value")
        policy.parameters[key] = value
    for text in subtree or ():
        role, equals, other = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form role=policy")
        policy.subtrees.pop(role, None)
        if other:
            policy.subtrees[role] = other
    request = admin_pb2.SetPolicyRequest(policy=policy)
    return sidecar.stub.SetPolicy(request, timeout=sidecar.timeout_s)


def demand_list(sidecar: Sidecar) -> "Message":
    """List the rules."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListDemands(admin_pb2.ListDemandsRequest(), timeout=sidecar.timeout_s)


def demand_set(
    sidecar: Sidecar,
    resources: Annotated[
        str, typer.Argument(help="One task's needs, as in 'cpus:2;mem:2048'; empty: unknown.")
    ],
    role: RolePattern = "",
    framework_name: NamePattern = "",
) -> "Message":
    """Say what one task needs, replacing the rule with the same patterns."""
    from allocator.v1 import admin_pb2

    demand = admin_pb2.Demand(
        role=role, framework_name=framework_name, demand=_quantities(resources)
    )
    request = admin_pb2.SetDemandRequest(demand=demand)
    return sidecar.stub.SetDemand(request, timeout=sidecar.timeout_s)


def demand_remove(
    sidecar: Sidecar, role: RolePattern = "", framework_name: NamePattern = ""
) -> "Message":
    """Take the rule with these patterns back."""
    from allocator.v1 import admin_pb2

    demand = admin_pb2.Demand(role=role, framework_name=framework_name)
    request = admin_pb2.SetDemandRequest(demand=demand, remove=True)
    return sidecar.stub.SetDemand(request, timeout=sidecar.timeout_s)


def constraint_list(sidecar: Sidecar) -> "Message":
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
) -> "Message":
    """Say which agents may be used, replacing the rule with the same patterns."""
    from allocator.v1 import admin_pb2

    constraint = admin_pb2.Constraint(role=role, framework_name=framework_name, expression=agents)
    request = admin_pb2.SetConstraintRequest(constraint=constraint)
    return sidecar.stub.SetConstraint(request, timeout=sidecar.timeout_s)


def constraint_remove(
    sidecar: Sidecar, role: RolePattern = "", framework_name: NamePattern = ""
) -> "Message":
    """Take the rule with these patterns back."""
    from allocator.v1 import admin_pb2

    constraint = admin_pb2.Constraint(role=role, framework_name=framework_name)
    request = admin_pb2.SetConstraintRequest(constraint=constraint, remove=True)
    return sidecar.stub.SetConstraint(request, timeout=sidecar.timeout_s)


def _quantities(text: str) -> "types_pb2.Quantities":
    from allocator.core import parse_quantities
    from allocator.v1 import types_pb2

    try:
        amounts = parse_quantities(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return types_pb2.Quantities(name=amounts.keys(), amount=amounts.values())

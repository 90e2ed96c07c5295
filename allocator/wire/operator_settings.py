"""What operators set, read and written: the nouns of admin.proto that the core knows, too."""

from typing import TypeAlias

from allocator.core import PolicySpec, SetConstraint, SetDemand, SetPolicy
from allocator.v1 import admin_pb2
from allocator.wire import proto_types

OperatorEvent: TypeAlias = SetPolicy | SetDemand | SetConstraint


def write_policy(spec: PolicySpec) -> admin_pb2.Policy:
    """Write a policy's specification."""
    return admin_pb2.Policy(
        name=spec.name,
        selection=spec.selection,
        mode=spec.mode,
        flat=spec.flat,
        parameters=spec.parameters,
        subtrees=spec.subtrees,
    )


def read_policy(message: admin_pb2.Policy) -> PolicySpec:
    """Read a policy's specification."""
    return PolicySpec(
        message.name,
        message.selection,
        message.mode or "oblivious",
        message.flat,
        dict(sorted(message.parameters.items())),
        dict(sorted(message.subtrees.items())),
    )


def write_demand(event: SetDemand) -> admin_pb2.SetDemandRequest:
    """Write a demand rule, or that it is taken back."""
    demand = admin_pb2.Demand(role=event.role, framework_name=event.framework_name)
    demand.demand.CopyFrom(proto_types.write_quantities(event.demand or {}))
    return admin_pb2.SetDemandRequest(demand=demand, remove=event.demand is None)


def read_demand(message: admin_pb2.SetDemandRequest) -> SetDemand:
    """Read a demand rule.

    Raises
    ------
    WireError
        Where an amount is none.
    """
    rule = message.demand
    demand = proto_types.part(rule.demand, proto_types.read_quantities, "demand.demand")
    return SetDemand(rule.role, rule.framework_name, None if message.remove else demand)


def write_constraint(event: SetConstraint) -> admin_pb2.SetConstraintRequest:
    """Write a constraint rule, or that it is taken back."""
    constraint = admin_pb2.Constraint(
        role=event.role, framework_name=event.framework_name, expression=event.expression or ""
    )
    return admin_pb2.SetConstraintRequest(constraint=constraint, remove=event.expression is None)


def read_constraint(message: admin_pb2.SetConstraintRequest) -> SetConstraint:
    """Read a constraint rule."""
    rule = message.constraint
    expression = None if message.remove else rule.expression
    return SetConstraint(rule.role, rule.framework_name, expression)

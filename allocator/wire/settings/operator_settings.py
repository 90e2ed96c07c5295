"""What operators set, read and written: the nouns of settings.proto that the core knows, too."""

from typing import TypeAlias

from allocator.core import (
    AdoptPlan,
    PolicySpec,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
)
from allocator.v1 import settings_pb2
from allocator.wire.codec import proto_types

OperatorChange: TypeAlias = (
    SetPolicy | SetDemand | SetConstraint | SetLimit | SetDrain | SetWeight | SetShadow
)
"""One thing that an operator sets, or takes back."""

OperatorEvent: TypeAlias = OperatorChange | Settings | AdoptPlan
"""A change, or all settings at once; or a plan, which comes in between messages as they do."""


def write_policy(spec: PolicySpec) -> settings_pb2.Policy:
    """Write a policy's specification."""
    return settings_pb2.Policy(
        name=spec.name,
        selection=spec.selection,
        mode=spec.mode,
        flat=spec.flat,
        parameters=spec.parameters,
        subtrees=spec.subtrees,
    )


def read_policy(message: settings_pb2.Policy) -> PolicySpec:
    """Read a policy's specification."""
    return PolicySpec(
        message.name,
        message.selection,
        message.mode or "oblivious",
        message.flat,
        dict(sorted(message.parameters.items())),
        dict(sorted(message.subtrees.items())),
    )


def write_demand(event: SetDemand) -> settings_pb2.SetDemandRequest:
    """Write a demand rule, or that it is taken back."""
    demand = settings_pb2.Demand(
        role=event.role, framework_name=event.framework_name, override=event.override
    )
    demand.demand.CopyFrom(proto_types.write_quantities(event.demand or {}))
    return settings_pb2.SetDemandRequest(demand=demand, remove=event.demand is None)


def read_demand(message: settings_pb2.SetDemandRequest) -> SetDemand:
    """Read a demand rule.

    Raises
    ------
    WireError
        Where an amount is none.
    """
    rule = message.demand
    demand = proto_types.part(rule.demand, proto_types.read_quantities, "demand.demand")
    kept = None if message.remove else demand
    return SetDemand(rule.role, rule.framework_name, kept, rule.override)


def write_constraint(event: SetConstraint) -> settings_pb2.SetConstraintRequest:
    """Write a constraint rule, or that it is taken back."""
    constraint = settings_pb2.Constraint(
        role=event.role, framework_name=event.framework_name, expression=event.expression or ""
    )
    return settings_pb2.SetConstraintRequest(constraint=constraint, remove=event.expression is None)


def read_constraint(message: settings_pb2.SetConstraintRequest) -> SetConstraint:
    """Read a constraint rule."""
    rule = message.constraint
    expression = None if message.remove else rule.expression
    return SetConstraint(rule.role, rule.framework_name, expression)


def write_limit(event: SetLimit) -> settings_pb2.SetLimitRequest:
    """Write a limit on a role, or that it is taken back."""
    limit = settings_pb2.Limit(role=event.role)
    limit.limit.CopyFrom(proto_types.write_quantities(event.limit or {}))
    return settings_pb2.SetLimitRequest(limit=limit, remove=event.limit is None)


def read_limit(message: settings_pb2.SetLimitRequest) -> SetLimit:
    """Read a limit on a role.

    Raises
    ------
    WireError
        Where an amount is none.
    """
    rule = message.limit
    limit = proto_types.part(rule.limit, proto_types.read_quantities, "limit.limit")
    return SetLimit(rule.role, None if message.remove else limit)


def write_drain(event: SetDrain) -> settings_pb2.SetDrainRequest:
    """Write that an agent is drained, or not any more."""
    drain = settings_pb2.Drain(agent=event.agent)
    return settings_pb2.SetDrainRequest(drain=drain, remove=not event.drained)


def read_drain(message: settings_pb2.SetDrainRequest) -> SetDrain:
    """Read that an agent is drained, or not any more."""
    return SetDrain(message.drain.agent, not message.remove)


def write_weight(event: SetWeight) -> settings_pb2.SetWeightRequest:
    """Write a rule about frameworks' weights, or that it is taken back."""
    weight = settings_pb2.FrameworkWeight(
        role=event.role, framework_name=event.framework_name, weight=event.weight or 0
    )
    return settings_pb2.SetWeightRequest(weight=weight, remove=event.weight is None)


def read_weight(message: settings_pb2.SetWeightRequest) -> SetWeight:
    """Read a rule about frameworks' weights."""
    rule = message.weight
    return SetWeight(rule.role, rule.framework_name, None if message.remove else rule.weight)


def write_shadow(event: SetShadow) -> settings_pb2.SetShadowRequest:
    """Write which policy looks on."""
    if event.spec is None:
        return settings_pb2.SetShadowRequest(remove=True)
    return settings_pb2.SetShadowRequest(policy=write_policy(event.spec))


def read_shadow(message: settings_pb2.SetShadowRequest) -> SetShadow:
    """Read which policy looks on."""
    return SetShadow(None if message.remove else read_policy(message.policy))

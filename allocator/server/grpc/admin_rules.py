"""The operators' service: what they set beside the policy, and the policy that looks on."""
# ruff: noqa: N802 - methods bear the names of the RPCs.

from collections.abc import Callable, Iterable
from typing import TypeVar

import grpc

from allocator.core import SetDrain, SetLimit, SetWeight
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.rpc_futures import refuse, wait
from allocator.server.operators.changes import Changes, check_patterns
from allocator.server.views.shadow_report import write_shadow_report
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.wire import WireError
from allocator.wire.settings.operator_overlay import rules
from allocator.wire.settings.operator_settings import (
    OperatorChange,
    read_constraint,
    read_demand,
    read_drain,
    read_limit,
    read_shadow,
    read_weight,
    write_constraint,
    write_demand,
    write_drain,
    write_limit,
    write_policy,
    write_weight,
)

_T = TypeVar("_T")


class RuleRpcs:
    """Lists and sets the rules; changes nothing where a request is wrong."""

    def __init__(self, loop: CoreLoop, changes: Changes) -> None:
        """Speak for this loop."""
        self._loop = loop
        self._changes = changes

    def ListDemands(
        self, request: pb.ListDemandsRequest, context: grpc.ServicerContext
    ) -> pb.ListDemandsResponse:
        """List the rules about demands."""
        return pb.ListDemandsResponse(demands=self._ask(context, self._demands))

    def SetDemand(
        self, request: settings_pb2.SetDemandRequest, context: grpc.ServicerContext
    ) -> pb.SetDemandResponse:
        """Set, replace or take back a rule about demands."""
        try:
            event = read_demand(request)
        except WireError as error:
            refuse(context, str(error))
        check_patterns(context, event, everybody=request.all)
        listed, told = self._changes.change(context, event, self._demands, dry_run=request.dry_run)
        return pb.SetDemandResponse(demands=listed, change=told)

    def ListConstraints(
        self, request: pb.ListConstraintsRequest, context: grpc.ServicerContext
    ) -> pb.ListConstraintsResponse:
        """List the rules about agents."""
        return pb.ListConstraintsResponse(constraints=self._ask(context, self._constraints))

    def SetConstraint(
        self, request: settings_pb2.SetConstraintRequest, context: grpc.ServicerContext
    ) -> pb.SetConstraintResponse:
        """Set, replace or take back a rule about agents."""
        event = read_constraint(request)
        if event.expression is not None and not event.expression.strip(" ;"):
            text = "is empty; write clauses, as in 'zone=a|b; ssd', or remove the rule"
            refuse(context, f"constraint.expression = {event.expression!r}: {text}")
        check_patterns(context, event, everybody=request.all)
        listed, told = self._changes.change(
            context, event, self._constraints, dry_run=request.dry_run
        )
        return pb.SetConstraintResponse(constraints=listed, change=told)

    def ListLimits(
        self, request: pb.ListLimitsRequest, context: grpc.ServicerContext
    ) -> pb.ListLimitsResponse:
        """List the limits on roles."""
        return pb.ListLimitsResponse(limits=self._ask(context, self._limits))

    def SetLimit(
        self, request: settings_pb2.SetLimitRequest, context: grpc.ServicerContext
    ) -> pb.SetLimitResponse:
        """Set, replace or take back what a role is granted at most."""
        try:
            event = read_limit(request)
        except WireError as error:
            refuse(context, str(error))
        listed, told = self._changes.change(context, event, self._limits, dry_run=request.dry_run)
        return pb.SetLimitResponse(limits=listed, change=told)

    def ListDrains(
        self, request: pb.ListDrainsRequest, context: grpc.ServicerContext
    ) -> pb.ListDrainsResponse:
        """List the agents that are drained."""
        return pb.ListDrainsResponse(drains=self._ask(context, self._drains))

    def SetDrain(
        self, request: settings_pb2.SetDrainRequest, context: grpc.ServicerContext
    ) -> pb.SetDrainResponse:
        """Offer nothing of an agent any more, or offer it again."""
        listed, told = self._changes.change(
            context, read_drain(request), self._drains, dry_run=request.dry_run
        )
        return pb.SetDrainResponse(drains=listed, change=told)

    def ListWeights(
        self, request: pb.ListWeightsRequest, context: grpc.ServicerContext
    ) -> pb.ListWeightsResponse:
        """List the rules about frameworks' weights."""
        return pb.ListWeightsResponse(weights=self._ask(context, self._weights))

    def SetWeight(
        self, request: settings_pb2.SetWeightRequest, context: grpc.ServicerContext
    ) -> pb.SetWeightResponse:
        """Set, replace or take back a rule about frameworks' weights."""
        event = read_weight(request)
        check_patterns(context, event, everybody=request.all)
        listed, told = self._changes.change(context, event, self._weights, dry_run=request.dry_run)
        return pb.SetWeightResponse(weights=listed, change=told)

    def GetShadow(
        self, request: pb.GetShadowRequest, context: grpc.ServicerContext
    ) -> pb.GetShadowResponse:
        """Say what the policy that looks on would have decided."""
        return write_shadow_report(
            self._loop, lambda work: self._ask(context, work), fair=request.fair
        )

    def SetShadow(
        self, request: settings_pb2.SetShadowRequest, context: grpc.ServicerContext
    ) -> pb.SetShadowResponse:
        """Have a policy look on, or none."""
        listed, told = self._changes.change(
            context, read_shadow(request), self._shadow, dry_run=request.dry_run
        )
        return pb.SetShadowResponse(shadow=listed, change=told)

    # On the core's thread.

    def _demands(self) -> list[settings_pb2.Demand]:
        found = self._loop.allocator.settings.demands.values()
        return [write_demand(rule).demand for rule in found]

    def _constraints(self) -> list[settings_pb2.Constraint]:
        found = self._loop.allocator.settings.constraints.values()
        return [write_constraint(rule).constraint for rule in found]

    def _limits(self) -> list[settings_pb2.Limit]:
        found = self._rules()
        return [write_limit(rule).limit for rule in found if isinstance(rule, SetLimit)]

    def _drains(self) -> list[settings_pb2.Drain]:
        found = self._rules()
        return [write_drain(rule).drain for rule in found if isinstance(rule, SetDrain)]

    def _weights(self) -> list[settings_pb2.FrameworkWeight]:
        found = self._rules()
        return [write_weight(rule).weight for rule in found if isinstance(rule, SetWeight)]

    def _shadow(self) -> settings_pb2.Policy | None:
        spec = self._loop.allocator.settings.shadow
        return None if spec is None else write_policy(spec)

    def _rules(self) -> Iterable[OperatorChange]:
        return rules(self._loop.allocator.settings).values()

    # On the thread of the request.

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return wait(context, self._loop.ask(work))

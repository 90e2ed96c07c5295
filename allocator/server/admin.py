"""The operators' service. Whatever it asks of the core is done on the core's thread."""
# ruff: noqa: N802 - methods bear the names of the RPCs.

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import grpc

from allocator.core import Detached, SetLimit, SetPolicy
from allocator.server import dump, forecast
from allocator.server.answering import refuse as _refuse
from allocator.server.answering import wait as _wait
from allocator.server.audit import Audit
from allocator.server.changes import Changes, check_patterns
from allocator.server.config import Config, Loaded
from allocator.server.core_loop import CoreLoop
from allocator.server.operators import Operators
from allocator.server.views import Ask, RefusedError, Views
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, explain_pb2, settings_pb2
from allocator.wire import WireError
from allocator.wire.kept import rules
from allocator.wire.operator_settings import (
    read_constraint,
    read_demand,
    read_limit,
    read_policy,
    write_constraint,
    write_demand,
    write_limit,
    write_policy,
)

_T = TypeVar("_T")


class AdminServicer(admin_pb2_grpc.AdminServiceServicer):
    """Answers operators; changes nothing where a request is wrong."""

    def __init__(
        self, loop: CoreLoop, views: Views | None = None, changes: Changes | None = None
    ) -> None:
        """Speak for this loop.

        Parameters
        ----------
        loop : CoreLoop
        views : Views
            Answer what changes nothing; by default those of a process whose loops are compiled.
        changes : Changes
            Makes the changes that are asked for; by default nothing of them is kept.
        """
        self._loop = loop
        self._views = views or Views(loop, Operators(loop, Loaded(Config(), {})))
        self._changes = changes or Changes(loop, self._views.operators, Audit())

    def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.ServicerContext
    ) -> pb.GetStatusResponse:
        """Say what the sidecar is doing."""
        return self._views.status(self._asking(context))

    def GetShares(
        self, request: pb.GetSharesRequest, context: grpc.ServicerContext
    ) -> pb.GetSharesResponse:
        """Say who holds what."""
        with _refusing(context):
            return self._views.shares(self._asking(context), request)

    def Explain(
        self, request: explain_pb2.ExplainRequest, context: grpc.ServicerContext
    ) -> explain_pb2.ExplainResponse:
        """Say why somebody gets nothing."""
        with _refusing(context):
            return self._views.explain(self._asking(context), request)

    def GetPolicy(
        self, request: pb.GetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.GetPolicyResponse:
        """Say which policy decides, and which others could."""
        return self._views.policy(self._asking(context))

    def SetPolicy(
        self, request: pb.SetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.SetPolicyResponse:
        """Decide by another policy from the next cycle on."""
        change = SetPolicy(read_policy(request.policy))
        told = self._changes.change(context, change, dry_run=request.dry_run)
        response = pb.SetPolicyResponse(policy=self._ask(context, self._policy), change=told)
        if request.dry_run:
            copied = self._ask(context, self._copied)
            found, unaffected = forecast.compare(
                self._loop, copied, read_policy(response.policy), change.spec
            )
            response.forecasts.extend(found)
            response.unaffected = unaffected
        return response

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
            _refuse(context, str(error))
        check_patterns(context, event, everybody=request.all)
        told = self._changes.change(context, event, dry_run=request.dry_run)
        return pb.SetDemandResponse(demands=self._ask(context, self._demands), change=told)

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
            _refuse(context, f"constraint.expression = {event.expression!r}: {text}")
        check_patterns(context, event, everybody=request.all)
        told = self._changes.change(context, event, dry_run=request.dry_run)
        listed = self._ask(context, self._constraints)
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
            _refuse(context, str(error))
        told = self._changes.change(context, event, dry_run=request.dry_run)
        return pb.SetLimitResponse(limits=self._ask(context, self._limits), change=told)

    def ListSettings(
        self, request: pb.ListSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ListSettingsResponse:
        """List all settings, and where each comes from."""
        listed = self._views.settings(self._asking(context), every=True)
        return pb.ListSettingsResponse(settings=listed)

    def ResetSettings(
        self, request: pb.ResetSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ResetSettingsResponse:
        """Let the configuration count again."""
        told = self._changes.reset(context, request.what)
        listed = self._views.settings(self._asking(context), every=False)
        return pb.ResetSettingsResponse(settings=listed, change=told)

    def Dump(
        self, request: pb.DumpRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.DumpResponse]:
        """Give the whole state."""
        state = self._ask(context, lambda: dump.read(self._loop))
        for piece in dump.pieces(state):
            yield pb.DumpResponse(json=piece)

    # On the core's thread.

    def _policy(self) -> settings_pb2.Policy:
        return write_policy(self._loop.allocator.settings.policy)

    def _copied(self) -> Detached:
        return self._loop.allocator.copied()

    def _demands(self) -> list[settings_pb2.Demand]:
        rules = self._loop.allocator.settings.demands.values()
        return [write_demand(rule).demand for rule in rules]

    def _constraints(self) -> list[settings_pb2.Constraint]:
        rules = self._loop.allocator.settings.constraints.values()
        return [write_constraint(rule).constraint for rule in rules]

    def _limits(self) -> list[settings_pb2.Limit]:
        found = rules(self._loop.allocator.settings).values()
        return [write_limit(rule).limit for rule in found if isinstance(rule, SetLimit)]

    # On the thread of the request.

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return _wait(context, self._loop.call(work))

    def _asking(self, context: grpc.ServicerContext) -> Ask:
        return partial(self._ask, context)


@contextmanager
def _refusing(context: grpc.ServicerContext) -> Iterator[None]:
    """End the call where what was asked is wrong."""
    try:
        yield
    except RefusedError as error:
        _refuse(context, str(error))

"""The operators' service. Whatever it asks of the core is done on the core's thread."""
# ruff: noqa: N802 - methods bear the names of the RPCs.

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from allocator.core import Detached, SetPolicy
from allocator.server.config import Config, Loaded
from allocator.server.engine import forecast
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.rpc_futures import refuse as _refuse
from allocator.server.grpc.admin_rules import RuleRpcs
from allocator.server.operators.changes import Changes
from allocator.server.operators.operators import Operators
from allocator.server.views import dump, names
from allocator.server.views.views import Ask, RefusedError, Views, shown_settings
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, explain_pb2, settings_pb2
from allocator.wire.settings.operator_settings import read_policy, write_policy

_Service: Any = admin_pb2_grpc.AdminServiceServicer  # Types do not see the calls of rules.


class AdminServicer(RuleRpcs, _Service):  # type: ignore[misc]
    """Answers operators; changes nothing where a request is wrong."""

    def __init__(
        self, loop: CoreLoop, views: Views | None = None, changes: Changes | None = None
    ) -> None:
        """Speak for this loop.

        `views`: answer what changes nothing; by default those of a process whose loops are
            compiled.
        `changes`: makes the changes that are asked for; by default nothing of them is kept.
        """
        self._views = views or Views(loop, Operators(loop, Loaded(Config(), {})))
        super().__init__(loop, changes or Changes(loop, self._views.operators))

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

    def ListNames(
        self, request: pb.ListNamesRequest, context: grpc.ServicerContext
    ) -> pb.ListNamesResponse:
        """List names that begin in a way."""
        with _refusing(context):
            return names.listed(self._loop, self._asking(context), request)

    def SetPolicy(
        self, request: pb.SetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.SetPolicyResponse:
        """Decide by another policy from the next cycle on."""
        change = SetPolicy(read_policy(request.policy))
        policy, told = self._changes.change(context, change, self._policy, dry_run=request.dry_run)
        response = pb.SetPolicyResponse(policy=policy, change=told)
        if request.dry_run:
            copied = self._ask(context, self._copied)
            found, unaffected = forecast.compare(
                self._loop, copied, read_policy(response.policy), change.spec
            )
            response.forecasts.extend(found)
            response.unaffected = unaffected
        return response

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
        read, told = self._changes.reset(context, request.what, self._views.read_settings)
        return pb.ResetSettingsResponse(settings=shown_settings(read, every=False), change=told)

    def Dump(
        self, request: pb.DumpRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.DumpResponse]:
        """Give the whole state."""
        state = self._ask(context, lambda: dump.read(self._loop))
        for piece in dump.pieces(state):
            yield pb.DumpResponse(json=piece)

    def Snapshot(
        self, request: pb.SnapshotRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SnapshotResponse]:
        """Give the whole state as a journal of one moment."""
        write = self._ask(context, lambda: self._loop.new_snapshot(anonymise=request.anonymise))
        for piece in dump.in_pieces(write()):
            yield pb.SnapshotResponse(data=piece)

    # On the core's thread.

    def _policy(self) -> settings_pb2.Policy:
        return write_policy(self._loop.allocator.settings.policy)

    def _copied(self) -> Detached:
        return self._loop.allocator.copied()

    # On the thread of the request.

    def _asking(self, context: grpc.ServicerContext) -> Ask:
        return partial(self._ask, context)


@contextmanager
def _refusing(context: grpc.ServicerContext) -> Iterator[None]:
    """End the call where what was asked is wrong."""
    try:
        yield
    except RefusedError as error:
        _refuse(context, str(error))

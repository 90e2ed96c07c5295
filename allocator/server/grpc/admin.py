"""The operators' service of the deciding process, which makes changes.

Queries and dry runs are forwarded to the observer. Before a change is made, the observer tries it,
reports its effects, and rejects mistakes. Without an observer, changes are made unchecked.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import structlog
from google.protobuf.message import Message

from allocator.core import ForgetUsage
from allocator.server.engine.commands import left_s, reject
from allocator.server.grpc.access import READS
from allocator.server.grpc.forwarding import ObserverCalls, status_of
from allocator.server.grpc.requests import (
    SERVICE,
    SETS,
    Request,
    field_of,
    instead_of,
    listed,
    messages_of,
    read_changes,
    read_request,
)
from allocator.server.operators.change_requests import ChangeRequests
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2

APPLY, REVERT = "ApplySettings", "RevertSettings"
RESET_USAGE, FORGET_USAGE = "ResetUsage", "ForgetUsage"

JUDGED_PART = 0.5
"""Fraction of the caller's remaining time that the observer may use to try a change."""

UNJUDGED = "the observer did not answer, so whether this makes sense could not be judged"

_log = structlog.get_logger()


class AdminServicer:
    """Serves operators; changes nothing if a request is invalid."""

    def __init__(self, changes: ChangeRequests, observer: ObserverCalls) -> None:
        self._changes = changes
        self._observer = observer

    def handler(self) -> grpc.GenericRpcHandler:
        made = {method.name: self._handler(method.name) for method in SERVICE.methods}
        return grpc.method_handlers_generic_handler(SERVICE.full_name, made)

    def _handler(self, method: str) -> Any:  # noqa: ANN401 - gRPC's own
        if SERVICE.methods_by_name[method].server_streaming:
            stream = partial(self._observer.forward_stream, method)
            return grpc.unary_stream_rpc_method_handler(stream)
        if method in READS or method == RESET_USAGE:
            return grpc.unary_unary_rpc_method_handler(partial(self._observer.forward, method))
        answer: Callable[..., Message] = self._reset
        if method in {APPLY, REVERT}:
            answer = self._apply if method == APPLY else self._revert
        if method in SETS:
            answer = partial(self._set, method)
        if method == FORGET_USAGE:
            answer = self._forget
        request, _ = messages_of(method)
        return grpc.unary_unary_rpc_method_handler(
            answer, request.FromString, lambda message: message.SerializeToString()
        )

    def _set(self, method: str, request: Request, context: grpc.ServicerContext) -> Message:
        change, expected = read_request(request, context), instead_of(request, context)
        refused = partial(self._changes.note_refused, context, change)
        judged = self._judged(method, request, refused, context)
        if request.dry_run:
            self._changes.note_trial(context, change)
            return judged
        operators = self._changes.operators
        found, told = self._changes.change(
            context,
            change,
            lambda: listed(change.kind, operators.in_force),
            judged.change,
            expected,
        )
        response: Message = type(judged)(**{field_of(change.kind): found, "change": told})
        return response

    def _apply(
        self, request: pb.ApplySettingsRequest, context: grpc.ServicerContext
    ) -> pb.ApplySettingsResponse:
        changes = read_changes(request, context)

        def refused(text: str) -> None:
            self._changes.note_refusal(context, text.partition(":")[0].split(" ")[0], text)

        judged: pb.ApplySettingsResponse = self._judged(APPLY, request, refused, context)
        nothing = not judged.changes and UNJUDGED not in judged.change.warnings
        if request.dry_run or nothing:
            judged.change.dry_run = request.dry_run
            return judged
        rows, told = self._changes.apply(context, changes, judged.change, prune=request.prune)
        return pb.ApplySettingsResponse(changes=rows, change=told)

    def _revert(
        self, request: pb.RevertSettingsRequest, context: grpc.ServicerContext
    ) -> pb.RevertSettingsResponse:
        try:
            before = self._changes.operators.history.replaced_by(request.number)
        except LookupError as error:
            self._changes.note_refusal(context, "", str(error))
            reject(context, str(error))
        asked = pb.ApplySettingsRequest(
            changes=before, dry_run=request.dry_run, force=request.force
        )
        made = self._apply(asked, context)
        return pb.RevertSettingsResponse(changes=made.changes, change=made.change)

    def _forget(
        self, request: pb.ForgetUsageRequest, context: grpc.ServicerContext
    ) -> pb.ForgetUsageResponse:
        event = ForgetUsage(request.role, request.framework_id)
        return pb.ForgetUsageResponse(change=self._changes.forget(context, event))

    def _judged(
        self,
        method: str,
        request: Any,  # noqa: ANN401 - as the kind says
        refused: Callable[[str], None],
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - the response of the call
        """Let the observer try a change; if it rejects it, call `refused` and end the call."""
        _, response = messages_of(method)
        trial = type(request)()
        trial.CopyFrom(request)
        trial.dry_run = True
        within_s = left_s(context) * (1.0 if request.dry_run else JUDGED_PART)
        try:
            data = self._observer.ask(
                method, trial.SerializeToString(), within_s, trial=not request.dry_run
            )
            return response.FromString(data)
        except grpc.RpcError as error:
            code, text = status_of(error)
            if code is grpc.StatusCode.INVALID_ARGUMENT:
                refused(text)
                reject(context, text)
            if request.dry_run:
                context.abort(code, text)
            _log.warning("a change is made unchecked: the observer did not answer", call=method)
            return response(change=settings_pb2.Change(warnings=[UNJUDGED]))

    def _reset(
        self, request: pb.ResetSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ResetSettingsResponse:
        told = self._changes.reset(context, request.what)
        response = pb.ResetSettingsResponse(change=told)
        try:
            question = pb.GetStatusRequest().SerializeToString()
            data = self._observer.ask("GetStatus", question, left_s(context))
        except grpc.RpcError:
            return response  # the caller can query the settings in force later
        response.settings.extend(pb.GetStatusResponse.FromString(data).settings)
        return response

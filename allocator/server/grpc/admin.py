"""The operators' service of the deciding process, which makes changes; each is audited.

Queries and dry runs are forwarded to the observer. Before a change is made, the observer tries it,
reports its effects, and rejects mistakes. Without an observer, changes are made unchecked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
import structlog
from google.protobuf.message import Message

from allocator.core import EventError, ForgetUsage, OperatorChange
from allocator.near import suggestion
from allocator.rule_kinds import KINDS
from allocator.server.engine.commands import left_s, reject, settled, wait
from allocator.server.engine.core_loop import CoreLoop
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
from allocator.server.operators.calendar import about_rule
from allocator.server.operators.operators import GivenUpError, Operators, Requester
from allocator.server.operators.trials import check, check_policy, refusal
from allocator.server.system.callers import caller_of
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.wire.settings.schedule import id_of

APPLY, RESET_USAGE = "ApplySettings", "ResetUsage"

JUDGED_PART = 0.5
"""Fraction of the caller's remaining time that the observer may use to try a change."""

UNJUDGED = "the observer did not answer, so whether this makes sense could not be judged"

BUSY = "the core is busy, and nothing has changed; ask again"

_log = structlog.get_logger()


class AdminServicer:
    """Serves operators; changes nothing if a request is invalid.

    A change that was made must always be reported. So after a change, the core is asked for
    nothing more, which could time out.
    """

    def __init__(
        self,
        loop: CoreLoop,
        operators: Operators,
        observer: ObserverCalls,
        sockets: tuple[str, ...] = (),
    ) -> None:
        """Make changes to this loop's settings; `sockets`: paths of our Unix sockets."""
        self._loop = loop
        self._operators = operators
        self._audit = operators.audit
        self._observer = observer
        self._sockets = sockets

    def handler(self) -> grpc.GenericRpcHandler:
        made = {method.name: self._handler(method.name) for method in SERVICE.methods}
        return grpc.method_handlers_generic_handler(SERVICE.full_name, made)

    def _handler(self, method: str) -> Any:  # noqa: ANN401 - gRPC's own
        request, _ = messages_of(method)

        def checked(data: bytes) -> bytes:
            """Reject an invalid request here: the observer's server would never free its call."""
            request.FromString(data)
            return data

        if SERVICE.methods_by_name[method].server_streaming:
            stream = partial(self._observer.forward_stream, method)
            return grpc.unary_stream_rpc_method_handler(stream, checked)
        if method in READS or method == RESET_USAGE:
            forward = partial(self._observer.forward, method)
            return grpc.unary_unary_rpc_method_handler(forward, checked)
        answers: dict[str, Callable[..., Message]] = {
            APPLY: self._apply,
            "RevertSettings": self._revert,
            "ResetSettings": self._reset,
            "ForgetUsage": self._forget,
        }
        answer = partial(self._set, method) if method in SETS else answers[method]
        return grpc.unary_unary_rpc_method_handler(
            answer, request.FromString, lambda message: message.SerializeToString()
        )

    def _set(self, method: str, request: Request, context: grpc.ServicerContext) -> Message:
        change, expected = read_request(request, context), instead_of(request, context)
        who = self._who(context)

        def refused(error: str) -> None:
            self._audit.of_change(who, change, result="refused", error=error)

        judged = self._judged(method, request, refused, context)
        told = settings_pb2.Change(warnings=judged.change.warnings, match=judged.change.match)
        try:
            with self._in_time(context, refused):
                settings = wait(context, self._loop.call(self._operators.copied))
                if change.takes_back or not request.dry_run:
                    limits, try_policy = self._loop.session_limits, self._operators.try_policy
                    check(change, settings, limits, try_policy, left_s(context))
                if request.dry_run:
                    self._audit.of_change(who, change, settings.before(change), result="dry_run")
                    return judged
                requester = Requester(who, context.is_active, expected)
                effect = settled(self._operators.set(change, requester), left_s(context))
        except EventError as error:
            refused(str(error))
            reject(context, f"{refusal(change, error)}{self._scheduled_instead(change)}")
        if (rule := self._operators.holds_instead(change)) is not None:
            told.warnings.append(f"a scheduled rule holds instead now: {about_rule(rule)}")
        self._keep(context, told, effect.number)
        found = listed(change.kind, effect.settings)
        response: Message = type(judged)(**{field_of(change.kind): found, "change": told})
        return response

    def _scheduled_instead(self, change: OperatorChange) -> str:
        """Return how to end the scheduled rule that holds where there is no other to remove."""
        rule = self._operators.holds_instead(change) if change.takes_back else None
        if rule is None:
            return ""
        end = f"schedule remove {id_of(rule.key)}"
        return f"; a scheduled rule holds now, which `{end}` removes: {about_rule(rule)}"

    def _apply(
        self, request: pb.ApplySettingsRequest, context: grpc.ServicerContext
    ) -> pb.ApplySettingsResponse:
        changes, who = read_changes(request, context), self._who(context)

        def refused(text: str) -> None:
            self._note_refused(who, text.partition(":")[0].split(" ")[0], text)

        judged: pb.ApplySettingsResponse = self._judged(APPLY, request, refused, context)
        nothing = not judged.changes and UNJUDGED not in judged.change.warnings
        if request.dry_run or nothing:
            judged.change.dry_run = request.dry_run
            return judged
        told = settings_pb2.Change(warnings=judged.change.warnings)
        try:
            with self._in_time(context):
                for each in changes:
                    check_policy(each.change, self._operators.try_policy, left_s(context))
                requester = Requester(who, context.is_active)
                made = self._operators.apply(changes, requester, prune=request.prune)
                effect, applied = settled(made, left_s(context))
        except EventError as error:
            self._note_refused(who, error.field, error.message)
            reject(context, error.message)
        self._keep(context, told, effect.number)
        return pb.ApplySettingsResponse(changes=applied.rows, change=told)

    def _revert(
        self, request: pb.RevertSettingsRequest, context: grpc.ServicerContext
    ) -> pb.RevertSettingsResponse:
        try:
            before = self._operators.history.replaced_by(request.number)
        except LookupError as error:
            self._note_refused(self._who(context), "", str(error))
            reject(context, str(error))
        asked = pb.ApplySettingsRequest(
            changes=before, dry_run=request.dry_run, force=request.force
        )
        made = self._apply(asked, context)
        return pb.RevertSettingsResponse(changes=made.changes, change=made.change)

    def _forget(
        self, request: pb.ForgetUsageRequest, context: grpc.ServicerContext
    ) -> pb.ForgetUsageResponse:
        event, who = ForgetUsage(request.role, request.framework_id), self._who(context)
        try:
            with self._in_time(context):
                made = self._operators.forget(event, Requester(who, context.is_active))
                settled(made, left_s(context))
        except EventError as error:
            self._audit.note(who, "usage", "", result="refused", error=str(error))
            reject(context, str(error))
        return pb.ForgetUsageResponse(
            change=self._lasting(self._operators.save_averages(left_s(context)))
        )

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
        kinds = list(request.what) or list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                near = suggestion(kind, KINDS)
                reject(context, f"what = {kind!r}: must be one of {', '.join(KINDS)}{near}")
        requester = Requester(self._who(context), context.is_active)
        try:
            with self._in_time(context):
                effect = self._operators.reset(kinds, requester, left_s(context))
        except ValueError as error:
            reject(context, str(error))
        response = pb.ResetSettingsResponse()
        self._keep(context, response.change, effect.number)
        try:
            question = pb.GetStatusRequest().SerializeToString()
            data = self._observer.ask("GetStatus", question, left_s(context))
        except grpc.RpcError:
            return response  # the caller can query the settings in force later
        response.settings.extend(pb.GetStatusResponse.FromString(data).settings)
        return response

    @contextmanager
    def _in_time(
        self, context: grpc.ServicerContext, refused: Callable[[str], None] = lambda _error: None
    ) -> Iterator[None]:
        """End the call if a change in this block does not begin in time."""
        try:
            yield
        except (TimeoutError, GivenUpError):
            refused(BUSY)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)

    def _note_refused(self, who: str, what: str, error: str) -> None:
        kind = what if what in KINDS else "settings"
        self._audit.note(who, kind, "", result="refused", error=error)

    def _who(self, context: grpc.ServicerContext) -> str:
        return str(caller_of(context, self._sockets))

    def _keep(self, context: grpc.ServicerContext, told: settings_pb2.Change, number: int) -> None:
        """Wait until a change is saved, and add to its report whether it is."""
        told.MergeFrom(self._lasting(self._operators.await_kept(number, left_s(context))))

    def _lasting(self, lasts_not: str) -> settings_pb2.Change:
        failed = self._operators.keeps and bool(lasts_not)
        return settings_pb2.Change(lasts=not lasts_not, lasts_not=lasts_not, save_failed=failed)

"""The operators' service: what they set beside the policy, and the policy that looks on.

Every kind of rule (`allocator.settable`) has two calls, of the same form: one lists its rules, the
other sets, replaces or takes back one of them.
"""
# ruff: noqa: N802 - methods bear the names of the RPCs.

from collections.abc import Callable
from dataclasses import replace
from functools import partial, partialmethod
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from allocator.core import OperatorChange
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.rpc_futures import refuse, wait
from allocator.server.operators.changes import Changes, check_patterns
from allocator.server.views.shadow_report import write_shadow_report
from allocator.settable import RULES, SHADOW, Scope, SettingKind, Value
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.wire import WireError
from allocator.wire.settings.operator_settings import read_change, write_policy, write_rule

_T = TypeVar("_T")


class RuleRpcs:
    """Lists and sets the rules; changes nothing where a request is wrong."""

    def __init__(self, loop: CoreLoop, changes: Changes) -> None:
        """Speak for this loop."""
        self._loop = loop
        self._changes = changes

    def _list(self, kind: SettingKind, _: Message, context: grpc.ServicerContext) -> Message:
        """List the rules of a kind."""
        listed = self._ask(context, partial(self._listed, kind))
        return _response(f"List{kind.title}sResponse", {kind.plural: listed})

    def _set(
        self,
        kind: SettingKind,
        request: Any,  # noqa: ANN401 - as the kind says
        context: grpc.ServicerContext,
    ) -> Message:
        """Set, replace or take back a rule."""
        try:
            change = read_change(kind, request)
        except WireError as error:
            refuse(context, str(error))
        _check_expression(context, change)
        if kind.scope is Scope.FRAMEWORKS:
            check_patterns(context, change, everybody=request.all)
        listed, told = self._changes.change(
            context,
            change,
            partial(self._listed, kind),
            dry_run=request.dry_run,
            force=bool(kind.refused) and request.force,
            beside=_beside(change, request),
        )
        return _response(f"Set{kind.title}Response", {kind.plural: listed, "change": told})

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
            context, read_change(SHADOW, request), self._shadow, dry_run=request.dry_run
        )
        return pb.SetShadowResponse(shadow=listed, change=told)

    # On the core's thread.

    def _listed(self, kind: SettingKind) -> list[Message]:
        return list(map(write_rule, self._loop.allocator.settings.standing(kind)))

    def _shadow(self) -> settings_pb2.Policy | None:
        spec = self._loop.allocator.settings.shadow
        return None if spec is None else write_policy(spec)

    # On the thread of the request.

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return wait(context, self._loop.ask(work))


for _kind in RULES:
    setattr(RuleRpcs, f"List{_kind.title}s", partialmethod(RuleRpcs._list, _kind))  # noqa: SLF001
    setattr(RuleRpcs, f"Set{_kind.title}", partialmethod(RuleRpcs._set, _kind))  # noqa: SLF001


def _response(name: str, parts: dict[str, Any]) -> Message:
    response: Message = getattr(pb, name)(**parts)
    return response


def _beside(change: OperatorChange, request: Any) -> list[OperatorChange]:  # noqa: ANN401
    """Give what is about to be set with a change."""
    if change.kind.scope is not Scope.AGENT or change.takes_back:
        return []
    return [replace(change, agent=each) for each in request.also]


def _check_expression(context: grpc.ServicerContext, change: OperatorChange) -> None:
    """Refuse an expression that holds for every agent."""
    kind, text = change.kind, getattr(change, change.kind.field)
    if kind.value is Value.EXPRESSION and text is not None and not text.strip(" ;"):
        mend = "is empty; write clauses, as in 'zone=a|b; ssd', or remove the rule"
        refuse(context, f"{kind.name}.{kind.field} = {text!r}: {mend}")

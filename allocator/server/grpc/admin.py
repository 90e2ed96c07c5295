"""The operators' service. Whatever it asks of the core is done on the core's thread.

Every kind of rule (`allocator.settable`) has two calls, of the same form: one lists its rules, the
other sets, replaces or takes back one of them. What changes nothing is a view
(`VIEWS`), but for answers in pieces: `Dump` and `Snapshot`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, partialmethod
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from allocator.core import OperatorChange, SetPolicy
from allocator.server.config import Config, Loaded
from allocator.server.engine import fair_shares
from allocator.server.engine.commands import Ask, reject, wait
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.change_requests import ChangeRequests, check_patterns
from allocator.server.operators.operators import Operators
from allocator.server.views import dump
from allocator.server.views.lists import LISTED_MAX
from allocator.server.views.views import VIEWS, RejectedError, Views, shown_settings
from allocator.settable import DRAIN, RULES, SHADOW, Scope, SettingKind, Value
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, settings_pb2
from allocator.wire import WireError
from allocator.wire.settings.operator_settings import (
    read_change,
    read_policy,
    write_policy,
    write_rule,
)
from allocator.wire.settings.overlay import read_overlay

# ruff: noqa: N802 - methods bear the names of the RPCs.


_T = TypeVar("_T")

CHANGES_MAX = 10_000
"""So many settings are changed at once at most."""


class RuleRpcs:
    """Lists and sets the rules; changes nothing where a request is wrong."""

    def __init__(self, loop: CoreLoop, changes: ChangeRequests) -> None:
        self._loop = loop
        self._changes = changes

    def _list(
        self,
        kind: SettingKind,
        _: Message,
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - as the kind says
        listed = self._ask(context, partial(self._listed, kind))
        return _response(f"List{kind.title}sResponse", {kind.plural: listed})

    def _set(
        self,
        kind: SettingKind,
        request: Any,  # noqa: ANN401 - as the kind says
        context: grpc.ServicerContext,
    ) -> Message:
        try:
            change = read_change(kind, request)
        except WireError as error:
            reject(context, str(error))
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

    def SetShadow(
        self, request: settings_pb2.SetShadowRequest, context: grpc.ServicerContext
    ) -> pb.SetShadowResponse:
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
        reject(context, f"{kind.name}.{kind.field} = {text!r}: {mend}")


_Service: Any = admin_pb2_grpc.AdminServiceServicer  # Types do not see the calls of rules.


class AdminServicer(RuleRpcs, _Service):  # type: ignore[misc]
    """Answers operators; changes nothing where a request is wrong."""

    def __init__(
        self, loop: CoreLoop, views: Views | None = None, changes: ChangeRequests | None = None
    ) -> None:
        """Speak for this loop.

        `views`: answer what changes nothing; by default those of a process whose loops are
            compiled.
        `changes`: makes the changes that are asked for; by default nothing of them is kept.
        """
        self._views = views or Views(loop, Operators(loop, Loaded(Config(), {})))
        super().__init__(loop, changes or ChangeRequests(loop, self._views.operators))

    def _view(
        self,
        view: Callable[[Views, Ask, Message], Message],
        request: Message,
        context: grpc.ServicerContext,
    ) -> Message:
        """Say what there is; ends the call where what was asked is wrong."""
        try:
            return view(self._views, self._asking(context), request)
        except RejectedError as error:
            reject(context, str(error))

    def ListDrains(
        self, request: pb.ListDrainsRequest, context: grpc.ServicerContext
    ) -> pb.ListDrainsResponse:
        rules = self._list(DRAIN, request, context)
        wanted = pb.ListAgentsRequest(state="drained", limit=LISTED_MAX)
        found = self._views.agents(self._asking(context), wanted)
        return pb.ListDrainsResponse(
            drains=rules.drains, agents=found.agents, left_out=found.left_out
        )

    def SetPolicy(
        self, request: pb.SetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.SetPolicyResponse:
        change = SetPolicy(read_policy(request.policy))
        policy, told = self._changes.change(context, change, self._policy, dry_run=request.dry_run)
        response = pb.SetPolicyResponse(policy=policy, change=told)
        if request.dry_run:
            copied = self._loop.apart.ask(self._asking(context), self._loop.copied)
            found, unaffected = fair_shares.compare_policies(
                self._loop, copied, read_policy(response.policy), change.spec
            )
            response.forecasts.extend(found)
            response.unaffected = unaffected
        return response

    def ResetSettings(
        self, request: pb.ResetSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ResetSettingsResponse:
        read, told = self._changes.reset(context, request.what, self._views.read_settings)
        return pb.ResetSettingsResponse(settings=shown_settings(read, every=False), change=told)

    def ApplySettings(
        self, request: pb.ApplySettingsRequest, context: grpc.ServicerContext
    ) -> pb.ApplySettingsResponse:
        if len(request.changes) > CHANGES_MAX:
            reject(context, f"changes: {len(request.changes)} at once; send {CHANGES_MAX} at most")
        try:
            overlay = read_overlay(settings_pb2.KeptSettings(changes=request.changes))
        except WireError as error:
            reject(context, str(error))
        changes = [kept.change for kept in overlay.changes.values()]
        for each in changes:
            _check_expression(context, each)
        rows, told = self._changes.apply(
            context, changes, prune=request.prune, dry_run=request.dry_run, force=request.force
        )
        return pb.ApplySettingsResponse(changes=rows, change=told)

    def Dump(
        self, request: pb.DumpRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.DumpResponse]:
        state = self._loop.apart.ask(self._asking(context), lambda: dump.read(self._loop))
        for piece in dump.pieces(state):
            yield pb.DumpResponse(json=piece)

    def Snapshot(
        self, request: pb.SnapshotRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SnapshotResponse]:
        written = self._loop.new_snapshot(self._asking(context), anonymise=request.anonymise)
        for piece in dump.in_pieces(written):
            yield pb.SnapshotResponse(data=piece)

    # On the core's thread.

    def _policy(self) -> settings_pb2.Policy:
        return write_policy(self._loop.allocator.settings.policy)

    # On the thread of the request.

    def _asking(self, context: grpc.ServicerContext) -> Ask:
        return partial(self._ask, context)


for _rpc, _answer in VIEWS.items():
    setattr(AdminServicer, _rpc, partialmethod(AdminServicer._view, _answer))  # noqa: SLF001

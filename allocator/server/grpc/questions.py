"""The operators' service of an observer: answers queries and tries changes.

Calls that change nothing are views (`VIEWS`), except `ListRules` and those with streamed answers:
`Dump` and `Snapshot`. Changes are only tried. The observer itself resets its account of usage.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial, partialmethod
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message

from allocator.core import Detached, PolicySpec, SetPolicy
from allocator.rule_kinds import BUDGET, DRAIN, SettingKind
from allocator.server.engine.commands import Ask, left_s, reject, wait
from allocator.server.following import fair_shares
from allocator.server.following.usage_store import UsageError
from allocator.server.grpc.forwarding import AFTER, TRIAL
from allocator.server.grpc.requests import (
    SETS,
    Request,
    beside,
    field_of,
    is_forced,
    listed,
    messages_of,
    read_changes,
    read_kind,
    read_request,
)
from allocator.server.operators.trials import Trials
from allocator.server.system.addresses import seen_from_afar
from allocator.server.system.disk import reason
from allocator.server.views import dump
from allocator.server.views.lists import LISTED_MAX
from allocator.server.views.rejected import RejectedError
from allocator.server.views.views import VIEWS, Views
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc
from allocator.wire.settings.operator_settings import read_policy

# ruff: noqa: N802 - methods bear the names of the RPCs.

_T = TypeVar("_T")

LONG_MAX = 2
"""Maximum number of concurrent long answers; each may need as much memory as the books."""

_LONG = frozenset({Views.usage})

_ENDED_EARLY = frozenset({Views.explain})

_RECORD = re.compile("[0-9]{1,18}")

_NO_CHANGES = "this is an observer, which changes nothing; ask the sidecar itself, or --dry-run"


class _Questions:
    def __init__(self, views: Views, trials: Trials) -> None:
        self._views = views
        self._trials = trials
        self._places = threading.BoundedSemaphore(LONG_MAX)

    def _view(
        self,
        view: Callable[..., Message],
        request: Message,
        context: grpc.ServicerContext,
    ) -> Message:
        ends_early = (context.is_active,) if view in _ENDED_EARLY else ()
        is_long = ends_early or view in _LONG or getattr(request, "fair", False)
        try:
            with self._place(context) if is_long else nullcontext():
                return view(self._views, self._asking(context), request, *ends_early)
        except RejectedError as error:
            reject(context, str(error))

    @contextmanager
    def _place(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Take a place for long answers; if none becomes free in time, end the call."""
        if not self._places.acquire(timeout=left_s(context)):
            text = f"{LONG_MAX} long queries are answered at a time; ask again"
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, text)
        try:
            yield
        finally:
            self._places.release()

    def ListRules(
        self, request: pb.ListRulesRequest, context: grpc.ServicerContext
    ) -> pb.ListRulesResponse:
        kind = read_kind(request, context)
        response = pb.ListRulesResponse(rules=self._ask(context, partial(self._listed, kind)))
        if kind is BUDGET:
            response.uses.extend(self._ask(context, self._views.budget_uses))
        if kind is DRAIN:
            wanted = pb.ListAgentsRequest(state="drained", limit=LISTED_MAX)
            found = self._views.agents(self._asking(context), wanted)
            response.agents.extend(found.agents)
            response.left_out = found.left_out
        return response

    def _try(self, method: str, request: Request, context: grpc.ServicerContext) -> Message:
        change = read_request(request, context)
        if not request.dry_run:
            self._refuse_change(request, context)
        told = self._trials.judge(
            context,
            self._asking(context),
            change,
            force=is_forced(request),
            beside=beside(change, request),
        )
        found = self._ask(context, partial(self._listed, change.kind))
        _, make = messages_of(method)
        response: Any = make(**{field_of(change.kind): found, "change": told})
        if isinstance(change, SetPolicy) and not _is_trial(context):
            with self._place(context):
                self._forecast(change.spec, response, context)
        return response

    def _forecast(
        self, spec: PolicySpec, response: pb.SetPolicyResponse, context: grpc.ServicerContext
    ) -> None:
        def copy() -> Detached:
            return self._views.books.allocator.copied()

        copied = self._ask(context, copy)
        now = read_policy(response.policy)
        found, unaffected = fair_shares.compare_policies(self._views.books, copied, now, spec)
        response.forecasts.extend(found)
        response.unaffected = unaffected

    def ApplySettings(
        self, request: pb.ApplySettingsRequest, context: grpc.ServicerContext
    ) -> pb.ApplySettingsResponse:
        changes = read_changes(request, context)
        if not request.dry_run:
            self._refuse_change(request, context)
        rows, told = self._trials.judge_all(
            context,
            self._asking(context),
            partial(self._views.planned, changes, prune=request.prune),
            force=request.force,
            now_ms=self._views.now_ms,
        )
        return pb.ApplySettingsResponse(changes=rows, change=told)

    def _refuse_change(self, _: Message, context: grpc.ServicerContext) -> NoReturn:
        source = self._views.books.source()
        if not source:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, _NO_CHANGES)
        host, said = source.rpartition(":")[0], self._views.books.settings
        where = "to the sidecar that it follows"
        if said.configuration:
            targets = self._views.operators.loaded.config.listen.targets
            where = f"there, to {' or '.join(seen_from_afar(each, host) for each in targets)}"
        text = f"this is an observer of {source}, which changes nothing: send changes {where}"
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{text}; --dry-run works here")

    ResetSettings = RevertSettings = ForgetUsage = _refuse_change

    def Dump(
        self, request: pb.DumpRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.DumpResponse]:
        with self._place(context):
            written = self._ask(context, lambda: dump.read(self._views.books))
            for piece in dump.pieces(written):
                yield pb.DumpResponse(json=piece)

    def Snapshot(
        self, request: pb.SnapshotRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SnapshotResponse]:
        with self._place(context):
            written = self._views.snapshot(self._asking(context), pseudonyms=request.pseudonyms)
            for piece in dump.pieces(written):
                yield pb.SnapshotResponse(data=piece)

    def ResetUsage(
        self, _: pb.ResetUsageRequest, context: grpc.ServicerContext
    ) -> pb.ResetUsageResponse:
        try:
            self._views.keeper.reset()
        except (OSError, UsageError) as error:
            context.abort(grpc.StatusCode.INTERNAL, f"usage cannot be reset: {reason(error)}")
        return pb.ResetUsageResponse()

    # On the thread that owns the books.

    def _listed(self, kind: SettingKind) -> Any:  # noqa: ANN401 - a policy, or rules
        return listed(kind, self._views.books.allocator.settings)

    # On the thread of the request.

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        given = str(dict(context.invocation_metadata()).get(AFTER, ""))
        # An observer of another machine answers even before it is connected, to report that.
        at_least = -1 if self._views.books.source() else 0
        after = int(given) if _RECORD.fullmatch(given) else at_least
        return wait(context, self._views.books.ask(work, after))

    def _asking(self, context: grpc.ServicerContext) -> Ask:
        return partial(self._ask, context)


def _is_trial(context: grpc.ServicerContext) -> bool:
    """Whether this dry run precedes the actual change, so that no forecast is needed."""
    return TRIAL in dict(context.invocation_metadata())


for _rpc, _answer in VIEWS.items():
    setattr(_Questions, _rpc, partialmethod(_Questions._view, _answer))  # noqa: SLF001
for _rpc in SETS:
    setattr(_Questions, _rpc, partialmethod(_Questions._try, _rpc))  # noqa: SLF001

_Service: Any = admin_pb2_grpc.AdminServiceServicer  # Types do not see the calls of rules.


class QuestionServicer(_Questions, _Service):  # type: ignore[misc]
    """Answers operators without changing anything."""

"""Changes requested by operators, made or rejected; each is audited.

This runs on the thread of the request; `operators` makes the change on the core's thread.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import grpc

from allocator.core import EventError, ForgetUsage, OperatorChange
from allocator.near import suggestion
from allocator.rule_kinds import KINDS
from allocator.server.engine.commands import left_s, reject, settled, wait
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.audit import AuditedChange
from allocator.server.operators.calendar import about_rule
from allocator.server.operators.operators import GivenUpError, Operators, Requester
from allocator.server.operators.trials import check, check_policy, refusal
from allocator.server.system.callers import caller_of
from allocator.v1 import admin_pb2 as apb
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.overlay import KeptChange

_T = TypeVar("_T")

BUSY = "the core is busy, and nothing has changed; ask again"


class ChangeRequests:
    """Makes the changes that operators request; one call per request."""

    def __init__(self, loop: CoreLoop, operators: Operators, sockets: tuple[str, ...] = ()) -> None:
        """Make changes to this loop's settings; `sockets`: paths of our Unix sockets."""
        self.operators = operators
        self._loop = loop
        self._sockets = sockets

    def change(
        self,
        context: grpc.ServicerContext,
        change: OperatorChange,
        listed: Callable[[], _T],
        judged: pb.Change,
        instead_of: OperatorChange | None = None,
    ) -> tuple[_T, pb.Change]:
        """Make a change; end the call if it is invalid.

        A change that was made must always be reported. So the core is asked for nothing more
        afterwards, which could time out.

        `listed`: reads the rest of the answer, right after the change; on the core's thread.
        `judged`: the result of the trial.
        `instead_of`: as in `Requester`.
        """
        audit = self.operators.audit
        audited = AuditedChange(self._who(context), change)
        told = pb.Change(warnings=judged.warnings, match=judged.match)
        try:
            settings = wait(context, self._loop.call(self.operators.copied))
            limits, try_policy = self._loop.session_limits, self.operators.try_policy
            check(change, settings, limits, try_policy, left_s(context))
            requester = Requester(audited.who, context.is_active, listed, instead_of)
            effect = settled(self.operators.set(change, requester), left_s(context))
        except EventError as error:
            audit.of_change(audited, result="refused", error=str(error))
            reject(context, refusal(change, error))
        except (TimeoutError, GivenUpError):
            audit.of_change(audited, result="refused", error=BUSY)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        if (rule := self.operators.holds_instead(change)) is not None:
            told.warnings.append(f"a scheduled rule holds instead now: {about_rule(rule)}")
        self._keep(context, told, effect.number)
        return effect.listed, told

    def apply(
        self,
        context: grpc.ServicerContext,
        changes: Sequence[KeptChange],
        judged: pb.Change,
        *,
        prune: bool,
    ) -> tuple[Sequence[apb.SettingChange], pb.Change]:
        """Make several changes, all or none, as `change` does."""
        who, told = self._who(context), pb.Change(warnings=judged.warnings)
        try_policy = self.operators.try_policy
        try:
            for each in changes:
                check_policy(each.change, try_policy, left_s(context))
            requester = Requester(who, context.is_active, lambda: None)
            made = self.operators.apply(changes, requester, prune=prune)
            effect, done = settled(made, left_s(context))
        except EventError as error:
            kind = error.field if error.field in KINDS else "settings"
            self.operators.audit.note(who, kind, "", result="refused", error=error.message)
            reject(context, error.message)
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        self._keep(context, told, effect.number)
        return done.rows, told

    def note_refusal(self, context: grpc.ServicerContext, what: str, error: str) -> None:
        kind = what if what in KINDS else "settings"
        self.operators.audit.note(self._who(context), kind, "", result="refused", error=error)

    def note_trial(self, context: grpc.ServicerContext, change: OperatorChange) -> None:
        before = wait(context, self._loop.call(lambda: self.operators.in_force.before(change)))
        audited = AuditedChange(self._who(context), change, before)
        self.operators.audit.of_change(audited, result="dry_run")

    def note_refused(
        self, context: grpc.ServicerContext, change: OperatorChange, error: str
    ) -> None:
        audited = AuditedChange(self._who(context), change)
        self.operators.audit.of_change(audited, result="refused", error=error)

    def reset(self, context: grpc.ServicerContext, what: Iterable[str]) -> pb.Change:
        kinds = list(what) or list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                near = suggestion(kind, KINDS)
                reject(context, f"what = {kind!r}: must be one of {', '.join(KINDS)}{near}")
        requester = Requester(self._who(context), context.is_active, lambda: None)
        try:
            effect = self.operators.reset(kinds, requester, left_s(context))
        except ValueError as error:
            reject(context, str(error))
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        told = pb.Change()
        self._keep(context, told, effect.number)
        return told

    def forget(self, context: grpc.ServicerContext, event: ForgetUsage) -> pb.Change:
        """Reset averages of use; end the call if there are none."""
        requester = Requester(self._who(context), context.is_active, lambda: None)
        try:
            settled(self.operators.forget(event, requester), left_s(context))
        except EventError as error:
            self.operators.audit.note(requester.by, "usage", "", result="refused", error=str(error))
            reject(context, str(error))
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        return self._lasting(self.operators.save_averages(left_s(context)))

    def _who(self, context: grpc.ServicerContext) -> str:
        return str(caller_of(context, self._sockets))

    def _keep(self, context: grpc.ServicerContext, told: pb.Change, number: int) -> None:
        told.MergeFrom(self._lasting(self.operators.await_kept(number, left_s(context))))

    def _lasting(self, lasts_not: str) -> pb.Change:
        failed = self.operators.keeps and bool(lasts_not)
        return pb.Change(lasts=not lasts_not, lasts_not=lasts_not, save_failed=failed)

"""Changes that operators ask for: tried out and compared with the cluster, then made, or refused.

What happens here is on the thread of the request; `operators` makes the change on the core's.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import grpc

from allocator.core import (
    EventError,
    OperatorChange,
    PolicySpec,
    SetPolicy,
    SetShadow,
)
from allocator.near import suggestion
from allocator.server.engine.commands import left_s, reject, settled, wait
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.audit import AuditedChange
from allocator.server.operators.operators import GivenUpError, Operators, Requester
from allocator.server.operators.rule_checks import Cluster, copy_cluster, doubts_of, match_of
from allocator.server.operators.setting_rows import scope_of, value_of
from allocator.server.system.callers import caller_of
from allocator.settable import KINDS
from allocator.v1 import admin_pb2
from allocator.v1 import settings_pb2 as pb

_T = TypeVar("_T")

NOT_JUDGED = "no agents are known yet, so whether this makes sense could not be judged"

BUSY = "the core is busy, and nothing has changed; ask again"


class ChangeRequests:
    """Makes the changes that operators ask for; each call is of one request."""

    def __init__(self, loop: CoreLoop, operators: Operators, sockets: tuple[str, ...] = ()) -> None:
        """Make changes to this loop's settings.

        `sockets` are the paths of our Unix sockets.
        """
        self.operators = operators
        self._loop = loop
        self._sockets = sockets

    def change(
        self,
        context: grpc.ServicerContext,
        change: OperatorChange,
        listed: Callable[[], _T],
        *,
        dry_run: bool = False,
        force: bool = False,
        beside: Sequence[OperatorChange] = (),
    ) -> tuple[_T, pb.Change]:
        """Make a change, or say what would be; ends the call where it is not possible.

        Whoever asked is always told of a change that was made. So the core is not asked anything
        more after it, for which the time could be up.

        `listed`: reads the rest of the answer, right after the change; on the core's thread.
        `force`: make the change though it is probably a mistake.
        `beside`: further changes that are about to be made with it.
        """
        cluster = self._on_the_core(context, lambda: copy_cluster(self._loop.allocator, change))
        audit = self.operators.audit
        audited = AuditedChange(str(caller_of(context, self._sockets)), change)
        try:
            self._check(context, cluster, change)
            told = _told(cluster, change, beside, force=force)
            told.dry_run = dry_run
            if dry_run:
                before = cluster.settings.before(change)
                audit.of_change(audited._replace(before=before), result="dry_run")
                told.scope, told.would_be = scope_of(change.key), value_of(change)
                told.is_now = value_of(before)
                return self._on_the_core(context, listed), told
            requester = Requester(audited.who, context.is_active, listed)
            effect = settled(self.operators.set(change, requester), left_s(context))
        except EventError as error:
            audit.of_change(audited, result="refused", error=str(error))
            reject(context, f"{_place(change)}{error.message}")
        except (TimeoutError, GivenUpError):
            audit.of_change(audited, result="refused", error=BUSY)
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        self._keep(context, told, effect.number)
        return effect.listed, told

    def reset(
        self, context: grpc.ServicerContext, what: Iterable[str], listed: Callable[[], _T]
    ) -> tuple[_T, pb.Change]:
        """Take back what operators set; `listed` as for `change`."""
        kinds = list(what) or list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                near = suggestion(kind, KINDS)
                reject(context, f"what = {kind!r}: must be one of {', '.join(KINDS)}{near}")
        requester = Requester(str(caller_of(context, self._sockets)), context.is_active, listed)
        try:
            effect = self.operators.reset(kinds, requester, left_s(context))
        except ValueError as error:
            reject(context, str(error))
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        told = pb.Change()
        self._keep(context, told, effect.number)
        return effect.listed, told

    def apply(
        self,
        context: grpc.ServicerContext,
        changes: Sequence[OperatorChange],
        *,
        prune: bool,
        dry_run: bool,
        force: bool,
    ) -> tuple[Sequence[admin_pb2.SettingChange], pb.Change]:
        """Make several changes, all or none, or say what would differ; as `change` does."""
        who = str(caller_of(context, self._sockets))
        plan = partial(self.operators.planned, changes, who, prune=prune)
        try:
            cluster = self._on_the_core(context, lambda: copy_cluster(self._loop.allocator))
            planned = settled(self._loop.call(plan), left_s(context))
            told = pb.Change(dry_run=dry_run)
            for each in planned.differing:
                self._try_policy(context, each)
                beside = [other for other in planned.differing if other is not each]
                about = f"{each.kind.name} {scope_of(each.key)}".rstrip()
                found = _told(cluster, each, beside, force=force, about=f"{about}: ")
                told.warnings.extend(f"{about}: {text}" for text in found.warnings)
            if dry_run or not planned.rows:
                return planned.rows, told
            requester = Requester(who, context.is_active, lambda: None)
            effect, done = settled(
                self.operators.apply(changes, requester, prune=prune), left_s(context)
            )
        except EventError as error:
            kind = error.field if error.field in KINDS else "settings"
            self.operators.audit.note(who, kind, "", result="refused", error=error.message)
            reject(context, error.message)
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        self._keep(context, told, effect.number)
        return done.rows, told

    def _check(
        self, context: grpc.ServicerContext, cluster: Cluster, change: OperatorChange
    ) -> None:
        """Find out whether a change is possible, before it is compared with the cluster."""
        if not isinstance(change, SetPolicy):
            self.operators.try_out(cluster.settings, change)
        self._try_policy(context, change)

    def _try_policy(self, context: grpc.ServicerContext, change: OperatorChange) -> None:
        spec = policy_in(change)
        if spec is not None:
            # A user's policy may take long when it is tried out: here, not on the core's thread.
            try:
                self.operators.try_policy(spec, left_s(context))
            except ValueError as error:
                raise EventError("value", change.kind.name, str(error)) from None

    def _keep(self, context: grpc.ServicerContext, told: pb.Change, number: int) -> None:
        told.lasts_not = self.operators.await_kept(number, left_s(context))
        told.lasts = not told.lasts_not
        told.save_failed = self.operators.keeps and not told.lasts

    def _on_the_core(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return wait(context, self._loop.call(work))


def _told(
    cluster: Cluster,
    change: OperatorChange,
    beside: Sequence[OperatorChange],
    *,
    force: bool,
    about: str = "",
) -> pb.Change:
    """Say what a change is about; raises EventError where it is a mistake, and not forced.

    `about`: stands before what is wrong with it.
    """
    told = pb.Change()
    if change.takes_back:
        return told
    after = cluster.settings.copied()
    if not isinstance(change, SetPolicy):
        for each in (*beside, change):
            after.put(each)
        told.match.CopyFrom(match_of(cluster, change, after))
    doubts = list(doubts_of(cluster, change, after, told.match))
    texts = [each.text for each in doubts]
    if not force and any(each.why in change.kind.refused for each in doubts):
        text = f"{about}{'; '.join(texts)}; nothing has changed, --force sets it all the same"
        raise EventError("value", change.kind.name, text)
    told.warnings.extend(texts)
    if not cluster.agents:
        told.warnings.append(NOT_JUDGED)
    return told


def check_patterns(
    context: grpc.ServicerContext, change: OperatorChange, *, everybody: bool
) -> None:
    """Refuse a rule for everybody that does not say so: a pattern may have been forgotten."""
    what, *patterns = change.key
    if not any(patterns) and not everybody:
        text = "give a pattern of roles (--role) or of names (--framework-name), or --all"
        reject(context, f"{what}: the rule would be for every framework; {text}")
    if any(patterns) and everybody:
        text = "leave it out, or --role and --framework-name"
        reject(context, f"{what}: --all does not go with a pattern; {text}")


def policy_in(change: OperatorChange) -> PolicySpec | None:
    """The policy that a change names."""
    return change.spec if isinstance(change, SetPolicy | SetShadow) else None


def _place(change: OperatorChange) -> str:
    kind = change.kind.name
    return f"{kind}." if policy_in(change) else f"{kind}: "

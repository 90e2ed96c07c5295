"""What operators ask to be changed: tried, put in force, kept, told, and written down."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import grpc

from allocator.core import (
    EventError,
    PolicySpec,
    SetConstraint,
    SetDemand,
    SetPolicy,
    SetShadow,
    SetWeight,
)
from allocator.server.answering import left_s, refuse, wait
from allocator.server.audit import Audit
from allocator.server.callers import caller_of
from allocator.server.core_loop import CoreLoop
from allocator.server.operators import Operators, standing
from allocator.server.rule_match import (
    Cluster,
    copy_cluster,
    match_of,
    settings_after,
    warnings_of,
)
from allocator.server.setting_rows import scope_of, value_of
from allocator.v1 import settings_pb2 as pb
from allocator.wire.kept import KINDS, key_of, takes_back
from allocator.wire.operator_settings import OperatorChange

_T = TypeVar("_T")


class Changes:
    """Makes the changes that operators ask for; each call is of one request."""

    def __init__(
        self, loop: CoreLoop, operators: Operators, audit: Audit, sockets: tuple[str, ...] = ()
    ) -> None:
        """Make changes to this loop's settings.

        Parameters
        ----------
        loop : CoreLoop
        operators : Operators
        audit : Audit
        sockets : tuple of str
            Paths of our Unix sockets.
        """
        self.operators = operators
        self._loop = loop
        self._audit = audit
        self._sockets = sockets

    def change(
        self, context: grpc.ServicerContext, change: OperatorChange, *, dry_run: bool = False
    ) -> pb.Change:
        """Make a change, or say what would be; ends the call where it is not possible."""
        cluster = self._ask(context, lambda: copy_cluster(self._loop.allocator))
        who = str(caller_of(context, self._sockets))
        try:
            self._check(context, cluster, change)
            told = self._told(cluster, change, dry_run=dry_run)
            if dry_run:
                before = standing(cluster.settings, change)
                self._note(who, change, before, result="dry_run")
                return told
            effect = wait(context, self.operators.set(change, who))
        except EventError as error:
            self._note(who, change, None, result="refused", error=str(error))
            refuse(context, f"{_place(change)}{error.message}")
        self._note(who, change, effect.before)
        self._keep(context, told, effect.number)
        return told

    def reset(self, context: grpc.ServicerContext, what: Iterable[str]) -> pb.Change:
        """Take back what operators set."""
        kinds = list(what) or list(KINDS)
        for kind in kinds:
            if kind not in KINDS:
                refuse(context, f"what = {kind!r}: must be one of {', '.join(KINDS)}")
        who = str(caller_of(context, self._sockets))
        changes = self._ask(context, lambda: dict(self.operators.overlay.changes))
        try:
            effect = self.operators.reset(kinds, left_s(context))
        except ValueError as error:
            refuse(context, str(error))
        except TimeoutError:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the core is busy; ask again")
        for key, kept in changes.items():
            if key[0] in kinds:
                self._audit.note(
                    who, key[0], scope_of(key), old=value_of(kept.change), new="as configured"
                )
        told = pb.Change()
        self._keep(context, told, effect.number)
        return told

    def _check(
        self, context: grpc.ServicerContext, cluster: Cluster, change: OperatorChange
    ) -> None:
        """Find out whether a change is possible, before it is compared with the cluster."""
        if not isinstance(change, SetPolicy):
            self.operators.try_out(cluster.settings, change)
        spec = policy_in(change)
        if spec is not None:
            # A user's policy may take long when it is tried out: here, not on the core's thread.
            try:
                self._loop.try_policy(spec, left_s(context))
            except ValueError as error:
                raise EventError("value", key_of(change)[0], str(error)) from None
            # Whoever has given up meanwhile was told that nothing changed.
            if not context.is_active():
                text = "the policy was tried out too slowly"
                context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, text)

    def _told(self, cluster: Cluster, change: OperatorChange, *, dry_run: bool) -> pb.Change:
        told = pb.Change(dry_run=dry_run)
        if isinstance(change, SetPolicy):
            told.warnings.extend(warnings_of(cluster, change, told.match))
        elif not takes_back(change):
            after = settings_after(cluster.settings, change)
            told.match.CopyFrom(match_of(cluster, change, after))
            told.warnings.extend(warnings_of(cluster, change, told.match))
        if not cluster.agents and not takes_back(change):
            told.warnings.append("no master is in session: there is nothing to compare this with")
        return told

    def _keep(self, context: grpc.ServicerContext, told: pb.Change, number: int) -> None:
        told.lasts_not = self.operators.await_kept(number, left_s(context))
        told.lasts = not told.lasts_not

    def _note(
        self,
        who: str,
        change: OperatorChange,
        before: OperatorChange | None,
        *,
        result: str = "done",
        **more: object,
    ) -> None:
        key = key_of(change)
        more = {"old": value_of(before), "new": value_of(change), **more}
        self._audit.note(who, key[0], scope_of(key), result=result, **more)

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return wait(context, self._loop.call(work))


def check_patterns(
    context: grpc.ServicerContext, rule: SetDemand | SetConstraint | SetWeight, *, everybody: bool
) -> None:
    """Refuse a rule for everybody that does not say so: a pattern may have been forgotten."""
    named = rule.role or rule.framework_name
    what = key_of(rule)[0]
    if not named and not everybody:
        text = "give a pattern of roles (--role) or of names (--framework-name), or --all"
        refuse(context, f"{what}: the rule would be for every framework; {text}")
    if named and everybody:
        text = "leave it out, or --role and --framework-name"
        refuse(context, f"{what}: --all does not go with a pattern; {text}")


def policy_in(change: OperatorChange) -> PolicySpec | None:
    """The policy that a change names."""
    return change.spec if isinstance(change, SetPolicy | SetShadow) else None


def _place(change: OperatorChange) -> str:
    kind = key_of(change)[0]
    return f"{kind}." if policy_in(change) else f"{kind}: "

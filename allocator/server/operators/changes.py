"""What operators ask to be changed: tried, put in force, kept, told, and written down."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import grpc

from allocator.core import EventError, OperatorChange, PolicySpec, SetPolicy, SetShadow
from allocator.near import suggestion
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.rpc_futures import left_s, refuse, settled, wait
from allocator.server.operators.audit import Changed
from allocator.server.operators.operators import Asked, GivenUpError, Operators
from allocator.server.operators.rule_match import (
    Cluster,
    copy_cluster,
    doubts_of,
    match_of,
)
from allocator.server.system.callers import caller_of
from allocator.settable import KINDS
from allocator.v1 import settings_pb2 as pb

_T = TypeVar("_T")

NOT_JUDGED = "no agents are known yet, so whether this makes sense could not be judged"

BUSY = "the core is busy, and nothing has changed; ask again"


class Changes:
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

        What was done is told: nothing that could come too late is asked for after it.

        `listed` reads on the core's thread what is answered beside it, of the moment after it.
        `force`: make it though it can't be meant. `beside`: what is about to be set with it.
        """
        cluster = self._ask(context, lambda: copy_cluster(self._loop.allocator))
        audit = self.operators.audit
        changed = Changed(str(caller_of(context, self._sockets)), change)
        try:
            self._check(context, cluster, change)
            told = _told(cluster, change, beside, force=force)
            told.dry_run = dry_run
            if dry_run:
                before = cluster.settings.before(change)
                audit.of_change(changed._replace(before=before), result="dry_run")
                return self._ask(context, listed), told
            asked = Asked(changed.who, context.is_active, listed)
            effect = settled(self.operators.set(change, asked), left_s(context))
        except EventError as error:
            audit.of_change(changed, result="refused", error=str(error))
            refuse(context, f"{_place(change)}{error.message}")
        except (TimeoutError, GivenUpError):
            audit.of_change(changed, result="refused", error=BUSY)
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
                refuse(context, f"what = {kind!r}: must be one of {', '.join(KINDS)}{near}")
        asked = Asked(str(caller_of(context, self._sockets)), context.is_active, listed)
        try:
            effect = self.operators.reset(kinds, asked, left_s(context))
        except ValueError as error:
            refuse(context, str(error))
        except (TimeoutError, GivenUpError):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, BUSY)
        told = pb.Change()
        self._keep(context, told, effect.number)
        return effect.listed, told

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
                raise EventError("value", change.kind.name, str(error)) from None

    def _keep(self, context: grpc.ServicerContext, told: pb.Change, number: int) -> None:
        told.lasts_not = self.operators.await_kept(number, left_s(context))
        told.lasts = not told.lasts_not

    def _ask(self, context: grpc.ServicerContext, work: Callable[[], _T]) -> _T:
        return wait(context, self._loop.call(work))


def _told(
    cluster: Cluster, change: OperatorChange, beside: Sequence[OperatorChange], *, force: bool
) -> pb.Change:
    """Say what a change is about; raises EventError where it can't be meant, and is not forced."""
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
        text = f"{'; '.join(texts)}; nothing has changed, --force sets it all the same"
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
        refuse(context, f"{what}: the rule would be for every framework; {text}")
    if any(patterns) and everybody:
        text = "leave it out, or --role and --framework-name"
        refuse(context, f"{what}: --all does not go with a pattern; {text}")


def policy_in(change: OperatorChange) -> PolicySpec | None:
    """The policy that a change names."""
    return change.spec if isinstance(change, SetPolicy | SetShadow) else None


def _place(change: OperatorChange) -> str:
    kind = change.kind.name
    return f"{kind}." if policy_in(change) else f"{kind}: "

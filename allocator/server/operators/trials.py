"""Trials of changes requested by operators, compared with the cluster; nothing is changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import grpc

from allocator import policies
from allocator.core import (
    Allocator,
    EventError,
    OperatorChange,
    PolicySpec,
    SessionLimits,
    SetPolicy,
    SetShadow,
    Settings,
)
from allocator.server.engine.commands import Ask, left_s, reject
from allocator.server.operators.applied import Applied
from allocator.server.operators.calendar import window_in_words
from allocator.server.operators.rule_checks import Cluster, doubts_of, match_of
from allocator.server.operators.setting_rows import scope_of, value_of
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb
from allocator.wire.settings.overlay import KeptChange, Key

NOT_JUDGED = "no agents are known yet, so whether this makes sense could not be judged"

TOO_LONG = "the changes cannot be judged in time; make fewer at once, or raise --timeout"

TryPolicy = Callable[[PolicySpec, float], None]
"""Tries a policy within a number of seconds. Raises ValueError."""


class Trials:
    """Reports the effects of changes, and rejects those that are probably mistakes."""

    def __init__(
        self, allocator: Callable[[], Allocator], limits: SessionLimits, try_policy: TryPolicy
    ) -> None:
        """Compare with this allocator's cluster, on the thread that owns it."""
        self._allocator = allocator
        self._limits = limits
        self._try_policy = try_policy

    def judge_all(
        self,
        context: grpc.ServicerContext,
        ask: Ask,
        planned: Callable[[], Applied],
        *,
        force: bool,
        now_ms: int,
    ) -> tuple[Sequence[pb.SettingChange], spb.Change]:
        """Do what `judge` does for several changes, all or none.

        `planned`: computes what would be in force; on the thread that owns the allocator.
        """
        told, matches = spb.Change(dry_run=True), dict[Key, spb.RuleMatch]()
        try:
            cluster, applied = ask(lambda: (Cluster(self._allocator()), planned()))
            for each in applied.differing:
                if not (within_s := left_s(context)):
                    context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, TOO_LONG)
                check_policy(each.change, self._try_policy, within_s)
                about = f"{each.change.kind.name} {scope_of(each.key)}".rstrip()
                after = applied.settings
                if each.schedule is not None:  # as if it were in force now
                    after = after.copied()
                    after.put(each.change)
                found = _told(cluster, each.change, after, force=force, about=f"{about}: ")
                told.warnings.extend(f"{about}: {text}" for text in found.warnings)
                matches[each.key] = found.match
        except EventError as error:
            reject(context, error.message)
        return list(_described(applied, matches, now_ms)), told

    def judge(
        self,
        context: grpc.ServicerContext,
        ask: Ask,
        change: OperatorChange,
        *,
        force: bool,
        beside: Sequence[OperatorChange] = (),
    ) -> spb.Change:
        """Report the effects of a change; end the call if it is invalid.

        `force`: apply the change even if it looks like a mistake.
        `beside`: further changes that will be made with it.
        """
        cluster = ask(lambda: Cluster(self._allocator(), change))
        try:
            check(change, cluster.settings, self._limits, self._try_policy, left_s(context))
            told = _told(cluster, change, _after(cluster, change, beside), force=force)
        except EventError as error:
            reject(context, refusal(change, error))
        before = cluster.settings.before(change)
        told.dry_run = True
        told.scope, told.would_be = scope_of(change.key), value_of(change)
        told.is_now = value_of(before)
        return told


def _described(
    applied: Applied, matches: Mapping[Key, spb.RuleMatch], now_ms: int
) -> Iterator[pb.SettingChange]:
    """Yield the differences, with what scheduled rules match now, and when they are in force."""
    for replaced, row in zip(applied.replaced, applied.rows, strict=True):
        kept = KeptChange(replaced.after, "", 0, replaced.schedule)
        if kept.schedule is not None and not kept.change.takes_back:
            row.coming = window_in_words(kept, now_ms)
            if (found := matches.get(kept.key)) is not None:
                row.match.CopyFrom(found)
        yield row


def check(
    change: OperatorChange,
    settings: Settings,
    limits: SessionLimits,
    try_policy: TryPolicy,
    within_s: float,
) -> None:
    """Raise an EventError if a change is invalid.

    Trying a user's policy may take long, so this runs on the thread of the request.
    """
    if not isinstance(change, SetPolicy):
        Allocator(policies.build, settings.copied(), limits).step(change)
    check_policy(change, try_policy, within_s)


def check_policy(change: OperatorChange, try_policy: TryPolicy, within_s: float) -> None:
    """Try the policy that a change names, if any. Raises EventError."""
    if (spec := _policy_in(change)) is not None:
        try:
            try_policy(spec, within_s)
        except ValueError as error:
            raise EventError("value", change.kind.name, str(error)) from None


def refusal(change: OperatorChange, error: EventError) -> str:
    kind = change.kind.name
    return f"{kind}.{error.message}" if _policy_in(change) else f"{kind}: {error.message}"


def _policy_in(change: OperatorChange) -> PolicySpec | None:
    return change.spec if isinstance(change, SetPolicy | SetShadow) else None


def _after(cluster: Cluster, change: OperatorChange, beside: Sequence[OperatorChange]) -> Settings:
    """Return the settings with a change, and with others that will be made with it."""
    after = cluster.settings.copied()
    if not isinstance(change, SetPolicy):
        for each in (*beside, change):
            after.put(each)
    return after


def _told(
    cluster: Cluster,
    change: OperatorChange,
    after: Settings,
    *,
    force: bool,
    about: str = "",
) -> spb.Change:
    """Report the effects of a change. Raises EventError if it is a mistake, and not forced.

    `after`: the settings including the change; `about`: prefix of the error.
    """
    told = spb.Change()
    if change.takes_back:
        return told
    if not isinstance(change, SetPolicy):
        told.match.CopyFrom(match_of(cluster, change, after))
    doubts = list(doubts_of(cluster, change, after, told.match))
    texts = [each.text for each in doubts]
    if not force and any(each.why in change.kind.refused for each in doubts):
        text = f"{about}{'; '.join(texts)}; nothing has changed, --force sets it nevertheless"
        raise EventError("value", change.kind.name, text)
    told.warnings.extend(texts)
    if not cluster.agents:
        told.warnings.append(NOT_JUDGED)
    return told

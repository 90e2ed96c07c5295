"""Several changes as one: the resulting settings, and the differences."""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from allocator import policies
from allocator.core import EventError, OperatorChange, SessionLimits, Settings, taken_back
from allocator.rule_kinds import POLICY, SHADOW
from allocator.server.operators.setting_rows import scope_of, value_of
from allocator.v1 import admin_pb2 as pb
from allocator.wire.settings.history import Replaced
from allocator.wire.settings.overlay import KeptChange, Key, Overlay, configured


class Applied(NamedTuple):
    """The settings with all changes.

    overlay: operators' settings from then on.
    differing: the changes that set something otherwise than it is.
    replaced: everything that differs, also what is taken back.
    """

    settings: Settings
    overlay: Overlay
    differing: tuple[OperatorChange, ...]
    replaced: tuple[Replaced, ...]

    @property
    def rows(self) -> list[pb.SettingChange]:
        """The difference as text."""
        return list(map(in_words, self.replaced))


def applied(
    changes: Sequence[OperatorChange],
    now: Settings,
    base: Settings,
    overlay: Overlay,
    limits: SessionLimits,
    *,
    by: str,
    prune: bool,
) -> Applied:
    """Compute the resulting settings; nothing is changed.

    now, base: the settings in force, and those of the configuration.
    by: who makes the changes.
    prune: take back what operators set and no change is about.
    Raises EventError for the first invalid change.
    """
    differing = tuple(each for each in changes if value_of(now.before(each)) != value_of(each))
    new = overlay.without(())
    if prune:
        wanted = {each.key for each in changes}
        new.changes = {key: kept for key, kept in new.changes.items() if key in wanted}
    at_ms, known = int(time.time() * 1000), configured(base)
    for each in differing:
        if value_of(base.before(each)) == value_of(each):
            new.changes.pop(each.key, None)  # as configured
        else:
            new.note(KeptChange(each, by, at_ms), known)
    settings, refused = new.over(base, limits, policies.build)
    for key, why in refused.items():
        scope = f" {scope_of(key)}" if scope_of(key) else ""
        raise EventError("value", key[0], f"{key[0]}{scope}: {why}")
    return Applied(settings, new, differing, tuple(differences(now, settings)))


def differences(before: Settings, after: Settings) -> Iterator[Replaced]:
    """The differences between two settings."""
    old, new = _standing(before), _standing(after)
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        # BitWords cost more than a comparison, and most stays as it was.
        if was != now and value_of(was) != value_of(now):
            yield Replaced(was, now or taken_back(old[key]))


def in_words(replaced: Replaced) -> pb.SettingChange:
    key = replaced.after.key
    before, after = value_of(replaced.before), value_of(replaced.after)
    return pb.SettingChange(key=key[0], scope=scope_of(key), before=before, after=after)


def _standing(settings: Settings) -> dict[Key, OperatorChange]:
    standing = (*settings.standing(POLICY), *settings.standing(SHADOW), *settings.rules())
    return {each.key: each for each in standing}

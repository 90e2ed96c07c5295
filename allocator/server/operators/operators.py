"""Operators' settings: activation, tracking, saving and reloading.

The settings in force are those of the configuration, overridden by operators' settings (the
*overlay*, see `allocator.wire.settings.overlay`) and by the scheduled rules in force. All are
changed on the core's thread only, so they always agree.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import structlog

from allocator import policies
from allocator.core import (
    Allocator,
    EventError,
    ForgetUsage,
    OperatorChange,
    PolicySpec,
    SessionLimits,
    SetDrain,
    Settings,
)
from allocator.server.config import Loaded
from allocator.server.engine.commands import settled
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.applied import Applied, Base, applied, differences, steps
from allocator.server.operators.audit import Audit
from allocator.server.operators.calendar import (
    CALENDAR,
    CalendarThread,
    Clock,
    about_rule,
    for_core,
    window,
)
from allocator.server.operators.setting_rows import scope_of, value_of
from allocator.server.operators.state_store import StateStore
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.history import History, Replaced, write_history
from allocator.wire.settings.overlay import KeptChange, Key, Overlay, configured, write_overlay

CONFIGURATION = "configuration"

NO_DIRECTORY = "no state directory is configured (state.directory)"

ANSWER_S = 60.0
"""Maximum time to put another configuration in force."""

_log = structlog.get_logger()


class GivenUpError(RuntimeError):
    """The caller stopped waiting before the change began, so nothing has changed."""


class Effect(NamedTuple):
    """The outcome of a change."""

    number: int
    """The change survives a restart once this state is saved, see `StateStore.await_kept`."""
    settings: Settings
    """A copy of the settings in force, right after the change."""


class Requester(NamedTuple):
    """The author of a change."""

    by: str
    waits: Callable[[], bool]
    """Whether the author still waits; otherwise the change does not begin."""
    instead_of: OperatorChange | None = None
    """The setting that the change must replace, or it is refused; None: any."""


class Operators:
    """Operators' settings in one process.

    On the core's thread only: `loaded`, the configuration; `base`, its settings for the core;
    `overlay`, operators' settings; `holding`, the core's scheduled rules (`calendar.for_core`).

    `history`: recent changes, except those by schedules.
    `reloads`: number of reloads of the configuration, by result (``done``, ``refused``).
    `changes`: number of changes of any of these.
    `audit`: used by the thread that makes the changes.
    """

    def __init__(
        self,
        loop: CoreLoop,
        loaded: Loaded,
        overlay: Overlay | None = None,
        state_store: StateStore | None = None,
        *,
        history: History | None = None,
        audit: Audit | None = None,
        problem: str = "",
        try_policy: Callable[[PolicySpec, float], None] = lambda _spec, _within_s: None,
        clock: Clock | None = None,
        holding: tuple[KeptChange, ...] = (),
    ) -> None:
        """Begin; the core already has the settings of `loaded`, under `overlay` and `holding`.

        `state_store`: None: changes end with the process.
        `problem`: why there is no state store, if one was configured.
        `try_policy`: tries a policy that is about to be set, within a number of seconds; raises
            ValueError. Called on the caller's thread, so that the core does not wait for it.
        """
        self.try_policy = try_policy
        self.loaded = loaded
        self.base = Base.of(loaded.config)
        self.overlay = overlay or Overlay()
        self.clock = clock or Clock()
        self.holding = holding
        self.scheduled = self._scheduled()
        self.calendar = CalendarThread(
            self.clock,
            lambda: self.scheduled,
            self._is_due,
            lambda: self._loop.call(self._follow_calendar),
        )
        self.history = history or History()
        self.reloads: Counter[str] = Counter()
        self.audit = audit or Audit()
        self._problem = problem
        self.changes = 0
        self._loop = loop
        self._state_store = state_store

    @property
    def in_force(self) -> Settings:
        """The settings in force, including the overlay and the calendar's."""
        return self._loop.allocator.settings

    def holds_instead(self, change: OperatorChange) -> KeptChange | None:
        """Return the scheduled rule that is in force instead of a setting; on any thread."""
        for each in reversed(self.holding):
            announced = isinstance(each.change, SetDrain) and each.change.from_ms > 0
            if each.change.key == change.key and not announced:
                return each
        return None

    @property
    def directory(self) -> str:
        return str(self._state_store.directory.path) if self._state_store else ""

    @property
    def problem(self) -> str:
        """Why settings cannot be saved; empty if they can."""
        return self._state_store.problem if self._state_store else self._problem

    @property
    def state_errors(self) -> int:
        return self._state_store.errors if self._state_store else 0

    # Any thread.

    def set(self, change: OperatorChange, requester: Requester) -> Future[Effect]:
        """Put a change in force, and record it in the overlay.

        The future raises EventError if that is not possible, GivenUpError if the caller no longer
        waits.
        """
        return self._loop.call(partial(self._set, change, requester))

    def forget(self, event: ForgetUsage, requester: Requester) -> Future[None]:
        """Reset averages of use; the future is as for `set`."""
        return self._loop.call(partial(self._forget, event, requester))

    def reset(self, kinds: Iterable[str], requester: Requester, within_s: float) -> Effect:
        """Remove operators' settings of these kinds, so that the configuration applies again.

        Raises EventError, ValueError, TimeoutError or GivenUpError; then nothing has changed.
        """
        return self._replace(lambda: self.loaded, frozenset(kinds), requester, within_s)

    def planned(self, changes: Sequence[KeptChange], by: str, *, prune: bool) -> Applied:
        """Compute the settings after several changes; on the core's thread. Raises EventError."""
        settings, limits = self._loop.allocator.settings, self._loop.session_limits
        return applied(
            changes,
            settings,
            self.base,
            self.overlay,
            limits,
            now_ms=self.clock.now_ms(),
            by=by,
            prune=prune,
        )

    def apply(
        self, changes: Sequence[KeptChange], requester: Requester, *, prune: bool
    ) -> Future[tuple[Effect, Applied]]:
        """Make several changes at once, and record the differences; the future is as for `set`."""
        return self._loop.call(partial(self._apply, changes, requester, prune=prune))

    def replace_config(self, loaded: Loaded, within_s: float = ANSWER_S) -> Effect:
        """Put another configuration in force, below operators' settings. Raises as `reset` does."""
        requester = Requester(CONFIGURATION, lambda: True)
        return self._replace(lambda: loaded, frozenset(), requester, within_s)

    def kept_over(self, keys: Iterable[str]) -> list[str]:
        """Return those keys of the configuration that operators override."""
        changes = list(self.overlay.changes)
        kinds = {key[0] for key in changes}
        return [key for key in keys if key.partition(".")[0] in kinds]

    def _replace(
        self,
        loaded: Callable[[], Loaded],
        kinds: frozenset[str],
        requester: Requester,
        within_s: float,
    ) -> Effect:
        def after() -> tuple[Loaded, Overlay, Base, InForce]:
            new, overlay = loaded(), self.overlay.without(kinds)
            base, now_ms = Base.of(new.config), self.clock.now_ms()
            return new, overlay, base, in_force(base, overlay, self._loop.session_limits, now_ms)

        def replace() -> Effect:
            _check_waits(requester)
            # An operator may have changed something meanwhile, so compute it again.
            new, overlay, base, found = after()
            content = write_overlay(overlay)
            replaced = tuple(differences(self._loop.allocator.settings, found.settings))
            history = self._with_change(replaced, requester)
            gone = [key for key in self.overlay.changes if key[0] in kinds]
            self._loop.step(found.settings)
            # It counts from here on: nothing that follows may fail.
            before, self.history = self.overlay, history
            self.loaded, self.base = new, base
            self._take(overlay, found.holding)
            for key in gone:
                old = value_of(before.changes[key].change)
                self.audit.note(requester.by, key[0], scope_of(key), old=old, new="as configured")
            return self._effect(content)

        begun_s = time.monotonic()
        wanted = settled(self._loop.call(after), within_s)[3].settings
        # Try users' policies here, so that the core does not wait for them.
        for spec in filter(None, (wanted.policy, wanted.shadow)):
            self.try_policy(spec, within_s)
        left_s = max(within_s - (time.monotonic() - begun_s), 0.0)
        return settled(self._loop.call(replace), left_s)

    @property
    def keeps(self) -> bool:
        return self._state_store is not None

    def await_kept(self, number: int, within_s: float) -> str:
        """Wait until an `Effect` is saved; return why it is not, or nothing."""
        if self._state_store is None:
            return NO_DIRECTORY
        return self._state_store.await_kept(number, within_s)

    def save_averages(self, within_s: float) -> str:
        """Save averages of use, with all that was learnt; return why not, or nothing."""
        return self._state_store.save_learnt(within_s) if self._state_store else NO_DIRECTORY

    # The core's thread.

    def copied(self) -> Settings:
        """Copy the settings in force without the calendar's, as operators change them."""
        return self._standing().copied()

    def _standing(self) -> Settings:
        """The settings in force without the calendar's."""
        if not self.holding:
            return self.in_force
        limits = self._loop.session_limits
        return self.overlay.over(self.base.settings, limits, policies.build)[0]

    def _set(self, change: OperatorChange, requester: Requester) -> Effect:
        _check_waits(requester)
        standing = self._standing()
        before = standing.before(change)
        _check_unchanged(before, requester.instead_of)
        overlay = self.overlay.without(())
        overlay.note(
            KeptChange(change, requester.by, int(time.time() * 1000)),
            configured(self.base.settings),
        )
        content = write_overlay(overlay)
        differs = value_of(before) != value_of(change)
        history = self._with_change([Replaced(before, change)] if differs else [], requester)
        if self.holding:  # the calendar's rules still override it
            limits = self._loop.session_limits
            Allocator(policies.build, standing.copied(), limits).step(change)
            self._reach(overlay, self.holding)
        else:
            self._loop.step(change)
        # It counts from here on: nothing that follows may fail.
        self.history = history
        self._take(overlay, self.holding)
        self.audit.of_change(requester.by, change, before)
        return self._effect(content)

    def _forget(self, event: ForgetUsage, requester: Requester) -> None:
        _check_waits(requester)
        self._loop.step(event)
        scope = [("role", event.role), ("framework", event.framework_id)]
        said = ", ".join(f"{name} {each}" for name, each in scope if each)
        self.audit.note(requester.by, "usage", said, new="forgotten")

    def _apply(
        self, changes: Sequence[KeptChange], requester: Requester, *, prune: bool
    ) -> tuple[Effect, Applied]:
        _check_waits(requester)
        found = self.planned(changes, requester.by, prune=prune)
        content = write_overlay(found.overlay)
        history = self._with_change(found.replaced, requester)
        self._loop.step(found.settings)
        # It counts from here on: nothing that follows may fail.
        self.history = history
        self._take(found.overlay, found.holding)
        for row in found.rows:
            more = {"when": row.when} if row.when else {}
            self.audit.note(requester.by, row.key, row.scope, old=row.before, new=row.after, **more)
        return self._effect(content), found

    def _take(self, overlay: Overlay, holding: tuple[KeptChange, ...]) -> None:
        self.overlay, self.holding = overlay, holding
        self.scheduled = self._scheduled()
        self.changes += 1
        self.calendar.look()

    def _scheduled(self) -> tuple[KeptChange, ...]:
        return tuple(self.overlay.scheduled(self.base.scheduled).values())

    def _reach(self, overlay: Overlay, holding: Iterable[KeptChange]) -> tuple[Replaced, ...]:
        """Put these settings of operators and the calendar in force; return the differences."""
        limits, now = self._loop.session_limits, self.in_force
        wanted, refused = overlay.over(self.base.settings, limits, policies.build, holding)
        _tell_of_refused(refused)
        replaced = tuple(differences(now, wanted))
        for each in steps(now, wanted):
            self._loop.step(each)
        return replaced

    def _is_due(self, now_ms: int) -> bool:
        """Whether the calendar requires a change; on any thread."""
        rules = self.scheduled
        return for_core(rules, now_ms) != self.holding or bool(self._over(now_ms))

    def _over(self, now_ms: int) -> list[KeptChange]:
        mine = self.overlay.changes
        over = (each for each in self.scheduled if window(each, now_ms) is None)
        return [each for each in over if each.key in mine]

    def _follow_calendar(self) -> None:
        """Begin and end scheduled rules that are due; remove those that are over."""
        now_ms = self.clock.now_ms()
        found, over = for_core(self.scheduled, now_ms), self._over(now_ms)
        replaced: tuple[Replaced, ...] = ()
        if found != self.holding:
            replaced = self._reach(self.overlay, found)
        overlay = self.overlay.without(())
        for each in over:
            del overlay.changes[each.key]
        self._take(overlay, found)
        for before, after, _ in replaced:
            self.audit.of_change(CALENDAR, after, before)
        for rule in over:
            self.audit.note(CALENDAR, rule.key[0], scope_of(rule.key), over=about_rule(rule))
        if over:
            self._keep(write_overlay(overlay))

    def _with_change(self, replaced: Sequence[Replaced], requester: Requester) -> History:
        return self.history.with_change(replaced, requester.by, int(time.time() * 1000))

    def _effect(self, content: pb.KeptSettings) -> Effect:
        return Effect(self._keep(content), self.in_force.copied())

    def _keep(self, content: pb.KeptSettings) -> int:
        if self._state_store is None:
            return 0
        return self._state_store.settings_changed(content, write_history(self.history))


def _check_waits(requester: Requester) -> None:
    if not requester.waits():
        raise GivenUpError


def _check_unchanged(before: OperatorChange | None, expected: OperatorChange | None) -> None:
    if expected is not None and value_of(before) != value_of(expected):
        text = f"is now {value_of(before) or 'not set'}: changed meanwhile; try again"
        raise EventError("value", expected.kind.name, text)


class InForce(NamedTuple):
    """The settings in force, and the core's scheduled rules."""

    settings: Settings
    holding: tuple[KeptChange, ...]


def in_force(base: Base, overlay: Overlay, limits: SessionLimits, now_ms: int) -> InForce:
    """Override settings with operators' and the calendar's; removes invalid ones of the overlay."""
    held = for_core(overlay.scheduled(base.scheduled).values(), now_ms)
    settings, refused = overlay.over(base.settings, limits, policies.build, held)
    for key in refused:
        overlay.changes.pop(key, None)
    _tell_of_refused(refused)
    return InForce(settings, tuple(each for each in held if each.key not in refused))


def _tell_of_refused(refused: dict[Key, str]) -> None:
    for key, why in refused.items():
        _log.error(
            "an operator's setting is no longer valid and was left out",
            setting=" ".join(key),
            error=why,
        )

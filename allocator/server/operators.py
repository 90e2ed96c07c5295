"""What operators set: put in force, noted as theirs, kept on the disk, and read again.

The settings in force are those of the configuration with what operators set over them
(`allocator.wire.kept`). Both are changed on the core's thread only, so they never part.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import structlog

from allocator import policies
from allocator.core import Allocator, Limits, SetPolicy, SetShadow, Settings
from allocator.server.config import Loaded
from allocator.server.core_loop import CoreLoop
from allocator.server.keeper import Keeper
from allocator.wire.kept import Kept, Key, Overlay, configured, key_of, rules, write_overlay
from allocator.wire.operator_settings import OperatorChange

ANSWER_S = 60.0
"""How long another configuration may take to be taken over."""

_log = structlog.get_logger()


class Effect(NamedTuple):
    """What became of a change.

    Attributes
    ----------
    number : int
        Of the state that has to be kept for it to last.
    before : object or None
        What stood in its place.
    """

    number: int
    before: OperatorChange | None


class Operators:
    """The settings of operators, of one process.

    Attributes
    ----------
    loaded : Loaded
        The configuration.
    base : Settings
        What it says to the core.
    overlay : Overlay
        What operators set over it. All of them are for the core's thread alone.
    reloads : Counter
        How often the configuration was read again: ``done``, ``refused``.
    """

    def __init__(
        self,
        loop: CoreLoop,
        loaded: Loaded,
        overlay: Overlay | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """Begin.

        Parameters
        ----------
        loop : CoreLoop
            Which decides by the configuration's settings with `overlay` over them.
        loaded : Loaded
        overlay : Overlay
        keeper : Keeper
            None: nothing outlives the process.
        """
        self.loaded = loaded
        self.base = loaded.config.settings()
        self.overlay = overlay or Overlay()
        self.reloads: Counter[str] = Counter()
        self._loop = loop
        self._keeper = keeper

    @property
    def directory(self) -> str:
        """Where what operators set is kept; empty: nowhere."""
        return str(self._keeper.directory.path) if self._keeper else ""

    @property
    def problem(self) -> str:
        """Why it cannot be kept; empty where it can."""
        return self._keeper.problem if self._keeper else ""

    @property
    def state_errors(self) -> int:
        """Times that it could not be kept."""
        return self._keeper.errors if self._keeper else 0

    # Any thread.

    def set(self, change: OperatorChange, by: str) -> Future[Effect]:
        """Put a change in force; the future raises an `EventError` where that is not possible."""
        return self._loop.call(partial(self._set, change, by))

    def reset(self, kinds: Iterable[str], within_s: float) -> Effect:
        """Take back what operators set, of these kinds: the configuration counts again.

        Raises
        ------
        EventError, ValueError
            Where the configuration is not possible; then nothing has changed.
        TimeoutError
            Where the core is busy.
        """
        return self._replace(lambda: self.loaded, frozenset(kinds), within_s)

    def replace_config(self, loaded: Loaded, within_s: float = ANSWER_S) -> Effect:
        """Put another configuration in force; what operators set stays over it.

        Raises
        ------
        EventError, ValueError, TimeoutError
            As for `reset`.
        """
        return self._replace(lambda: loaded, frozenset(), within_s)

    def kept_over(self, keys: Iterable[str]) -> list[str]:
        """Which keys of the configuration do not count because an operator set them."""
        changes = list(self.overlay.changes)
        kinds = {key[0] for key in changes}
        return [key for key in keys if key.partition(".")[0] in kinds]

    def _replace(
        self, loaded: Callable[[], Loaded], kinds: frozenset[str], within_s: float
    ) -> Effect:
        def after() -> tuple[Loaded, Overlay, Settings]:
            new, overlay = loaded(), self.overlay.without(kinds)
            settings = settings_in_force(new.config.settings(), overlay, self._loop.limits)
            return new, overlay, settings

        def replace() -> Effect:
            # Worked out anew: an operator may have changed something in between.
            new, overlay, settings = after()
            self._loop.operate_now(settings)
            self.loaded, self.base, self.overlay = new, new.config.settings(), overlay
            return Effect(self._keep(), None)

        # Users' policies are tried out here, so that the core does not wait for them.
        wanted = self._loop.call(after).result(within_s)[2]
        for spec in filter(None, (wanted.policy, wanted.shadow)):
            self._loop.try_policy(spec, within_s)
        return self._loop.call(replace).result(within_s)

    def try_out(self, settings: Settings, change: OperatorChange) -> None:
        """Find out whether a change of settings is possible; nothing is changed.

        Raises
        ------
        EventError
            Where it is not.
        """
        Allocator(policies.build, settings.copied(), self._loop.limits).step(change)

    def await_kept(self, number: int, within_s: float) -> str:
        """Wait until what an `Effect` numbered is kept; says why it is not, empty where it is."""
        if self._keeper is None:
            return "no state directory is configured (state.directory)"
        return self._keeper.await_kept(number, within_s)

    # The core's thread.

    def _set(self, change: OperatorChange, by: str) -> Effect:
        before = standing(self._loop.allocator.settings, change)
        self._loop.operate_now(change)
        self.overlay.note(Kept(change, by, int(time.time() * 1000)), configured(self.base))
        return Effect(self._keep(), before)

    def _keep(self) -> int:
        return self._keeper.settings_changed(write_overlay(self.overlay)) if self._keeper else 0


def standing(settings: Settings, change: OperatorChange) -> OperatorChange | None:
    """What stands where a change goes."""
    if isinstance(change, SetPolicy):
        return SetPolicy(settings.policy)
    if isinstance(change, SetShadow):
        return SetShadow(settings.shadow)
    return rules(settings).get(key_of(change))


def settings_in_force(base: Settings, overlay: Overlay, limits: Limits) -> Settings:
    """Put what operators set over settings; what is not possible any more is taken out of it."""
    settings, refused = overlay.over(base, limits, policies.build)
    for key in refused:
        del overlay.changes[key]
    _tell_of_refused(refused)
    return settings


def _tell_of_refused(refused: dict[Key, str]) -> None:
    for key, why in refused.items():
        _log.error(
            "what an operator set is not possible any more and was left out",
            setting=" ".join(key),
            error=why,
        )

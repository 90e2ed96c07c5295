"""What operators set: put in force, noted as theirs, kept on the disk, and read again.

The settings in force are those of the configuration, with what operators set (the *overlay*) over
them, see `allocator.wire.settings.overlay`. Both are changed on the core's thread only,
so they always agree.

The audit log says who changed what, with the old value and the new one. Its lines have ``"logger":
"mesos_allocator.audit"``, and are written whatever ``log.level`` says.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import grpc
import structlog

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
from allocator.near import suggestion
from allocator.server.config import Loaded
from allocator.server.engine.commands import left_s, reject, settled, wait
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.setting_rows import (
    Cluster,
    copy_cluster,
    doubts_of,
    match_of,
    scope_of,
    value_of,
)
from allocator.server.operators.state_store import StateStore
from allocator.server.system.callers import caller_of
from allocator.settable import KINDS
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.overlay import KeptChange, Key, Overlay, configured, write_overlay

LOGGER = "mesos_allocator.audit"

RESULTS = ("done", "refused", "dry_run")

_audit_log = structlog.wrap_logger(
    None, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
)


class AuditedChange(NamedTuple):
    """A change that somebody asked for."""

    who: str
    change: OperatorChange
    before: OperatorChange | None = None
    """What stood in its place."""


class Audit:
    """Writes the lines, and counts them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def counts(self) -> dict[tuple[str, str], int]:
        """How many changes of each kind had each result."""
        with self._lock:
            return dict(self._counts)

    def of_change(self, audited: AuditedChange, *, result: str = "done", **more: object) -> None:
        """Write the line of a change; `more` as for `note`."""
        key = audited.change.key
        more = {"old": value_of(audited.before), "new": value_of(audited.change), **more}
        self.note(audited.who, key[0], scope_of(key), result=result, **more)

    def note(
        self, who: str, setting: str, scope: str, *, result: str = "done", **more: object
    ) -> None:
        """Write one line. Where that fails the change counts all the same, so nothing is raised.

        `setting` is such as ``demand``, `scope` what the rule is for, `result` one of `RESULTS`;
        `more` is what else is to be said: ``old``, ``new``, ``error``.
        """
        with self._lock:
            self._counts[setting, result] += 1
        said = {"who": who, "setting": setting, "scope": scope, "result": result, **more}
        with suppress(OSError, ValueError):  # the log's disk is full, or nobody reads it any more
            _audit_log.info("setting", logger=LOGGER, **said)


_T = TypeVar("_T")

NOT_JUDGED = "no agents are known yet, so whether this makes sense could not be judged"

BUSY = "the core is busy, and nothing has changed; ask again"


class ChangeRequests:
    """Makes the changes that operators ask for; each call is of one request."""

    def __init__(
        self, loop: CoreLoop, operators: "Operators", sockets: tuple[str, ...] = ()
    ) -> None:
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
        cluster = self._ask(context, lambda: copy_cluster(self._loop.allocator, change))
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
                return self._ask(context, listed), told
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


ANSWER_S = 60.0
"""How long another configuration may take to be taken over."""

_log = structlog.get_logger()


class GivenUpError(RuntimeError):
    """Whoever asked for a change had stopped waiting before it began: nothing has changed."""


class Effect(NamedTuple, Generic[_T]):
    """What became of a change."""

    number: int
    """The change lasts once the state of this number is kept, see `StateStore.await_kept`."""
    listed: _T
    """What `listed` read right after the change."""


class Requester(NamedTuple, Generic[_T]):
    """Who wants a change, and what they want to hear of it."""

    by: str
    """Who it is, for the audit log."""
    waits: Callable[[], bool]
    """Whether they still wait: a change that has not begun when they are gone never does."""
    listed: Callable[[], _T]
    """Reads what they are told of the moment after the change; on the core's thread."""


class Operators:
    """The settings of operators, of one process.

    `loaded` is the configuration, `base` what it says to the core, `overlay` what operators set
    over it: all for the core's thread alone. `reloads` counts how often the configuration was read
    again (``done``, ``refused``). `audit` is where changes are written down, by the thread that
    makes them.
    """

    def __init__(
        self,
        loop: CoreLoop,
        loaded: Loaded,
        overlay: Overlay | None = None,
        state_store: StateStore | None = None,
        *,
        audit: Audit | None = None,
        problem: str = "",
    ) -> None:
        """Begin.

        The loop decides by the configuration's settings with `overlay` over them. Without a
        `state_store` nothing outlives the process; `problem` says why there is none, where one was
        wanted.
        """
        self.loaded = loaded
        self.base = loaded.config.settings()
        self.overlay = overlay or Overlay()
        self.reloads: Counter[str] = Counter()
        self.audit = audit or Audit()
        self._problem = problem
        self._loop = loop
        self._state_store = state_store

    @property
    def directory(self) -> str:
        """Where what operators set is kept; empty: nowhere."""
        return str(self._state_store.directory.path) if self._state_store else ""

    @property
    def problem(self) -> str:
        """Why it cannot be kept; empty where it can."""
        return self._state_store.problem if self._state_store else self._problem

    @property
    def state_errors(self) -> int:
        """Times that it could not be kept."""
        return self._state_store.errors if self._state_store else 0

    # Any thread.

    def set(self, change: OperatorChange, requester: Requester[_T]) -> Future[Effect[_T]]:
        """Put a change in force, and write down that it is.

        The future raises an `EventError` where that is not possible, and a `GivenUpError` where
        nobody waits any more.
        """
        return self._loop.call(partial(self._set, change, requester))

    def reset(self, kinds: Iterable[str], requester: Requester[_T], within_s: float) -> Effect[_T]:
        """Take back what operators set, of these kinds: the configuration counts again.

        Raises EventError or ValueError where the configuration is not possible, TimeoutError or
        GivenUpError where the core is busy, or nobody waits any more. In any case nothing has
        changed.
        """
        return self._replace(lambda: self.loaded, frozenset(kinds), requester, within_s)

    def replace_config(self, loaded: Loaded, within_s: float = ANSWER_S) -> Effect[None]:
        """Put another configuration in force; what operators set stays over it.

        Raises EventError, ValueError or TimeoutError as `reset` does.
        """
        requester = Requester("", lambda: True, lambda: None)
        return self._replace(lambda: loaded, frozenset(), requester, within_s)

    def kept_over(self, keys: Iterable[str]) -> list[str]:
        """Which keys of the configuration do not count because an operator set them."""
        changes = list(self.overlay.changes)
        kinds = {key[0] for key in changes}
        return [key for key in keys if key.partition(".")[0] in kinds]

    def _replace(
        self,
        loaded: Callable[[], Loaded],
        kinds: frozenset[str],
        requester: Requester[_T],
        within_s: float,
    ) -> Effect[_T]:
        def after() -> tuple[Loaded, Overlay, Settings]:
            new, overlay = loaded(), self.overlay.without(kinds)
            settings = settings_in_force(new.config.settings(), overlay, self._loop.session_limits)
            return new, overlay, settings

        def replace() -> Effect[_T]:
            _check_waits(requester)
            # Worked out anew: an operator may have changed something in between.
            new, overlay, settings = after()
            base, content = new.config.settings(), write_overlay(overlay)
            gone = [key for key in self.overlay.changes if key[0] in kinds]
            self._loop.operate_now(settings)
            # It counts from here on: nothing that follows may fail.
            before, self.overlay = self.overlay, overlay
            self.loaded, self.base = new, base
            for key in gone:
                old = value_of(before.changes[key].change)
                self.audit.note(requester.by, key[0], scope_of(key), old=old, new="as configured")
            return Effect(self._keep(content), requester.listed())

        begun_s = time.monotonic()
        wanted = settled(self._loop.call(after), within_s)[2]
        # Users' policies are tried out here, so that the core does not wait for them.
        for spec in filter(None, (wanted.policy, wanted.shadow)):
            self._loop.try_policy(spec, within_s)
        left_s = max(within_s - (time.monotonic() - begun_s), 0.0)
        return settled(self._loop.call(replace), left_s)

    def try_out(self, settings: Settings, change: OperatorChange) -> None:
        """Find out whether a change of settings is possible; nothing is changed.

        Raises EventError where it is not.
        """
        Allocator(policies.build, settings.copied(), self._loop.session_limits).step(change)

    def await_kept(self, number: int, within_s: float) -> str:
        """Wait until what an `Effect` numbered is kept; says why it is not, empty where it is."""
        if self._state_store is None:
            return "no state directory is configured (state.directory)"
        return self._state_store.await_kept(number, within_s)

    # The core's thread.

    def _set(self, change: OperatorChange, requester: Requester[_T]) -> Effect[_T]:
        _check_waits(requester)
        before = self._loop.allocator.settings.before(change)
        overlay = self.overlay.without(())
        overlay.note(
            KeptChange(change, requester.by, int(time.time() * 1000)), configured(self.base)
        )
        content = write_overlay(overlay)
        self._loop.operate_now(change)
        # It counts from here on: nothing that follows may fail.
        self.overlay = overlay
        self.audit.of_change(AuditedChange(requester.by, change, before))
        return Effect(self._keep(content), requester.listed())

    def _keep(self, content: pb.KeptSettings) -> int:
        return self._state_store.settings_changed(content) if self._state_store else 0


def _check_waits(requester: Requester[_T]) -> None:
    if not requester.waits():
        raise GivenUpError


def settings_in_force(base: Settings, overlay: Overlay, limits: SessionLimits) -> Settings:
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

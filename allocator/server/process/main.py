"""The deciding process: builds all parts, and runs with its observer until it is stopped."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice

import grpc
import structlog

from allocator import policies
from allocator.core import Settings
from allocator.server.config import OPEN_SESSIONS, Config, Loaded
from allocator.server.engine.core_loop import GRACE_S, CoreLoop
from allocator.server.engine.feed import PLAN_BYTES_MAX
from allocator.server.engine.journal_files import TakenError
from allocator.server.engine.monitor import Monitor
from allocator.server.engine.planning import Planning
from allocator.server.grpc.access import Access
from allocator.server.grpc.admin import AdminServicer
from allocator.server.grpc.calls import Calls
from allocator.server.grpc.forwarding import ObserverCalls
from allocator.server.grpc.listeners import UNIX, ListenError, claim_addresses, listen, new_server
from allocator.server.grpc.plans import PlanServicer
from allocator.server.grpc.records import Decider, deciders_records
from allocator.server.grpc.requests import SERVICE as ADMIN
from allocator.server.grpc.service import SERVICE, Health, SessionServicer
from allocator.server.operators.applied import Base
from allocator.server.operators.audit import Audit
from allocator.server.operators.calendar import Clock
from allocator.server.operators.operators import Operators, in_force
from allocator.server.operators.setting_rows import MISTYPED_LOGGED, mistyped_names
from allocator.server.operators.state_store import RestoredState, StateError, StateStore, restore
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.server.process.lifetime import (
    EXIT_FAILURE,
    LOOK_S,
    SignalInbox,
    begin,
    closing_children,
    end,
    taking_signals,
)
from allocator.server.process.link import Link, ObserverChild, new_link
from allocator.server.process.reloading import Reloader
from allocator.server.process.systemd import READY, STOPPING, notify, watched
from allocator.server.system.compilation import Compilation, load_cached
from allocator.server.system.disk import is_full, reason
from allocator.server.system.http_socket import http_socket
from allocator.wire.settings.learnt_demands import Learnt, copy_learnt

CORE_S = 5.0
"""Maximum time to wait for the core at the end; a user's policy may take minutes."""

LAST_S = 2.0
"""Maximum time to wait for each other thread; the systemd unit allows 20 s for all of them."""

OBSERVERS_MAX = 8
"""Maximum number of calls of the observer: streams, of which that of a restarted observer may
overlap with the previous one, and reports on plans."""

_OF_LINK = (("grpc.max_receive_message_length", PLAN_BYTES_MAX + 2**20),)

OBSERVED_S = 10.0
"""Maximum time to wait for the observer before the process logs that it is ready."""

_log = structlog.get_logger()


class Server:
    """All parts of the deciding process; `targets`: addresses of the gRPC services."""

    def __init__(self, loaded: Loaded, compilation: Compilation, link: Link) -> None:
        """Build all parts and listen; calls are served from `start` on.

        Raises OSError about an address or the journal, StateError about the state directory.
        """
        config = loaded.config
        # Load modules now, because later there may be no file descriptor left.
        policies.load_ahead()
        kept = restore(config)
        registry = GuardedRegistry(config.policy.plugin_deadline_ms / 1000)
        clock = Clock()
        found = in_force(Base.of(config), kept.overlay, config.limits.core(), clock.now_ms())
        self.loop = _new_loop(config, kept, registry, found.settings)
        self._check_journal(config)
        self._state_store = self._new_state_store(config, kept)
        self.operators = Operators(
            self.loop,
            loaded,
            kept.overlay,
            self._state_store,
            history=kept.history,
            audit=Audit(),
            problem=kept.problem,
            try_policy=registry.try_out,
            clock=clock,
            holding=found.holding,
        )
        self.calls = Calls(Access(config.access), compilation.problem)
        self.monitor = Monitor(self.loop, self.calls.problem)
        self._health = Health((SERVICE, ADMIN.full_name))
        self.planning = Planning(
            self.loop,
            budget_s=config.policy.plan_budget_ms / 1000,
            first_wait_s=config.policy.plan_first_wait_ms / 1000,
        )
        self.loop.after_message = self.planning.note_late
        self.loop.first_plan = self.planning.first
        self._observer = ObserverCalls(link.observer, lambda: self.loop.feed.position)
        progress = lambda: compilation.progress  # noqa: E731
        self._decider = Decider(
            self.loop, self.operators, self.planning, self.calls, progress, self.monitor
        )
        self.loop.start()
        with ExitStack() as undo:
            undo.callback(self.loop.stop)
            if self._state_store:
                self._state_store.start()
                undo.callback(self._state_store.close)
            self.operators.calendar.start()
            undo.callback(self.operators.calendar.close)
            self._grpc = self._build(config)
            undo.callback(self._grpc.stop, None)
            self.targets = listen(self._grpc, config.listen)
            # A separate server, so that many callers cannot keep out the observer.
            self._link = grpc.server(ThreadPoolExecutor(OBSERVERS_MAX, "link"), options=_OF_LINK)
            deciders_records(self._decider, left=self.planning.left).add_to(self._link)
            PlanServicer(self.planning).add_to(self._link)
            self._link.add_insecure_port(link.decider)
            undo.callback(self._link.stop, None)
            undo.pop_all()

    def start(self) -> None:
        """Start serving calls; sessions have to wait until the loops are loaded."""
        self._link.start()
        self._grpc.start()
        self.monitor.serving()

    def welcome(self) -> None:
        self._health.serving()
        self.monitor.changed()

    @property
    def is_observed(self) -> bool:
        return self.loop.feed.is_followed

    @property
    def can_plan(self) -> bool:
        """Whether plans can be computed, or the policy in force does not plan."""
        return self.planning.is_linked or self.loop.allocator.planning_policy is None

    def health(self) -> str:
        return self.monitor.health()

    def _build(self, config: Config) -> grpc.Server:
        server = new_server(self.calls, config.limits.message_bytes_max)
        sessions = SessionServicer(self.loop, queue_max=config.limits.queue)
        server.add_generic_rpc_handlers((sessions.handler(),))
        paths = (target.removeprefix(UNIX) for target in config.listen.targets)
        admin = AdminServicer(self.loop, self.operators, self._observer, tuple(paths))
        server.add_generic_rpc_handlers((admin.handler(),))
        self._health.add_to(server)
        return server

    def _check_journal(self, config: Config) -> None:
        """Raise an error if the journal cannot be written.

        A full disk, or another process that writes the journal, is no error, since both may be
        temporary. Meanwhile the process serves without a journal.
        """
        journal = self.loop.journal
        if journal is None or journal.on:
            return
        if is_full(journal.failure) or isinstance(journal.failure, TakenError):
            return
        why = reason(journal.failure) if journal.failure else "it could not be started"
        mend = "set journal.path to a file that can be, or leave it empty for no journal"
        raise OSError(f"journal {config.journal.path} cannot be written ({why}); {mend}")

    def _new_state_store(self, config: Config, kept: RestoredState) -> StateStore | None:
        if kept.directory is None:
            return None

        def learnt() -> Future[Learnt]:
            return self.loop.call(lambda: copy_learnt(self.loop.allocator.state))

        return StateStore(kept.directory, learnt, config.state.save_s)

    def stop(self) -> bool:
        """Notify all peers, give them time, then end; return whether all threads ended in time."""
        self._health.draining()
        self.monitor.draining()
        try:
            self.loop.drain().result(CORE_S)
        except TimeoutError:
            _log.warning("the core is busy, and is not waited for")
        stopped = self._grpc.stop(GRACE_S)
        self.loop.feed.end()
        self._link.stop(GRACE_S)
        stopped.wait(GRACE_S + LAST_S)
        self._observer.close()
        self.operators.calendar.close()
        if self._state_store:
            self._state_store.close(LAST_S)
        return self.loop.stop(LAST_S)


def _new_loop(
    config: Config, kept: RestoredState, registry: GuardedRegistry, settings: Settings
) -> CoreLoop:
    registry.begin_with(settings.policy)
    return CoreLoop(
        config,
        build_policy=registry.build,
        substitute=policies.substitute(),
        before_policy=registry.renew,
        settings=settings,
        memory=kept.memory,
    )


def run(load: Callable[[], Loaded], loaded: Loaded, note: str = "") -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    `load`: reads the configuration again, on SIGHUP.
    `note`: a note for the operator, to be logged.
    """
    begun_s = time.monotonic()
    config = loaded.config
    begin(config, note)
    try:
        claim_addresses(config.listen.targets)
        claim_addresses(config.observer.listen, "observer.listen")
        http = http_socket(config.http.host, config.http.port)
        link = new_link(http.fileno())
    except OSError as error:
        _log.error("cannot start", error=error.strerror or str(error))
        return EXIT_FAILURE
    load_cached()
    observer = ObserverChild(link)
    observer.fork(partial(_observe, loaded, link))
    with (
        taking_signals() as inbox,
        closing_children(Compilation()) as compilation,
        ending(observer),
    ):
        try:
            server = Server(loaded, compilation, link)
        except (ListenError, OSError, StateError, ValueError) as error:
            _log.error("cannot start", error=str(error))
            return EXIT_FAILURE
        server.start()
        for text in islice(mistyped_names(loaded, server.operators.overlay), MISTYPED_LOGGED):
            _log.warning("a rule names an unknown resource, probably by mistake", rule=text)
        if target := config.open_to_sessions():
            _log.warning(OPEN_SESSIONS.format(target))
        http_port = http.getsockname()[1]
        where = {"targets": server.targets, "http": f"{config.http.host}:{http_port}"}
        _log.info("listening", **where)
        # Notify systemd before compiling, which takes longer than it waits.
        notify(READY)
        compilation.start()

        def tell_ready() -> None:
            _log.info(
                "ready",
                **where,
                sidecar_id=server.loop.sidecar_id,
                policy=config.policy.name,
                start_s=round(time.monotonic() - begun_s, 3),
            )

        with watched(lambda: not server.health()):
            _serve_until_signalled(inbox, compilation, server, observer, load, tell_ready)
        compilation.stop()
        _log.info("shutting down")
        notify(STOPPING)
        ended = server.stop()
    return end(compilation, ended=ended)


def _serve_until_signalled(
    inbox: SignalInbox,
    compilation: Compilation,
    server: Server,
    observer: ObserverChild,
    load: Callable[[], Loaded],
    tell_ready: Callable[[], None],
) -> None:
    """Watch for changes; `tell_ready` is called once, when all parts are available."""
    reloader, failure, welcomed, told = Reloader(load, server.operators), "", False, False
    late_s = math.inf
    while not inbox.to_end:
        try:
            compilation.look()
        except Exception as error:  # noqa: BLE001 - the process continues and logs it.
            if failure != repr(error):  # log each error once, not every second
                failure = repr(error)
                _log.exception("the state of the loops' compilation could not be checked")
        observer.look(server.operators.loaded)
        soon = not told or compilation.state in {"compiling", "loading"}
        if compilation.ready and late_s == math.inf:
            late_s = time.monotonic() + OBSERVED_S
        is_late = time.monotonic() > late_s
        # Sessions begin when plans can be computed, since the first cycle waits for its plan.
        if compilation.ready and not welcomed and (server.can_plan or is_late):
            welcomed = True
            server.welcome()
        if welcomed and not told and (server.is_observed or is_late):
            told = True
            tell_ready()
        if inbox.wait(0.05 if soon else LOOK_S):
            reloader.ask()


def _observe(loaded: Loaded, link: Link) -> int:
    # Imported here, because only the observer needs it.
    from allocator.server.process.observing import observe

    return observe(loaded, link)


@contextmanager
def ending(observer: ObserverChild) -> Iterator[None]:
    try:
        yield
    finally:
        observer.stop()

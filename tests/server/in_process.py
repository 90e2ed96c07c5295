"""The operators' service in this process: a core, books that follow it, and a channel to both."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from weakref import WeakKeyDictionary

import grpc

from allocator import policies
from allocator.core import Decisions, Event, OperatorChange, Options, Policy, PolicySpec
from allocator.server.config import Config, Loaded
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.monitor import Monitor
from allocator.server.engine.planning import Planning
from allocator.server.engine.sessions import SessionStream
from allocator.server.following.books import FollowedBooks
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.usage import UsageKeeper
from allocator.server.grpc.access import Access
from allocator.server.grpc.admin import AdminServicer
from allocator.server.grpc.calls import Calls
from allocator.server.grpc.forwarding import ObserverCalls
from allocator.server.grpc.questions import QuestionServicer
from allocator.server.grpc.records import Decider, latest
from allocator.server.operators.operators import Operators
from allocator.server.operators.trials import Trials
from allocator.server.system.compilation import COMPILED
from allocator.server.views.views import Views
from allocator.v1 import records_pb2
from allocator.v1 import session_pb2 as pb
from allocator.v1.admin_pb2_grpc import AdminServiceStub, add_AdminServiceServicer_to_server
from allocator.wire import Greeting
from laboratory.module_protocol import ModuleSession
from tests.wire.dialogue import STATE

_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 2**28)]

Build = Callable[[PolicySpec], Policy]
TryPolicy = Callable[[PolicySpec, float], None]


def _no_trial(_spec: PolicySpec, _within_s: float) -> None:
    """Skip the trial of a policy."""


@contextmanager
def running(loop: CoreLoop) -> Iterator[CoreLoop]:
    """Run the core's thread for the duration of the context."""
    loop.start()
    yield loop
    loop.feed.end()
    loop.stop()


class InProcess:
    """A module without a channel: its port is read here."""

    def __init__(
        self,
        loop: CoreLoop,
        instance: str = "instance",
        started_us: int = 1,
        *,
        stalled_s: float = 0.2,
    ) -> None:
        self.loop = loop
        self.cuts = 0
        self.clock_ms = 1
        self.port = SessionStream("test", queue_max=4, stalled_s=stalled_s, cut=self._cut)
        self.client = ModuleSession(Greeting("master", instance, started_us))
        self.answers = self.port.answers()
        loop.open(self.port)

    def _cut(self) -> None:
        self.cuts += 1

    def say(self, request: pb.SessionRequest) -> None:
        assert self.port.await_room()
        self.loop.receive(self.port, request.SerializeToString())

    def begin(self, state: Sequence[Event] = STATE) -> "InProcess":
        self.say(self.client.hello())
        self.client.receive(next(self.answers))
        for request in self.client.snapshot(state, sequence=0, clock_ms=self.clock_ms):
            self.say(request)
        return self

    def batch(self, clock_ms: int, *events: Event, cycle: bool = True) -> Decisions:
        self.clock_ms = clock_ms
        self.say(self.client.batch(clock_ms, events, cycle=cycle))
        answer = self.client.receive(next(self.answers))
        assert isinstance(answer, Decisions)
        return answer


_modules: "WeakKeyDictionary[CoreLoop, InProcess]" = WeakKeyDictionary()


def module_of(loop: CoreLoop) -> InProcess:
    """A module that sends a loop what `tell` says; its session starts with empty books."""
    if loop not in _modules:
        _modules[loop] = InProcess(loop).begin(())
    return _modules[loop]


def tell(loop: CoreLoop, *events: Event) -> None:
    """Apply events: a module sends its own, operators set the rest."""
    for event in events:
        if isinstance(event, OperatorChange):
            loop.call(partial(loop.step, event)).result(60)
        elif not isinstance(event, Options):
            module = module_of(loop)
            module.batch(module.clock_ms, event, cycle=False)


def cycle(loop: CoreLoop, now_ms: int) -> Decisions:
    """Have the module ask for a cycle over all agents."""
    return module_of(loop).batch(now_ms)


def books_of(
    build_policy: Build = policies.build, build_apart: Build | None = None
) -> FollowedBooks:
    """Make books that follow no process: tests send events to their allocator by `ask`."""
    config = Config()
    return FollowedBooks(
        lambda: iter(()),
        build_policy=build_policy,
        build_apart=build_apart or build_policy,
        substitute=policies.substitute(),
        limits=config.limits.core(),
        settings=config.settings(),
    )


@contextmanager
def kept(books: FollowedBooks) -> Iterator[FollowedBooks]:
    """Run the thread of such books for the duration of the context."""
    books.start()
    yield books
    books.stop()


def decider_of(loop: CoreLoop, operators: Operators | None = None) -> Decider:
    """Collect the figures that a core's process reports about itself."""
    calls = Calls(Access(Config().access))
    return Decider(
        loop,
        operators or Operators(loop, Loaded(Config(), {})),
        Planning(loop, budget_s=1.0),
        calls,
        lambda: COMPILED,
        Monitor(loop, calls.problem),
    )


@contextmanager
def observed(loop: CoreLoop, operators: Operators | None = None) -> Iterator[Views]:
    """Have books follow a running loop; returns the interface for questions to them."""
    decider = decider_of(loop, operators)

    def connect() -> Iterator[records_pb2.FollowResponse]:
        follower = loop.call(loop.follow).result()
        try:
            yield from follower.messages(latest(decider))
        finally:
            loop.feed.remove(follower)

    books = FollowedBooks(
        connect,
        build_policy=policies.build,
        build_apart=policies.build,
        substitute=policies.substitute(),
        limits=loop.session_limits,
        settings=Config().settings(),
        verify_every=1,
    )
    books.may_work.set()
    books.start()
    books.ask(lambda: None, after=0).result(30)
    settings = FollowedSettings(books, Loaded(Config(), {}))
    keeper = UsageKeeper(books, lambda: "")
    keeper.start()
    yield Views(books, settings, keeper)
    keeper.stop(30)
    assert not books.lag.differences
    books.stop()


@contextmanager
def asking(loop: CoreLoop, try_policy: TryPolicy = _no_trial) -> Iterator[AdminServiceStub]:
    """Serve operators' calls meanwhile; returns a client stub.

    `try_policy`: as for `Operators`.
    """
    operators = Operators(loop, Loaded(Config(), {}), try_policy=try_policy)
    with observed(loop, operators) as views, tempfile.TemporaryDirectory() as directory:
        target = f"unix:{directory}/observer"
        trials = Trials(lambda: views.books.allocator, loop.session_limits, try_policy)
        questions = grpc.server(ThreadPoolExecutor(4))
        add_AdminServiceServicer_to_server(QuestionServicer(views, trials), questions)
        questions.add_insecure_port(target)
        questions.start()
        server = grpc.server(ThreadPoolExecutor(4))
        observer = ObserverCalls(target, lambda: loop.feed.position)
        admin = AdminServicer(loop, operators, observer)
        server.add_generic_rpc_handlers((admin.handler(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        with grpc.insecure_channel(f"127.0.0.1:{port}", _OPTIONS) as channel:
            yield AdminServiceStub(channel)
        server.stop(None).wait()
        questions.stop(None).wait()
        observer.close()


def tell_books(books: FollowedBooks, *events: Event) -> None:
    """Apply events to the allocator of such books, on their thread."""

    def step(event: Event) -> None:
        books.allocator.step(event)

    for event in events:
        books.ask(partial(step, event)).result(60)

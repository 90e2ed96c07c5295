"""A core in this process whose plans are made from an observer's books, with real calls."""

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from allocator import policies
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.planning import Planning
from allocator.server.following.books import FollowedBooks
from allocator.server.following.planning import Planner
from allocator.server.grpc.plans import PlanServicer
from allocator.server.grpc.records import deciders_records
from allocator.server.process.observing import PlanReports, follow
from tests.server.in_process import Build, decider_of, running
from tests.server.sidecar_process import await_true

WAIT_S = 60.0


@dataclass
class Planned:
    """A core, and the books that make its plans.

    `leave`: ends the observer's stream, as if it died.
    `report`: calls the core's process as the observer does.
    """

    loop: CoreLoop
    planning: Planning
    books: FollowedBooks
    leave: Callable[[], None]
    report: PlanReports

    def settle(self) -> None:
        """Wait until the books have all records and were checked, and no plan is being computed."""
        planner = self.books.planner
        assert planner is not None

        def is_idle() -> bool:
            rests = planner._next_s > time.monotonic()
            looked = rests or planner._cycle == self.books.allocator.cycle
            return looked and planner._run is None and planner._after <= self.books.position

        def settled() -> bool:
            after = self.loop.call(lambda: self.loop.feed.position).result(WAIT_S)
            return self.books.ask(is_idle, after=after).result(WAIT_S)

        await_true(settled)

    def has_plan(self) -> bool:
        return self.loop.call(lambda: self.loop.allocator.state.plan is not None).result(WAIT_S)


@contextmanager
def planned(
    config: Config,
    build: Build,
    *,
    budget_s: float = WAIT_S,
    interval_s: float = 0.0,
    first_wait_s: float = 0.0,
    give_up_s: float = WAIT_S,
) -> Iterator[Planned]:
    """Run both, and their link."""
    with running(CoreLoop(config, build_policy=build)) as loop, _served(loop) as served:
        server, target = served
        planning = Planning(loop, budget_s=budget_s, first_wait_s=first_wait_s)
        loop.after_message, loop.first_plan = planning.note_late, planning.first
        PlanServicer(planning).add_to(server)
        deciders_records(decider_of(loop), left=planning.left).add_to(server)
        server.start()
        books = FollowedBooks(
            lambda: follow(target),
            build_policy=build,
            build_apart=build,
            substitute=policies.substitute(),
            limits=loop.session_limits,
            settings=config.settings(),
            verify_every=1,
        )
        report = PlanReports(target)
        books.planner = Planner(
            report,
            books.ask,
            interval_s=interval_s,
            is_awaited=first_wait_s > 0,
            give_up_s=give_up_s,
        )
        books.may_work.set()
        books.start()
        await_true(lambda: planning.is_linked)

        def leave() -> None:
            books._ending = True
            loop.feed.end()

        yield Planned(loop, planning, books, leave, report)
        assert not books.lag.differences
        books.stop()


@contextmanager
def _served(loop: CoreLoop) -> Iterator[tuple[grpc.Server, str]]:
    server = grpc.server(ThreadPoolExecutor(8))
    with tempfile.TemporaryDirectory() as directory:
        target = f"unix:{directory}/decider"
        server.add_insecure_port(target)
        try:
            yield server, target
        finally:
            loop.feed.end()
            server.stop(None).wait()

"""Books that follow a core equal its own, after any record, and after interruptions."""

from functools import partial

from allocator.core import PolicySpec, SetDemand, SetPolicy
from allocator.core.checkpoint import to_columns
from allocator.server.engine import feed
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.following import books as module
from allocator.v1 import journal_pb2
from allocator.wire.journal.checkpoint import Mark, mark
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import InProcess, cycle, observed, tell
from tests.server.sidecar_process import await_true

WAIT_S = 60.0


def marks(loop: CoreLoop, views) -> tuple[Mark, Mark]:
    """Checkpoints of the core's state, and of the books once they have all records."""
    sidecar = loop._sidecar
    of_core = loop.call(lambda: mark(to_columns(sidecar.kept()))).result(WAIT_S)
    books = views.books

    def follow() -> Mark:
        found = books._sidecar
        assert found is not None
        return mark(to_columns(found.kept()))

    return of_core, books.ask(follow, after=loop.feed.position).result(WAIT_S)


def test_the_books_equal_the_cores_to_the_byte(loop):
    with observed(loop) as views:
        tell(loop, *CLUSTER)
        assert len(cycle(loop, 1000))
        tell(loop, SetDemand("", "spark", {"cpus": 1000}), SetPolicy(PolicySpec("tsf")))
        cycle(loop, 2000)
        one, other = marks(loop, views)
        assert one == other
        assert views.books.counts == loop.counts
        assert views.books.lag.verified
        assert views.books.lag.restarts == 0


def test_a_late_follower_begins_with_a_checkpoint_and_continues_counting(loop):
    tell(loop, *CLUSTER)
    cycle(loop, 1000)
    with observed(loop) as views:
        cycle(loop, 2000)
        one, other = marks(loop, views)
        assert one == other
        assert views.books.counts == loop.counts
        assert loop.counts.cycles == 2


def test_a_disconnected_follower_starts_again(loop, monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    with observed(loop) as views:
        tell(loop, *CLUSTER)
        monkeypatch.setattr(feed, "BEHIND_BYTES_MAX", 0)
        cycle(loop, 1000)
        await_true(lambda: not loop.feed.is_followed or views.books.lag.restarts > 0)
        monkeypatch.undo()
        await_true(lambda: views.books.lag.restarts > 0)
        cycle(loop, 2000)
        one, other = marks(loop, views)
        assert one == other


def test_an_inconsistent_record_restarts_the_books(loop, monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    with observed(loop) as views:
        tell(loop, *CLUSTER)
        # Sent to followers only: a session that never existed.
        bad = journal_pb2.JournalRecord(session=99)
        bad.opened.SetInParent()
        loop.call(partial(loop.feed.write, bad)).result(WAIT_S)
        await_true(lambda: views.books.lag.restarts > 0)
        cycle(loop, 1000)
        one, other = marks(loop, views)
        assert one == other


def test_sessions_come_and_go_in_the_books_too(loop):
    with observed(loop) as views:
        first = InProcess(loop).begin()
        first.batch(10)
        second = InProcess(loop, "other", 2).begin()
        second.batch(20)
        one, other = marks(loop, views)
        assert one == other
        session = views.books.ask(lambda: views.books.session).result(WAIT_S)
        assert session is not None
        assert (session.instance_id, session.number) == ("other", 2)


def test_a_query_about_a_position_waits_for_it(loop):
    with observed(loop) as views:
        future = views.books.ask(lambda: views.books.position, after=loop.feed.position + 1)
        assert not future.done()
        tell(loop, SetDemand("", "spark", {"cpus": 1000}))
        assert future.result(WAIT_S) >= loop.feed.position


def test_queries_that_are_not_awaited_any_more_are_forgotten(loop):
    """Callers choose the position, and may choose one that is never reached."""
    with observed(loop) as views:
        books = views.books
        for _ in range(20):
            asked = books.ask(lambda: None, after=10**18)
            books.read(lambda: None, WAIT_S)
            assert asked.cancel()
        assert books.read(lambda: len(books._early), WAIT_S) <= 1

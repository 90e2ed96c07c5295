"""Followers of an observer have the core's books, whenever they join."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from allocator.core.checkpoint import to_columns
from allocator.server.engine import feed
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.feed import BehindError
from allocator.server.following import books as module
from allocator.server.following.books import FollowedBooks
from allocator.v1 import records_pb2 as pb
from allocator.v1.journal_pb2 import JournalRecord
from allocator.wire.journal.checkpoint import Mark, mark
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import books_of, cycle, observed, tell
from tests.server.sidecar_process import await_true

WAIT_S = 60.0


def heard_of(source: FollowedBooks) -> Iterator[pb.FollowResponse]:
    """Follow other books, as by gRPC."""
    try:
        branch = source.ask(source.branch).result(WAIT_S)
    except LookupError as error:
        raise ConnectionError(str(error)) from None
    try:
        yield from map(pb.FollowResponse.FromString, branch.messages())
    except BehindError:
        raise ConnectionError("behind") from None
    finally:
        branch.end()


@contextmanager
def following(source: FollowedBooks) -> Iterator[FollowedBooks]:
    """Start books that follow other books."""
    books = books_of()
    books._connect = lambda: heard_of(source)
    books.may_work.set()
    books.start()
    yield books
    assert not books.lag.differences
    books.stop()


def mark_of(books: FollowedBooks, position: int) -> Mark:
    """The checkpoint of the books, once they have all records up to a position."""

    def take() -> Mark:
        assert books._sidecar is not None
        return mark(to_columns(books._sidecar.kept()))

    return books.ask(take, after=position).result(WAIT_S)


def marks(loop: CoreLoop, *followers: FollowedBooks) -> set[Mark]:
    """Checkpoints of the core's state, and of all books then: a single one if all are equal."""
    of_core = loop.call(lambda: mark(to_columns(loop._sidecar.kept()))).result(WAIT_S)
    return {of_core, *(mark_of(each, loop.feed.position) for each in followers)}


def test_books_that_follow_books_are_the_cores_to_the_byte(loop):
    with observed(loop) as views, following(views.books) as second, following(second) as third:
        tell(loop, *CLUSTER)
        cycle(loop, 1000)
        assert len(marks(loop, views.books, second, third)) == 1
        with following(third) as late:
            cycle(loop, 2000)
            assert len(marks(loop, views.books, second, third, late)) == 1
            assert late.counts == loop.counts
            assert loop.counts.cycles == 2
            assert (len(views.books.relay), len(third.relay)) == (1, 1)
            await_true(lambda: late.figures.sidecar_id == loop.sidecar_id)
            assert late.settings.configuration == views.books.settings.configuration != ""


@contextmanager
def between_a_request_and_its_answer(
    loop: CoreLoop,
) -> Iterator[tuple[FollowedBooks, threading.Event]]:
    """Start followers that know a request for a cycle, but not its answer until the event."""
    tell(loop, *CLUSTER)
    asked, go_on = threading.Event(), threading.Event()
    follower = loop.call(loop.follow).result(WAIT_S)

    def one_by_one() -> Iterator[pb.FollowResponse]:
        for message in follower.messages(lambda _message: None):
            if not message.follows or not message.records:
                yield message
                continue
            first = message.position - len(message.records)
            for number, record in enumerate(message.records, first + 1):
                yield pb.FollowResponse(follows=True, records=[record], position=number)
                if JournalRecord.FromString(record).HasField("request"):
                    asked.set()
                    assert go_on.wait(WAIT_S)

    books = books_of()
    books._connect = one_by_one
    books.may_work.set()
    books.start()
    cycle(loop, 1000)
    assert asked.wait(WAIT_S)
    yield books, go_on
    loop.feed.remove(follower)
    books.stop()


def test_a_follower_that_joins_between_request_and_answer_gets_both(loop):
    with between_a_request_and_its_answer(loop) as (books, go_on), following(books) as second:
        await_true(lambda: second.position >= 0)
        assert second.position == books.position == loop.feed.position - 1
        go_on.set()
        assert len(marks(loop, books, second)) == 1


def test_a_follower_that_joins_while_a_request_is_half_applied_waits(loop):
    """A request is half applied while a cycle waits for the first plan."""
    with between_a_request_and_its_answer(loop) as (books, go_on):
        follower = books._following
        assert follower is not None
        assert books.ask(follower.begin_waiting).result(WAIT_S)
        with pytest.raises(LookupError, match="waits for its first plan; ask again"):
            books.ask(books.branch).result(WAIT_S)
        go_on.set()
        with following(books) as second:
            assert len(marks(loop, books, second)) == 1


def test_restarted_books_restart_their_followers(loop, monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    with observed(loop) as views, following(views.books) as second:
        tell(loop, *CLUSTER)
        await_true(lambda: second.lag.restarts == 0)
        views.books.ask(lambda: setattr(views.books, "_following", None)).result(WAIT_S)
        views.books._broken = True
        await_true(lambda: second.lag.restarts > 0)
        cycle(loop, 1000)
        assert len(marks(loop, views.books, second)) == 1


def test_books_that_do_not_exist_yet_cannot_be_followed(loop):
    books = books_of()
    books.start()
    with pytest.raises(LookupError, match="this observer has no books yet"):
        books.ask(books.branch).result(WAIT_S)
    books.stop()


def test_a_follower_too_far_behind_restarts_and_costs_bounded_memory(loop, monkeypatch):
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    monkeypatch.setattr(module, "MESSAGES_MAX", 1)
    with observed(loop) as views, following(views.books) as slow:
        tell(loop, *CLUSTER)
        await_true(lambda: slow.lag.restarts == 0 and slow.position >= 0)
        (branch,) = views.books.relay
        held = threading.Event()
        slow.ask(lambda: held.wait(WAIT_S))
        monkeypatch.setattr(feed, "BEHIND_BYTES_MAX", 5000)
        most = 0
        for now_ms in range(1000, 200_000, 1000):
            cycle(loop, now_ms)
            most = max(most, branch._nbytes)
            if branch._behind:
                break
        assert branch._behind
        assert (branch._nbytes, len(branch._waiting)) == (0, 0)
        assert most <= 5000
        monkeypatch.setattr(feed, "BEHIND_BYTES_MAX", 2**28)
        held.set()
        await_true(lambda: slow.lag.restarts > 0)
        cycle(loop, 300_000)
        assert len(marks(loop, views.books, slow)) == 1


def test_how_far_books_are_behind_grows_where_nothing_comes(loop):
    with observed(loop) as views, following(views.books) as second:
        tell(loop, *CLUSTER)
        mark_of(second, loop.feed.position)
        assert second.problem() == ""
        lag = second.lag
        assert 0 <= lag.delay_s < 60
        lag.applied_s -= 1000
        assert 990 < lag.behind_s < 1100
        assert "behind the deciding process" in second.problem()
        lag.heard_s -= 1000
        assert "has sent nothing for" in second.problem()
        lag.connected = False
        assert "not connected to the deciding process" in second.problem()

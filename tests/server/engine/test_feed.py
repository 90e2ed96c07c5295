"""The writing end of the record stream: order, bounds, and followers that come and go."""

import threading

import pytest

from allocator.server.engine import feed as module
from allocator.server.engine.feed import BehindError, Feed, Follower
from allocator.v1 import records_pb2 as pb
from allocator.v1.journal_pb2 import JournalRecord


def record(number: int, nbytes: int = 0) -> JournalRecord:
    return JournalRecord(session=number, request=b"x" * nbytes)


def add(message: pb.FollowResponse) -> None:
    message.figures.SetInParent()


def numbers(messages: list[pb.FollowResponse]) -> list[int]:
    data = [each for message in messages for each in message.records]
    return [JournalRecord.FromString(each).session for each in data]


def new_follower(feed: Feed, *head: bytes) -> Follower:
    follower = Follower(iter(head), pb.Counts(cycles=7), feed.position)
    feed.add(follower)
    return follower


def test_a_follower_is_given_a_checkpoint_and_all_records_from_then_on():
    feed = Feed()
    feed.write(record(1))
    follower = new_follower(feed, record(100).SerializeToString())
    for number in (2, 3):
        feed.write(record(number))
    heard = follower.messages(add)
    head, behind, first = next(heard), next(heard), next(heard)
    assert numbers([head]) == [100]
    assert not head.follows
    assert (behind.position, behind.counts.cycles, behind.HasField("figures")) == (1, 7, True)
    assert (numbers([first]), first.position) == ([2, 3], 3)
    feed.write(record(4))
    assert numbers([next(heard)]) == [4]


def test_records_are_counted_without_followers():
    feed = Feed()
    feed.write(record(1))
    assert (feed.position, feed.is_followed) == (1, False)
    follower = new_follower(feed)
    assert feed.is_followed
    feed.remove(follower)
    assert not feed.is_followed


def test_a_follower_too_far_behind_is_disconnected_and_costs_no_more_memory(monkeypatch):
    monkeypatch.setattr(module, "BEHIND_BYTES_MAX", 10_000)
    feed = Feed()
    slow, quick = new_follower(feed), new_follower(feed)
    heard = quick.messages(add)
    next(heard)
    for number in range(100):
        feed.write(record(number, 1000))
        assert numbers([next(heard)]) == [number]
        assert slow._nbytes <= 12_000
    late = slow.messages(add)
    next(late)
    with pytest.raises(BehindError):
        next(late)


def test_figures_are_sent_at_once_when_woken():
    feed = Feed()
    heard = new_follower(feed).messages(add)
    next(heard)
    came = threading.Event()

    def hear() -> None:
        next(heard)
        came.set()

    threading.Thread(target=hear, daemon=True).start()
    feed.wake()
    assert came.wait(60)


def test_the_end_ends_every_stream():
    feed = Feed()
    heard = new_follower(feed).messages(add)
    next(heard)
    feed.end()
    assert len(list(heard)) <= 1

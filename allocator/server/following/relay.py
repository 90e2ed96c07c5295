"""Relays the record stream, so that followers of an observer cost the deciding process nothing.

Each follower gets a checkpoint of the observer's books, then the messages that these books follow,
unchanged. If the source is silent, so is the relay; thus each follower knows the age of its books.
"""

from collections.abc import Iterator

from allocator.server.engine.feed import Backlog, Backlogs
from allocator.v1 import records_pb2 as pb


class Branch(Backlog):
    """A follower of an observer."""

    def __init__(
        self, relay: "Backlogs[Branch]", head: Iterator[bytes], start: pb.FollowResponse
    ) -> None:
        """Start with a checkpoint: its serialised records, and the message that follows them."""
        super().__init__()
        self._relay = relay
        self._head = head
        self._start = start

    def end(self) -> None:
        super().end()
        self._relay.remove(self)

    def messages(self) -> Iterator[bytes]:
        """Yield the checkpoint, then messages until `end`, serialised. May raise BehindError."""
        for piece in self._head:
            yield pb.FollowResponse(records=[piece]).SerializeToString()
        yield self._start.SerializeToString()
        while not self.ended:
            for _, data in self.take(None, 0.0):
                yield data


Relay = Backlogs[Branch]

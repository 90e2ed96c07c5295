"""A relay of the record stream: followers of an observer cost the deciding process nothing.

Each gets a checkpoint of the books, then the messages that these books follow, unchanged. The
stream falls silent with its source, so every follower knows how old its books are.
"""

from collections.abc import Iterator

from allocator.server.engine.feed import Backlog, Backlogs
from allocator.v1 import records_pb2 as pb


class Branch(Backlog):
    """A follower of an observer."""

    def __init__(
        self, relay: "Backlogs[Branch]", head: Iterator[bytes], start: pb.FollowResponse
    ) -> None:
        """Begin with a checkpoint.

        `head`: its records, serialised; read on the follower's own thread.
        `start`: the message behind them.
        """
        super().__init__()
        self._relay = relay
        self._head = head
        self._start = start

    def end(self) -> None:
        super().end()
        self._relay.remove(self)

    def messages(self) -> Iterator[bytes]:
        """Give the checkpoint, then messages as they come, serialised, until `end`.

        Raises BehindError if the follower was cut off.
        """
        for piece in self._head:
            yield pb.FollowResponse(records=[piece]).SerializeToString()
        yield self._start.SerializeToString()
        while not self.ended:
            for _, data in self.take(None, 0.0):
                yield data


Relay = Backlogs[Branch]
"""All followers of an observer."""

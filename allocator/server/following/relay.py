"""The record stream, handed on: followers of an observer cost the process that decides nothing.

Each is sent a checkpoint of the books, then the messages that these books follow, as they came. The
stream falls silent with its source, so every follower knows how old its books are.
"""

import threading
from collections.abc import Iterator

from allocator.server.engine.feed import Backlog
from allocator.v1 import records_pb2 as pb


class Branch(Backlog):
    """A follower of an observer: it is sent messages."""

    def __init__(self, relay: "Relay", head: Iterator[bytes], start: pb.FollowResponse) -> None:
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

        Raises BehindError where the follower was cut off.
        """
        for piece in self._head:
            yield pb.FollowResponse(records=[piece]).SerializeToString()
        yield self._start.SerializeToString()
        while not self.ended:
            for _, data in self.take(None, 0.0):
                yield data


class Relay:
    """All followers of these books."""

    def __init__(self) -> None:
        self._branches: tuple[Branch, ...] = ()
        self._lock = threading.Lock()

    def put(self, message: pb.FollowResponse) -> None:
        """Hand a message on; on the books' thread."""
        if self._branches:
            data = message.SerializeToString()
            for branch in self._branches:
                branch.put(data)

    def begin(self, head: Iterator[bytes], start: pb.FollowResponse) -> Branch:
        """Let a follower have a checkpoint, and all messages from now on; on the books' thread."""
        branch = Branch(self, head, start)
        with self._lock:
            self._branches += (branch,)
        return branch

    def remove(self, branch: Branch) -> None:
        with self._lock:
            self._branches = tuple(each for each in self._branches if each is not branch)

    def end(self) -> None:
        """End all streams: these books are rebuilt, and so are those of followers."""
        for branch in self._branches:
            branch.end()

    @property
    def size(self) -> int:
        """Number of followers."""
        return len(self._branches)

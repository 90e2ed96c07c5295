"""The record stream of the deciding process: queues of records for followers.

The core's thread adds records and never waits, because each follower has a bounded queue. A
follower whose queue is full is disconnected; it reconnects, and starts with a new checkpoint.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from google.protobuf.message import Message

from allocator.v1 import records_pb2 as pb

BEHIND_BYTES_MAX = 256 * 2**20

PLAN_BYTES_MAX = BEHIND_BYTES_MAX // 2
"""Maximum size of a plan from the observer, with the identities of its rows."""

MESSAGE_BYTES = 1 << 20
"""A message of at least this size is sent without waiting for further records."""

GATHER_S = 0.002
"""Records within this time are sent in one message, because sending takes the global lock."""

IDLE_S = 0.25
"""Time after which, without records, a message with figures about the process is sent."""


class BehindError(RuntimeError):
    """A follower reads more slowly than the core writes."""


class Backlog:
    """A bounded queue of records for one follower; `ended`: whether its stream should end."""

    def __init__(self) -> None:
        self.ended = False
        self._changed = threading.Condition()
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._nbytes = 0
        self._behind = False
        self._woken = False

    # On the thread that writes.

    def put(self, data: bytes) -> None:
        """Queue records; beyond the maximum size, drop all records and disconnect the follower."""
        with self._changed:
            if self._behind:
                return
            self._waiting.append((time.time(), data))
            self._nbytes += len(data)
            if self._nbytes > BEHIND_BYTES_MAX:
                self._behind = True
                self._waiting.clear()
                self._nbytes = 0
                self._changed.notify()
            elif len(self._waiting) == 1 or self._nbytes >= MESSAGE_BYTES:
                self._changed.notify()

    # On any thread.

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify()

    # On the follower's thread.

    def take(self, idle_s: float | None, gather_s: float) -> list[tuple[float, bytes]]:
        """Take the records of one message, each with the time when it was queued.

        `idle_s`, `gather_s`: how long to wait for the first record (None: without limit), and for
            more.

        Raises BehindError if the follower was disconnected.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._woken or self.ended or self._behind, idle_s
            )
            self._woken = False
            if self._waiting and self._nbytes < MESSAGE_BYTES:
                self._changed.wait_for(
                    lambda: self._nbytes >= MESSAGE_BYTES or self.ended or self._behind, gather_s
                )
            if self._behind:
                raise BehindError
            taken: list[tuple[float, bytes]] = []
            nbytes = 0
            while self._waiting and nbytes < MESSAGE_BYTES:
                taken.append(self._waiting.popleft())
                nbytes += len(taken[-1][1])
            self._nbytes -= nbytes
            return taken


_B = TypeVar("_B", bound=Backlog)


class Backlogs(Generic[_B]):
    """All followers of one stream; any thread may add and remove them."""

    def __init__(self) -> None:
        self._all: tuple[_B, ...] = ()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[_B]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, follower: _B) -> None:
        """Add a follower, which gets all messages from now on."""
        with self._lock:
            self._all += (follower,)

    def remove(self, follower: _B) -> None:
        with self._lock:
            self._all = tuple(each for each in self._all if each is not follower)

    def write(self, message: Message) -> None:
        if self._all:
            data = message.SerializeToString()
            for follower in self._all:
                follower.put(data)

    def end(self) -> None:
        for follower in self._all:
            follower.end()


class Follower(Backlog):
    """A follower of the deciding process."""

    def __init__(self, head: Iterator[bytes], counts: pb.Counts, position: int) -> None:
        """Start with a checkpoint.

        `head`: the records of the checkpoint, serialised; read on the follower's own thread.
        `counts`, `position`: totals, and number of records, that the checkpoint includes.
        """
        super().__init__()
        self._head = head
        self._counts = counts
        self._position = position

    def messages(self, add: Callable[[pb.FollowResponse], None]) -> Iterator[pb.FollowResponse]:
        """Yield the checkpoint, then records as they arrive, until `end`.

        `add`: adds figures about the process to a message, if they are due.

        Raises BehindError if the follower was disconnected.
        """
        for piece in self._head:
            yield pb.FollowResponse(records=[piece])
        message = pb.FollowResponse(follows=True, position=self._position, counts=self._counts)
        message.written_s = time.time()
        add(message)
        yield message
        while not self.ended:
            taken = self.take(IDLE_S, GATHER_S)
            self._position += len(taken)
            message = pb.FollowResponse(follows=True, position=self._position)
            message.records.extend(record for _, record in taken)
            message.written_s = taken[0][0] if taken else time.time()
            add(message)
            yield message


class Feed(Backlogs[Follower]):
    """The record stream of the deciding process.

    `position`: number of records written since the process began; any thread may read it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.position = 0

    def write(self, message: Message) -> None:
        self.position += 1
        super().write(message)

    def wake(self) -> None:
        for follower in self:
            follower.wake()

    @property
    def is_followed(self) -> bool:
        return len(self) > 0

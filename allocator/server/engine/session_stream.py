"""One stream, between gRPC's threads and the core's.

A stream has two threads of its own: one takes the module's messages off it, one puts the answers
on it. The core's thread waits for neither. The queues between them are bounded because the reading
thread waits, for the core and for a peer that does not read.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from allocator.v1 import session_pb2 as pb


class SessionStream:
    """Answers that wait for the peer, and a count of messages that wait for the core.

    `number`: of the session; 0 before the core gave one.
    `peer`: who is at the other end, as gRPC names it.
    """

    def __init__(
        self, peer: str, *, queue_max: int, stalled_s: float, cut: Callable[[], object]
    ) -> None:
        """Begin empty.

        `queue_max`: so many messages may wait for the core, and so many answers for the peer.
        `stalled_s`: a peer with so many answers to read must read one within this time.
        `cut`: ends the stream at once.
        """
        self.number = 0
        self.peer = peer
        self._queue_max = queue_max
        self._stalled_s = stalled_s
        self._cut = cut
        self._changed = threading.Condition()
        self._answers: deque[pb.SessionResponse] = deque()
        self._waiting = 0
        self._taken_s = 0.0
        self._ended = False
        self._timer: threading.Timer | None = None

    # The thread that reads.

    def await_room(self) -> bool:
        """Wait until another message may come; False where the peer does not read its answers."""
        begun_s = time.monotonic()
        with self._changed:
            while not self._ended:
                # A peer that does not read its answers gets no more of them: its messages wait,
                # and after some time the stream is given up. A busy core is waited for without a
                # limit.
                full = len(self._answers) >= self._queue_max
                if not full and self._waiting < self._queue_max:
                    break
                # The time counts from this call, or from the last answer that was read.
                left_s = max(begun_s, self._taken_s) + self._stalled_s - time.monotonic()
                if full and left_s <= 0:
                    return False
                self._changed.wait(left_s if full else None)
            self._waiting += 1
            return True

    # The core's thread.

    def message_done(self) -> None:
        """One message less waits for the core."""
        with self._changed:
            self._waiting -= 1
            self._changed.notify_all()

    def answer(self, response: pb.SessionResponse) -> None:
        """Queue an answer."""
        with self._changed:
            if not self._ended:
                self._answers.append(response)
                self._changed.notify_all()

    def end(self, grace_s: float) -> None:
        """Let the peer read what is queued, then end the stream; after `grace_s` cut it."""
        with self._changed:
            if self._ended:
                return
            self._ended = True
            # A peer that never reads must not keep the stream open.
            self._timer = threading.Timer(grace_s, self._cut)
            self._timer.daemon = True
            self._timer.start()
            self._changed.notify_all()

    # The thread that writes.

    def answers(self) -> Iterator[pb.SessionResponse]:
        """Give the answers as they come, until the end."""
        try:
            while (response := self._next()) is not None:
                yield response
        finally:
            self.hang_up()

    def _next(self) -> pb.SessionResponse | None:
        with self._changed:
            while not self._answers:
                if self._ended:
                    return None
                self._changed.wait()
            self._taken_s = time.monotonic()
            self._changed.notify_all()
            return self._answers.popleft()

    # Any thread.

    def hang_up(self) -> None:
        """The stream is over: nobody reads any more."""
        with self._changed:
            self._ended = True
            self._answers.clear()
            if self._timer is not None:
                self._timer.cancel()
            self._changed.notify_all()

"""The master's end of the stream. If an answer takes too long, the master decides by itself."""

import queue
import threading
import time
from collections.abc import Callable, Iterator

import grpc

from allocator.core import Decisions
from allocator.v1 import session_pb2 as pb
from laboratory.links.base import Batch, LinkDownError, Opening
from laboratory.links.stream import STREAM_OPTIONS, StreamLink
from laboratory.module_protocol import SessionEndedError
from tests.torture.report import TortureFindings

# A clock that stops while this process is suspended.

TICK_S = 0.1
JUMP_S = 1.0
"""Limit on what a tick counts: one that takes longer is assumed to include a suspension."""


class RunningClock:
    """A clock that leaves out time during which this process or the machine was suspended.

    Otherwise a sleeping laptop, a frozen container or a starved process would look like a sidecar
    that does not answer.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        threading.Thread(target=self._run, name="clock", daemon=True).start()

    @property
    def now_s(self) -> float:
        return self._now_s

    def _run(self) -> None:
        last_s = time.monotonic()
        while True:
            time.sleep(TICK_S)
            now_s = time.monotonic()
            self._now_s += min(now_s - last_s, JUMP_S)
            last_s = now_s


CONNECT_S = 0.3
ANSWER_S = 5.0
"""Maximum wait for an answer."""

AGAIN_S = 0.1
"""Minimum pause between connection attempts; after a slower attempt, the pause is as long as it."""

ALONE_S = 0.02
"""Real time of a cycle without a sidecar, so that it returns before the world ends."""

_OPTIONS = [*STREAM_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]


class PatientLink(StreamLink):
    """A stream that waits a bounded time for each answer.

    credentials: for TLS; None: plaintext.
    """

    connect_s = CONNECT_S

    def __init__(
        self, target: str, started_us: int, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        super().__init__(target, started_us)
        self._credentials = credentials

    def _dial(self) -> grpc.Channel:
        if self._credentials is None:
            return grpc.insecure_channel(self._target, _OPTIONS)
        return grpc.secure_channel(self._target, self._credentials, _OPTIONS)

    def _listen(self, call: Iterator[pb.SessionResponse]) -> Iterator[pb.SessionResponse]:
        heard: queue.SimpleQueue[pb.SessionResponse | grpc.RpcError | None] = queue.SimpleQueue()

        def listen() -> None:
            try:
                for response in call:
                    heard.put(response)
                heard.put(None)
            except grpc.RpcError as error:
                heard.put(error)

        threading.Thread(target=listen, name="listener", daemon=True).start()
        return self._answers_in_time(heard)

    def _answers_in_time(
        self, heard: "queue.SimpleQueue[pb.SessionResponse | grpc.RpcError | None]"
    ) -> Iterator[pb.SessionResponse]:
        while True:
            try:
                found = heard.get(timeout=ANSWER_S)
            except queue.Empty:
                raise LinkDownError(f"no answer of {self._target} in {ANSWER_S:g} s") from None
            if isinstance(found, grpc.RpcError):
                raise found
            if found is None:
                return
            yield found


class TorturedLink:
    """A link that is never down: without a sidecar the master decides by itself.

    streams: opens a stream over any of the paths to the sidecar.
    alone: called in each cycle without a sidecar, to decide it.
    up: whether a session is open.
    vain: number of failed connection attempts since the last success.
    superseded: how often another master took the sidecar over.
    served: number of cycles that the sidecar decided.
    """

    def __init__(
        self,
        streams: Callable[[], StreamLink],
        findings: TortureFindings,
        alone: Callable[[], None] = lambda: None,
    ) -> None:
        self.up = False
        self.superseded = 0
        self.served = 0
        self.alone = alone
        self._streams = streams
        self._findings = findings
        self._stream: StreamLink | None = None
        self._tried_s = 0.0
        self._again_s = AGAIN_S
        self.vain = 0

    def open(self, opening: Opening) -> None:
        """Connect to the sidecar; if it does not answer, continue alone."""
        self._drop()
        begin_s = time.monotonic()
        self._findings.counts["calls"] += 1
        stream = self._streams()
        try:
            stream.open(opening)
        except LinkDownError:
            stream.close()
            self._findings.counts["calls_in_vain"] += 1
            self.vain += 1
        except SessionEndedError as error:
            stream.close()
            self._superseded_or_raise(error)
        else:
            self._stream, self.up, self.vain = stream, True, 0
            self._findings.counts["sessions"] += 1
        self._tried_s = time.monotonic()
        self._again_s = max(AGAIN_S, self._tried_s - begin_s)

    def send(self, batch: Batch) -> None:
        if self._stream is not None:
            self._guard(lambda stream: stream.send(batch))

    def settle(self) -> None:
        """Wait until the sidecar, if connected, has applied everything."""
        if self._stream is not None:
            self._guard(lambda stream: stream.settle())

    def exchange(self, batch: Batch) -> Decisions:
        """Run a cycle with the sidecar; without one, run it alone, and reconnect later."""
        if self._stream is not None:
            begin_s = time.perf_counter()
            decisions = self._guard(lambda stream: stream.exchange(batch))
            self._findings.cycle_took(time.perf_counter() - begin_s)
            self._findings.counts["cycles"] += 1
            self._findings.counts["decisions"] += len(decisions)
            self.served += 1
            return decisions
        if time.monotonic() - self._tried_s >= self._again_s:
            # The master reacts by opening a new session, with a current snapshot.
            raise LinkDownError("time to call again")
        time.sleep(ALONE_S)
        self._findings.counts["cycles_alone"] += 1
        self.alone()
        return Decisions(0, 0)

    def close(self) -> None:
        self._drop()

    def _guard(self, act: "Callable[[StreamLink], Decisions | None]") -> Decisions:
        assert self._stream is not None
        try:
            return act(self._stream) or Decisions(0, 0)
        except LinkDownError:
            self._drop()
            self._findings.counts["sessions_lost"] += 1
            raise
        except SessionEndedError as error:
            self._drop()
            self._superseded_or_raise(error)
            raise LinkDownError(str(error)) from None

    def _superseded_or_raise(self, error: SessionEndedError) -> None:
        if error.error.code != pb.ERROR_CODE_SUPERSEDED:
            raise error
        self.superseded += 1

    def _drop(self) -> None:
        self.up = False
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

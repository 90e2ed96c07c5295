"""The master's end of the stream: it waits a bounded time for an answer, then decides alone."""

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

# Time that passes only while this process runs.

TICK_S = 0.1
JUMP_S = 1.0
"""Longer than this a tick takes only if the process, and so all its machine's, was held up."""


class RunningClock:
    """Counts ticks, so that time during which the machine stands still does not count.

    A laptop that sleeps, a container that is frozen, or a neighbour with every processor to itself
    would else look like a sidecar that does not answer.
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
"""A sidecar that is silent for longer is given up."""

AGAIN_S = 0.1
"""Pause between attempts to call an absent sidecar; at least as long as the attempt took."""

ALONE_S = 0.02
"""How long a cycle without a sidecar takes: else a world would be over before it is back."""

_OPTIONS = [*STREAM_OPTIONS, ("grpc.use_local_subchannel_pool", 1)]


class PatientLink(StreamLink):
    """A stream that waits for each answer for a bounded time.

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
    """A link that is never down: if no sidecar answers the master decides by itself.

    streams: makes a stream by one of the ways to the sidecar.
    alone: what the master does in a cycle without a sidecar.
    up: whether a session is open.
    vain: calls since the last one that was answered.
    superseded: how often another master took the sidecar.
    served: cycles that the sidecar decided.
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
        """Call the sidecar; if it does not answer, be alone."""
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
        """Wait until it has applied everything, if it is there."""
        if self._stream is not None:
            self._guard(lambda stream: stream.settle())

    def exchange(self, batch: Batch) -> Decisions:
        """Have it decide; or be alone for a cycle, and call again after a while."""
        if self._stream is not None:
            begin_s = time.perf_counter()
            decisions = self._guard(lambda stream: stream.exchange(batch))
            self._findings.cycle_took(time.perf_counter() - begin_s)
            self._findings.counts["cycles"] += 1
            self._findings.counts["decisions"] += len(decisions)
            self.served += 1
            return decisions
        if time.monotonic() - self._tried_s >= self._again_s:
            # The master answers this by a session of its own, with a snapshot of this moment.
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

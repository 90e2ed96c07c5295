"""The module's side of a session, between a brain and a stream that may fail.

It works like the C++ session library: it batches events. A request for a cycle sends the batch, and
waits for the answer to the previous cycle.
"""

from collections import deque
from collections.abc import Callable

from allocator.v1 import session_pb2 as pb
from allocator.wire.session.session_start import Greeting
from laboratory.module_protocol.client_session import (
    BadSidecarError,
    ModuleSession,
    ModuleState,
    SessionEndedError,
)

_BATCH_EVENTS_MAX = 64


class Link:
    """One session after another.

    wanted: whether the brain wants a session.
    connected: whether the sidecar has answered in this session.
    agents: handles of agents in the session.
    """

    def __init__(self, tell: Callable[[str], object], send: Callable[[bytes], None]) -> None:
        """Takes two callbacks: to pass lines to the brain, and messages to the sidecar."""
        self.wanted = False
        self.connected = False
        self.agents: dict[str, int] = {}
        self.clock_ms = 0
        self.awaited_since_ms: int | None = None
        self._tell, self._send = tell, send
        self._session: ModuleSession | None = None
        self._events: list[pb.Event] = []
        self._mark = 0
        self._marks: deque[int] = deque()
        self._cycle: tuple[bool, set[int]] | None = None
        self._asked: deque[bool] = deque()

    @property
    def open(self) -> bool:
        """Whether a session is open or being opened."""
        return self._session is not None

    def connect(self, greeting: Greeting) -> None:
        """Send a hello on a new stream."""
        self._session = ModuleSession(greeting)
        self._events, self._marks, self._cycle = [], deque(), None
        self._asked.clear()
        self.awaited_since_ms = self.clock_ms
        self._say(self._session.hello())

    def end(self, why: str) -> None:
        """Handle the end of the stream."""
        if self._session is None:
            return
        was = self.connected
        self._session, self.connected, self.awaited_since_ms = None, False, None
        self._tell(f"ended {why} connected={int(was)} retry=50")

    def receive(self, data: bytes) -> None:
        """Handle a message of the sidecar."""
        session = self._session
        if session is None:
            return
        try:
            response = pb.SessionResponse.FromString(data)
            taken = session.receive(response)
        except (SessionEndedError, BadSidecarError, ValueError) as error:
            self.end(type(error).__name__)
            return
        if isinstance(taken, pb.Welcome):
            self._tell(f"welcomed kinds={taken.kinds_max}")
            return
        self.awaited_since_ms = self.clock_ms
        mark = self._marks[0]
        cycle = self._asked[0]
        if not session.more:
            self._marks.popleft()
            self._asked.popleft()
        if not self._marks:
            self.awaited_since_ms = None
        if not self.connected:
            self.connected = True
            self._tell("connected")
        if cycle and self._session is session:
            answer = response.decisions.SerializeToString().hex()
            self._tell(f"answer-bytes {answer} known={mark}")
        self._flush_cycle()

    def snapshot(self, chunk: pb.SnapshotChunk, mark: int) -> None:
        """Send a chunk of the snapshot."""
        session = self._session
        if session is None or session.state is not ModuleState.WELCOME:
            return
        self.agents.update((each.agent_id, each.agent) for each in chunk.agents)
        if chunk.last:
            chunk.sequence, chunk.clock_ms = 1, self.clock_ms
        self._say(session.chunk(chunk))
        if chunk.last:
            self._mark = mark
            self._flush(cycle=False)  # its answer acknowledges the snapshot

    def event(self, event: pb.Event, mark: int) -> None:
        """Queue an event for the next batch."""
        if not self._streaming():
            return
        if event.HasField("add_agent"):
            self.agents[event.add_agent.agent_id] = event.add_agent.agent
        self._events.append(event)
        self._mark = max(self._mark, mark)
        if len(self._events) >= _BATCH_EVENTS_MAX:
            self._flush(cycle=False)

    def outcomes(self, outcomes: pb.Outcomes) -> None:
        """Send the outcomes of decisions."""
        if self._streaming():
            assert self._session is not None
            first = self._session.settle(len(outcomes.reason))
            assert first == outcomes.first_decision
            self._events.append(pb.Event(outcomes=outcomes))

    def cycle(self, agents: list[str]) -> None:
        """Ask for a cycle over some agents; an empty list means all."""
        if not self._streaming():
            return
        handles = {self.agents[agent] for agent in agents}
        every, some = self._cycle or (False, set[int]())
        self._cycle = every or not agents, some | handles
        self._flush_cycle()

    def tick(self) -> None:
        """Send queued messages that are due."""
        if self._streaming() and self._events:
            self._flush(cycle=False)

    def _streaming(self) -> bool:
        return self._session is not None and self._session.state is ModuleState.STREAMING

    def _flush_cycle(self) -> None:
        if self._cycle and self.connected and self._streaming() and not any(self._asked):
            self._flush(cycle=True)

    def _flush(self, *, cycle: bool) -> None:
        assert self._session is not None
        every, some = self._cycle if cycle and self._cycle else (True, set[int]())
        agents = [] if every else sorted(some)
        events, self._events = self._events, []
        if cycle:
            self._cycle = None
        self._marks.append(self._mark)
        self._asked.append(cycle)
        if self.awaited_since_ms is None:
            self.awaited_since_ms = self.clock_ms
        self._say(self._session.batch_of(self.clock_ms, events, cycle=cycle, agents=agents))

    def _say(self, request: pb.SessionRequest) -> None:
        self._send(request.SerializeToString())

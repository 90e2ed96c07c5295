"""A cluster, the module's brain, a session and the sidecar's core under one seeded scheduler.

There are no threads, sockets or clocks: messages wait in a queue for their time, and all random
choices come from the seed. So a seed replays exactly, and any violation can be reproduced.

Faults: streams break, which each side notices at a different time, and messages in transit are
truncated or duplicated; one side reads slowly; the sidecar dies and loses its state; the master
dies and another takes over; clocks jump; operators change the policy.
"""

import hashlib
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from allocator import policies
from allocator.core import (
    Allocator,
    EventError,
    Options,
    PolicySpec,
    SetDemand,
    SetPolicy,
    Settings,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire.session.session_start import Greeting
from allocator.wire.session.sidecar import Sidecar
from tests.simulation.amounts import Amounts, parse
from tests.simulation.brain import Brain
from tests.simulation.link import Link
from tests.simulation.master import Master

_MINIMUM = ({"cpus": 10}, {"mem": 32_000})
_GREETING = Greeting("master", "instance", 1, Options(minimum=_MINIMUM))
_POLICIES = ("drf", "choosy", "ps-dsf", "rps-dsf", "tsf")


@dataclass
class Faults:
    """Probability of each fault per act, and a planted defect for tests of the simulation."""

    cut: float = 0.01
    stall: float = 0.01
    sidecar_dies: float = 0.002
    master_dies: float = 0.002
    clock_jumps: float = 0.003
    policy: float = 0.002
    release_lost: float = 0.0

    @staticmethod
    def none() -> "Faults":
        return Faults(0, 0, 0, 0, 0, 0)


@dataclass(eq=False)
class _Stream:
    """A stream: its number in the sidecar, and until when each direction is delayed."""

    number: int
    sidecar: Sidecar
    to_sidecar_ms: int = 0
    to_module_ms: int = 0
    cut: bool = False
    last: bytes = b""


class Simulation:
    """One world, determined by its seed.

    deliveries, faulted: messages delivered and faults injected so far.
    """

    SILENCE_MS = 5000
    """Maximum wait for an answer before the session ends."""

    def __init__(self, seed: int, library: Path, faults: Faults | None = None) -> None:
        """Start with an empty master and an empty sidecar."""
        self.faults = faults or Faults()
        self.deliveries = self.faulted = 0
        self.now_ms = 1_000_000
        self._library = library
        self._chance = random.Random(seed)
        self._trace = hashlib.sha256()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._skew_ms = 0  # offset of the master's clock
        self._wake_at: int | None = None
        self._stream: _Stream | None = None
        self._lives = count(1)
        self.sidecar = self._new_sidecar()
        self.brain = self._new_brain()
        self.link = Link(self.tell, self._send)
        self._greeting = _GREETING
        self.master = self._new_master()
        self._begin_master()

    @property
    def events(self) -> int:
        """Events so far: facts of the master, offers, delivered messages."""
        return self.master.facts + self.master.offers_made + self.deliveries

    def digest(self) -> str:
        """A hash of the trace so far."""
        return self._trace.hexdigest()

    def run(self, acts: int) -> None:
        """Play a number of acts with faults; then let all messages arrive, and audit the books."""
        for _ in range(acts):
            self._pass(self._chance.randrange(0, 40))
            self.master.act()
            self._fault()
        self.heal()
        self.audit()

    # Time.

    def _at(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_ms + delay_ms, next(self._order), action))

    def _pass(self, ms: int) -> None:
        end = self.now_ms + ms
        while self._queue and self._queue[0][0] <= end:
            at, _, action = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, at)
            action()
        self.now_ms = end
        self._watch()

    def _watch(self) -> None:
        """Do what the session library does periodically."""
        self.link.clock_ms = max(self.link.clock_ms, self.now_ms + self._skew_ms)
        self.link.tick()
        since = self.link.awaited_since_ms
        if since is not None and self.link.clock_ms - since > self.SILENCE_MS:
            self._drop("silent")
        if self.link.wanted and not self.link.open:
            self._connect()

    # The brain.

    def tell(self, line: str) -> list[str]:
        """Run a line, and carry out the brain's effects."""
        now = self.now_ms + self._skew_ms
        self.link.clock_ms = max(self.link.clock_ms, now)
        said = self.brain.run(f"at {now}\n{line}\ntimers")
        timers = said.pop()
        self._note(line, *said)
        for each in said:
            self._carry_out(each)
        self._set_timer(timers)
        return said

    def _set_timer(self, timers: str) -> None:
        soon, _, when = timers.partition(", wake at ")
        if soon == "soon":
            due = self.now_ms + self._chance.randrange(3)
        elif when == "never":
            return
        else:
            due = max(self.now_ms, int(when) - self._skew_ms)
        if self._wake_at is None or due < self._wake_at:
            self._wake_at = due
            self._at(due - self.now_ms, partial(self._wake, due, self.brain))

    def _wake(self, due: int, brain: Brain) -> None:
        if self._wake_at != due or brain is not self.brain:
            return
        self._wake_at = None
        since = self.link.awaited_since_ms
        silent = 0 if since is None else max(self.link.clock_ms - since, 0)
        self.tell(f"wake silent={silent}")

    def _carry_out(self, effect: str) -> None:
        verb, _, rest = effect.partition(" ")
        if verb == "start":
            self.link.wanted = True
        elif verb == "stop":
            self.link.wanted = False
            self._drop("stopped")
        elif verb == "snapshot":
            mark, _, data = rest.partition(": ")
            self.link.snapshot(pb.SnapshotChunk.FromString(bytes.fromhex(data)), int(mark))
        elif verb == "send":
            mark, _, data = rest.partition(": ")
            event = pb.Event.FromString(bytes.fromhex(data))
            lost = event.HasField("release") and self._chance.random() < self.faults.release_lost
            if not lost:
                self.link.event(event, int(mark))
        elif verb == "outcomes:":
            self.link.outcomes(pb.Outcomes.FromString(bytes.fromhex(rest)))
        elif effect.startswith("ask for a cycle"):
            agents = rest.removeprefix("for a cycle").partition(" as of ")[0]
            self.link.cycle(agents.split())
        else:
            self.master.on_line(effect)

    # The streams.

    def _connect(self) -> None:
        self._stream = _Stream(self.sidecar.open(), self.sidecar)
        self._stream.to_sidecar_ms = self._stream.to_module_ms = self.now_ms
        self.link.connect(self._greeting)

    def _drop(self, why: str) -> None:
        """End the stream from the module's side; the sidecar notices later."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cut = True
            late = self._chance.choice((0, 5, 200, 3000))
            self._at(late, partial(self._close, stream))
            if stream.last and self._chance.random() < 0.5:
                # The last message arrives again, truncated or whole.
                cut = self._chance.randrange(len(stream.last) + 1)
                self._at(late // 2, partial(self._deliver, stream, stream.last[:cut]))
        self.link.end(why)

    def _close(self, stream: _Stream) -> None:
        for number, answer in stream.sidecar.close(stream.number):
            self._answer(number, answer)

    def _send(self, data: bytes) -> None:
        stream = self._stream
        if stream is None:
            return
        stream.last = data
        stream.to_sidecar_ms = max(stream.to_sidecar_ms, self.now_ms + self._chance.randrange(12))
        due = stream.to_sidecar_ms - self.now_ms
        self._at(due, partial(self._deliver, stream, data))

    def _deliver(self, stream: _Stream, data: bytes) -> None:
        if stream.sidecar is not self.sidecar:
            return  # that sidecar is dead
        self.deliveries += 1
        for number, answer in stream.sidecar.receive(stream.number, data):
            self._answer(number, answer)

    def _answer(self, number: int, answer: pb.SessionResponse) -> None:
        data = answer.SerializeToString()
        self._note(str(number), data.hex())
        stream = self._stream
        if stream is None or stream.number != number or stream.sidecar is not self.sidecar:
            return
        stream.to_module_ms = max(stream.to_module_ms, self.now_ms + self._chance.randrange(12))
        self._at(stream.to_module_ms - self.now_ms, partial(self._hear, stream, data))

    def _hear(self, stream: _Stream, data: bytes) -> None:
        if stream is not self._stream:
            return
        self.deliveries += 1
        self.link.receive(data)
        if not self.link.open:
            self._drop("the session ended")

    # Faults.

    def _fault(self) -> None:
        faults: list[tuple[float, Callable[[], None]]] = [
            (self.faults.cut, partial(self._drop, "cut")),
            (self.faults.stall, self._stall),
            (self.faults.sidecar_dies, self._kill_sidecar),
            (self.faults.master_dies, self._kill_master),
            (self.faults.clock_jumps, self._jump),
            (self.faults.policy, self._change_policy),
        ]
        for often, strike in faults:
            if self._chance.random() < often:
                self.faulted += 1
                strike()

    def _stall(self) -> None:
        """Delay one direction for a while."""
        if self._stream is not None:
            until = self.now_ms + self._chance.choice((300, 900, 1500, 7000))
            if self._chance.random() < 0.5:
                self._stream.to_sidecar_ms = until
            else:
                self._stream.to_module_ms = until

    def _kill_sidecar(self) -> None:
        self._drop("the sidecar died")
        self.sidecar = self._new_sidecar()

    def _kill_master(self) -> None:
        self._drop("the master died")
        self.brain.close()
        self.brain = self._new_brain()
        self._begin_master()

    def _begin_master(self) -> None:
        life = next(self._lives)
        self._greeting = replace(
            _GREETING, instance_id=f"life-{life}", instance_started_us=life * 1_000_000
        )
        self.link = Link(self.tell, self._send)
        self._wake_at = None
        self.master.begin()

    def _jump(self) -> None:
        self._skew_ms += self._chance.choice((-10_000, -500, 700, 60_000, 3_600_000))

    def _change_policy(self) -> None:
        spec = PolicySpec(
            self._chance.choice(_POLICIES),
            mode=self._chance.choice(("oblivious", "characterised")),
        )
        try:
            self.sidecar.step(SetPolicy(spec))
        except EventError as problem:
            raise AssertionError(f"{spec} is refused") from problem

    # Audits.

    def heal(self) -> None:
        """Let everything arrive, without further faults or acts."""
        self.master.rest()
        for _ in range(3000):
            self._pass(10)
        assert self.link.connected, "no session after half a minute without faults"
        assert not self.sidecar.allocator.state.open_decisions, "decisions without an outcome"

    def audit(self) -> None:
        """Compare the world, the brain's books and the sidecar's."""
        assert not self.brain.run("check")
        truth = {key: _counted(amounts) for key, amounts in self.master.by_holder().items()}
        assert self._of_brain() == truth
        assert self._of_sidecar() == truth

    def _of_brain(self) -> dict[tuple[str, str, str], dict[str, int]]:
        found = {}
        for line in self.brain.run("books"):
            holder, holds, amounts = line.partition(" holds ")
            if holds:
                agent, _, rest = holder.partition(": ")
                framework, _, role = rest.partition(" in ")
                found[agent, framework, role] = _counted(parse(amounts))
        return found

    def _of_sidecar(self) -> dict[tuple[str, str, str], dict[str, int]]:
        self.sidecar.allocator.check()
        state = self.sidecar.allocator.state
        books, found = state.ledger.books, {}
        for row in state.ledger.rows().tolist():
            client, agent = int(books.client[row]), state.agents.info[int(books.agent[row])]
            framework = state.frameworks.info[int(state.clients.framework[client])]
            assert agent is not None
            assert framework is not None
            role = state.roles.path[int(state.clients.role[client])]
            amounts: dict[str, int] = {}
            for kind in np.flatnonzero(books.held[:, row]).tolist():
                known = state.space.kinds[kind]
                assert known is not None
                name = known.name + (f"({known.reserved_role})" if known.depth else "")
                amounts[name] = int(books.held[kind, row])
            found[agent.agent_id, framework.framework_id, role] = amounts
        return found

    def _new_master(self) -> Master:
        return Master(self._chance, self.tell)

    def _new_brain(self) -> Brain:
        return Brain(self._library)

    def _new_sidecar(self) -> Sidecar:
        build = partial(Allocator, policies.build, substitute=policies.substitute())
        welcome = pb.Welcome(protocol_version=2, sidecar_id="sidecar", kinds_max=64)
        sidecar = Sidecar(build, Settings(), welcome)
        sidecar.step(SetDemand("batch", "", {"cpus": 1000, "mem": 512_000}))  # so gangs have a size
        return sidecar

    def _note(self, *lines: str) -> None:
        for line in lines:
            self._trace.update(line.encode("utf-8", "surrogateescape"))


def _counted(amounts: Amounts) -> dict[str, int]:
    """Amounts in thousandths; a range counts its numbers."""
    return {
        name: amount if isinstance(amount, int) else 1000 * len(amount)
        for name, amount in amounts.items()
    }

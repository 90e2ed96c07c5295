"""The module's brain, in this process, in session with sidecar processes over real streams.

The master and its frameworks are simulated, and so is the module's clock: it advances with each
step of the test, and never waits for a sidecar. The speed of the machine determines whether the
sidecar or the fallback makes an offer, but not whether one is made within an interval of that
clock.
"""

import operator
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import grpc

from tests.server.sidecar_process import METHOD
from tests.simulation.amounts import contains, parse, subtract, write
from tests.simulation.master import Agent, Framework, Master
from tests.simulation.simulation import Faults, Simulation
from tests.simulation.world import Held

INTERVAL_MS = 1000
FALLBACK_AFTER_MS = 500
STEP_MS = 50
_PAUSE_S = 0.01
"""Pause after each step, so that the other process can run."""

TASK = parse("cpus:1;mem:1024")
_AGENTS, _TASKS_MAX = 12, 18
_ROLES = ("eng", "eng/ml", "ops", "batch")


class BusyMaster(Master):
    """A world under a steady load: each step starts and ends tasks, and declines other offers.

    No framework suppresses offers, refuses for longer or leaves, so that each interval has
    something to offer and a framework that takes it.
    """

    INITIALIZE = (
        f"initialize minimum=cpus:0.01|mem:32 interval={INTERVAL_MS}"
        f" fallback-after={FALLBACK_AFTER_MS}"
    )

    def begin(self) -> None:
        """Register all agents and frameworks with a master."""
        self.agents = {f"a{n}": Agent(parse("cpus:8;mem:16384")) for n in range(_AGENTS)}
        self.frameworks = {f"f{n}": Framework({role}) for n, role in enumerate(_ROLES)}
        super().begin()

    def act(self) -> None:
        """Use a part of each offer, and end tasks once there are many."""
        for offer in [*self.offers]:
            self._forget(offer)
            if contains(offer.amounts, TASK):
                self._use(offer)
            else:
                self._release(offer)
        while len(self.tasks) > _TASKS_MAX:
            self._release(self.tasks.pop(0), allocated=True)

    def _use(self, offer: Held) -> None:
        self.tasks.append(Held(offer.framework, offer.role, offer.agent, TASK))
        self._tell(f"transition {offer.agent} @{offer.role}={write(TASK)}")
        rest = subtract(offer.amounts, TASK)
        if rest:
            self._release(Held(offer.framework, offer.role, offer.agent, rest))


class _Call:
    """One stream. Messages to send wait for gRPC's thread, received ones for the next step."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)])
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._heard: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        method: Any = self._channel.stream_stream(METHOD)
        self._call = method(iter(self._said.get, None))
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def say(self, data: bytes) -> None:
        self._said.put(data)

    def heard(self) -> list[bytes | None]:
        """The messages received since the last call; None stands for the end."""
        return [self._heard.get() for _ in range(self._heard.qsize())]

    def close(self) -> None:
        self._said.put(None)
        self._call.cancel()
        self._listener.join()
        self._channel.close()

    def _listen(self) -> None:
        with suppress(grpc.RpcError):
            for data in self._call:
                self._heard.put(data)
        self._heard.put(None)


class LiveBrain(Simulation):
    """A master whose module connects to a target, at which sidecars come and go.

    offered_ms: the time of each offer, by the module's clock.
    """

    SILENCE_MS = 60 * INTERVAL_MS

    def __init__(self, library: Path, target: str) -> None:
        """Start a master; the target need not have a sidecar yet."""
        self.offered_ms: list[int] = []
        self._target = target
        self._call: _Call | None = None
        self._dump: dict[str, Any] = {}
        super().__init__(1, library, Faults.none())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._drop("stopped")
        self.brain.close()

    def step(self, *, loaded: bool = True) -> None:
        """Advance the module's clock by a step."""
        time.sleep(_PAUSE_S)
        for data in self._call.heard() if self._call else []:
            if data is None:
                self._drop("lost")
                break
            self.link.receive(data)
            if not self.link.open:
                self._drop("ended")
                break
        self._pass(STEP_MS)
        if loaded:
            self.master.act()

    def until(self, reached: Callable[[], bool]) -> None:
        """Take steps until a condition holds; pytest-timeout bounds it."""
        while not reached():
            self.step()

    def await_alone(self, cycles: int) -> None:
        """Take steps until the module has decided this many more cycles by itself."""
        enough = self._cycles()[1] + cycles
        self.until(lambda: self._cycles()[1] >= enough)

    def await_served(self, cycles: int) -> None:
        """Take steps until a sidecar has decided this many more cycles."""
        begun, alone = self._cycles()
        enough = begun - alone + cycles
        self.until(lambda: operator.sub(*self._cycles()) >= enough)

    def settle(self) -> None:
        """Take steps without load until nothing is left to offer, and all messages are answered."""
        offered, since_ms = -1, self.now_ms
        while self.now_ms - since_ms < 2 * INTERVAL_MS or self.link.awaited_since_ms is not None:
            if len(self.offered_ms) != offered:
                offered, since_ms = len(self.offered_ms), self.now_ms
            self.step(loaded=False)

    def empty_intervals(self) -> list[int]:
        """List the intervals without an offer, by number, since the first offer."""
        first = self.offered_ms[0] // INTERVAL_MS
        served = {at // INTERVAL_MS for at in self.offered_ms}
        return [each for each in range(first, self.now_ms // INTERVAL_MS) if each not in served]

    def audit_with(self, dump: dict[str, Any]) -> None:
        """Compare the world, the brain's books, and those in a sidecar's dump."""
        self._dump = dump
        self.audit()

    def _of_sidecar(self) -> dict[tuple[str, str, str], dict[str, int]]:
        frameworks = {each["framework"]: each["framework_id"] for each in self._dump["clients"]}
        roles = {each["role"]: each["path"] for each in self._dump["roles"]}
        agents = {each["agent"]: each["agent_id"] for each in self._dump["agents"]}
        names = [kind and kind["name"] for kind in self._dump["kinds"]]
        return {
            (agents[row["agent"]], frameworks[row["framework"]], roles[row["role"]]): {
                names[int(kind)]: amount for kind, amount in row["held"].items()
            }
            for row in self._dump["holdings"]
        }

    def _cycles(self) -> tuple[int, int]:
        """The number of cycles, and of those that the fallback decided."""
        (line,) = self.brain.run("counts")
        words = line.replace(",", "").split()
        return int(words[1]), int(words[3])

    def _carry_out(self, effect: str) -> None:
        if effect.startswith("offer "):
            self.offered_ms.append(self.now_ms)
        super()._carry_out(effect)

    def _new_master(self) -> Master:
        return BusyMaster(self._chance, self.tell)

    def _connect(self) -> None:
        self._call = _Call(self._target)
        self.link.connect(self._greeting)

    def _send(self, data: bytes) -> None:
        if self._call is not None:
            self._call.say(data)

    def _drop(self, why: str) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.close()
        self.link.end(why)

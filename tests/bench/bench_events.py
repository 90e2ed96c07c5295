"""Events per second of a real sidecar through a real stream, and its start-up time.

Messages are made before the clock starts; the time runs from the first message to the last answer.
Each row of an event in columns counts as an event, because it could be sent as one. Prints a table
in Markdown.
"""

import argparse
import itertools
import queue
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from allocator.core import (
    ActivateAgent,
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    Event,
    FrameworkInfo,
    Hold,
    Holdings,
    Kind,
    Release,
    Revive,
    Suppress,
    Transition,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting
from laboratory.module_protocol import ModuleSession
from tests.server.sidecar_process import METHOD, SidecarProcess

AGENTS, FRAMEWORKS, ROLES = 10_000, 1_000, 20
WINDOW = 32
"""Batches in flight: about the number that a module has between two answers."""

State = list[Event]
Batches = Iterator[list[Event]]


def cluster(agents: int = AGENTS, frameworks: int = FRAMEWORKS, disk: int = 0) -> State:
    """A cluster of the size of the performance targets, with this much disk on each agent."""
    more = {2: disk} if disk else {}
    roles = {role: f"role-{role}" for role in range(1, ROLES + 1)}
    kinds = {0: Kind("cpus"), 1: Kind("mem"), 2: Kind("disk")}
    state: State = [Define({kind: kinds[kind] for kind in (0, 1, *more)}, roles)]
    state += [
        AddFramework(row, FrameworkInfo(f"framework-{row}"), (1 + row % ROLES,))
        for row in range(1, frameworks + 1)
    ]
    state += [
        AddAgent(
            row, AgentInfo(f"agent-{row}", hostname=f"host-{row}"), {0: 64_000, 1: 2**27} | more
        )
        for row in range(1, agents + 1)
    ]
    return state


def rows(number: np.ndarray) -> Holdings:
    """One CPU and a GiB each, spread over frameworks and agents."""
    framework = 1 + number % FRAMEWORKS
    amount = np.broadcast_to(np.array([1000, 1_048_576]), (len(number), 2))
    return Holdings(
        framework, 1 + framework % ROLES, 1 + number * 7 % AGENTS, np.array([0, 1]), amount
    )


def release(number: np.ndarray, *, allocated: bool = True) -> Release:
    """Release these rows, without filters."""
    none = np.full(len(number), -1)
    return Release(rows(number), none, np.full(len(number), allocated))


def each(number: np.ndarray) -> Iterator[np.ndarray]:
    """The same rows, one event each."""
    return (number[row : row + 1] for row in range(len(number)))


def tasks(size: int) -> Batches:
    """Tasks that are added, then end: batches of either in turn."""
    for batch in itertools.count():
        number = np.arange(size) + batch * size
        yield [Hold(rows(one)) for one in each(number)]
        yield [release(one) for one in each(number)]


def accepts(size: int) -> Batches:
    """Hold, use and release in turn, so that neighbours cannot be merged; none is of an offer."""
    for batch in itertools.count():
        number = np.arange(size // 3) + batch * size
        yield [
            event
            for one in each(number)
            for event in (Hold(rows(one)), Transition(rows(one)), release(one))
        ]


def calls(size: int) -> Batches:
    """Alternating calls without resources."""
    for batch in itertools.count():
        yield [
            event
            for number in range(batch * size // 4, batch * size // 4 + size // 4)
            for event in (
                Suppress(1 + number % FRAMEWORKS),
                ActivateAgent(1 + number % AGENTS, active=False),
                Revive(1 + number % FRAMEWORKS),
                ActivateAgent(1 + number % AGENTS, active=True),
            )
        ]


def columns(size: int) -> Batches:
    """As many tasks as `tasks`, in columns."""
    for batch in itertools.count():
        number = np.arange(size) + batch * size
        yield [Hold(rows(number))]
        yield [release(number)]


WORKLOADS: dict[str, tuple[Callable[[int], Batches], tuple[int, ...]]] = {
    "tasks, a row an event": (tasks, (100, 1000)),
    "accepts, a row an event, by turns": (accepts, (99, 999)),
    "calls by turns": (calls, (100, 1000)),
    "tasks in columns": (columns, (1000, 10_000)),
}


class Peer:
    """A session that sends messages made beforehand."""

    def __init__(self, target: str, started_us: int) -> None:
        self.client = ModuleSession(Greeting("bench", f"bench-{started_us}", started_us))
        self._channel = grpc.insecure_channel(target)
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        method: Any = self._channel.stream_stream(
            METHOD, response_deserializer=pb.SessionResponse.FromString
        )
        self._answers = method(iter(self._said.get, None))

    def begin(self, state: State) -> float:
        """Open the session; returns the seconds from the hello to the answer of an empty batch."""
        begun_s = time.perf_counter()
        self._said.put(self.client.hello().SerializeToString())
        self.client.receive(next(self._answers))
        for request in self.client.snapshot(state, sequence=0, clock_ms=1):
            self._said.put(request.SerializeToString())
        self._said.put(self.client.batch(1).SerializeToString())
        self.client.receive(next(self._answers))
        return time.perf_counter() - begun_s

    def play(self, messages: list[bytes]) -> float:
        """Send all messages, and receive all answers; returns the seconds it took."""
        begun_s = time.perf_counter()
        for index, message in enumerate(messages):
            self._said.put(message)
            if index >= WINDOW:
                self.client.receive(next(self._answers))
        for _ in range(min(WINDOW, len(messages))):
            self.client.receive(next(self._answers))
        return time.perf_counter() - begun_s

    def pace(self, messages: list[bytes], every_s: float) -> float:
        """Send one message every few seconds, and receive all answers; returns the seconds."""
        heard = threading.Thread(target=lambda: [next(self._answers) for _ in messages])
        heard.start()
        begun_s = time.perf_counter()
        for index, message in enumerate(messages):
            time.sleep(max(begun_s + index * every_s - time.perf_counter(), 0.0))
            self._said.put(message)
        heard.join()
        return time.perf_counter() - begun_s

    def close(self) -> None:
        """End the session."""
        self._said.put(None)
        self._channel.close()


def measure(target: str, name: str, size: int, total: int, started_us: int) -> str:
    """One row of the table: the best and the median of five."""
    make, _ = WORKLOADS[name]
    peer = Peer(target, started_us)
    peer.begin(cluster())
    batches = make(size)
    count = max(total // size // 2 * 2, 2)
    rates = []
    for _ in range(5):
        requests = [peer.client.batch(1, events) for events in itertools.islice(batches, count)]
        took_s = peer.play([request.SerializeToString() for request in requests])
        rates.append(count * size / took_s)
    peer.close()
    return f"| {name} | {size:,} | {max(rates):,.0f} | {statistics.median(rates):,.0f} |"


def start() -> tuple[float, float]:
    """Seconds from the start of a process to its readiness, and to its first answers."""
    with tempfile.TemporaryDirectory() as directory:
        target = f"unix:{Path(directory) / 'bench.sock'}"
        with SidecarProcess(listen=[target], compiled=True) as sidecar:
            return sidecar.ready_s, Peer(target, 1).begin(cluster())


def main() -> None:
    """Measure every workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total", type=int, default=100_000, help="events of one measurement")
    arguments = parser.parse_args()
    started = [start() for _ in range(3)]
    print("| events | a batch | events/s, best | events/s, median |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        target = f"unix:{Path(directory) / 'bench.sock'}"
        with SidecarProcess(listen=[target], compiled=True):
            number = itertools.count(1)
            for name, (_, sizes) in WORKLOADS.items():
                for size in sizes:
                    print(measure(target, name, size, arguments.total, next(number)), flush=True)
    ready, first = (min(column) for column in zip(*started, strict=True))
    print(f"\nStart to ready: {ready:.2f} s. A snapshot of {AGENTS:,} agents and {FRAMEWORKS:,}")
    print(f"frameworks, written, sent and applied: {first:.2f} s.")


if __name__ == "__main__":
    main()

"""Lag of the observer at a given rate of events, and the cost for both processes.

python -m tests.bench.bench_lag [--rate 100000] [--seconds 5]

An operator asks for the policy repeatedly. The observer answers once its books include every record
that was written before the question, so the answer takes the lag plus the round trip. The first row
shows the round trip alone. Times of the processes are processor times of all their threads, from
/proc; the load of the machine is printed below.
"""

import argparse
import itertools
import os
import statistics
import threading
import time

import grpc

from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc
from tests.bench.bench_events import WORKLOADS, Peer, cluster
from tests.bench.bench_observer import OPTIONS, cpu_s
from tests.server.sidecar_process import SidecarProcess

SIZE = 1000
"""Events per batch."""

PAUSE_S = 0.01
"""Between two questions."""


class Asking(threading.Thread):
    """Asks repeatedly until told to end; `took_s` has the time that each answer took."""

    def __init__(self, stub: admin_pb2_grpc.AdminServiceStub) -> None:
        super().__init__(daemon=True)
        self._stub = stub
        self._over = threading.Event()
        self.took_s: list[float] = []

    def run(self) -> None:
        while not self._over.wait(PAUSE_S):
            begun_s = time.perf_counter()
            self._stub.GetPolicy(pb.GetPolicyRequest(), timeout=60)
            self.took_s.append(time.perf_counter() - begun_s)

    def end(self) -> None:
        self._over.set()
        self.join()


def row(
    name: str,
    sidecar: SidecarProcess,
    stub: admin_pb2_grpc.AdminServiceStub,
    messages: list[bytes],
    peer: Peer,
    every_s: float,
) -> str:
    """Send messages at a constant rate, and ask at the same time; without messages, only ask."""
    pids = sidecar.process.pid, sidecar.observer_pid
    before = [cpu_s(each) for each in pids]
    asking = Asking(stub)
    asking.start()
    took_s = peer.pace(messages, every_s)
    if not messages:
        time.sleep(1.0)
    asking.end()
    sidecar.catch_up()
    decider_s, observer_s = (cpu_s(each) - was for each, was in zip(pids, before, strict=True))
    rate = len(messages) * SIZE / took_s
    median, most = statistics.median(asking.took_s), max(asking.took_s)
    both = f"{decider_s:.2f} | {observer_s:.2f} | {observer_s / max(decider_s, 0.01):.2f}"
    return f"| {name} | {rate:,.0f} | {1000 * median:.0f} | {1000 * most:.0f} | {both} |"


def main() -> None:
    """Measure each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=100_000, help="events a second")
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args()
    print("| events | events/s | lag median, ms | most, ms | decider, s | observer, s | ratio |")
    print("|---|---|---|---|---|---|---|")
    with SidecarProcess(compiled=True) as sidecar:
        target = sidecar.targets[0]
        with grpc.insecure_channel(target, OPTIONS) as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            for number, name in enumerate(("none", "tasks, a row an event", "tasks in columns"), 1):
                peer = Peer(target, number)
                peer.begin(cluster())
                count = given.rate * given.seconds // SIZE // 2 * 2 if name in WORKLOADS else 0
                batches = WORKLOADS[name][0](SIZE) if count else iter(())
                requests = [peer.client.batch(1, each) for each in itertools.islice(batches, count)]
                messages = [each.SerializeToString() for each in requests]
                sidecar.catch_up()
                every_s = SIZE / given.rate
                print(row(name, sidecar, stub, messages, peer, every_s), flush=True)
                peer.close()
    print(f"\nLoad average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")


if __name__ == "__main__":
    main()

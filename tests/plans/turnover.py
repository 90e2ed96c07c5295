"""Plays a cluster on a real sidecar, through a real stream, until all of its tasks have ended once.

Frameworks accept every offer, in blocks of tasks. During a *turnover* each existing block ends
once, at a random moment, and the policy offers its resources again.
"""

import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

from allocator.core import Options, PolicySpec
from allocator.v1 import admin_pb2, admin_pb2_grpc
from laboratory.event_heap import Priority
from laboratory.frameworks.base import Identity, Task, fit
from laboratory.links.borrowed import set_policy
from laboratory.links.sidecar_process import SidecarProcess, channel
from laboratory.links.stream import StreamLink
from laboratory.master.emulated import EmulatedMaster
from laboratory.resources import AgentSpec
from tests.plans.clusters import Cluster

# A plan takes a few milliseconds here, but may take longer than the default wait of 200 ms on a
# starved machine; these tests are about the results of plans, not about speed.
SETTINGS = {
    "log.level": "warning",
    "policy.plan_interval_ms": "0",
    "policy.plan_first_wait_ms": "5000",
}

BLOCKS = 30
"""Approximate number of blocks of tasks on a full agent."""

TURN_MS = 20_000
"""Duration of a turnover."""

COMPILED_S = 300.0
"""Maximum time for compiling the loops."""

_NAMES = ("cpus", "mem")
_started_us = count(1)


@dataclass(eq=False)
class Greedy:
    """A framework that fills its offers with tasks, in blocks."""

    identity: Identity
    need: dict[str, int]
    block: int
    running: set[Task] = field(default_factory=set)

    def subscribed(self, master) -> None:
        self.master = master
        self.amount = master.amount(self.need)

    def offered(self, offers) -> None:
        for offer in offers:
            tasks = fit(offer.amount, self.amount)
            sizes = [self.block] * (tasks // self.block) + [tasks % self.block or 0]
            blocks = [tuple(size * each for each in self.amount) for size in sizes if size]
            self.running.update(self.master.accept(offer, blocks, refuse_ms=0))

    def lost(self, tasks) -> None:
        self.running.difference_update(tasks)

    def end(self, task: Task) -> None:
        if task.live:
            self.running.discard(task)
            self.master.end(task)


class Played:
    """A cluster on an emulated master, in a session with a sidecar."""

    def __init__(self, cluster: Cluster, target: str, seed: int = 0) -> None:
        names = _NAMES[: cluster.capacity.shape[1]]
        roles = [f"role{number}" for number in range(len(cluster.demand))]
        self.cluster = cluster
        self.master = EmulatedMaster(
            StreamLink(target, next(_started_us)),
            names,
            Options(minimum=()),
            dict(zip(roles, cluster.weight.tolist(), strict=True)),
        )
        self._rng = np.random.default_rng(seed)
        for number, capacity in enumerate((1000 * cluster.capacity).tolist()):
            has = dict(zip(names, capacity, strict=True))
            self.master.add_agent(AgentSpec(f"host{number}", has, {"number": str(number)}))
        self.frameworks = []
        for role, demand, allowed in zip(roles, cluster.demand, cluster.eligible, strict=True):
            need = dict(zip(names, (1000 * demand).tolist(), strict=True))
            agents = frozenset(map(str, np.flatnonzero(allowed).tolist()))
            identity = Identity(role, (role,), need, {"number": agents})
            tasks = int((cluster.capacity / demand).min(axis=1).max())
            self.frameworks.append(Greedy(identity, need, -(-tasks // BLOCKS)))
            self.master.subscribe(self.frameworks[-1])
        self.master.open()
        self.go_on(1_500)

    def go_on(self, for_ms: int) -> None:
        """Advance time."""
        until_ms = self.master.event_heap.now_ms + for_ms
        self.master.event_heap.at(until_ms, lambda: None, Priority.OBSERVE)
        while self.master.step(until_ms):
            pass

    def turn_over(self) -> None:
        """End each existing block once, at a random moment; its resources are offered again."""
        now_ms, heap = self.master.event_heap.now_ms, self.master.event_heap
        for framework in self.frameworks:
            for task in sorted(framework.running, key=lambda each: (each.agent, each.amount)):
                when_ms = now_ms + int(self._rng.integers(0, TURN_MS))
                heap.at(when_ms, partial(framework.end, task))
        self.go_on(TURN_MS + 1_500)

    @property
    def tasks(self) -> np.ndarray:
        """Tasks of each framework on each agent, (F, A)."""
        result = np.zeros(self.cluster.eligible.shape, np.int64)
        for row, framework in enumerate(self.frameworks):
            for task in framework.running:
                result[row, task.agent - 1] += fit(task.amount, framework.amount)
        return result


def planned(cluster: Cluster, sidecar: SidecarProcess, policy: PolicySpec, turns: int = 1):
    """Start with an empty cluster; returns tasks (F, A) at once, and after each turnover."""
    set_policy(sidecar.target, policy)
    return _played(cluster, sidecar, turns)


def mended(cluster: Cluster, sidecar: SidecarProcess, policy: PolicySpec, turns: int = 1):
    """Start with DRF's allocation, then switch; returns tasks as in `planned`."""
    set_policy(sidecar.target, PolicySpec("drf", mode="characterised"))
    return _played(cluster, sidecar, turns, policy)


def _played(cluster, sidecar, turns, policy=None) -> list[np.ndarray]:
    played = Played(cluster, sidecar.target)
    try:
        result = [played.tasks]
        if policy is not None:
            set_policy(sidecar.target, policy)
        for _ in range(turns):
            played.turn_over()
            result.append(played.tasks)
        return result
    finally:
        played.master.close()


def await_compiled(sidecar: SidecarProcess) -> None:
    """Wait until the sidecar's loops are compiled: before that it makes no plans."""
    deadline_s = time.monotonic() + COMPILED_S
    with channel(sidecar.target) as to_sidecar:
        admin = admin_pb2_grpc.AdminServiceStub(to_sidecar)
        while admin.GetStatus(admin_pb2.GetStatusRequest()).loops_state != "compiled":
            assert time.monotonic() < deadline_s, sidecar.log.read_text("utf-8")
            time.sleep(0.1)

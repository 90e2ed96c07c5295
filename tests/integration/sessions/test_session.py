"""A long session with a real process: no message between module and core is lost or changed.

The same events go over the stream and directly into an allocator in this process. Both must make
the same decisions in every cycle. A replay of the process's journal must give the bytes that the
process sent.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    Event,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    Release,
    RemoveAgent,
    Revive,
    SetPaused,
    SetPolicy,
    Settings,
    SetWeights,
    Suppress,
    Transition,
)
from allocator.policies import build
from allocator.v1 import admin_pb2, admin_pb2_grpc, settings_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import read_records, replay
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import holding
from tests.wire.strategies import same

ROLES = {1: "eng", 2: "eng/ads", 3: "ops", 4: "eng/web"}
FRAMEWORKS = 8
AGENTS = 40
REFUSALS = (
    pb.OUTCOME_REASON_FILTERED,
    pb.OUTCOME_REASON_LIMIT,
    pb.OUTCOME_REASON_NOTHING_AVAILABLE,
)

State = list[Event]


def agent(row: int, name: int) -> AddAgent:
    zone = {"zone": "ab"[name % 2]}
    info = AgentInfo(f"agent-{name}", hostname=f"host-{name}", attributes=zone)
    return AddAgent(row, info, {0: 1000 * (2 + name % 7), 1: 1024_000 * (1 + name % 5)})


def opening() -> State:
    """Agents of several sizes, frameworks in nested roles, one with a known demand."""
    frameworks = [
        AddFramework(
            row,
            FrameworkInfo(
                f"f-{row}", labels={"allocator.demand": "cpus:1;mem:512"} if row < 3 else {}
            ),
            (1 + row % 4, 3) if row == 5 else (1 + row % 4,),
        )
        for row in range(1, FRAMEWORKS + 1)
    ]
    agents = [agent(row, row) for row in range(1, AGENTS + 1)]
    return [Define({0: Kind("cpus"), 1: Kind("mem")}, ROLES), *frameworks, *agents]


@dataclass
class Master:
    """Random events of a master, drawn from a seed."""

    chance: random.Random
    names: int = AGENTS
    tasks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """Running tasks: framework, role, agent, cpus, mem."""
    pending: list[Event] = field(default_factory=list)
    """Events for the next batch."""

    def settle(self, offers: Decisions, module: GrpcModule) -> list[Event]:
        """Outcomes of all decisions, and what the frameworks did with the offers."""
        reason: list[int] = []
        partial: list[list[int]] = []
        calls: State = []
        columns = dict(zip(offers.kind.tolist(), offers.amount.T.tolist(), strict=True))
        for row in range(len(offers)):
            cpus = columns.get(0, [0] * len(offers))[row]
            mem = columns.get(1, [0] * len(offers))[row]
            drawn = self.chance.random()
            if drawn < 0.1:
                reason.append(self.chance.choice(REFUSALS))
                continue
            reason.append(pb.OUTCOME_REASON_PARTIAL if drawn < 0.2 else pb.OUTCOME_REASON_OFFERED)
            if drawn < 0.2:
                cpus, mem = cpus // 2, mem // 2
                partial.append([cpus, mem])
            who = int(offers.framework[row]), int(offers.role[row]), int(offers.agent[row])
            calls += self._answer(*who, cpus, mem)
        amount = np.array(partial, np.int64).reshape(len(partial), 2)
        outcomes = module.client.outcomes(np.array(reason, np.int64), np.array([0, 1]), amount)
        return [outcomes, *calls]

    def _answer(self, framework: int, role: int, agent: int, cpus: int, mem: int) -> State:
        """Use a part and release the rest, or decline all of it."""
        if self.chance.random() < 0.4:
            return [self._back(framework, role, agent, cpus, mem, refuse_ms=3000)]
        use_cpus, use_mem = cpus // 3, mem // 3
        self.tasks.append((framework, role, agent, use_cpus, use_mem))
        return [
            self._back(framework, role, agent, cpus - use_cpus, mem - use_mem, refuse_ms=0),
            Transition(holding(framework, role, agent, cpus=use_cpus, mem=use_mem)),
        ]

    def _back(
        self,
        framework: int,
        role: int,
        agent: int,
        cpus: int,
        mem: int,
        *,
        refuse_ms: int = -1,
        allocated: bool = False,
    ) -> Release:
        released = holding(framework, role, agent, cpus=cpus, mem=mem)
        return Release(released, np.array([refuse_ms]), np.array([allocated]))

    def happenings(self) -> State:
        """Events besides offers: tasks end, agents fail and return, frameworks call."""
        events: State = []
        self.chance.shuffle(self.tasks)
        for _ in range(min(len(self.tasks), self.chance.randrange(30))):
            events.append(self._back(*self.tasks.pop(), allocated=True))
        if self.chance.random() < 0.3:
            row = self.chance.randrange(1, AGENTS + 1)
            self.tasks = [task for task in self.tasks if task[2] != row]
            self.names += 1
            events += [RemoveAgent(row), agent(row, self.names)]
        framework = self.chance.randrange(1, FRAMEWORKS + 1)
        role = self.chance.choice(list(ROLES.values()))
        events += self.chance.choices(
            [
                Suppress(framework),
                Revive(framework),
                SetWeights({role: self.chance.choice([0.5, 1.0, 2.0])}),
                ActivateAgent(1 + framework, active=self.chance.random() < 0.8),
                ActivateFramework(framework, active=self.chance.random() < 0.8),
                SetPaused(paused=self.chance.random() < 0.1),
            ],
            k=2,
        )
        return events


class Mirror:
    """An allocator that receives events directly."""

    def __init__(self, settings: Settings, clock_ms: int) -> None:
        self.allocator = Allocator(build, settings)
        for event in [Options(), *opening()]:
            self.allocator.step(event)
        self.allocator.advance(clock_ms)

    def batch(self, clock_ms: int, events: list[Event]) -> Decisions:
        self.allocator.advance(clock_ms)
        for event in events:
            self.allocator.step(event)
        return self.allocator.allocate(clock_ms)


class Witnessed(GrpcModule):
    """A module that keeps the bytes of every answer."""

    def __init__(self, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.kept: list[bytes] = []

    def hear(self) -> pb.SessionResponse:
        response = super().hear()
        if response.HasField("decisions"):
            self.kept.append(response.SerializeToString())
        return response


def play(module: Witnessed, mirror: Mirror, master: Master, cycles: int) -> int:
    """Play cycles on both; returns the number of offers decided."""
    decided = 0
    for cycle in range(cycles):
        over_wire = module.batch(*master.pending, cycle=True)
        here = mirror.batch(module.clock_ms, master.pending)
        assert same(over_wire, here) or (len(over_wire) == len(here) == 0), f"cycle {cycle}"
        decided += len(here)
        master.pending = [*master.settle(here, module), *master.happenings()]
    mirror.allocator.check()
    return decided


SPECS = [
    pytest.param(PolicySpec("drf"), id="drf"),
    pytest.param(
        PolicySpec("rps-dsf", "joint", "characterised"), id="rps-dsf", marks=pytest.mark.long
    ),
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_process_decides_as_the_core_does_and_keeps_it(tmp_path: Path, spec: PolicySpec):
    journal = tmp_path / "journal"
    flags = [
        f"policy.name={spec.name}",
        f"policy.selection={spec.selection}",
        f"policy.mode={spec.mode}",
        "policy.seed=7",
        f"journal.path={journal}",
    ]
    with SidecarProcess(*flags, listen=[f"unix:{tmp_path}/a.sock"], compiled=True) as sidecar:
        with sidecar.channel() as channel:
            module = Witnessed(channel)
            module.begin(opening(), sequence=100)
            mirror = Mirror(Settings(policy=spec, seed=7), module.clock_ms)
            master = Master(random.Random(spec.name))
            assert play(module, mirror, master, 40) > 100
            later = PolicySpec("tsf", mode="characterised")
            admin = admin_pb2_grpc.AdminServiceStub(channel)
            request = admin_pb2.SetPolicyRequest(
                policy=settings_pb2.Policy(name=later.name, mode=later.mode)
            )
            admin.SetPolicy(request, timeout=60)
            mirror.allocator.step(SetPolicy(later))
            play(module, mirror, master, 20)
            module.leave()
            assert list(module.heard()) == []
        assert sidecar.terminate() == 0
    with journal.open("rb") as file:
        records = list(read_records(file))
    for _ in range(2):
        again = [answer.response for answer in replay(records, build)]
        decisions = [answer for answer in again if answer.HasField("decisions")]
        assert [answer.SerializeToString() for answer in decisions] == module.kept

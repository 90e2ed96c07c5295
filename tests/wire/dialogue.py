"""A sidecar and modules in one process: what one says the other takes, as bytes."""

from collections.abc import Iterable

import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    Event,
    FrameworkInfo,
    Holdings,
    Kind,
    Limits,
    Outcomes,
    PolicySpec,
    Release,
    Settings,
)
from allocator.policies import build
from allocator.sim.module_protocol import ModuleSession
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, Sidecar

POLICY = PolicySpec("drf", selection="listed")
WELCOME = pb.Welcome(
    protocol_version=2, sidecar_version="test", sidecar_id="sidecar", message_bytes_max=4194304
)

STATE = (
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops"}),
    AddFramework(1, FrameworkInfo("spark"), (1,)),
    AddFramework(2, FrameworkInfo("kafka"), (2,)),
    AddAgent(1, AgentInfo("agent-1"), {0: 4000, 1: 8_192_000}),
    AddAgent(2, AgentInfo("agent-2"), {0: 2000, 1: 4_096_000}),
)
"""Two frameworks in two roles, two agents, nothing held."""


def new_sidecar(policy: PolicySpec = POLICY, limits: Limits | None = None) -> Sidecar:
    return Sidecar(
        lambda settings: Allocator(build, settings, limits), Settings(policy=policy), WELCOME
    )


class Module:
    """A module that is wired to a sidecar."""

    def __init__(self, sidecar: Sidecar, instance: str = "instance", started_us: int = 1) -> None:
        self.sidecar = sidecar
        self.number = sidecar.open()
        self.client = ModuleSession(Greeting("master", instance, started_us))
        self.clock_ms = 1000
        self.others: list[tuple[int, pb.SessionResponse]] = []
        """What the sidecar said in other sessions."""

    def say(self, request: pb.SessionRequest | bytes) -> list[pb.SessionResponse]:
        """Say something; gives the answers in this session."""
        data = request if isinstance(request, bytes) else request.SerializeToString()
        answers = self.sidecar.receive(self.number, data)
        self.others += [answer for answer in answers if answer[0] != self.number]
        return [response for number, response in answers if number == self.number]

    def tell(self, request: pb.SessionRequest) -> list[pb.Welcome | Decisions]:
        """Say something, and believe the answers."""
        return [self.client.receive(response.SerializeToString()) for response in self.say(request)]

    def begin(self, state: Iterable[Event] = STATE, sequence: int = 0) -> "Module":
        self.tell(self.client.hello())
        for request in self.client.snapshot(state, sequence=sequence, clock_ms=self.clock_ms):
            assert self.tell(request) == []
        return self

    def batch(self, *events: Event, cycle: bool = False, agents=()) -> Decisions:
        self.clock_ms += 1000
        (answer,) = self.tell(self.client.batch(self.clock_ms, events, cycle=cycle, agents=agents))
        assert isinstance(answer, Decisions)
        return answer

    def refused(self, *events: Event, **batch) -> pb.Error:
        """Send a batch that the sidecar must refuse."""
        self.clock_ms += 1000
        (answer,) = self.say(self.client.batch(self.clock_ms, events, **batch))
        assert answer.WhichOneof("message") == "error"
        return answer.error

    def all_offered(self, decisions: Decisions) -> Outcomes:
        offered = np.full(len(decisions), pb.OUTCOME_REASON_OFFERED)
        none = np.empty(0, np.int64)
        return self.client.outcomes(offered, none, none.reshape(0, 0))


def declined(decisions: Decisions, refuse_ms: int = 5000) -> Release:
    """All of the offers come back."""
    return Release(
        Holdings(
            decisions.framework,
            decisions.role,
            decisions.agent,
            decisions.kind,
            decisions.amount,
        ),
        np.full(len(decisions), refuse_ms),
        np.zeros(len(decisions), np.bool_),
    )


def holding(framework: int, role: int, agent: int, **amounts: int) -> Holdings:
    """One row: amounts of cpus and mem in thousandths."""
    kinds = {"cpus": 0, "mem": 1}
    return Holdings(
        np.array([framework]),
        np.array([role]),
        np.array([agent]),
        np.array([kinds[name] for name in amounts], np.int64),
        np.array([list(amounts.values())], np.int64),
    )

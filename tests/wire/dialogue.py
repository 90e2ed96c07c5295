"""A sidecar and modules in one process, which exchange messages as bytes."""

from collections.abc import Iterable

import numpy as np

from allocator.core import (
    Allocator,
    Decisions,
    Event,
    Holdings,
    Outcomes,
    PolicySpec,
    Release,
    SessionLimits,
    Settings,
)
from allocator.policies import build
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, Sidecar
from laboratory.module_protocol import ModuleSession
from tests.world.rows import given_back, holdings, holdings_of
from tests.world.world import World

POLICY = PolicySpec("drf", selection="listed")
WELCOME = pb.Welcome(
    protocol_version=2, sidecar_version="test", sidecar_id="sidecar", message_bytes_max=4194304
)


def _two_and_two() -> tuple[Event, ...]:
    world = World(POLICY)
    world.bind("cpus", "mem", roles=("eng", "ops"))
    world.framework("eng", multi_role=False, framework_id="spark")
    world.framework("ops", multi_role=False, framework_id="kafka")
    world.agent("cpus:4;mem:8192", capabilities=())
    world.agent("cpus:2;mem:4096", capabilities=())
    return tuple(world.told)


STATE = _two_and_two()
"""Two frameworks in two roles, two agents, nothing held."""


def new_sidecar(policy: PolicySpec = POLICY, limits: SessionLimits | None = None) -> Sidecar:
    return Sidecar(
        lambda settings: Allocator(build, settings, limits), Settings(policy=policy), WELCOME
    )


class Module:
    """A module that is connected to a sidecar."""

    def __init__(self, sidecar: Sidecar, instance: str = "instance", started_us: int = 1) -> None:
        self.sidecar = sidecar
        self.number = sidecar.open()
        self.client = ModuleSession(Greeting("master", instance, started_us))
        self.clock_ms = 1000
        self.others: list[tuple[int, pb.SessionResponse]] = []
        """The sidecar's answers in other sessions."""

    def say(self, request: pb.SessionRequest | bytes) -> list[pb.SessionResponse]:
        """Send a message; returns the answers in this session."""
        data = request if isinstance(request, bytes) else request.SerializeToString()
        answers = self.sidecar.receive(self.number, data)
        self.others += [answer for answer in answers if answer[0] != self.number]
        return [response for number, response in answers if number == self.number]

    def tell(self, request: pb.SessionRequest) -> list[pb.Welcome | Decisions]:
        """Send a message, and process the answers."""
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
    """Release all of the offers."""
    return given_back(holdings_of(decisions), refuse_ms)


def holding(framework: int, role: int, agent: int, **amounts: int) -> Holdings:
    """One row: amounts of cpus and mem in thousandths."""
    kinds = tuple({"cpus": 0, "mem": 1}[name] for name in amounts)
    return holdings((framework, role, agent, *amounts.values()), kinds=kinds)

"""A varied cluster: agents of three types, a tree of roles, malicious names."""

import grpc
import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    Event,
    FrameworkInfo,
    Hold,
    Kind,
    SetWeights,
    Suppress,
)
from allocator.v1 import admin_pb2, settings_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from tests.rule_changes import rule_change
from tests.server.sidecar_process import GrpcModule
from tests.world.rows import holdings, settled

ROLES = {1: "eng", 2: "eng/ads", 3: "eng/search", 4: "eng/search/index", 5: "ops", 6: "science"}

HOSTILE = '<script>document.title="stolen"</script>'
TURNED = "abc\N{RIGHT-TO-LEFT OVERRIDE}fed"

NAMES = ("spark-pi", "spark-etl", HOSTILE, "indexer", TURNED, "marathon", "jupyter " * 8, "hpc")

DRAINED = ("rack00-node-4", "agent-5", "rack01-node-61")
SHADOW = "ps-dsf"

_TYPES = ((8000, 16_384_000), (16_000, 32_768_000), (64_000, 131_072_000))


def state(agents: int, frameworks: int = len(NAMES)) -> list[Event]:
    """Agents, frameworks in all roles, and their holdings; always the same."""
    chance = np.random.default_rng(7)
    found: list[Event] = [
        Define({0: Kind("cpus"), 1: Kind("mem")}, ROLES),
        SetWeights({"eng": 2.0, "ops": 0.5}),
    ]
    for number in range(1, frameworks + 1):
        name = NAMES[number - 1] if number <= len(NAMES) else f"job-{number}"
        framework_info = FrameworkInfo(f"id-{number:04}", name=name)
        found.append(AddFramework(number, framework_info, (1 + number % len(ROLES),)))
    rows = []
    for number in range(1, agents + 1):
        cpus, mem = _TYPES[number % len(_TYPES)]
        host = f"rack{number // 40:02}-node-{number}"
        active = number % 29 != 0
        info = AgentInfo(
            f"agent-{number}",
            hostname=host,
            attributes={"zone": "abc"[number % 3]},
            capabilities=frozenset({"HIERARCHICAL_ROLE"}),
        )
        found.append(AddAgent(number, info, {0: cpus, 1: mem}, active=active))
        if number % 5:
            framework = int(chance.integers(1, frameworks + 1))
            part = float(chance.random())
            role = 1 + framework % len(ROLES)
            amounts = int(part * cpus), int(part * chance.random() * mem)
            rows.append((framework, role, number, *amounts))
    return [*found, Hold(holdings(*rows))]


def begin(channel: grpc.Channel, agents: int, frameworks: int = len(NAMES)) -> GrpcModule:
    """Open a session with the cluster; one framework suppresses offers."""
    module = GrpcModule(channel).begin(state(agents, frameworks))
    module.batch(Suppress(2))
    return module


def set_by_operators(channel: grpc.Channel) -> None:
    """Drain some agents, and set a shadow policy."""
    admin = AdminServiceStub(channel)
    for agent in DRAINED:
        admin.ChangeRule(rule_change(drain=settings_pb2.Drain(agent=agent)))
    policy = settings_pb2.Policy(name=SHADOW, mode="characterised")
    admin.SetShadow(admin_pb2.SetShadowRequest(policy=policy))


def cycle(module: GrpcModule) -> int:
    """Run a cycle whose decisions all become offers; returns their number."""
    decisions = module.batch(cycle=True)
    module.batch(settled(decisions))
    return len(decisions)

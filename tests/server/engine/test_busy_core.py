"""Health checks are answered while the core is in the middle of a long cycle."""

import queue
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from allocator.core import (
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Decisions,
    Define,
    FrameworkInfo,
    Kind,
)
from tests.server.sidecar_process import GrpcModule, SidecarProcess

AGENTS, FRAMEWORKS, TASKS = 10, 3000, 30_000
TASK = {DEMAND_LABEL: "cpus:1;mem:2"}
STATE = (
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng"}),
    *(
        AddAgent(agent, AgentInfo(f"agent-{agent}"), {0: 1000 * TASKS, 1: 2000 * TASKS})
        for agent in range(1, AGENTS + 1)
    ),
    *(
        AddFramework(framework, FrameworkInfo(f"framework-{framework}", labels=TASK), (1,))
        for framework in range(1, FRAMEWORKS + 1)
    ),
)
"""Three hundred thousand tasks to grant, one by one among 3,000 frameworks: a loop of seconds."""

ANSWERS = 3
"""More checks than time outside the loop would allow, as each waits half a second for the core."""


def ask(address: str, path: str) -> str:
    """The text of the page, without the seconds; 503 is an answer, too."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as page:
            text = page.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    return text.decode().strip().partition(" for ")[0]


@pytest.mark.long
def test_health_is_answered_in_the_middle_of_a_cycle():
    settings = ("policy.name=rps-dsf", "policy.selection=random", "policy.mode=characterised")
    with SidecarProcess(*settings, compiled=True) as sidecar, sidecar.channel() as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        module = GrpcModule(channel).begin(STATE)
        module.batch()
        made: queue.SimpleQueue[Decisions] = queue.SimpleQueue()
        cycle = threading.Thread(target=lambda: made.put(module.batch(cycle=True)))
        cycle.start()
        answers = 0
        while made.empty() and cycle.is_alive():
            assert ask(sidecar.http, "/healthz") in {"ok", "the core has not answered"}
            found = health.Check(health_pb2.HealthCheckRequest(service=""), timeout=60)
            assert found.status == health_pb2.HealthCheckResponse.SERVING
            answers += made.empty()
        cycle.join()
        assert len(made.get()) >= AGENTS
        assert answers >= ANSWERS

"""A session with a running sidecar whose settings operators change, for tests."""

import subprocess
import time
from collections.abc import Sequence

import numpy as np

from allocator.core import Decisions, Event, Outcomes
from allocator.v1 import session_pb2
from tests.integration.operators.test_lasting_settings import ask, command
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess


class Session:
    """A sidecar in session, its module, and the command line."""

    def __init__(self, process: SidecarProcess, cluster: Sequence[Event] = CLUSTER) -> None:
        self.process = process
        self.channel = process.channel()
        self.module = GrpcModule(self.channel).begin(cluster)

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return command(self.process, *words)

    def ask(self, *words: str) -> dict:
        """Run a command that must succeed; returns its JSON."""
        return ask(self.process, *words)

    def offer(self, reason: int = session_pb2.OUTCOME_REASON_OFFERED) -> Decisions:
        """Run a cycle, and send the outcomes of its decisions."""
        decisions = self.module.batch(cycle=True)
        none = np.empty(0, np.int64)
        reasons = np.full(len(decisions), reason)
        outcomes: Outcomes = self.module.client.outcomes(reasons, none, np.empty((0, 0), np.int64))
        self.module.batch(outcomes)
        return decisions


def compared(process: SidecarProcess) -> dict:
    """Poll until the shadow policy has made decisions."""
    while True:  # pytest-timeout bounds it
        found = ask(process, "shadow", "show")
        if found["counts"]["compared"]:
            return found
        time.sleep(0.05)

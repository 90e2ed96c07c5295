"""A real sidecar with a planning policy: its observer makes plans, and so does its replacement."""

import os
import signal

from allocator.core import AddAgent, AgentInfo
from tests.server.engine.test_loop_journal import records
from tests.server.metrics.scraping import value
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true


def adopted(sidecar: SidecarProcess) -> float:
    return value(sidecar.scraped(), "plans_total", result="adopted")


def test_the_first_offers_wait_for_the_observers_plan_and_another_observer_plans_again(tmp_path):
    flags = ("policy.name=cmmf", "policy.plan_first_wait_ms=5000", "policy.plan_interval_ms=0")
    journal = tmp_path / "journal"
    with (
        SidecarProcess(*flags, f"journal.path={journal}") as sidecar,
        sidecar.channel() as channel,
    ):
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True))
        await_true(lambda: adopted(sidecar) >= 1)
        killed = sidecar.observer_pid
        os.kill(killed, signal.SIGKILL)
        module.batch(AddAgent(8, AgentInfo("agent-8"), {0: 64_000}), cycle=True)
        sidecar.await_said("the observer ended and is restarted")
        before = adopted(sidecar)

        def is_planned_again() -> bool:
            module.batch(cycle=True)
            return adopted(sidecar) > before

        if before < 2:  # then it had already been made
            await_true(is_planned_again)
        assert sidecar.observer_pid != killed
        assert value(sidecar.scraped(), "plan_age_seconds") >= 0
        assert sidecar.terminate() == 0
    waited = [each for each in records(journal) if each.answered.HasField("first_plan")]
    assert len(waited) == 1

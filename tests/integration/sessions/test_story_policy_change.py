"""A policy change as an operator makes it: tried by replay, in shadow, live, and rolled back."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from allocator.core import Release, Transition
from laboratory.cli.app import app as lab_app
from tests.integration.operators.test_lasting_settings import ask, command
from tests.integration.sessions.live_session import Session, compared
from tests.server.sidecar_process import SidecarProcess
from tests.world.rows import holdings

CHANGE = ["ps-dsf", "--mode", "characterised"]
TASK = [2000, 4_096_000]


@pytest.fixture
def process(tmp_path):
    journal = tmp_path / "journals" / "journal"
    journal.parent.mkdir()
    with SidecarProcess(f"journal.path={journal}") as running:
        yield running


def live(session: Session) -> list[list[int]]:
    """Run a cycle; each framework runs one task on each offer, and releases the rest."""
    decisions = session.offer()
    rows = zip(
        decisions.framework.tolist(),
        decisions.role.tolist(),
        decisions.agent.tolist(),
        decisions.amount.tolist(),
        strict=True,
    )
    for framework, role, agent, amount in rows:
        used = holdings((framework, role, agent, *TASK))
        session.module.batch(Transition(used))
        left = [has - took for has, took in zip(amount, TASK, strict=True)]
        if any(left):
            rest = holdings((framework, role, agent, *left))
            session.module.batch(Release(rest, np.array([-1]), np.array([False])))
        ended = Release(used, np.array([-1]), np.array([True]))
        session.module.batch(ended)
    return decisions.amount.tolist()


def test_a_policy_change_is_tried_made_and_rolled_back(process, tmp_path):
    journals = tmp_path / "journals"
    session = Session(process)
    for role in ("eng", "ops"):
        ask(process, "demand", "set", "cpus:2;mem:4096", "--role", role)
    before = [live(session) for _ in range(3)]
    assert max(amount[0] for amount in before[0]) == 8000, "whole agents are offered"

    # A replay gives the recorded answers, and then runs the day under the other policy.
    words = ["replay", str(journals), "--policy", CHANGE[0], *CHANGE[1:], "--json"]
    done = CliRunner().invoke(lab_app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["differing"], found["missing"]) == (0, 0)
    assert len(found["what_if"]) >= 2, "the policy in force, and the other one"

    # As a shadow policy, the other policy has no effect, but reports what it would have offered.
    assert ask(process, "shadow", "set", *CHANGE)["change"]["warnings"] == []
    assert live(session) == before[0]
    shadow = compared(process)
    assert shadow["counts"]["failed"] == 0
    assert {each["framework_name"] for each in shadow["clients"]} == {"spark", "kafka"}

    # Live, after a dry run.
    assert ask(process, "policy", "set", *CHANGE, "--dry-run")["policy"]["mode"] == "oblivious"
    told = ask(process, "policy", "set", *CHANGE)
    assert (told["policy"]["name"], told["policy"]["mode"]) == ("ps-dsf", "characterised")
    after = live(session)
    assert all(cpus % TASK[0] == 0 and mem % TASK[1] == 0 for cpus, mem in after)

    # Rolled back: the configuration applies again, and decisions are as before.
    ask(process, "settings", "reset", "policy", "shadow")
    assert ask(process, "policy", "show")["policy"]["name"] == "drf"
    assert ask(process, "shadow", "show")["shadow"]["name"] == ""
    assert sorted(live(session)) == sorted(before[0])
    session.channel.close()

    # All of it is in the journal, and can be replayed.
    again = command(process, "replay", str(journals))
    assert again.returncode == 0, again.stderr
    assert "all as recorded" in again.stdout

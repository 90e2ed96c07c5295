"""A real sidecar with users' policies: the example, and one that never returns."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.metrics.scraping import value
from tests.server.sidecar_process import GrpcModule, SidecarProcess

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "busy_first.py"

HANGS = """
import threading
from allocator.policies import Entry
from allocator.policies.drf import drf
from allocator.policies.filling import Filling

class Hangs:
    tried_out = False

    def allocate(self, snapshot, seed):
        if self.tried_out:
            threading.Event().wait()
        self.tried_out = True
        return Filling(drf, "listed").allocate(snapshot, seed)

POLICIES = {"hangs": Entry(lambda spec: Hangs())}
"""


def test_the_example_decides():
    flags = [f"policy.plugins={EXAMPLE}", "policy.name=busy-first"]
    with SidecarProcess(*flags) as sidecar, sidecar.channel() as channel:
        assert len(GrpcModule(channel).begin().batch(cycle=True)) == 2
        assert not sidecar.said("the policy failed; the substitute decided")
        assert sidecar.terminate() == 0


@pytest.mark.long
def test_a_policy_that_never_comes_back_costs_one_deadline_and_ends_with_the_process(tmp_path):
    path = tmp_path / "hangs.py"
    path.write_text(HANGS)
    journal = tmp_path / "journal"
    flags = [
        f"policy.plugins={path}",
        "policy.name=hangs",
        "policy.plugin_deadline_ms=300",
        f"journal.path={journal}",
    ]
    with SidecarProcess(*flags) as sidecar, sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        assert len(module.batch(cycle=True)) == 2
        for _ in range(3):
            module.batch(cycle=True)
        found = sidecar.scraped()
        told = sidecar.said("the policy failed; the substitute decided")
        assert value(found, "policy_errors_total") >= 1
        assert "did not decide within 300 ms" in told[0]["error"]
        assert len(told) <= 2, "it overran, and is not asked any more"
        assert sidecar.terminate() == 0
    # The journal says that the substitute decided, so a replay does not call the policy, whether
    # or not it would hang again.
    command = [sys.executable, "-m", "allocator", "replay", "--plugin", str(path), str(journal)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "all as recorded" in done.stdout
    assert re.search(r"^cycles +4$", done.stdout, re.MULTILINE)

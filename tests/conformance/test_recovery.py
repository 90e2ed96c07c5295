"""A new master with quotas holds offers back, and tells the sidecar that it pauses.

The emulated master plays this part of the module.
"""

import pytest

from laboratory.frameworks.base import Identity, Master, Offer, Task
from laboratory.master.emulated import EmulatedMaster, Recovery
from laboratory.master.ledger import Quota
from laboratory.resources import AgentSpec
from tests.conformance.mesos import mesos
from tests.laboratory.master.masters import run, wire_link

SECOND_MS = 1000


class Waiting:
    """A framework that keeps every offer."""

    def __init__(self) -> None:
        self.identity = Identity("waiting", ("role",))
        self.offers: list[Offer] = []

    def subscribed(self, master: Master) -> None:
        """Do nothing."""

    def offered(self, offers: list[Offer]) -> None:
        self.offers += offers

    def lost(self, tasks: list[Task]) -> None:
        """It has no tasks."""

    def cpus(self) -> int:
        """The amount offered to it, in thousandths."""
        return sum(offer.amount[0] for offer in self.offers if offer.live)


def elected(agents: int, *, quotas: bool, back: int, timeout_ms: int = 600_000):
    """A master after a failover: one of its agents returns each second, `back` of them in total."""
    master = EmulatedMaster(wire_link(), recovery=Recovery(timeout_ms=timeout_ms))
    master.open()
    handles = [
        master.add_agent(AgentSpec(f"host-{n}", {"cpus": 2000, "mem": 1_024_000}))
        for n in range(agents)
    ]
    framework = Waiting()
    master.subscribe(framework)
    if quotas:
        master.set_quota("other", Quota({"cpus": 1000}, {}))
    run(master, 10 * SECOND_MS)
    returns_ms = {agent: SECOND_MS * number for number, agent in enumerate(handles[:back])}
    master.fail_over(returns_ms, [(framework, 0)])
    return master, framework


@mesos("MasterQuotaTest.RecoverQuotaEmptyCluster")
@pytest.mark.parametrize("agents", [0, 1])
def test_a_new_master_that_expects_no_agents_holds_nothing_back(agents):
    """Four fifths of one agent round down to none."""
    master, framework = elected(agents, quotas=True, back=0)
    master.add_agent(AgentSpec("new", {"cpus": 2000, "mem": 1_024_000}))
    run(master, 12 * SECOND_MS)
    assert framework.cpus() == 1000


@pytest.mark.parametrize("quotas", [True, False])
def test_a_new_master_with_quotas_waits_for_most_of_its_agents(quotas):
    master, framework = elected(5, quotas=quotas, back=4)
    for count in range(1, 5):
        run(master, (9 + count) * SECOND_MS + 500)
        assert bool(framework.cpus()) == (not quotas or count == 4)
    # One of eight cpus is held back.
    assert framework.cpus() == (7000 if quotas else 8000)


def test_a_new_master_waits_no_longer_than_configured():
    master, framework = elected(5, quotas=True, back=1, timeout_ms=10_000)
    run(master, 20 * SECOND_MS - 1)
    assert framework.cpus() == 0
    run(master, 21 * SECOND_MS)
    assert framework.cpus() == 1000

"""The gates for what is not plain: reservations, capabilities, single pieces, quota, operators."""

import pytest

from allocator.core import Reason
from allocator.lab.master.gates import Decision, QuotaBook, judge
from allocator.lab.master.ledger import AgentRow, FrameworkRow, Ledger, Quota
from allocator.lab.resources import (
    AgentSpec,
    Resource,
    disk,
    reserved,
    volume,
    without_volume,
)

CPUS = Resource("cpus")
PORTS = Resource("ports", scalar=False)
MOUNT = disk("mount", "/mnt/1")
REFINED = reserved(reserved(CPUS, "a", static=True), "a/x")
SHARED = volume(reserved(Resource("disk"), "a"), "v", shared=True)


def build(amounts, *, capabilities=(), region="", knows=("MULTI_ROLE", "HIERARCHICAL_ROLE")):
    """A ledger with agent 1 and framework 1, in roles a (1), a/x (2) and b (3)."""
    ledger = Ledger(("cpus",), ({"cpus": 10}, {"disk": 10}, {"ports": 1000}), region="north")
    ledger.path = {1: "a", 2: "a/x", 3: "b"}
    spec = AgentSpec("host", {}, region=region, capabilities=frozenset(knows))
    row = AgentRow(spec.info("a"), 0, list(ledger.row(amounts)), [])
    ledger.add_agent(1, row)
    ledger.kinds.by_kind(row.capacity)
    ledger.add_framework(1, FrameworkRow("f", 0, {1, 2, 3}, capabilities=frozenset(capabilities)))
    return ledger


def verdict(ledger, resource, amount, role=1):
    decision = Decision(1, role, 1, (ledger.kinds.handle(resource),), (amount,))
    return judge(ledger, decision, 0, 0)


def reason(ledger, resource, amount, role=1):
    return verdict(ledger, resource, amount, role).reason


@pytest.mark.parametrize(
    ("resource", "role", "needs"),
    [
        (reserved(CPUS, "a"), 1, ""),
        (reserved(CPUS, "a"), 2, ""),
        (REFINED, 2, "RESERVATION_REFINEMENT"),
        (Resource("cpus", revocable=True), 3, "REVOCABLE_RESOURCES"),
        (SHARED, 1, "SHARED_RESOURCES"),
    ],
)
def test_who_may_have_it_gets_it_and_nobody_else(resource, role, needs):
    able = build({resource: 500}, capabilities=[needs])
    assert reason(able, resource, 500, role) == Reason.OFFERED
    if needs:
        assert reason(build({resource: 500}), resource, 500, role) == Reason.NOTHING_AVAILABLE
    if resource.reservations:
        assert reason(able, resource, 500, 3) == Reason.NOTHING_AVAILABLE


def test_one_piece_is_given_whole_and_ports_one_by_one():
    ledger = build({MOUNT: 500, PORTS: 9000})
    assert reason(ledger, MOUNT, 499) == Reason.NOTHING_AVAILABLE
    assert reason(ledger, MOUNT, 500) == Reason.OFFERED
    cut = verdict(ledger, PORTS, 2500)
    assert (cut.reason, cut.amount[ledger.table.row(PORTS)]) == (Reason.PARTIAL, 2000)


def test_a_shared_volume_is_there_however_many_hold_it():
    ledger = build({SHARED: 500}, capabilities=["SHARED_RESOURCES"])
    amount = verdict(ledger, SHARED, 500).amount
    for _ in range(3):
        ledger.offer(1, (1, 1), amount)
    assert reason(ledger, SHARED, 500) == Reason.OFFERED
    ledger.check()


def test_a_volume_goes_back_to_the_disk_that_it_was_made_of():
    for plain in (Resource("disk"), MOUNT, reserved(MOUNT, "a")):
        assert without_volume(volume(plain, "v", shared=True)) == plain


@pytest.mark.parametrize(
    ("world", "role"),
    [
        ({"region": "south"}, 1),
        ({"knows": ("MULTI_ROLE",)}, 2),
        ({"knows": ("HIERARCHICAL_ROLE",), "capabilities": ["MULTI_ROLE"]}, 1),
    ],
)
def test_who_cannot_meet_does_not(world, role):
    assert reason(build({CPUS: 500}, **world), CPUS, 500, role) == Reason.CAPABILITY
    assert reason(build({CPUS: 500}), CPUS, 500, role) == Reason.OFFERED


def test_the_whitelist_and_the_hold_off_after_a_failover():
    ledger = build({CPUS: 500})
    ledger.whitelist = frozenset({"other"})
    assert reason(ledger, CPUS, 500) == Reason.INACTIVE_AGENT
    ledger.recovery = (2, 1000)
    assert reason(ledger, CPUS, 500) == Reason.PAUSED


def test_a_framework_has_minima_of_its_own_by_role():
    ledger = build({CPUS: 500})
    ledger.frameworks[1].minimum = {1: (), 2: ({"cpus": 400},)}
    assert reason(ledger, CPUS, 1, 1) == Reason.OFFERED
    assert reason(ledger, CPUS, 399, 2) == Reason.BELOW_MINIMUM
    assert reason(ledger, CPUS, 9, 3) == Reason.BELOW_MINIMUM


def test_limits_bind_the_subtree_and_count_reservations():
    ledger = build({CPUS: 5000, reserved(CPUS, "a/x"): 600})
    ledger.quotas = {"a": Quota(limits={"cpus": 1000})}
    assert verdict(ledger, CPUS, 2000, 2).amount[0] == 400
    ledger.offer(1, (2, 1), (395,))
    assert reason(ledger, CPUS, 2000, 1) == Reason.LIMIT
    assert reason(ledger, CPUS, 2000, 3) == Reason.OFFERED


def test_headroom_is_kept_for_guarantees_of_others_over_the_batch():
    ledger = build({CPUS: 5000})
    ledger.quotas = {"a": Quota(guarantees={"cpus": 4000})}
    quotas = QuotaBook(ledger)
    assert quotas.bounded("b", (5000,)).amount == (1000,)
    quotas.charge("b", (1000,))
    assert quotas.bounded("b", (5000,)).by_headroom
    assert quotas.bounded("b", (5000,)).amount == (0,)
    # Nothing is kept back from the role whose guarantee is the last one that is unmet.
    assert quotas.bounded("a/x", (5000,)).amount == (5000,)
    ledger.resize_agent(1, (4005,))
    assert reason(ledger, CPUS, 4005, 3) == Reason.HEADROOM


def test_of_two_guarantees_that_are_unmet_each_is_kept_from_the_other():
    ledger = build({CPUS: 5000})
    ledger.quotas = {role: Quota(guarantees={"cpus": 3000}) for role in ("a", "b")}
    quotas = QuotaBook(ledger)
    assert quotas.bounded("a", (5000,)).amount == (3000,)
    assert quotas.bounded("b", (5000,)).amount == (3000,)
    quotas.charge("a", (3000,))
    assert quotas.bounded("b", (5000,)).amount == (5000,)

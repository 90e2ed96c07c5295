"""Claims of roles: a role within its claim is served first, and lends what it does not use."""

import pytest

from allocator.core import DEMAND_LABEL, GANG_LABEL, PolicySpec, SetBudget, SetClaim
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.cycle.within_claims import claimants
from allocator.core.events import SetWeights
from allocator.policies import POLICIES
from tests.core.session import Session
from tests.policies.test_caps import MODES, cap, cap_counts, cluster, got, join
from tests.world.amounts import resources
from tests.world.world import World


def claim(session, role: str, cpus: int | None, **others: int) -> None:
    amounts = None if cpus is None else {"cpus": 1000 * cpus, **others}
    session.allocator.step(SetClaim(role, amounts))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", POLICIES)
def test_a_role_is_served_first_up_to_its_claim_and_then_like_others(name, mode):
    """Five frameworks in ``b``, which would get most of the cluster, and one in ``a``."""
    session = cluster(name, mode=mode)
    session.allocator.settings.policy = PolicySpec(name, "listed", mode)
    claim(session, "a", 9)
    for framework in range(1, 6):
        join(session, framework, 4)
    join(session, 6, 2)
    session.cycle(1000)
    assert sum(got(session)) == 12
    assert got(session)[5] >= 9


@pytest.mark.parametrize("mode", MODES)
def test_unused_resources_of_a_claim_are_lent_and_return_first(mode):
    session = cluster(mode=mode)
    claim(session, "a", 6)
    join(session, 1, 4)
    offers = session.cycle(1000)
    assert got(session) == [12], "nothing is kept free"
    session.allocator.step(SetWeights({"b": 10.0}))
    join(session, 2, 1)
    join(session, 3, 4)
    for offer in offers[:8]:
        session.give_back(offer, refuse_ms=10**9)
    session.cycle(2000)
    assert got(session) == [4, 6, 2], "by weight, the other role would have most of it"


def test_a_claim_adds_to_the_guarantee_and_stays_within_limits():
    session = cluster()
    session.world.quota("a", "cpus:2", "cpus:6")
    claim(session, "a", 3)
    snapshot = SnapshotBuilder().build(session.state, None)
    assert snapshot.claimed is not None
    assert snapshot.claimed[0].tolist() == [5000, -1]
    assert snapshot.bounds.required.tolist() == [2000, 0], "only the guarantee stays free"
    claim(session, "a", 8)
    join(session, 1, 1)
    join(session, 2, 4)
    session.cycle(1000)
    assert got(session) == [6, 6]


def test_claims_within_a_claim_count_for_both():
    session = cluster()
    claim(session, "a", 4)
    claim(session, "a/x", 7)
    for framework, role in enumerate((1, 2, 4), 1):
        join(session, framework, role)
    session.allocator.settings.policy = PolicySpec("drf", "listed", "characterised")
    session.cycle(1000)
    assert sum(got(session)[:2]) >= 4
    for offer in session.cycle(2000):
        session.give_back(offer)
    taken = SnapshotBuilder().build(session.state, None)
    assert not claimants(taken).any(), "the outer claim is used up"


def test_clients_over_budget_and_gangs_are_not_first():
    session = cluster()
    claim(session, "a", 9)
    session.framework(1, 1, labels={DEMAND_LABEL: "cpus:1;mem:1", GANG_LABEL: "tasks:13"})
    join(session, 2, 4)
    session.cycle(1000)
    assert got(session) == [0, 12], "a gang that does not fit keeps nothing free"
    session = cluster()
    claim(session, "a", 9)
    join(session, 1, 1)
    session.allocator.step(SetBudget("a", {"cpus": 1}, "day"))
    session.state.memory.budgets.over["a"] = False
    assert not claimants(SnapshotBuilder().build(session.state, None)).any()


def test_caps_hold_within_claims():
    session = cluster()
    claim(session, "a", 9)
    cap(session, "a", "framework", 2)
    join(session, 1, 1)
    join(session, 2, 4)
    session.cycle(1000)
    assert got(session) == [2, 10]


def test_a_claim_is_for_what_it_names_alone():
    """Of a resource that is used up, the role gets its share as others do."""
    session = cluster()
    session.world.agent("cpus:4;mem:4;gpus:1", handle=20)
    session.allocator.step(SetClaim("a", {"gpus": 1000}))
    join(session, 1, 1)
    join(session, 2, 4)
    session.cycle(1000)
    assert abs(got(session)[0] - got(session)[1]) <= 1
    claim(session, "a", None)
    assert SnapshotBuilder().build(session.state, None).claimed is None


def test_a_shared_volume_is_offered_beside_what_a_claim_names():
    """The claim takes all CPUs, so the second question grants nothing more there."""
    world = World(PolicySpec("drf", mode="characterised"))
    world.agent("cpus:2;disk(b)[volume][shared]:1000")
    labels, able = {DEMAND_LABEL: "cpus:1"}, {"SHARED_RESOURCES"}
    world.framework("b", labels=labels, capabilities=able)
    world.tell(SetClaim("b", {"cpus": 2000}))
    (offer,) = world.cycle()
    assert offer.resources == resources("cpus:2;disk(b)[volume][shared]:1000")


def asked_again(mode: str) -> Session:
    """One framework in ``a``, of little weight, one in ``c``, four in ``b``, with one task at most.

    The policy is asked again after grants beyond the cap are dropped.
    """
    session = Session(PolicySpec("drf", "listed", mode), roles={1: "a", 2: "b", 3: "c"})
    for agent in range(1, 13):
        session.world.agent("cpus:1;mem:1", handle=agent)
    session.allocator.step(SetWeights({"b": 100.0, "c": 100.0}))
    cap_counts(session, "b", "principal", tasks=1)
    for framework, role in enumerate((1, 3, 2, 2, 2, 2), 1):
        join(session, framework, role)
    return session


@pytest.mark.parametrize("mode", MODES)
def test_a_claim_counts_once_where_the_policy_is_asked_again(mode):
    session = asked_again(mode)
    claim(session, "a", 4)
    session.cycle(1000)
    assert got(session)[:2] == [4, 7]


@pytest.mark.parametrize("mode", MODES)
def test_an_overdue_framework_is_served_first_once_where_the_policy_is_asked_again(mode):
    session = asked_again(mode)
    session.state.clients.waited[session.state.clients.row(1, 1)] = 1000
    session.cycle(1000)
    assert got(session)[:2] == [1, 10]

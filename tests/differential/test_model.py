"""The model in the situations of the built-in allocator's own tests, some of them made simpler.

Most are named for one of `HierarchicalAllocatorTest`; the outcomes are what that expects, and hold
in the built-in's order as well as in ours.
"""

from collections.abc import Mapping

import pytest

from tests.differential.model import Agent, Framework, Model, Offers, Quota
from tests.differential.resources import Bag, Resource

ALL = frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE"})
CPUS, MEM, DISK = Resource("cpus"), Resource("mem"), Resource("disk")


def bag(units: Mapping[Resource, float]) -> Bag:
    return {resource: int(1000 * amount) for resource, amount in units.items() if amount}


def plain(cpus: float, mem: float, disk: float = 0) -> Bag:
    return bag({CPUS: cpus, MEM: mem, DISK: disk})


@pytest.fixture(params=["order anew", "order of before"])
def model(request) -> Model:
    minimum = [{"cpus": 10}, {"mem": 32_000}]
    return Model(minimum=minimum, sorts_after_each_offer=request.param == "order anew")


def add_agents(model: Model, *totals: Bag) -> None:
    for total in totals:
        model.add_agent(len(model.agents) + 1, Agent(total, capabilities=ALL))


def add_frameworks(model: Model, *roles: str, capabilities: frozenset[str] = frozenset()) -> None:
    for role in roles:
        number = len(model.frameworks) + 1
        model.add_framework(number, Framework({role}, capabilities=capabilities))


def decline(model: Model, offers: Offers, refuse_ms: int | None = None) -> None:
    for key, offer in offers.items():
        model.release(key, offer, refuse_ms)


def test_unreserved_drf(model):
    """Each agent goes whole to the role with the smallest share."""
    add_frameworks(model, "role1", "role2")
    add_agents(model, plain(2, 1024))
    assert model.cycle() == {(1, "role1", 1): plain(2, 1024)}
    add_agents(model, plain(1, 512))
    assert model.cycle() == {(2, "role2", 2): plain(1, 512)}
    add_agents(model, plain(3, 2048))  # shares: 2/6 cpus against 1/6
    assert model.cycle() == {(2, "role2", 3): plain(3, 2048)}
    add_frameworks(model, "role1")
    add_agents(model, plain(4, 4096))  # role1 has 0.2 of the cpus, role2 0.4; 3 has none in role1
    assert model.cycle() == {(3, "role1", 4): plain(4, 4096)}


def test_drf_with_fairness_exclusion(model):
    """A resource that is left out of shares does not make one large."""
    model.fairness_excluded = frozenset({"gpus"})
    gpus = Resource("gpus")
    add_frameworks(model, "role1", "role2", capabilities=frozenset({"GPU_RESOURCES"}))
    add_agents(model, {**plain(2, 512), **bag({gpus: 1})})
    assert list(model.cycle()) == [(1, "role1", 1)]
    add_agents(model, plain(2, 512), plain(1, 256))
    # role1 has all gpus, which do not count, and 2/5 of the rest; as has role2 after agent 2.
    assert list(model.cycle()) == [(2, "role2", 2), (1, "role1", 3)]


def test_nested_role_drf(model):
    """Siblings compete with each other, whatever is below them."""
    add_frameworks(model, "a/b", "a/d")
    add_agents(model, plain(1, 1024), plain(1, 1024))
    assert list(model.cycle()) == [(1, "a/b", 1), (2, "a/d", 2)]
    add_frameworks(model, "e/f")
    add_agents(model, plain(1, 1024), plain(1, 1024))
    assert list(model.cycle()) == [(3, "e/f", 3), (3, "e/f", 4)]


def test_offer_filter(model):
    """A filter longer than the interval hides the agent until it expires."""
    add_frameworks(model, "role1")
    add_agents(model, plain(1, 512))
    decline(model, model.cycle(), refuse_ms=2000)
    model.now_ms = 1000
    assert model.cycle() == {}
    model.now_ms = 2000
    assert list(model.cycle()) == [(1, "role1", 1)]


def test_small_offer_filter_timeout(model):
    """A filter shorter than the interval still covers the next batch (MESOS-4302)."""
    add_frameworks(model, "role1", "role1")
    add_agents(model, plain(1, 512))
    decline(model, model.cycle(), refuse_ms=500)
    model.now_ms = 1000
    assert list(model.cycle()) == [(2, "role1", 1)]
    decline(model, dict(model.held))
    model.frameworks[2].suppressed = {"role1"}
    assert model.cycle() == {}
    model.now_ms = 2000
    assert list(model.cycle()) == [(1, "role1", 1)]


def test_same_share_fairness(model):
    """Equal shares take turns."""
    add_frameworks(model, "*", "*")
    add_agents(model, plain(2, 1024))
    served = []
    for _ in range(10):
        offers = model.cycle()
        served += [framework for framework, _, _ in offers]
        decline(model, offers)
    assert served == [1, 2] * 5


def test_reservations(model):
    """Static reservations are offered to their role only."""
    add_agents(
        model,
        bag({Resource("cpus", ("role1",)): 2, Resource("mem", ("role1",)): 1024}),
        bag({Resource("cpus", ("role2",)): 2, Resource("mem", ("role2",)): 1024, CPUS: 1}),
    )
    add_frameworks(model, "role1")
    offers = model.cycle()
    assert offers == {(1, "role1", 1): model.agents[1].total, (1, "role1", 2): bag({CPUS: 1})}
    add_frameworks(model, "role2")
    reserved = bag({Resource("cpus", ("role2",)): 2, Resource("mem", ("role2",)): 1024})
    assert model.cycle() == {(2, "role2", 2): reserved}


def test_allocatable(model):
    """Any one row of the minimum is enough, summed over reservations."""
    model.minimum = [{"cpus": 2000}, {"mem": 1_000_000}]
    add_frameworks(model, "role1")
    add_agents(
        model,
        plain(1, 512),
        plain(2, 0),
        plain(0, 1000),
        bag({CPUS: 1, Resource("cpus", ("role1",)): 1}),
    )
    assert [agent for _, _, agent in model.cycle()] == [2, 3, 4]


def test_quota_provides_guarantee(model):
    """What a role declined of its guarantee is laid aside, not given to others."""
    model.set_quota("quota", Quota({"cpus": 1000, "mem": 512_000}))
    add_frameworks(model, "quota", "greedy")
    add_agents(model, plain(1, 512))
    decline(model, model.cycle(), refuse_ms=60_000)
    model.now_ms = 2000
    assert model.cycle() == {}
    add_agents(model, plain(1, 512))
    assert model.cycle() == {(1, "quota", 2): plain(1, 512), (2, "greedy", 1): plain(1, 512)}


def test_quota_provides_limit(model):
    """A limit caps a role, also the role of everybody."""
    model.set_quota("*", Quota({}, {"cpus": 2000, "mem": 1_024_000}))
    add_frameworks(model, "*")
    add_agents(model, plain(1, 512), plain(1, 512), plain(1, 512))
    assert list(model.cycle()) == [(1, "*", 1), (1, "*", 2)]


def test_quota_allocation_granularity(model):
    """An agent is cut to what the quota allows; the rest is for the others."""
    model.set_quota("role1", Quota(*[{"cpus": 500, "mem": 500_000}] * 2))
    add_frameworks(model, "role1", "role2")
    add_agents(model, plain(1, 2000))
    assert model.cycle() == {
        (1, "role1", 1): plain(0.5, 500),
        (2, "role2", 1): plain(0.5, 1500),
    }


def test_quota_against_starvation(model):
    """Quota rescues a role that comes after one with a smaller share that always declines."""
    add_frameworks(model, "quota", "other")
    add_agents(model, plain(1, 512), plain(1, 512))
    model.hold((1, "quota", 1), plain(1, 512))
    offers = model.cycle()
    assert list(offers) == [(2, "other", 2)]
    decline(model, offers)
    model.set_quota("quota", Quota({"cpus": 2000, "mem": 1_024_000}))
    assert list(model.cycle()) == [(1, "quota", 2)]


def test_quota_absent_framework(model):
    """The guarantee of a role without frameworks is laid aside."""
    model.set_quota("absent", Quota({"cpus": 2000, "mem": 1_024_000}))
    add_frameworks(model, "other")
    add_agents(model, plain(2, 1024), plain(1, 512))
    assert model.cycle() == {(1, "other", 1): plain(1, 512)}


def test_reservation_within_quota(model):
    """What is reserved to a role counts towards its guarantee."""
    model.set_quota("role1", Quota({"cpus": 2000, "mem": 256_000}))
    add_frameworks(model, "role2")
    add_agents(
        model,
        bag({Resource("cpus", ("role1",)): 2, Resource("mem", ("role1",)): 256}),
        plain(2, 256),
    )
    assert model.cycle() == {(1, "role2", 2): plain(2, 256)}


def test_disproportionate_quota_against_allocation(model):
    """Only what is still missing of a guarantee is laid aside."""
    model.set_quota("quota", Quota({"cpus": 1000, "mem": 512_000}))
    add_frameworks(model, "quota", "other")
    add_agents(model, plain(1, 0), plain(1, 512))
    model.hold((1, "quota", 1), plain(1, 0))
    model.frameworks[1].suppressed = {"quota"}
    assert model.cycle() == {(2, "other", 2): plain(1, 0)}


def test_offer_ancestor_reservations_to_descendant_child(model):
    """What is reserved to a role is offered to those below it, not to those above."""
    below, above = Resource("cpus", ("a/b",)), Resource("mem", ("a",))
    add_frameworks(model, "a/b", "a/c", "a")
    add_agents(model, bag({below: 1, above: 512}))
    assert model.cycle() == {(3, "a", 1): bag({above: 512}), (1, "a/b", 1): bag({below: 1})}


@pytest.mark.parametrize(
    ("special", "capability"),
    [
        (Resource("cpus", revocable=True), "REVOCABLE_RESOURCES"),
        (Resource("cpus", ("*", "role1")), "RESERVATION_REFINEMENT"),
        (Resource("disk", ("role1",), disk="v", shared=True, whole=True), "SHARED_RESOURCES"),
        (Resource("gpus"), "GPU_RESOURCES"),
    ],
)
def test_special_resources_need_their_capability(model, special, capability):
    """OversubscribedNotAllocated, SharedResourcesCapability and their like."""
    model.minimum = []
    add_frameworks(model, "role1")
    add_agents(model, bag({special: 2}))
    assert model.cycle() == {}
    add_frameworks(model, "role1", capabilities=frozenset({capability}))
    assert list(model.cycle()) == [(2, "role1", 1)]


def test_allocate_shared_resources(model):
    """A shared volume goes to one framework a cycle, and is offered again while it is in use."""
    volume = bag({Resource("disk", ("role1",), disk="v", shared=True, whole=True): 5})
    model.minimum = []
    add_frameworks(model, "role1", "role1", capabilities=frozenset({"SHARED_RESOURCES"}))
    add_agents(model, volume)
    assert model.cycle() == {(1, "role1", 1): volume}
    assert model.cycle() == {(2, "role1", 1): volume}


def test_dont_offer_old_agent_to_multi_role_framework(model):
    """An agent that does not know several roles is not for frameworks that have them."""
    add_frameworks(model, "role1", capabilities=frozenset({"MULTI_ROLE"}))
    model.add_agent(1, Agent(plain(1, 512), capabilities=frozenset()))
    assert model.cycle() == {}
    add_agents(model, plain(1, 512))
    assert list(model.cycle()) == [(1, "role1", 2)]


def test_update_weight(model):
    """Six agents are split as the weights say, before and after they change."""
    add_frameworks(model, "role1", "role2")
    add_agents(model, *[plain(2, 1024)] * 6)

    def agents_of_role1() -> int:
        offers = model.cycle()
        decline(model, offers)
        return sum(role == "role1" for _, role, _ in offers)

    model.weights["role2"] = model.weights.get("role2", 1) * 2
    assert agents_of_role1() == 2
    model.weights["role1"] = model.weights["role2"]
    assert agents_of_role1() == 3

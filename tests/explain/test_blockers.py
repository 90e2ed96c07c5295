"""Each thing that can keep agents from a framework is named, counted and told how to mend."""

from allocator.core import PolicySpec, Trail
from allocator.explain import Answer, Blocker, explain, take
from tests.world.world import World

CHARACTERISED = PolicySpec("drf", mode="characterised")


def world(policy: PolicySpec | None = None, **options) -> World:
    made = World(policy, **options)
    made.allocator.trail = Trail()
    return made


def ask(world: World, name: str, kind: str = "framework") -> Answer:
    return explain(take(world.allocator, kind, name), kind, name)


def blockers(world: World, name: str = "f") -> dict[str, Blocker]:
    (client,) = ask(world, name).clients
    return {each.reason: each for each in client.blockers}


def test_nothing_keeps_an_agent_back_that_the_next_cycle_gives():
    a = world()
    a.agent("cpus:4;mem:4")
    a.framework("r", name="f")
    (client,) = ask(a, "f").clients
    assert client.blockers == ()
    assert client.open == 1
    assert client.verdict == "nothing keeps it from 1 of 1 agents: the next cycle decides"
    assert [offer.framework.handle for offer in a.cycle()] == [1]


def test_whoever_wants_no_offers_is_told_since_when():
    a = world()
    a.agent("cpus:4;mem:4")
    f = a.framework("r", name="f")
    a.cycle()
    a.suppress(f)
    suppressed_ms = a.now_ms
    a.cycle()
    found = blockers(a)["suppressed"]
    assert (found.agents, found.since_ms) == (1, suppressed_ms)
    assert "REVIVE" in found.mend

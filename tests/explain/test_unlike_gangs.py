"""Gangs of unlike tasks are explained like others, with the sizes of their tasks."""

from collections.abc import Sequence

import pytest

from allocator.core import PolicySpec, Request, SetLimit, Trail, parse_quantities
from allocator.explain import explain, take
from allocator.v1.explain_pb2 import ClientExplanation
from tests.core.cycle.test_backfilling import GANG, SHORT, Cluster
from tests.explain.test_blockers import ask, blockers, world
from tests.world.nouns import Framework
from tests.world.world import World

MODES = ("characterised", "oblivious")
PS, WORKER = "cpus:1;mem:4", "cpus:4;mem:2"
SIZES = "its gang starts 3 tasks at once (1 of cpus:1;mem:4, 2 of cpus:4;mem:2)"
HAVE_ROOM = "the agents that it may use, and its limits, have room for"


def request(a: World, framework: Framework, *needs: str, agents: Sequence[str] = ()) -> None:
    a.tell(Request(framework.handle, tuple(map(parse_quantities, needs)), agents=tuple(agents)))


def begun(mode: str, *agents: str) -> tuple[World, Framework]:
    a = world(PolicySpec("drf", mode=mode))
    for has in agents:
        a.agent(has)
    return a, a.framework("r", name="f")


def cause(a: World) -> str:
    return blockers(a)["gang"].cause


@pytest.mark.parametrize("mode", MODES)
def test_the_sizes_of_the_tasks_are_named(mode):
    for needs in ((PS, WORKER, WORKER), (WORKER, PS, WORKER)):
        a, f = begun(mode, "cpus:6;mem:6", "cpus:6;mem:6")
        request(a, f, *needs)
        (client,) = ask(a, "f").clients
        assert not client.blockers
        assert client.forecast == "there is room now, on any of 2 agents"
        other = a.framework("s", name="g")
        a.hold(other, "s", a.agents[1], "cpus:3;mem:1")
        a.hold(other, "s", a.agents[2], "cpus:3;mem:1")
        sizes = (
            SIZES
            if needs[0] == PS
            else ("its gang starts 3 tasks at once (2 of cpus:4;mem:2, 1 of cpus:1;mem:4)")
        )
        found = blockers(a)["gang"]
        assert found.cause == f"{sizes}; there is room for 1 on 1 agent now"
        assert found.mend == "wait, let the framework request fewer or smaller tasks, or add agents"
        assert found.agents == 2


@pytest.mark.parametrize("mode", MODES)
def test_tasks_for_certain_agents(mode):
    a, f = begun(mode, "cpus:6;mem:6", "cpus:6;mem:6")
    request(a, f, PS, WORKER, agents=("agent-1", "agent-2"))
    assert "gang" not in blockers(a)
    a.hold(a.framework("s", name="g"), "s", a.agents[2], "cpus:3;mem:1")
    assert cause(a) == (
        "its gang starts 2 tasks at once (1 of cpus:1;mem:4 only on agent host-1, "
        "1 of cpus:4;mem:2 only on agent host-2); there is room for 1 on 1 agent now"
    )
    request(a, f, PS, WORKER, agents=("", "nowhere"))
    assert cause(a) == (
        "its gang starts 2 tasks at once (1 of cpus:1;mem:4, 1 of cpus:4;mem:2 only on an agent"
        f" that does not exist); {HAVE_ROOM} 1"
    )
    (client,) = ask(a, "f").clients
    assert client.forecast.startswith("no forecast: none of its agents")
    request(a, f, PS, agents=("nowhere",))
    assert cause(a) == (
        "its gang starts 1 task at once (1 of cpus:1;mem:4 only on an agent that does not exist);"
        f" {HAVE_ROOM} none of them"
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_gang_that_never_fits_as_it_is(mode):
    a, f = begun(mode, "cpus:6;mem:6")
    request(a, f, PS, "cpus:9;mem:1")
    assert cause(a) == (
        f"its gang starts 2 tasks at once (1 of cpus:1;mem:4, 1 of cpus:9;mem:1); {HAVE_ROOM} 1"
    )
    (client,) = ask(a, "f").clients
    assert client.expected_in_ms == -1
    request(a, f, "cpus:1", "fpga:1", "cpus:1;fpga:1")
    assert cause(a) == (
        "its gang starts 3 tasks at once (1 of cpus:1, 1 of a resource that no agent has, 1 of"
        f" cpus:1 and a resource that no agent has); it asks for resources that no agent has:"
        f" 'fpga'; {HAVE_ROOM} 1"
    )
    a.allocator.step(SetLimit("r", {"cpus": 3000}))
    request(a, f, WORKER, PS)
    found = blockers(a)["gang"]
    assert found.cause == (
        f"its gang starts 2 tasks at once (1 of cpus:4;mem:2, 1 of cpus:1;mem:4); {HAVE_ROOM} 1"
    )
    assert found.mend == (
        "let the framework request fewer or smaller tasks, add agents, or raise the limit"
    )


def test_of_many_sizes_some_are_named():
    a, f = begun("characterised", "cpus:6;mem:6")
    request(a, f, *(f"cpus:{n}" for n in range(1, 6)))
    assert cause(a) == (
        "its gang starts 5 tasks at once (1 of cpus:1, 1 of cpus:2, 1 of cpus:3 and 2 more sizes);"
        f" {HAVE_ROOM} 2"
    )


@pytest.mark.parametrize(
    ("agent", "needs", "capabilities", "room"),
    [
        ("cpus:6;mem:6;ports:4", ("cpus:1;ports:2", "cpus:2;ports:3"), (), "1"),
        ("cpus:6;mem:6;ports:5", ("cpus:1;ports:2", "cpus:2;ports:3"), (), None),
        ("cpus:6;mem:6;gpus:1", ("cpus:1;gpus:1", "cpus:2;gpus:1"), ("GPU_RESOURCES",), "1"),
        ("cpus:6;mem:6;gpus:2", ("cpus:1;gpus:1", "cpus:2;gpus:1"), ("GPU_RESOURCES",), None),
        ("cpus:3;mem:6;cpus(s):3", (PS, WORKER), (), "1"),
        ("cpus:3;mem:6;cpus(r):3", (PS, WORKER), (), None),
        ("cpus:3;mem:6;cpus[revocable]:4", (PS, WORKER), (), "1"),
        ("cpus:3;mem:6;cpus[revocable]:4", (PS, WORKER), ("REVOCABLE_RESOURCES",), None),
        ("cpus:6;mem:6;disk(r)[volume]:9", ("cpus:1;disk:9", "cpus:2;disk:8"), (), "1"),
        (
            "cpus:6;mem:6;disk(r)[volume][shared]:9",
            ("cpus:1;disk:9", "cpus:2;disk:8"),
            ("SHARED_RESOURCES",),
            None,
        ),
    ],
    ids=str,
)
def test_special_resources_count_for_all_tasks_together(agent, needs, capabilities, room):
    a = world(PolicySpec("drf", mode="characterised"))
    a.agent(agent)
    f = a.framework("r", name="f", capabilities=capabilities)
    request(a, f, *needs)
    if room:
        assert f"room for {room}" in cause(a)
        assert a.cycle() == []
    else:
        assert "gang" not in blockers(a)
        assert len(a.cycle()) == 1


def test_a_gang_that_collects_and_lends():
    cluster = Cluster()
    session = cluster.session
    cluster.gang_waits(others=("short",))
    needs = ({"cpus": 3000, "mem": 1000}, {"cpus": 4000, "mem": 4000})
    session.allocator.step(Request(GANG, needs))
    cluster.cycle()
    assert cluster.got(SHORT) == {1: 4}
    assert cluster.its.expected_ms == 97_000
    assert cluster.its.lent == (1,)
    session.allocator.trail = Trail()

    def told(name: str) -> ClientExplanation:
        (client,) = explain(take(session.allocator, "framework", name), "framework", name).clients
        return client

    def reason(name: str) -> str:
        (found,) = [each for each in told(name).blockers if each.reason == "gang"]
        return found.cause

    assert reason("gang") == (
        "collecting: 0 of 2 tasks for 1 s on agents h1, h2; 1 agent lent to tasks of others"
        " that end within 81 s"
    )
    gang = told("gang")
    # The second of two long tasks, which began at 1 s and end between 97 s and 129 s.
    assert 93_000 <= gang.expected_in_ms <= 103_000
    assert 110_000 <= gang.latest_in_ms <= 115_000
    session.give_back(cluster.offers[0])
    assert reason("short") == (
        "free resources there are kept for a gang of another framework, which collects and is"
        " expected to start in 81 to 113 s (p50 to p95);"
        " 95 % of this framework's tasks end within 6 s"
    )


def test_the_forecast_waits_for_the_largest_task():
    """Two tasks of the mean size fit now, but one of 4 CPUs only when a long task has ended."""
    cluster = Cluster(collect_ms=0)
    for agent in (3, 4):
        cluster.session.agent(agent, 3, 9)
    cluster.until(9)
    cluster.session.framework(GANG, 1, name="gang")
    needs = ({"cpus": 1000, "mem": 1000}, {"cpus": 4000, "mem": 4000})
    cluster.session.allocator.step(Request(GANG, needs))
    cluster.session.allocator.trail = Trail()
    (gang,) = explain(
        take(cluster.session.allocator, "framework", "gang"), "framework", "gang"
    ).clients
    # The first of two long tasks, which began at 1 s and end between 97 s and 129 s.
    assert 94_000 <= gang.expected_in_ms <= 102_000
    assert 108_000 <= gang.latest_in_ms <= 117_000

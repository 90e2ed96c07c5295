"""Whole tasks together with minimums, shared volumes and reservations.

The sidecar decides in tasks whose size a label states. Mesos's own allocator does not, so these
scenarios compare properties that hold with either.
"""

from typing import Any

from tests.cluster.amounts import Amounts, amounts_of, reserved, scalar
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import refuse
from tests.cluster.scenario import Outcome, all_out, comes, out, scenario, settle
from tests.cluster.scenarios_operator import reserve, volume
from tests.cluster.world import World

MODE = '[policy]\nmode = "characterised"\n'
TASK = {"allocator.demand": "cpus:1;mem:128"}


def at_least(cpus: float, role: str) -> dict[str, Any]:
    """Fields of a `FrameworkInfo` that accepts no offer with fewer CPUs."""
    minimum = {"quantities": [{"quantities": {"cpus": {"value": cpus}}}]}
    return {"offer_filters": {role: {"min_allocatable_resources": minimum}}}


def _least(framework: Framework, name: str) -> int:
    """The minimum of a resource over all offers."""
    return min(amounts_of(offer["resources"])[name] for offer in list(framework.seen))


@scenario(configuration=MODE, agents=3, agent_flags={"resources": "cpus:3;mem:4096;disk:100"})
def an_offer_too_small_for_one_framework_goes_to_another(world: World) -> Outcome:
    """No agent meets the minimum of one framework, so the other gets everything."""
    picky = world.framework("picky", "eng", labels=TASK, info=at_least(4, "eng"))
    hungry = world.framework("hungry", "ads", labels=TASK)
    offered = all_out([hungry])
    return {"offers to it": len(picky.seen), "CPUs to another": offered["cpus"]}


@scenario(configuration=MODE, agents=1, agent_flags={"resources": "cpus:6;mem:4096;disk:100"})
def a_framework_with_a_large_minimum_is_served(world: World) -> Outcome:
    """A framework with a large minimum is served beside one that uses and releases every offer."""
    world.framework("hungry", "ads", labels=TASK, manner=refuse())
    picky = world.framework("picky", "eng", labels=TASK, info=at_least(4, "eng"), manner=refuse())
    served = comes(picky)
    return {"served": served, "never less": served and _least(picky, "cpus") >= 4000}


@scenario(configuration=MODE, agents=1)
def a_shared_volume_comes_with_a_task(world: World) -> Outcome:
    """A task that needs as much disk as a shared volume has does not use up the volume."""
    agent_id = world.agents[0].id()
    shared = {**volume(2048), "shared": {}}
    answers = (
        reserve(world, agent_id, reserved(scalar("disk", 2048), "eng")),
        world.operator.try_call("CREATE_VOLUMES", agent_id={"value": agent_id}, volumes=[shared]),
    )
    labels = {"allocator.demand": "cpus:1;mem:128;disk:2048"}
    framework = world.framework("one", "eng", labels=labels)
    offered = all_out([framework], agent_id)
    return {
        "answers": answers,
        "volume": offered["disk(eng)[data] shared"],
        "with CPUs": offered["cpus"] >= 1000,
    }


@scenario(
    configuration=MODE,
    agents=1,
    agent_flags={"resources": "cpus:4;mem:4096;disk:100;disk(eng):1000;ports(eng):[31000-31004]"},
)
def reserved_resources_too_small_for_a_task_are_offered(world: World) -> Outcome:
    """Reserved resources are offered together with the unreserved ones of the same agent."""
    framework = world.framework("one", "eng", labels=TASK)
    comes(framework)
    settle()
    offered: Amounts = out([framework])
    return {name: offered[name] for name in ("cpus", "disk(eng)", "ports(eng)")}

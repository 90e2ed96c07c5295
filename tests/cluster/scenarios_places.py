"""Agents with GPUs and in fault domains; frameworks of several roles."""

import json
from typing import Any

from tests.cluster.amounts import scalar
from tests.cluster.framework import CAPABILITIES, Framework
from tests.cluster.framework_behaviours import refuse, role_of, task_resources
from tests.cluster.processes import until
from tests.cluster.scenario import (
    Outcome,
    all_out,
    comes,
    forget,
    out,
    reaches,
    scenario,
    seen,
    settle,
)
from tests.cluster.scenarios_operator import set_quota
from tests.cluster.world import World

GPUS = "cpus:4;mem:2048;disk:1024;gpus:2"
WITH_GPUS = (*CAPABILITIES, "GPU_RESOURCES")
EVERYWHERE = (*CAPABILITIES, "REGION_AWARE")


def _add(world: World, name: str, **flags: str) -> str:
    """Start one more agent, and wait until it is registered; returns its id."""
    world.add_agent(name, **flags)
    world.wait_for_agents(len(world.agents))
    return world.agents[-1].id()


def _run_on_gpu(framework: Framework, agent_id: str) -> str:
    """Launch a task with one GPU; returns its id."""
    launched: list[str] = []

    def once(each: Framework, offer: Any) -> None:
        resources = task_resources(offer, 0.5, 64)
        if offer["agent_id"]["value"] != agent_id or launched or resources is None:
            each.decline(offer)
            return
        gpu = scalar("gpus", 1, role_of(offer))
        launched.extend(filter(None, [each.launch(offer, [*resources, gpu], 600)]))

    framework.manner = once
    framework.decline_all()
    until(lambda: launched, 20, "a task with a GPU is launched", 0.05)
    return launched[0]


@scenario(agents=1)
def gpus_are_for_frameworks_with_the_capability(world: World) -> Outcome:
    """Agents with GPUs are not offered to frameworks without the capability."""
    agent_id = _add(world, "agent-gpu", resources=GPUS)
    plain = world.framework("plain", "eng", manner=refuse())
    settle()
    shunned = seen(plain, agent_id), seen(plain) > 0
    able = world.framework("able", "ads", capabilities=WITH_GPUS)
    task = _run_on_gpu(able, agent_id)
    running = reaches(able, task, "RUNNING")
    able.manner = lambda *_: None
    beside = all_out([able], agent_id)
    able.call("KILL", task_id={"value": task})
    ended = reaches(able, task, "KILLED")
    until(lambda: out([able], agent_id)["gpus"] == 2000, 20, "both GPUs are offered")
    return {
        "offers to the other of agents with GPUs, and without": shunned,
        "the task": (running, ended),
        "offered beside the task": beside,
        "offered at last": all_out([able], agent_id),
    }


@scenario(agents=1, flags={"filter_gpu_resources": "false"})
def gpus_are_for_all_if_the_master_permits_it(world: World) -> Outcome:
    """With the master's option, frameworks without the capability are offered agents with GPUs."""
    agent_id = _add(world, "agent-gpu", resources=GPUS)
    plain = world.framework("plain", "eng")
    until(lambda: out([plain], agent_id), 20, "it is offered")
    return {"offered": all_out([plain], agent_id)}


@scenario(agents=1)
def gpus_that_are_reserved_are_counted_as_such(world: World) -> Outcome:
    """Reserved GPUs are offered only to their role; other GPUs of the agent to all roles."""
    mixed = "cpus:4;mem:2048;disk:1024;gpus:1;gpus(eng):2"
    agent_id = _add(world, "agent-gpu", resources=mixed)
    other = world.framework("other", "ads", capabilities=WITH_GPUS)
    theirs = all_out([other], agent_id)
    other.manner = refuse(600)
    other.decline_all(600)
    owner = world.framework("owner", "eng", capabilities=WITH_GPUS)
    until(lambda: out([owner], agent_id)["gpus(eng)"], 20, "the reserved ones are offered")
    return {"to another role": theirs, "to their role": all_out([owner], agent_id)}


def _domain(region: str, zone: str) -> str:
    text = {"fault_domain": {"region": {"name": region}, "zone": {"name": zone}}}
    return json.dumps(text)


# World formats the master's flags.
HERE = _domain("here", "a").replace("{", "{{").replace("}", "}}")


@scenario(agents=1, flags={"domain": HERE})
def regions_are_for_frameworks_with_the_capability(world: World) -> Outcome:
    """Agents in other zones are offered to all, in other regions to region-aware frameworks."""
    near = _add(world, "agent-near", domain=_domain("here", "b"))
    far = _add(world, "agent-far", domain=_domain("there", "a"))
    none = world.agents[0].id()
    local = world.framework("local", "eng", manner=refuse())
    settle()
    unaware = [seen(local, each) > 0 for each in (none, near, far)]
    aware = world.framework("aware", "ads", manner=refuse(), capabilities=EVERYWHERE)
    settle(6)
    everywhere = [seen(aware, each) > 0 for each in (none, near, far)]
    told = {
        offer["agent_id"]["value"]: offer.get("domain", {}).get("fault_domain")
        for offer in list(aware.seen)
    }
    aware.manner = local.manner = lambda *_: None
    until(lambda: out([aware], far), 20, "the far one is kept")
    return {
        "seen of none, near, far: unaware": unaware,
        "aware": everywhere,
        "domains": [told.get(each) for each in (none, near, far)],
        "offered of the far one": all_out([aware], far),
        "offered of all": all_out([aware, local]),
    }


def _estimator(world: World) -> dict[str, str]:
    """Flags of an agent that oversubscribes two of its cpus."""
    parameter = {"key": "resources", "value": "cpus:2"}
    name = "org_apache_mesos_FixedResourceEstimator"
    module = {"name": name, "parameters": [parameter]}
    library = world.mesos.library("libfixed_resource_estimator.so")
    text = json.dumps({"libraries": [{"file": str(library), "modules": [module]}]})
    return {
        "modules": text,
        "resource_estimator": name,
        "oversubscribed_resources_interval": "1secs",
    }


@scenario(agents=1)
def revocable_resources_are_for_frameworks_with_the_capability(world: World) -> Outcome:
    """Oversubscribed cpus are added to an agent later, revocable, for capable frameworks."""
    agent_id = _add(world, "agent-lends", **_estimator(world))
    plain = world.framework("plain", "eng")
    until(lambda: out([plain], agent_id), 20, "it is offered")
    kept = all_out([plain], agent_id)
    able = world.framework("able", "ads", capabilities=(*CAPABILITIES, "REVOCABLE_RESOURCES"))
    until(lambda: out([able], agent_id)["cpus revocable"] == 2000, 20, "they are lent")
    lent = all_out([able], agent_id)
    plain.manner = refuse(600)
    plain.decline_all(600)
    until(lambda: out([able], agent_id)["cpus"] == 4000, 20, "the rest comes, too")
    return {"to one": kept, "to the other": lent, "at last": all_out([able], agent_id)}


def _cpus_by_role(*frameworks: Framework) -> dict[str, float]:
    """Cpus in use, by the role in which tasks were launched."""
    sums: dict[str, float] = {}
    for framework in frameworks:
        for task_id in framework.running():
            role = task_id.partition(":")[0]
            sums[role] = round(sums.get(role, 0) + 0.5, 3)
    return dict(sorted(sums.items()))


def _work_by_role(framework: Framework, offer: Any) -> None:
    """Run tasks of half a cpu while they fit; their names contain the role."""
    resources = task_resources(offer, 0.5, 64)
    if resources is None:
        framework.decline(offer)
    else:
        framework.launch(offer, resources, 600, name=f"{role_of(offer)}:{framework.name}")


@scenario()
def frameworks_of_several_roles_share_them(world: World) -> Outcome:
    """Each role fills its own limit, by any of its frameworks."""
    limits = {"ads": 1.5, "eng": 1.0, "web": 0.5}
    answers = [
        set_quota(world, role, limits={"cpus": cpus, "mem": 1024}) for role, cpus in limits.items()
    ]
    frameworks = [
        world.framework("one", "eng", "ads", manner=_work_by_role),
        world.framework("two", "ads", "web", manner=_work_by_role),
    ]
    until(lambda: _cpus_by_role(*frameworks) == limits, 60, f"{limits} in use", 0.2)
    settle(6)
    steady = _cpus_by_role(*frameworks)
    # Refuse for a long time; otherwise it would be offered everything first, by its smaller share.
    frameworks[0].manner = refuse(600)
    for task_id in frameworks[0].running():
        frameworks[0].call("KILL", task_id={"value": task_id})
    until(lambda: not frameworks[0].running(), 40, "the first has none left")
    until(
        lambda: _cpus_by_role(frameworks[1]).get("ads") == 1.5, 60, "the other fills its role", 0.2
    )
    return {"answers": answers, "cpus in use": steady}


@scenario(agents=1)
def each_role_refuses_for_itself(world: World) -> Outcome:
    """Resources refused in one role are offered in the other role only, until a revive."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", "ads", manner=refuse())
    until(lambda: comes(framework, role="eng") and comes(framework, role="ads"), 20, "both roles")

    def refuse_eng(each: Framework, offer: Any) -> None:
        each.decline(offer, 600.0 if role_of(offer) == "eng" else 0.0)

    forget(framework)
    framework.manner = refuse_eng
    until(lambda: seen(framework, role="eng"), 20, "it is refused in one role")
    forget(framework)
    settle(6)
    refused = seen(framework, agent_id, "eng"), seen(framework, agent_id, "ads") > 0
    framework.manner = refuse()
    framework.call("REVIVE", roles=["eng"])
    forget(framework)
    return {
        "offers to the one role, to the other": refused,
        "revived": comes(framework, role="eng"),
    }

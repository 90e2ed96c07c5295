"""Agents that are lost, come back, are drained, deactivated, put into maintenance."""

import time
from typing import Any

from tests.cluster.framework_behaviours import refuse
from tests.cluster.processes import rest, until
from tests.cluster.scenario import (
    INTERVAL_S,
    Outcome,
    all_out,
    comes,
    forget,
    out,
    reaches,
    retire,
    run_on,
    scenario,
    seen,
    settle,
)
from tests.cluster.world import World

IMPATIENT = {"agent_ping_timeout": "1secs", "max_agent_ping_timeouts": "2"}


@scenario(flags=IMPATIENT)
def an_agent_is_lost_and_comes_back(world: World) -> Outcome:
    """An agent is killed, declared unreachable, and started again with the same work directory."""
    agent = world.agents[0]
    agent_id = agent.id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    agent.crash()
    world.wait_for_agents(1)
    lost = reaches(framework, task, "UNREACHABLE")
    forget(framework)
    settle()
    while_lost = seen(framework, agent_id), seen(framework) > 0
    agent.start()
    world.wait_for_agents(2)
    back = reaches(framework, task, "RUNNING")
    forget(framework)
    returns = comes(framework, agent_id)
    framework.manner = lambda *_: None
    return {
        "the task is unreachable": lost,
        "offers of the lost agent, of others": while_lost,
        "it is the same agent": agent.id() == agent_id,
        "the task runs again": back,
        "the agent is offered again": returns,
        "all that is offered": all_out([framework], agent_id),
    }


@scenario()
def an_agent_restarts_quickly(world: World) -> Outcome:
    """An agent restarts before the master declares it unreachable: its task continues."""
    agent = world.agents[0]
    agent_id = agent.id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    agent.crash()
    until(lambda: not _active(world, agent_id), 20, "the master sees it go", 0.05)
    forget(framework)
    settle()
    while_away = seen(framework, agent_id)
    agent.start()
    world.wait_for_agents(2)
    forget(framework)
    returns = comes(framework, agent_id)
    framework.manner = lambda *_: None
    return {
        "offers while it is away": while_away,
        "the agent is offered again": returns,
        "the task runs all the time": set(framework.tasks[task]) <= {"STARTING", "RUNNING"},
        "all that is offered": all_out([framework], agent_id),
    }


def _row(world: World, agent_id: str) -> Any:
    rows = world.operator.call("GET_AGENTS").get("agents", [])
    return next((row for row in rows if row["agent_info"]["id"]["value"] == agent_id), {})


def _active(world: World, agent_id: str) -> bool:
    return bool(_row(world, agent_id).get("active"))


@scenario()
def an_agent_is_drained(world: World) -> Outcome:
    """Its task is killed, and no offer names it until it is activated again."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    retire(framework)
    keeper = world.framework("two", "ads")
    until(lambda: out([keeper], agent_id), 20, "the other is offered what is left")
    kept = set(keeper.offers)
    status = world.operator.try_call(
        "DRAIN_AGENT", agent_id={"value": agent_id}, max_grace_period={"seconds": 1}
    )
    drained = until(
        lambda: _row(world, agent_id).get("drain_info", {}).get("state") == "DRAINED",
        40,
        "the agent is drained",
    )
    rescinded = bool(kept & set(keeper.rescinded))
    forget(keeper)
    settle()
    while_drained = seen(keeper, agent_id), seen(keeper) > 0
    again = world.operator.try_call("REACTIVATE_AGENT", agent_id={"value": agent_id})
    forget(keeper)
    until(lambda: seen(keeper, agent_id), 20, "it is offered again")
    return {
        "drained": (status, drained, again),
        "offers of it were rescinded": rescinded,
        "last state of the task": framework.tasks[task][-1],
        "offers while it was drained": while_drained,
        "all that is offered": all_out([keeper], agent_id),
    }


@scenario()
def an_agent_is_deactivated(world: World) -> Outcome:
    """Its task continues, but none of its resources are offered."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    status = world.operator.try_call("DEACTIVATE_AGENT", agent_id={"value": agent_id})
    forget(framework)
    settle()
    while_off = seen(framework, agent_id), seen(framework) > 0
    again = world.operator.try_call("REACTIVATE_AGENT", agent_id={"value": agent_id})
    forget(framework)
    returns = comes(framework, agent_id)
    return {
        "answers": (status, again),
        "offers meanwhile, of it and of others": while_off,
        "the task": framework.tasks[task][-1],
        "offered again": returns,
    }


@scenario()
def an_agent_is_gone(world: World) -> Outcome:
    """Marked gone by the operator: never to return."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    status = world.operator.try_call("MARK_AGENT_GONE", agent_id={"value": agent_id})
    gone = reaches(framework, task, "GONE_BY_OPERATOR")
    forget(framework)
    settle()
    framework.manner = lambda *_: None
    return {
        "answer": status,
        "the task is gone": gone,
        "offers of it": seen(framework, agent_id),
        "all that is offered": all_out([framework]),
    }


def _schedule(world: World, *names: str) -> int:
    """Schedule maintenance for agents, in an hour; without agents, cancel it."""
    start = {"nanoseconds": int((time.time() + 3600) * 1e9)}
    machines = [{"hostname": name, "ip": "127.0.0.1"} for name in names]
    window = {"machine_ids": machines, "unavailability": {"start": start}}
    windows = [window] if machines else []
    return world.operator.try_call("UPDATE_MAINTENANCE_SCHEDULE", schedule={"windows": windows})


def _inverse(world: World) -> list[str]:
    """Answers of frameworks to inverse offers."""
    status = world.operator.call("GET_MAINTENANCE_STATUS")["status"]
    machines = status.get("draining_machines", [])
    return [each["status"] for machine in machines for each in machine.get("statuses", [])]


@scenario()
def maintenance_is_scheduled_and_taken_back(world: World) -> Outcome:
    """Exactly the frameworks with holdings there get an inverse offer."""
    agent_id = world.agents[0].id()
    holder = world.framework("holder", "eng", manner=refuse())
    other = world.framework("other", "ads", suppressed=["ads"])
    run_on(holder, agent_id)
    status = _schedule(world, "agent-0")
    until(lambda: holder.inverse_offers, 20, "an inverse offer")
    first = holder.inverse_offers[0]
    forget(holder)
    settle()
    marked = {
        bool(offer.get("unavailability")) == (offer["agent_id"]["value"] == agent_id)
        for offer in holder.seen
    }
    asked = len(holder.inverse_offers)
    ids = [first["id"]]
    holder.call("DECLINE_INVERSE_OFFERS", inverse_offer_ids=ids, filters={"refuse_seconds": 1})
    until(lambda: _inverse(world) == ["DECLINE"], 20, "the answer is known")
    until(lambda: len(holder.inverse_offers) > asked, 20, "it is asked again")
    ids = [holder.inverse_offers[-1]["id"]]
    holder.call("ACCEPT_INVERSE_OFFERS", inverse_offer_ids=ids, filters={"refuse_seconds": 600})
    until(lambda: _inverse(world) == ["ACCEPT"], 20, "the answer is known")
    accepted_at = len(holder.inverse_offers)
    settle()
    quiet = len(holder.inverse_offers) == accepted_at
    back = _schedule(world)
    forget(holder)
    settle()
    return {
        "answers": (status, back),
        "inverse offers until the first answer": asked,
        "the other is asked": bool(other.inverse_offers),
        "offers tell of it": marked,
        "no more after it was accepted": quiet,
        "offers tell of it afterwards": any("unavailability" in offer for offer in holder.seen),
    }


@scenario()
def maintenance_begins_and_ends(world: World) -> Outcome:
    """When the machine is set down, its agent is removed; when it is set up, the agent returns."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    machines = [{"hostname": "agent-0", "ip": "127.0.0.1"}]
    _schedule(world, "agent-0")
    down = world.operator.try_call("START_MAINTENANCE", machines=machines)
    world.wait_for_agents(1)
    until(lambda: len(framework.tasks[task]) > 2, 20, "the task's end is known")
    forget(framework)
    settle()
    while_down = seen(framework, agent_id), seen(framework) > 0
    up = world.operator.try_call("STOP_MAINTENANCE", machines=machines)
    rest(2 * INTERVAL_S)
    assert world.agents[0].child is not None
    if world.agents[0].child.alive:
        world.agents[0].crash()
    world.agents[0].start()
    world.wait_for_agents(2)
    forget(framework)
    settle()
    return {
        "answers": (down, up),
        "the task": framework.tasks[task][-1],
        "offers while it is down": while_down,
        "both agents are offered": len({each["agent_id"]["value"] for each in framework.seen}),
    }


@scenario()
def an_agent_joins(world: World) -> Outcome:
    """A new agent is offered whole, to one of the frameworks."""
    frameworks = [world.framework("one", "eng"), world.framework("two", "ads")]
    all_out(frameworks)
    world.add_agent("agent-2", resources="cpus:3;mem:1000;disk:500;ports:[1-3]")
    world.wait_for_agents(3)
    agent_id = world.agents[2].id()
    until(lambda: out(frameworks, agent_id), 20, "it is offered")
    return {"all that is offered": all_out(frameworks, agent_id)}

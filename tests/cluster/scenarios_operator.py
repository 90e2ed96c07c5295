"""Operators' requests by the HTTP interface: quota, weights, reservations, volumes."""

from typing import Any

from tests.cluster.amounts import Amounts, amounts_of, reserved, scalar
from tests.cluster.api import Operator
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import refuse, work
from tests.cluster.processes import rest, until
from tests.cluster.scenario import (
    RESCINDED_S,
    Outcome,
    all_out,
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

MIB_PER_TASK = 64


def set_quota(world: World, role: str, guarantees: Any = None, limits: Any = None) -> int:
    """Set a quota by name; without amounts, remove it."""
    config: dict[str, Any] = {"role": role}
    for name, amounts in (("guarantees", guarantees), ("limits", limits)):
        if amounts:
            config[name] = {key: {"value": value} for key, value in amounts.items()}
    return world.operator.try_call("UPDATE_QUOTA", force=True, quota_configs=[config])


def _in_use(framework: Framework, cpus: float) -> float:
    return framework.states()["RUNNING"] * cpus


@scenario()
def quota_limits_a_role(world: World) -> Outcome:
    """A role stays below its limit until the limit is removed."""
    status = set_quota(world, "eng", limits={"cpus": 1.5, "mem": 1024})
    framework = world.framework("one", "eng", manner=work(0.5, MIB_PER_TASK, 600, at_once=5))
    until(lambda: framework.states()["RUNNING"] == 3, 60, "it fills its limit")
    forget(framework)
    settle(6)
    cpus = [amounts_of(each["resources"])["cpus"] for each in list(framework.seen)]
    limited = _in_use(framework, 0.5), max(cpus, default=0)
    removed = set_quota(world, "eng")
    until(lambda: framework.states()["RUNNING"] == 5, 60, "it gets more without")
    return {
        "answers": (status, removed),
        "cpus in use, and most cpus in an offer, at the limit": limited,
    }


@scenario()
def quota_guarantees_a_role(world: World) -> Outcome:
    """The guarantee of an absent role is withheld from others, and given when it comes."""
    status = set_quota(world, "vip", {"cpus": 6, "mem": 2048}, {"cpus": 6, "mem": 2048})
    greedy = world.framework("greedy", "eng")
    kept = all_out([greedy])
    vip = world.framework("vip", "vip")
    given = all_out([vip])
    greedy.decline_all(3600)
    return {
        "answer": status,
        "cpus of the greedy": kept["cpus"] <= 2000,
        "cpus of the other": given["cpus"],
    }


@scenario()
def weights_divide_the_cluster(world: World) -> Outcome:
    """Changed weights rescind offers, and change the allocation."""
    waiting = world.framework("waiting", "a")
    until(lambda: waiting.offers, 20, "offers")
    all_out([waiting])
    held = set(waiting.offers)
    weights = [{"role": "a", "weight": 3.0}, {"role": "b", "weight": 1.0}]
    status = world.operator.try_call("UPDATE_WEIGHTS", weight_infos=weights)
    until(lambda: held <= set(waiting.rescinded), 20, "its offers are rescinded")
    known = world.operator.call("GET_WEIGHTS")["weight_infos"]
    retire(waiting)
    manner = work(0.5, MIB_PER_TASK, 600, at_once=99)
    a = world.framework("a", "a", manner=manner)
    b = world.framework("b", "b", manner=manner)
    until(lambda: _in_use(a, 0.5) + _in_use(b, 0.5) == 8.0, 90, "the cluster is full")
    return {
        "answer": status,
        "weights": sorted((each["role"], each["weight"]) for each in known),
        "three quarters go to one of them, about": abs(_in_use(a, 0.5) - 6.0) <= 1.0,
    }


def reserve(world: World, agent_id: str, *resources: Any, undo: bool = False) -> int:
    kind = "UNRESERVE_RESOURCES" if undo else "RESERVE_RESOURCES"
    agent = {"value": agent_id}
    return world.operator.try_call(kind, agent_id=agent, resources=list(resources))


@scenario()
def an_operator_reserves_and_unreserves(world: World) -> Outcome:
    """An operator can reserve resources on offer, not those in use; other roles never see them."""
    agent_id = world.agents[0].id()
    engineer = world.framework("engineer", "eng")
    other = world.framework("other", "ads", suppressed=["ads"])
    before = all_out([engineer], agent_id)
    rows = [reserved(scalar("cpus", 1), "eng"), reserved(scalar("mem", 512), "eng")]
    status = reserve(world, agent_id, *rows)
    reserved_kinds = {"cpus(eng)", "mem(eng)"}
    until(lambda: reserved_kinds <= set(out([engineer], agent_id)), 30, "it is offered")
    offered = all_out([engineer], agent_id, RESCINDED_S + 1)
    too_much = reserve(world, agent_id, reserved(scalar("cpus", 100), "eng"))
    retire(engineer)
    other.call("REVIVE")
    others = all_out([other], agent_id)
    undone = reserve(world, agent_id, *rows, undo=True)
    until(lambda: out([other], agent_id) == before, 30, "all is unreserved")
    twice = reserve(world, agent_id, *rows, undo=True)
    return {
        "answers": (status, too_much, undone, twice),
        "before": before,
        "offered to the role": offered,
        "offered to another": others,
        "afterwards": all_out([other], agent_id),
    }


@scenario()
def an_operator_cannot_reserve_what_is_in_use(world: World) -> Outcome:
    """A task holds most of the agent."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    run_on(framework, agent_id, cpus=3.5)
    refused = reserve(world, agent_id, reserved(scalar("cpus", 1), "eng"))
    fits = reserve(world, agent_id, reserved(scalar("cpus", 0.5), "eng"))
    framework.manner = lambda *_: None
    until(lambda: out([framework], agent_id)["cpus(eng)"] == 500, 30, "it is offered")
    offered = all_out([framework], agent_id, RESCINDED_S + 1)
    return {"answers": (refused, fits), "offered": offered}


def volume(disk_mib: float, role: str = "eng", name: str = "data") -> dict[str, Any]:
    volume = {"container_path": "data", "mode": "RW"}
    disk = {"persistence": {"id": name}, "volume": volume}
    return reserved(scalar("disk", disk_mib, disk=disk), role)


@scenario()
def an_operator_makes_grows_shrinks_and_destroys_a_volume(world: World) -> Outcome:
    """Each step shows in the next offers."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng")
    operator: Operator = world.operator
    agent = {"value": agent_id}
    all_out([framework])
    disk = reserved(scalar("disk", 1000), "eng")
    answers = [reserve(world, agent_id, disk)]
    answers.append(operator.try_call("CREATE_VOLUMES", agent_id=agent, volumes=[volume(400)]))

    def offered(kind: str, amount: int) -> Amounts:
        # A decision in transit may have offered a part, and left less than the minimum of an offer.
        settle(2)
        framework.decline_all()
        until(lambda: out([framework], agent_id)[kind] == amount, 30, f"{amount} of {kind}")
        return all_out([framework], agent_id, RESCINDED_S + 1)

    steps = [offered("disk(eng)[data]", 400_000)]
    more = reserved(scalar("disk", 100), "eng")
    answers.append(
        operator.try_call("GROW_VOLUME", agent_id=agent, volume=volume(400), addition=more)
    )
    steps.append(offered("disk(eng)[data]", 500_000))
    answers.append(
        operator.try_call(
            "SHRINK_VOLUME", agent_id=agent, volume=volume(500), subtract={"value": 300}
        )
    )
    steps.append(offered("disk(eng)[data]", 200_000))
    answers.append(operator.try_call("DESTROY_VOLUMES", agent_id=agent, volumes=[volume(200)]))
    steps.append(offered("disk(eng)", 1_000_000))
    answers.append(reserve(world, agent_id, disk, undo=True))
    steps.append(offered("disk", 8_192_000))
    return {"answers": answers, "offered": steps}


def _operation(kind: str, **fields: object) -> dict[str, object]:
    return {"type": kind, kind.lower(): fields}


@scenario()
def a_framework_reserves_makes_a_volume_and_runs_on_it(world: World) -> Outcome:
    """RESERVE, CREATE and LAUNCH in one acceptance; then DESTROY and UNRESERVE."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng")
    until(lambda: out([framework], agent_id)["cpus"] == 4000, 20, "an offer")

    def offer() -> Any:
        rows = framework.offers.values()
        return max(
            (each for each in rows if each["agent_id"]["value"] == agent_id),
            key=lambda each: sum(amounts_of(each["resources"]).values()),
        )

    mine = {"allocation_info": {"role": "eng"}}
    disk = {**reserved(scalar("disk", 100), "eng"), **mine}
    cpus = {**reserved(scalar("cpus", 0.5), "eng"), **mine}
    made = {**volume(100), **mine}
    before = [
        _operation("RESERVE", resources=[disk, cpus]),
        _operation("CREATE", volumes=[made]),
    ]
    task = framework.launch(offer(), [cpus, scalar("mem", 64, "eng"), made], 600, *before)
    runs = reaches(framework, task, "RUNNING")
    meanwhile = all_out([framework], agent_id)
    framework.call("KILL", task_id={"value": task})
    ended = reaches(framework, task, "KILLED")
    until(lambda: out([framework], agent_id)["disk(eng)[data]"] == 100_000, 30, "it is offered")
    for_volume = next(
        each
        for each in framework.offers.values()
        if "disk(eng)[data]" in amounts_of(each["resources"])
    )
    framework.accept(
        for_volume,
        [_operation("DESTROY", volumes=[made]), _operation("UNRESERVE", resources=[disk])],
    )
    until(lambda: out([framework], agent_id)["disk"] == 8_192_000, 30, "the disk is whole again")
    return {
        "runs, ended": (runs, ended),
        "offered while it runs": meanwhile,
        "afterwards": all_out([framework], agent_id),
    }


@scenario(agent_flags={"resources": "cpus:2;mem:1024;cpus(eng):1;mem(eng):256;disk:100"})
def static_reservations_are_kept(world: World) -> Outcome:
    """They are offered only to their role, and to its descendants."""
    agent_id = world.agents[0].id()
    other = world.framework("other", "ads")
    others = all_out([other], agent_id)
    engineer = world.framework("engineer", "eng")
    theirs = all_out([engineer], agent_id)
    retire(engineer)
    below = world.framework("below", "eng/web")
    return {"other": others, "the role": theirs, "below it": all_out([below], agent_id)}


@scenario(flags={"whitelist": "file://{directory}/whitelist"})
def a_whitelist_is_obeyed(world: World) -> Outcome:
    """Agents by hostname, from a file that the master reads every five seconds."""
    framework = world.framework("one", "eng", manner=refuse())
    first, second = (agent.id() for agent in world.agents)
    whitelist = world.directory / "whitelist"
    seen_of = []
    for name, agent_id, other_id in (("agent-0", first, second), ("agent-1", second, first)):
        whitelist.write_text(name + "\n")
        rest(7)
        forget(framework)
        settle()
        seen_of.append((seen(framework, agent_id) > 0, seen(framework, other_id)))
    return {"offers of who is listed, of the other": seen_of}


@scenario(flags={"agent_ping_timeout": "1secs", "max_agent_ping_timeouts": "2"})
def the_master_fails_over(world: World) -> Outcome:
    """A new master learns running tasks from agents and frameworks; nothing is offered twice."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", manner=refuse())
    task = run_on(framework, agent_id)
    assert world.master is not None
    world.master.kill()
    framework.disconnect()
    world.start_master()
    second = world.framework("one", "eng", framework_id=framework.framework_id)
    world.wait_for_agents(2)
    until(lambda: out([second])["cpus"] == 7500, 40, "all but the task's")
    second.call("RECONCILE", tasks=[])
    until(lambda: second.tasks.get(task), 20, "its task is told")
    offered = all_out([second])
    second.call("KILL", task_id={"value": task})
    until(lambda: "KILLED" in second.tasks[task], 40, "it can be killed")
    until(lambda: out([second])["cpus"] == 8000, 30, "all is offered")
    return {"offered": offered, "the task": second.tasks[task][0], "at last": all_out([second])}

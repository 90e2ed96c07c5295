"""Frameworks that fail over, are torn down, change roles, suppress, refuse, use constraints."""

import time
from itertools import pairwise
from typing import Any

from tests.cluster.amounts import Amounts
from tests.cluster.framework import Framework
from tests.cluster.framework_behaviours import refuse, role_of, work
from tests.cluster.processes import until
from tests.cluster.scenario import (
    Outcome,
    all_out,
    comes,
    forget,
    out,
    retire,
    run_on,
    scenario,
    seen,
    settle,
)
from tests.cluster.world import World

REFUSED_S = 3.0


def _known(world: World, framework: Framework) -> Any:
    rows = world.operator.call("GET_FRAMEWORKS").get("frameworks", [])
    ids = {row["framework_info"]["id"]["value"]: row for row in rows}
    return ids.get(framework.framework_id)


@scenario()
def a_framework_fails_over(world: World) -> Outcome:
    """Its scheduler dies with outstanding offers; another one takes over, while a task runs."""
    agent_id = world.agents[0].id()
    first = world.framework("one", "eng")
    task = run_on(first, agent_id)
    held = all_out([first])
    first.disconnect()
    until(lambda: not _known(world, first)["active"], 20, "the master sees it go")
    settle()
    row = _known(world, first)
    meanwhile = len(row.get("offers", []))
    second = world.framework("one", "eng", framework_id=first.framework_id)
    offered = all_out([second])
    second.call("RECONCILE", tasks=[])
    until(lambda: second.tasks.get(task), 20, "its task is told")
    return {
        "held before": held,
        "offers meanwhile": meanwhile,
        "the same id": second.framework_id == first.framework_id,
        "offered afterwards": offered,
        "the task": second.tasks[task][-1],
    }


@scenario()
def a_framework_subscribes_again_while_connected(world: World) -> Outcome:
    """A second scheduler with the same id replaces the first; its offers are made again."""
    first = world.framework("one", "eng")
    held = all_out([first])
    second = world.framework("one", "eng", framework_id=first.framework_id)
    return {
        "held before": held,
        "offered afterwards": all_out([second]),
        "the first is told": bool(first.errors),
    }


@scenario()
def a_framework_is_torn_down(world: World) -> Outcome:
    """Its tasks end, and everything it held goes to the other."""
    agent_id = world.agents[0].id()
    doomed = world.framework("doomed", "eng")
    run_on(doomed, agent_id)
    other = world.framework("other", "ads")
    before = all_out([doomed, other])
    status = world.operator.try_call("TEARDOWN", framework_id={"value": doomed.framework_id})
    until(lambda: _known(world, doomed) is None, 20, "it is gone")
    expected = before + Amounts({"cpus": 500, "mem": 64000})
    until(lambda: out([other]) == expected, 20, "all goes to the other")
    return {"answer": status, "before": before, "the other's": all_out([other])}


@scenario()
def a_framework_leaves_for_good(world: World) -> Outcome:
    """Without a failover timeout it is removed with its tasks when its scheduler disconnects."""
    agent_id = world.agents[0].id()
    doomed = world.framework("doomed", "eng", failover_timeout_s=0)
    run_on(doomed, agent_id)
    other = world.framework("other", "ads")
    doomed.disconnect()
    until(lambda: _known(world, doomed) is None, 20, "it is gone")
    until(lambda: out([other])["cpus"] == 8000, 20, "all goes to the other")
    return {"the other's": all_out([other])}


@scenario()
def a_role_is_added_and_removed(world: World) -> Outcome:
    """Offers come to a new role; those of a role that is left are rescinded, its tasks continue."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng")
    task = run_on(framework, agent_id)
    all_out([framework])
    forget(framework)
    framework.update(["eng", "ads"])
    framework.manner = refuse()
    forget(framework)
    added = comes(framework, role="ads"), comes(framework, role="eng")
    framework.manner = lambda *_: None
    all_out([framework])
    theirs = [key for key, offer in framework.offers.items() if role_of(offer) == "eng"]
    framework.update(["ads"])
    settle(2)
    rescinded = set(theirs) <= set(framework.rescinded)
    forget(framework)
    settle()
    left = seen(framework, role="eng"), seen(framework, role="ads") > 0
    framework.update(["ads", "eng"], suppressed=["eng"])
    framework.manner = refuse()
    forget(framework)
    settle()
    quiet = seen(framework, role="eng")
    framework.update(["ads", "eng"])
    forget(framework)
    back = comes(framework, role="eng")
    return {
        "offers to the new role, to the old": added,
        "offers to the role that was left are rescinded": rescinded,
        "offers afterwards to the old, to the new": left,
        "the task": framework.tasks[task][-1],
        "offers to a suppressed role": quiet,
        "offers when it is not suppressed any more": back,
    }


@scenario()
def a_role_is_left_with_a_task_in_it_that_ends(world: World) -> Outcome:
    """The task's resources return, although no framework is subscribed to its role any more."""
    agent_id = world.agents[0].id()
    framework = world.framework("one", "eng", "ads", manner=refuse())
    other = world.framework("other", "web", suppressed=["web"])
    framework.update(["eng"])
    settle()
    task = run_on(framework, agent_id, seconds=6)
    framework.update(["ads"])
    until(lambda: "FINISHED" in framework.tasks[task], 40, "the task ends")
    retire(framework)
    other.call("REVIVE")
    until(lambda: out([other])["cpus"] == 8000, 20, "all is free again")
    return {"offered": all_out([other])}


@scenario()
def offers_are_suppressed_and_revived(world: World) -> Outcome:
    """No offers while suppressed; everything after a revive; each role separately."""
    framework = world.framework("one", "eng", "ads", manner=refuse())
    both = comes(framework, role="eng"), comes(framework, role="ads")
    framework.call("SUPPRESS", roles=["eng"])
    settle(2)
    forget(framework)
    settle(6)
    one = seen(framework, role="eng"), seen(framework, role="ads") > 0
    framework.call("SUPPRESS")
    settle(2)
    forget(framework)
    settle()
    none = seen(framework)
    framework.call("REVIVE", roles=["eng"])
    revived = comes(framework, role="eng")
    settle()
    return {
        "both": both,
        "while one is suppressed": one,
        "while both are": none,
        "one revived": (revived, seen(framework, role="ads")),
    }


@scenario()
def refusals_are_kept(world: World) -> Outcome:
    """A refused agent stays away for its time, goes to others, and returns after a revive."""
    framework = world.framework("one", "eng", manner=refuse(3600))
    until(lambda: len({each["agent_id"]["value"] for each in framework.seen}) == 2, 20, "offers")
    settle(2)
    forget(framework)
    settle(6)
    quiet = seen(framework)
    other = world.framework("two", "ads")
    others = all_out([other])
    retire(other)
    settle()
    still_quiet = seen(framework)
    framework.call("REVIVE")
    returns = comes(framework)
    refused_s: dict[str, list[float]] = {}

    def refuse_shortly(each: Framework, offer: Any) -> None:
        refused_s.setdefault(offer["agent_id"]["value"], []).append(time.monotonic())
        each.decline(offer, REFUSED_S)

    framework.manner = refuse_shortly
    framework.call("REVIVE")
    until(
        lambda: sum(len(each) > 2 for each in list(refused_s.values())) == 2,
        60,
        "each agent comes back after a short refusal",
    )
    # Everything refused before the revive is offered at once.
    gaps_s = [
        later - earlier for each in refused_s.values() for earlier, later in pairwise(each[1:])
    ]
    return {
        "offers while refused": (quiet, still_quiet),
        "the other is offered": others,
        "offers upon revival": returns,
        "no agent comes back before a short refusal expires": min(gaps_s) >= REFUSED_S,
    }


def _only(name: str, value: str) -> Any:
    """Offer constraints: the attribute must be equal."""
    selector = {"attribute_name": name}
    predicate = {"text_equals": {"value": value}}
    constraint = {"selector": selector, "predicate": predicate}
    group = {"attribute_constraints": [constraint]}
    return {"role_constraints": {"eng": {"groups": [group]}}}


@scenario()
def offers_are_constrained(world: World) -> Outcome:
    """Only agents that satisfy the framework's constraints come."""
    framework = world.framework("one", "eng", constraints=_only("rack", "r1"), manner=refuse())
    right, wrong = world.agents[1].id(), world.agents[0].id()
    settle(6)
    first = seen(framework, right) > 0, seen(framework, wrong)
    second = world.framework(
        "one",
        "eng",
        framework_id=framework.framework_id,
        constraints=_only("rack", "r0"),
        manner=refuse(),
    )
    forget(second)
    settle(6)
    return {"first": first, "afterwards": (seen(second, right), seen(second, wrong) > 0)}


@scenario()
def a_framework_without_multi_role_gets_its_offers(world: World) -> Outcome:
    """An old framework, with one role and no capabilities."""
    framework = world.framework("old", "eng", capabilities=())
    return {"offered": all_out([framework])}


@scenario()
def nested_roles_are_served(world: World) -> Outcome:
    """Frameworks in a role and in one below it both work."""
    manner = work(0.5, 64, 600, at_once=3)
    frameworks = [
        world.framework("one", "eng", manner=manner),
        world.framework("two", "eng/ads", manner=manner),
    ]
    until(lambda: all(each.states()["RUNNING"] == 3 for each in frameworks), 90, "tasks run")
    return {"running": [framework.states()["RUNNING"] for framework in frameworks]}


@scenario()
def resources_of_finished_tasks_return(world: World) -> Outcome:
    """A task ends, is killed, fails to start: each time all is offered again."""
    framework = world.framework("one", "eng")
    agent_id = world.agents[0].id()
    run_on(framework, agent_id, seconds=2)
    killed = run_on(framework, agent_id)
    framework.call("KILL", task_id={"value": killed})
    until(lambda: "KILLED" in framework.tasks[killed], 40, "the task is killed")
    until(lambda: not framework.running(), 40, "the other ends")
    framework.decline_all()
    until(lambda: out([framework])["cpus"] == 8000, 20, "all is offered")
    offer = next(iter(framework.offers.values()))
    greedy = [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 99}}]
    failed = framework.launch(offer, greedy, 1)
    until(lambda: framework.tasks[failed], 20, "the task is refused")
    until(lambda: out([framework])["cpus"] == 8000, 20, "all is offered again")
    return {"refused": framework.tasks[failed], "offered": all_out([framework])}

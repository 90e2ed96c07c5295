"""Tests of the comparisons used by cluster tests, on handmade states, without a Mesos."""

import time
from dataclasses import asdict
from typing import Any

import pytest

from allocator.core.resources import Kind
from tests.cluster import books
from tests.cluster.amounts import amounts_of, reserved, scalar
from tests.cluster.sent import offers_sent


def ports(first: int, last: int) -> dict[str, Any]:
    ranges = {"range": [{"begin": first, "end": last}]}
    return {"name": "ports", "type": "RANGES", "ranges": ranges}


def state(total, offered=(), used=()) -> Any:
    """One agent; `offered` and `used` by framework "f"."""
    agent = {"agent_info": {"id": {"value": "a"}}, "total_resources": total}
    agent |= {"offered_resources": list(offered), "allocated_resources": list(used)}
    offers = [{"agent_id": {"value": "a"}, "resources": list(offered)}]
    framework = {"framework_info": {"id": {"value": "f"}}, "offers": offers}
    task = {
        "framework_id": {"value": "f"},
        "agent_id": {"value": "a"},
        "state": "TASK_RUNNING",
        "resources": list(used),
    }
    return {
        "get_agents": {"agents": [agent]},
        "get_frameworks": {"frameworks": [framework]},
        "get_tasks": {"tasks": [task, {**task, "state": "TASK_FINISHED"}]},
        "get_executors": {},
    }


def test_amounts_are_in_thousandths_and_by_kind():
    disk = scalar("disk", 0.5, disk={"persistence": {"id": "v"}})
    rows = [scalar("cpus", 1.5), scalar("cpus", 1), reserved(scalar("cpus", 2), "eng"), ports(1, 3)]
    assert amounts_of([*rows, reserved(reserved(disk, "eng"), "eng/ads")]) == {
        "cpus": 2500,
        "cpus(eng)": 2000,
        "ports": 3000,
        "disk(eng, eng/ads)[v]": 500,
    }


@pytest.mark.parametrize(
    ("offered", "used", "found"),
    [
        ([scalar("cpus", 1)], [scalar("cpus", 1)], False),
        ([scalar("cpus", 1.001)], [scalar("cpus", 1)], True),
        ([reserved(scalar("cpus", 1), "eng")], [], True),
        ([ports(1, 5)], [ports(6, 10)], False),
        ([ports(1, 5)], [ports(5, 8)], True),
        ([ports(9, 11)], [], True),
    ],
)
def test_an_over_committed_agent_is_seen(offered, used, found):
    total = [scalar("cpus", 2), ports(1, 10)]
    assert bool(books.over_committed(state(total, offered, used))) == found


def dump(held: int, offered: int) -> Any:
    """A sidecar's books, of the same agent and framework."""
    kind = asdict(Kind("cpus"))
    place = {"framework": 1, "role": 1, "agent": 1}
    return {
        "kinds": [kind],
        "roles": [{"role": 1, "path": "eng"}],
        "agents": [{"agent": 1, "agent_id": "a", "capacity": {"0": 4000}}],
        "clients": [{"framework": 1, "framework_id": "f"}],
        "holdings": [{**place, "held": {"0": held}, "offered": {"0": offered}}],
    }


@pytest.mark.parametrize(
    ("held", "offered", "same"),
    [(3000, 2000, True), (3000, 0, True), (3001, 2000, False), (3000, 2001, False)],
)
def test_books_that_differ_are_reported(held, offered, same):
    master = state([scalar("cpus", 4)], [scalar("cpus", 2, "eng")], [scalar("cpus", 1, "eng")])
    found = books.of_master(master).differences(books.of_sidecar(dump(held, offered)))
    assert (not found) == same


def test_resources_that_are_equal_for_decisions_are_summed():
    stack = reserved(reserved(scalar("disk", 1), "eng"), "eng/ads")
    volumes = [{**stack, "disk": {"persistence": {"id": name}}} for name in "vw"]
    there = dump(0, 0)
    kinds = [Kind("disk", reserved_role="eng/ads", depth=2, form=form) for form in ("", "volume")]
    there["kinds"] = [asdict(kind) for kind in kinds]
    there["agents"][0]["capacity"] = {"0": 1000, "1": 2000}
    master = books.of_master(state([stack, *volumes]))
    assert not master.differences(books.of_sidecar(there))
    there["kinds"][0]["depth"] = 1
    assert master.differences(books.of_sidecar(there))


def test_offers_are_found_in_a_log_that_tells_the_time_of_day_only():
    log = (
        "I1122 23:59:59.900000   7 master.cpp:9579] Sending offers [ a-O1 ] to framework a-0000\n"
        "I1123 00:00:00.200000   7 master.cpp:9579] Sending offers [ a-O2 ] to framework a-0000\n"
        "I1123 00:00:00.300000   7 master.cpp:5434] Processing DECLINE call for offers: [ a-O2 ]\n"
    )
    morning_s = time.mktime((2026, 11, 23, 0, 0, 5, 0, 0, -1))
    moments = offers_sent(log, morning_s)
    assert [round(morning_s - each, 3) for each in moments] == [5.1, 4.8]

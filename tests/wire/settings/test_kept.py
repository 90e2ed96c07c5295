"""State that outlives the process: a round trip, with precedence over any configuration."""

import sys
from collections.abc import Callable
from itertools import count

import pytest

from allocator.core import (
    AGENTS,
    Allocator,
    DemandMemory,
    Lasted,
    OperatorChange,
    PolicySpec,
    Remembered,
    SessionLimits,
    SetBudget,
    SetCap,
    SetClaim,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetGang,
    SetLimit,
    SetPause,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
    State,
)
from allocator.policies import build
from allocator.rule_kinds import KINDS
from allocator.v1 import settings_pb2 as pb
from allocator.v1.types_pb2 import Quantities
from allocator.wire import WireError
from allocator.wire.settings.learnt_demands import copy_learnt, read_learnt, write_learnt
from allocator.wire.settings.overlay import (
    KeptChange,
    Overlay,
    configured,
    read_overlay,
    write_overlay,
)
from tests.world.world import World

BASE = Settings(
    demands={("a", ""): SetDemand("a", "", {"cpus": 1000})},
    constraints={("", "x*"): SetConstraint("", "x*", "ssd")},
    limits={"ops": {"cpus": 2000}},
    drains={"host-1": 0},
    weights={("a", ""): SetWeight("a", "", 3.0)},
    gangs={("a", ""): SetGang("a", "", 8)},
    budgets={("a",): SetBudget("a", {"gpus": 1000})},
    pauses=frozenset({"a/b"}),
    claims={("a",): SetClaim("a", {"cpus": 2500})},
    caps={("a", "user"): SetCap("a", "user", {"cpus": 1500})},
    shadow=PolicySpec("tsf"),
)
CHANGES = (
    SetPolicy(PolicySpec("choosy", "joint", "characterised", parameters={"unit": "tasks"})),
    SetDemand("b", "y*", {"cpus": 500}, override=True),
    SetDemand("c", "", {}),
    SetDemand("a", "", None),
    SetConstraint("", "x*", "zone=a|b"),
    SetLimit("ops", None),
    SetLimit("eng/ads", {"cpus": 3000}),
    SetDrain("host-1", drained=False),
    SetDrain("host-2"),
    SetWeight("a", "", None),
    SetWeight("", "z*", 2.0),
    SetGang("a", "", None),
    SetGang("", "z*", 2),
    SetBudget("a", None),
    SetBudget("eng", {"gpus": 500_000}, "week", True, True, "gpus:1h", "2026-11-02"),
    SetPause("a/b", paused=False),
    SetPause("c"),
    SetClaim("a", None),
    SetClaim("b", {"gpus": 2000}),
    SetCap("a", "user", None),
    SetCap("a", "framework", {"cpus": 500}),
    SetShadow(None),
)


def overlay(*changes, base: Settings = BASE) -> Overlay:
    made = Overlay()
    for at_ms, change in enumerate(changes):
        made.note(KeptChange(change, "somebody", at_ms), configured(base))
    return made


def over(base: Settings, kept: Overlay) -> Settings:
    settings, refused = kept.over(base, SessionLimits(), build)
    assert not refused
    return settings


def test_saved_settings_keep_their_order():
    kept = overlay(*CHANGES)
    again = read_overlay(pb.KeptSettings.FromString(write_overlay(kept).SerializeToString()))
    assert list(again.changes.items()) == list(kept.changes.items())


def test_an_overlay_restores_the_settings_in_force():
    allocator = Allocator(build, BASE.copied(), SessionLimits())
    for change in CHANGES:
        allocator.step(change)
    assert over(BASE, overlay(*CHANGES)) == allocator.settings
    assert list(over(BASE, overlay(*CHANGES)).demands) == list(allocator.settings.demands)
    assert BASE.limits == {"ops": {"cpus": 2000}}, "the configuration is not changed"


def test_a_new_configuration_applies_where_no_operator_changed_a_setting():
    kept = overlay(SetDemand("b", "", {"cpus": 9000}), SetLimit("ops", None))
    other = Settings(
        policy=PolicySpec("tsf"),
        demands={("b", ""): SetDemand("b", "", {"cpus": 1})},
        limits={"new": {"cpus": 7000}},
    )
    found = over(other, kept)
    assert found.policy.name == "tsf"
    assert found.demands["b", ""].demand == {"cpus": 9000}
    assert found.limits == {"new": {"cpus": 7000}}


def test_settings_that_were_not_configured_need_no_removal():
    kept = overlay(SetDemand("q", "", {"cpus": 1000}), SetDemand("q", "", None))
    assert kept.changes == {}
    assert list(overlay(SetDemand("a", "", None)).changes) == [("demand", "a", "")]


def test_kinds_can_be_taken_out():
    rest = overlay(*CHANGES).without({"demand", "policy"})
    assert {key[0] for key in rest.changes} == set(KINDS) - {"demand", "policy"}


def test_saved_settings_that_are_no_longer_valid_are_omitted():
    kept = overlay(SetPolicy(PolicySpec("gone")), SetLimit("eng", {"cpus": 1000}))
    settings, refused = kept.over(BASE, SessionLimits(), build)
    assert list(refused) == [("policy",)]
    assert settings.policy == BASE.policy
    assert settings.limits["eng"] == {"cpus": 1000}


def test_a_change_that_is_none_is_refused():
    with pytest.raises(WireError, match="is missing; name what to set"):
        read_overlay(pb.KeptSettings(changes=[pb.KeptChange(by="x")]))


@pytest.mark.parametrize("kind", ["name", "size"])
def test_a_remembered_demand_that_is_none_is_refused(kind):
    message = pb.KeptDemands(demands=[pb.KeptDemand(kind=kind, weight=1)])
    with pytest.raises(WireError, match="is not a valid learnt demand"):
        read_learnt(message, 0, 10)


@pytest.mark.parametrize(
    "ends", [{}, {1001: 1}, {1000: 0}, {1000: 2**40}, {1000: 1, -1: 2}], ids=str
)
def test_a_remembered_duration_that_is_none_is_refused(ends):
    rows = [pb.KeptEnds(within_ms=edge, count=count) for edge, count in ends.items()]
    message = pb.KeptDemands(durations=[pb.KeptDuration(role="eng", who="job", ends=rows)])
    with pytest.raises(WireError, match=r"durations\[0\]: is not a valid learnt duration"):
        read_learnt(message, 0, 10)


def memory() -> DemandMemory:
    made = DemandMemory()
    made.advance(0)
    made.teach(Settings(), ("eng", "name", "job-#"), {"cpus": 2000}, times=8)
    made.advance(5_000)
    made.teach(Settings(), ("ops", "user", "u"), {"cpus": 1000, "mem": 4000}, times=4)
    made.durations.teach(Settings(), ("eng", "name", "job-#"), {0: 40, 42: 2}, 5_000)
    made.durations.teach(Settings(), ("ops", "name", "cron"), {1: 30}, 5_000)
    made.advance(7_000)
    return made


def state_with(memory: DemandMemory) -> State:
    state = State(Settings(), SessionLimits())
    state.memory = memory
    return state


@pytest.mark.parametrize(
    "used",
    [
        pb.KeptUsage(role="eng", agents=-1),
        pb.KeptUsage(role="eng", agents=float("nan")),
        pb.KeptUsage(role="eng", average=Quantities(name=["cpus"], amount=[-1])),
    ],
)
def test_a_usage_that_is_none_is_refused(used):
    with pytest.raises(WireError, match=r"usage\[0\]"):
        read_learnt(pb.KeptDemands(usage=[used]), 0, 10)


def test_past_usage_is_restored_with_the_framework():
    """Of one that is here, and of one that left; rounded down to thousandths."""
    world = World(settings={"half_life_ms": 64_000})
    agent = world.agent("cpus:8;mem:16")
    here, left = (world.framework("eng", framework_id=name) for name in ("f-1", "f-2"))
    for framework in (here, left):
        world.hold(framework, "eng", agent, "cpus:2")
    for now_ms in (0, 64_000):
        world.allocator.advance(now_ms)
    world.remove_framework(left)
    learnt = copy_learnt(world.allocator.state)
    again = read_learnt(write_learnt(learnt, 0), 0, 10)
    for name in ("f-1", "f-2"):
        back = again.usage.come("eng", name, {"cpus", AGENTS})
        assert back == {"cpus": pytest.approx(1000, abs=1), AGENTS: pytest.approx(0.5)}


@pytest.mark.parametrize(
    "budget",
    [
        pb.KeptBudget(role="eng", per="year"),
        pb.KeptBudget(role="eng", per="day", begin_ms=1),
        pb.KeptBudget(role="eng", per="day", begin_ms=2**62),
        pb.KeptBudget(role="eng", per="day", used=[pb.KeptHours(name="gpus", hours=-1)]),
        pb.KeptBudget(role="eng", per="day", carried=[pb.KeptHours(name="gpus", rest=3_600_000)]),
    ],
)
def test_a_use_of_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(WireError, match=r"budgets\[0\]"):
        read_learnt(pb.KeptDemands(budgets=[budget]), 0, 10)


def test_use_of_a_budget_is_restored_exactly():
    world = World()
    agent = world.agent("gpus:8;mem:16")
    world.allocator.advance(23 * 3_600_000)
    rule = SetBudget("eng", {"gpus": 2000, "mem": 5000}, "day", carry_over=True)
    world.allocator.step(rule)
    world.hold(world.framework("eng"), "eng", agent, "gpus:1;mem:0.001")
    for now_ms in (24 * 3_600_000, 24 * 3_600_000 + 1234):
        world.allocator.advance(now_ms)
    learnt = copy_learnt(world.allocator.state)
    again = read_learnt(
        pb.KeptDemands.FromString(write_learnt(learnt, 0).SerializeToString()), 0, 9
    )
    spent = world.allocator.state.memory.budgets.spent
    assert again.budgets.spent == spent
    assert spent["eng"].used == {"gpus": 1234 * 1000, "mem": 1234}
    assert spent["eng"].carried == {"gpus": 1000 * 3_600_000, "mem": 4999 * 3_600_000}


def test_learnt_demands_age_while_saved():
    settings = Settings(prior_half_life_ms=10_000)
    learnt = copy_learnt(state_with(memory()))
    message = write_learnt(learnt, now_ms=1_000_000)
    again = read_learnt(message, 1_000_000, 10)
    assert list(again.entries) == list(learnt.entries), "what is forgotten first stays so"
    eng, ops = ("eng", "name", "job-#"), ("ops", "user", "u")
    assert (again.weight(settings, eng), again.weight(settings, ops)) == (8, 4)
    away = read_learnt(message, 1_000_000 + 9_000, 10)
    assert (away.weight(settings, eng), away.weight(settings, ops)) == (4, 2), "time went on"
    assert away.entries[ops] == Remembered({"cpus": 1000, "mem": 4000}, 4, -11_000)
    assert list(read_learnt(message, 1_000_000, 1).entries) == [ops], "the latest are kept"
    cron = ("ops", "name", "cron")
    assert list(again.durations.entries) == [("eng", "name", "job-#"), cron]
    assert again.durations.entries["eng", "name", "job-#"] == Lasted((40, *[0] * 41, 2), 42, -2000)
    assert away.durations.entries[cron].taught_ms == -11_000
    assert list(read_learnt(message, 1_000_000, 1).durations.entries) == [cron]
    backwards = read_learnt(message, 0, 10)
    assert backwards.weight(settings, eng) == 8, "a clock that was set back"


MANY: dict[str, Callable[[int], OperatorChange]] = {
    "limits": lambda number: SetLimit(f"role{number}", {"cpus": 1000}),
    "limits taken back": lambda number: SetLimit(f"role{number}", None),
    "demands": lambda number: SetDemand(f"role{number}", "", {"cpus": 1000}),
    "demands taken back": lambda number: SetDemand(f"role{number}", "", None),
    "constraints": lambda number: SetConstraint(f"role{number}", "", "zone=a"),
    "weights": lambda number: SetWeight(f"role{number}", "", 2.0),
    "budgets": lambda number: SetBudget(f"role{number}", {"gpus": 1000}),
    "gangs": lambda number: SetGang(f"role{number}", "", 8),
    "claims": lambda number: SetClaim(f"role{number}", {"cpus": 1000}),
    "caps": lambda number: SetCap(f"role{number}", "user", {"cpus": 1000}),
    "pauses": lambda number: SetPause(f"role{number}"),
    "drains": lambda number: SetDrain(f"host-{number}"),
    "drains taken back": lambda number: SetDrain(f"host-{number}", drained=False),
}


@pytest.mark.parametrize("what", MANY)
def test_the_cost_of_a_change_does_not_grow_with_the_number_of_changes(what):
    """A state file with 20,000 limits once kept a sidecar from starting."""

    def calls(many: int) -> int:
        base, kept = Settings(), Overlay()
        for number in range(many):
            base.put(SetLimit(f"role{number}", {"cpus": 1}))
            base.put(SetDemand(f"role{number}", "", {"cpus": 1}))
            base.put(SetDrain(f"host-{number}"))
            change = MANY[what](number)
            kept.changes[change.key] = KeptChange(change, "somebody", number)
        return calls_in(lambda: over(base, kept))

    calls(50)  # one-time work is done
    few, twice, four_times = calls(50), calls(100), calls(200)
    assert four_times - twice <= 2.2 * (twice - few)


def calls_in(work: Callable[[], object]) -> int:
    """Count the function calls of some work."""
    made = count()
    before = sys.getprofile()
    sys.setprofile(lambda *_: next(made) and None)
    try:
        work()
    finally:
        sys.setprofile(before)
    return next(made)

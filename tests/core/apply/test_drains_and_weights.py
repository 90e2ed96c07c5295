"""Drained agents, weights of frameworks, and modes below a role."""

import pytest

from allocator.core import (
    DEMAND_LABEL,
    EventError,
    PolicySpec,
    RemoveAgent,
    SetDrain,
    SetQuota,
    Settings,
    SetWeight,
    UpdateAgent,
)
from allocator.core.apply import clients, settings
from tests.core.session import Session

DRF = PolicySpec("drf", "listed", "characterised", flat=True)
TASK = {DEMAND_LABEL: "cpus:1;mem:1"}


def two(spec: PolicySpec = DRF, **settings) -> Session:
    made = Session(spec, **settings)
    made.framework(1, 1, name="spark-1", labels=TASK)
    made.framework(2, 2, name="kafka", labels=TASK)
    return made


def cpus(offers) -> dict[int, int]:
    """Units offered to each framework."""
    found = {1: 0, 2: 0}
    for framework, _, _, units in offers:
        found[framework] += units["cpus"]
    return found


def test_a_drained_agent_is_not_offered_until_the_drain_ends():
    made = two()
    made.agent(1, 4, 4, hostname="h1")
    made.agent(2, 4, 4, hostname="h2")
    made.allocator.step(SetDrain("h1"))
    first = made.cycle(1000)
    assert {offer[2] for offer in first} == {2}
    assert made.cycle(2000, agents=[1]) == []
    for offer in first:
        made.use(offer)
    made.allocator.step(SetDrain("h1", drained=False))
    assert {offer[2] for offer in made.cycle(3000)} == {1}


def test_free_resources_of_a_drained_agent_satisfy_no_guarantee():
    """Role two has a guarantee of 4 CPUs, no framework: one of two agents of 4 may be offered."""
    for drained, given in ((False, 4), (True, 0)):
        made = Session(DRF)
        made.framework(1, 1, labels=TASK)
        made.agent(1, 4, 4, hostname="h1")
        made.agent(2, 4, 4, hostname="h2")
        made.allocator.step(SetQuota(made.paths[2], {"cpus": 4000}, {}))
        if drained:
            made.allocator.step(SetDrain("h1"))
        assert cpus(made.cycle(1000))[1] == given


def test_tasks_on_a_drained_agent_continue_and_released_resources_are_not_offered():
    made = two()
    made.agent(1, 4, 4, hostname="h1")
    for offer in made.cycle(1000):
        made.use(offer)
    made.allocator.step(SetDrain("agent-1"))
    assert made.state.ledger.books.agent_held[:, 1].tolist() == [4000, 4000]
    made.allocator.check()
    assert made.cycle(2000) == []


def test_an_agent_is_drained_that_comes_later_and_again_under_another_handle():
    made = two(drains={"h1": 0})
    made.agent(1, 4, 4, hostname="h1")
    assert made.cycle(1000) == []
    made.allocator.step(RemoveAgent(1))
    made.agent(1, 4, 4, hostname="h2")
    assert made.cycle(2000) != []
    made.agent(3, 4, 4, hostname="h1")
    assert made.cycle(3000) == []


def test_a_drain_finds_agents_that_were_renamed_moved_or_share_a_host():
    made = two()
    made.agent(1, 4, 4, hostname="h1")
    made.agent(2, 4, 4, hostname="h1")
    step, ready = made.allocator.step, made.state.agents
    step(SetDrain("h1"))
    assert ready.ready[1:3].tolist() == [False, False]
    step(SetDrain("h1", drained=False))
    step(UpdateAgent(1, attributes={"rack": "r"}, hostname="h2"))
    step(RemoveAgent(2))
    made.agent(3, 4, 4, hostname="h3")
    step(SetDrain("h1"))
    assert ready.ready[[1, 3]].tolist() == [True, True]
    step(SetDrain("h2"))
    step(SetDrain("h3"))
    assert ready.ready[[1, 3]].tolist() == [False, False]


def test_a_framework_of_weight_two_gets_twice_as_much():
    made = two()
    made.agent(1, 9, 9)
    made.allocator.step(SetWeight("", "spark-*", 2.0))
    assert cpus(made.cycle(1000)) == {1: 6, 2: 3}


def test_a_weight_stands_beside_that_of_the_role():
    made = two()
    made.world.weights(b=2.0)
    made.agent(1, 12, 12)
    made.allocator.step(SetWeight("", "spark-*", 4.0))
    assert cpus(made.cycle(1000)) == {1: 8, 2: 4}


def test_weights_count_among_the_frameworks_of_a_role():
    made = Session(PolicySpec("drf", "listed", "characterised"))
    for framework in (1, 2):
        made.framework(framework, 1, name=f"job-{framework}", labels=TASK)
    made.agent(1, 8, 8)
    made.allocator.step(SetWeight("a", "job-2", 3.0))
    assert cpus(made.cycle(1000)) == {1: 2, 2: 6}


def test_the_last_rule_counts_and_a_rule_that_is_taken_back_does_not():
    made = two()
    made.agent(1, 8, 8)
    made.allocator.step(SetWeight("", "spark-*", 9.0))
    made.allocator.step(SetWeight("a", "", 3.0))
    assert cpus(made.cycle(1000)) == {1: 6, 2: 2}
    made.agent(2, 8, 8)
    for rule in (SetWeight("a", "", None), SetWeight("", "spark-*", None)):
        made.allocator.step(rule)
    assert cpus(made.cycle(2000)) == {1: 2, 2: 6}
    assert made.allocator.settings.weights == {}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SetWeight("", "x", 0.0), "give a number from"),
        (SetWeight("", "x", float("nan")), "give a number from"),
        (SetWeight("", "x", float("inf")), "give a number from"),
        (SetWeight("", "x", None), "there is no rule"),
        (SetDrain(" "), "give an agent's id or host name"),
        (SetDrain("h1", drained=False), "is not drained"),
    ],
)
def test_an_impossible_change_has_no_effect(event, said):
    made = two()
    before = made.allocator.settings.copied()
    with pytest.raises(EventError, match=said):
        made.allocator.step(event)
    assert made.allocator.settings == before


def test_settings_are_taken_over_as_a_whole_or_not_at_all():
    made = two()
    made.agent(1, 4, 4, hostname="h1")
    wrong = Settings(policy=DRF, drains={"h1": 0}, shadow=PolicySpec("drff"))
    with pytest.raises(EventError, match="drff"):
        made.allocator.reconfigure(wrong)
    assert len(made.cycle(1000)) > 0
    right = Settings(policy=DRF, drains={"h2": 0})
    made.allocator.reconfigure(right)
    made.agent(2, 4, 4, hostname="h2")
    assert made.cycle(2000) == []


def test_below_a_role_the_mode_may_be_another_one():
    spec = PolicySpec("drf", "listed", subtrees={"a": "choosy:unit=tasks,mode=characterised"})
    made = two(spec)
    made.agent(1, 4, 4)
    made.agent(2, 4, 4)
    snapshot = made.allocator.preview()
    assert snapshot is not None
    rows = [made.state.clients.row(1, 1), made.state.clients.row(2, 2)]
    assert snapshot.characterised[rows].tolist() == [True, False]
    # One task, and then everything left.
    assert (2, 2, 1, {"cpus": 3, "mem": 3}) in made.cycle(1000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drf:", "not of the form"),
        ("drf:mode", "not of the form"),
        ("choosy:unit=tasks,unit=agents", "not of the form"),
        ("drf:mode=whole", r"subtrees.a.mode: there is no mode 'whole'"),
        ("drf:unit=tasks", "the policy drf takes no parameters"),
        ("choosy:unit=cats", r"subtrees.a.unit: 'cats' is not possible"),
        ("choosy:size=1", "has no such parameter"),
    ],
)
def test_a_subtree_that_is_none_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        Session(PolicySpec("drf", subtrees={"a": text}))


@pytest.mark.parametrize(
    ("role", "framework_name", "whom"),
    [("", "", {1, 2}), ("", "spark-*", {1}), ("role-2", "", {2}), ("role-2", "spark-1", set())],
)
def test_a_rule_is_evaluated_only_for_frameworks_it_applies_to(
    role, framework_name, whom, monkeypatch
):
    """Every request of operators waits for this one, and there may be thousands of rules."""
    made, about = two(), set()

    def noting(state, rows):
        about.update(state.clients.framework[rows].tolist())
        clients.refresh_weights(state, rows)

    monkeypatch.setattr(settings, "_OF_FRAMEWORKS", {"weight": noting})
    pattern = role and made.paths[int(role[-1])]
    for weight in (2.0, None):
        about.clear()
        made.allocator.step(SetWeight(pattern, framework_name, weight))
        assert about == whom
    weights = made.allocator.state.clients.weight
    assert set(weights[made.allocator.state.clients.framework > 0].tolist()) == {1.0}

"""Explanations agree with cycles: in random clusters, and in each case of Mesos's rules."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    Allocator,
    Outcomes,
    PolicySpec,
    SetDemand,
    SetPolicy,
    Trail,
    parse_amount,
)
from allocator.explain import explain, take
from allocator.v1.explain_pb2 import ClientExplanation
from tests.rules.cases import Case
from tests.rules.random_cases import cases
from tests.rules.small_core import begun
from tests.rules.small_master import SmallMaster
from tests.rules.test_rules import CASES, NAMES

Key = tuple[int, int]
"""Handles of a framework and of a role."""

POLICIES = st.builds(
    PolicySpec,
    st.sampled_from(["drf", "ps-dsf", "choosy", "tsf"]),
    selection=st.sampled_from(["random", "listed", "joint"]),
    mode=st.sampled_from(["oblivious", "characterised"]),
    flat=st.booleans(),
)

TASKS = st.sampled_from(
    [{}, {"cpus": "1"}, {"cpus": "1", "mem": "1"}, {"disk": "2"}, {"cpus": "9"}]
)


def explained(allocator: Allocator) -> dict[Key, ClientExplanation]:
    """The answer about each client."""
    found = {}
    for handle, info in enumerate(allocator.state.frameworks.info):
        if info is not None:
            picture = take(allocator, "framework", info.framework_id)
            answer = explain(picture, "framework", info.framework_id)
            names = picture.names
            for subject, client in zip(picture.subjects, answer.clients, strict=True):
                found[handle, int(names.role[subject.client])] = client
    return found


def made_in(allocator: Allocator, now_ms: int) -> set[Key]:
    """Run a cycle over all agents, whose decisions become offers; returns the clients served."""
    decisions = allocator.allocate(now_ms)
    assert allocator.last_cycle.policy_error == ""
    yes = np.ones(len(decisions), np.bool_)
    allocator.step(Outcomes.all_or_nothing(decisions.first_decision, yes))
    pairs = zip(decisions.framework.tolist(), decisions.role.tolist(), strict=True)
    return set(pairs)


def thousandths(task: Mapping[str, str]) -> dict[str, int]:
    return {name: parse_amount(amount) for name, amount in task.items()}


@given(case=cases(), policy=POLICIES, tasks=st.tuples(TASKS, TASKS))
def test_clients_without_offers_have_an_explanation_and_all_others_get_offers(
    case: Case, policy: PolicySpec, tasks: tuple[Mapping[str, str], ...]
):
    master = SmallMaster(case)
    allocator = begun(master)
    allocator.trail = Trail()
    allocator.step(SetPolicy(policy))
    for number, task in enumerate(tasks, 1):
        info = allocator.state.frameworks.info[
            min(number, len(allocator.state.frameworks.info) - 1)
        ]
        if info is not None:
            allocator.step(SetDemand("", info.name, thousandths(task)))
    for _ in range(3):
        before = explained(allocator)
        served = made_in(allocator, master.now_ms)
        after = explained(allocator)
        for key, client in before.items():
            about = f"\n{case.text()}{policy} {tasks}\n{key}: {client}"
            agrees_with_the_cycle(client, after[key], served=key in served, about=about)


def agrees_with_the_cycle(
    before: ClientExplanation, after: ClientExplanation, *, served: bool, about: str
) -> None:
    blocked = [each for each in before.blockers if each.reason != "outranked"]
    if served:
        assert before.open_agents, about
        return
    # Every agent that it does not get is blocked, or went to others named by the cycle.
    assert sum(each.agents for each in blocked) >= before.agents - before.open_agents, about
    if before.open_agents:
        cycle = after.cycles[0]
        assert before.open_agents <= sum(loss.agents for loss in cycle.losses), f"{about}\n{cycle}"


@pytest.mark.parametrize(
    "case",
    [case for _, case in CASES if case.wants_all],
    ids=[name for name, (_, case) in zip(NAMES, CASES, strict=True) if case.wants_all],
)
def test_each_rule_is_explained_as_it_is_applied(case: Case):
    """An explanation gives a reason exactly if a case's client is not offered the agent."""
    master = SmallMaster(case)
    allocator = begun(master)
    wish = master.decision
    key = (wish.framework, wish.role)
    client = explained(allocator).get(key)
    if client is None:
        assert not case.decided
        return
    if case.decided:
        assert client.open_agents, client
    elif allocator.state.agents.is_bound(wish.agent) and len(allocator.state.agents) == 1:
        assert client.blockers, client
        assert not client.open_agents, client

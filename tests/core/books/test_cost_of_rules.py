"""The cost of a rule about agents depends on its length, not on the number of agents or tenants."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

import numpy as np
import pytest

from allocator.core import (
    CONSTRAINT_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    Exclude,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    RemoveAgent,
    RemoveFramework,
    Settings,
    UpdateFramework,
)
from allocator.core.books import rule_index
from allocator.core.books.agent_rules import Rule
from allocator.core.books.rule_index import RuleClass, RuleIndex, _Asked, _Opinion
from allocator.core.constraints import Clause, Condition
from allocator.core.numba.shared_bits import shared_some_on
from allocator.policies import build
from tests.counting import count_calls
from tests.tables import dense

AGENTS, ROLES, NAMES = 300, 1000, 8


def _allocator(agents: int = AGENTS, roles: int = ROLES) -> Allocator:
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")))
    allocator.step(Options())
    handles = range(1, roles + 1)
    allocator.step(Define({0: Kind("cpus")}, {handle: f"role-{handle}" for handle in handles}))
    for agent in range(1, agents + 1):
        allocator.step(_agent(agent, agent))
    assert not dense(allocator.state.eligibility.excluded).any()
    return allocator


def _agent(agent: int, number: int) -> AddAgent:
    attributes = {f"a{name}": f"v{(number + name) % 5}" for name in range(NAMES)}
    info = AgentInfo(
        f"agent-{agent}",
        hostname=f"host-{number}",
        attributes=attributes,
        capabilities=frozenset({"MULTI_ROLE"}),
    )
    return AddAgent(agent, info, {0: 1000})


def _framework(handle: int, label: str) -> FrameworkInfo:
    capabilities = frozenset({"MULTI_ROLE"})
    return FrameworkInfo(f"f{handle}", labels={CONSTRAINT_LABEL: label}, capabilities=capabilities)


def _label(number: int) -> str:
    """A label with a clause for each attribute of agents, and many for unknown attributes."""
    known = [f"a{name}!=v{(number + name) % 7}" for name in range(NAMES)]
    return ";".join([*known, *(f"!x{number}-{name}" for name in range(100))])


@pytest.fixture
def looks(monkeypatch):
    """Counts scans of all agents for some clients, and of one agent for all clients."""
    return count_calls(monkeypatch, RuleIndex, "barred_on", "barred")


@pytest.mark.parametrize("label", ["hostname!=host-1", "a0!=v3", "ssd"])
def test_leaving_roles_costs_a_look_at_all_agents_for_a_framework(looks, label):
    """One scan, not one for each of its roles, however often it leaves and joins them."""
    allocator, info = _allocator(), _framework(1, label)
    relation, roles = allocator.state.eligibility, tuple(range(1, ROLES + 1))
    allocator.step(AddFramework(1, info, roles))
    assert dense(relation.excluded).any()
    once = looks["barred_on"]
    assert once <= 2
    for _ in range(8):
        allocator.step(UpdateFramework(1, info, ()))
        assert not dense(relation.excluded).any()
        allocator.step(UpdateFramework(1, info, roles))
        assert dense(relation.excluded).any()
    assert looks["barred_on"] <= once * (1 + 8 * 2)
    # An agent that returns before the next scan counts as unchanged.
    looks.clear()
    allocator.step(UpdateFramework(1, info, ()))
    allocator.step(UpdateFramework(1, info, roles))
    assert dense(relation.excluded).any()
    assert not looks
    allocator.step(RemoveFramework(1))
    assert not dense(relation.excluded).any()
    assert looks["barred_on"] <= once
    relation.check()


@pytest.mark.parametrize("agents", [500, 5000])
def test_exclusions_of_a_framework_take_memory_for_kinds_of_agents(agents):
    """Not for agents: those with the same attributes share a row of bits."""
    allocator = _allocator(agents)
    relation = allocator.state.eligibility
    for handle in (1, 2):
        info = _framework(handle, f"a{handle}=v0|v2|v4|v6")
        allocator.step(AddFramework(handle, info, tuple(range(1, ROLES + 1))))
    some = shared_some_on(relation.excluded)
    assert agents / 3 < some.sum() < agents
    assert len(relation.excluded.bits) <= 1 + 2 * 2 * len(relation.excluded.row)
    relation.check()


def test_exclusions_of_a_framework_that_leaves_its_roles_are_taken_back_at_once(looks):
    allocator, info = _allocator(), FrameworkInfo("f1", capabilities=frozenset({"MULTI_ROLE"}))
    relation, roles = allocator.state.eligibility, tuple(range(1, 101))
    allocator.step(AddFramework(1, info, roles))
    count, handles = len(roles), np.array(roles)
    told = Exclude(np.ones(count, np.int64), handles, handles, np.ones(count, np.bool_))
    allocator.step(told)
    assert shared_some_on(relation.excluded).sum() == count
    looks.clear()
    allocator.step(UpdateFramework(1, info, ()))
    assert not dense(relation.excluded).any()
    assert not any(relation.told_of(client).any() for client in range(1, count + 1))
    assert looks["barred_on"] == 1
    relation.check()


def test_of_many_rules_between_two_cycles_the_last_one_counts(looks):
    allocator = _allocator()
    relation = allocator.state.eligibility
    allocator.step(AddFramework(1, _framework(1, ""), (1,)))
    for number in range(500):
        allocator.step(UpdateFramework(1, _framework(1, _label(number)), (1,)))
    last = dense(relation.excluded)
    assert last.any()
    assert looks == {"barred_on": 1}
    relation.check()


def test_an_agent_that_returns_costs_a_look_at_each_of_its_attributes(monkeypatch, looks):
    """However many frameworks ask for them."""
    allocator = _allocator(roles=10)
    relation = allocator.state.eligibility
    for handle in range(1, 201):
        allocator.step(AddFramework(handle, _framework(handle, _label(handle)), (1 + handle % 10,)))
    assert dense(relation.excluded).any()
    looks.clear()
    judged = count_calls(monkeypatch, _Asked, "barred")
    clauses = count_calls(monkeypatch, Clause, "holds") + count_calls(monkeypatch, Rule, "allows")
    held = count_calls(monkeypatch, Condition, "holds")
    for number in range(5):
        allocator.step(RemoveAgent(5))
        allocator.step(_agent(5, 1000 + number))
        assert dense(relation.excluded)[:, 5].any()
    assert looks == {"barred": 5}
    assert judged == {"barred": 5 * NAMES}
    assert not clauses + held
    relation.check()


class _Counted(frozenset):
    """The values of a rule; counts lookups in them."""

    looks = 0

    def __contains__(self, value: object) -> bool:
        _Counted.looks += 1
        return super().__contains__(value)

    def __and__(self, values: AbstractSet[object]) -> frozenset[object]:
        _Counted.looks += 1
        return super().__and__(values)


@pytest.fixture
def looked_for(monkeypatch):
    """Counts lookups in the values of rules."""
    of = _Opinion.of

    def counted(condition: Condition) -> _Opinion:
        opinion = of(condition)
        return opinion._replace(exceptions=_Counted(opinion.exceptions))

    monkeypatch.setattr(_Opinion, "of", counted)
    monkeypatch.setattr(_Counted, "looks", 0)
    return _Counted


@pytest.fixture
def joined(monkeypatch):
    """For each combination of clients' rules, the number of rules combined."""
    sizes, union = list[int](), rule_index.union

    def counted(classes: Collection[RuleClass]) -> int:
        sizes.append(len(classes))
        return union(classes)

    monkeypatch.setattr(rule_index, "union", counted)
    return sizes


def _returns(allocator: Allocator, number: int) -> None:
    """Agent 5 returns with the attributes of another one, and is looked up."""
    allocator.step(RemoveAgent(5))
    allocator.step(_agent(5, number))
    assert dense(allocator.state.eligibility.excluded)[:, 5].any()


def test_an_agent_that_returns_costs_a_look_at_the_rules_that_name_its_values(looked_for, joined):
    """An index finds the rules that name a value; a combination of many rules is cached.

    A rule that changes later is evaluated alone.
    """
    allocator, values = _allocator(roles=10), 250
    named = "|".join(f"host-{number}" for number in range(values))
    for handle in range(1, 51):
        label = f"hostname!={named}|host-{1000 + handle}"
        allocator.step(AddFramework(handle, _framework(handle, label), (1 + handle % 10,)))
    assert dense(allocator.state.eligibility.excluded).any()
    looked_for.looks = 0
    for number in range(1001, 1051):  # each is named by one rule
        _returns(allocator, number)
    assert not joined
    for number in range(values):
        _returns(allocator, number)
    assert joined == [50] * values
    for number in range(values):
        _returns(allocator, number)
    assert len(joined) == values
    assert not looked_for.looks
    allocator.step(UpdateFramework(1, _framework(1, "hostname=host-7|own"), (2,)))
    for number in range(values):
        _returns(allocator, number)
    assert len(joined) == values
    assert looked_for.looks <= 3
    allocator.state.eligibility.check()


def test_values_are_read_once_an_agent_comes_with_one_and_only_once(monkeypatch):
    """Rules that come, change and go without such an agent are never read, as most never match."""
    allocator, read = _allocator(roles=10), list[int]()
    relation, original = allocator.state.eligibility, _Asked._read

    def counted(asked: _Asked) -> None:
        read.append(len(asked._unread))
        original(asked)

    monkeypatch.setattr(_Asked, "_read", counted)
    for handle in range(1, 51):
        label = f"hostname!=host-7|host-{1000 + handle}|host-{1001 + handle}"
        allocator.step(AddFramework(handle, _framework(handle, label), (1 + handle % 10,)))
        assert dense(relation.excluded).any()
    for handle in range(1, 21):
        allocator.step(UpdateFramework(handle, _framework(handle, "hostname!=host-7"), (2,)))
        assert dense(relation.excluded).any()
    allocator.step(RemoveFramework(50))
    assert dense(relation.excluded).any()
    assert not read
    _returns(allocator, 1040)
    _returns(allocator, 7)
    assert read == [30]  # the rule that twenty frameworks share, and those of 29 others
    # A cached value includes rules that were added later, read or not.
    for handle in range(51, 54):
        label = f"hostname!=host-7|host-{handle}"
        allocator.step(AddFramework(handle, _framework(handle, label), (1 + handle % 10,)))
    assert dense(relation.excluded).any()
    allocator.step(UpdateFramework(53, _framework(53, "hostname!=host-7|host-51"), (2,)))
    _returns(allocator, 7)
    assert read == [30, 2]  # two of them share a rule
    relation.check()


def test_values_of_one_attribute_take_no_room_from_another(looked_for, joined):
    """The cache of one attribute survives many values of another one."""
    allocator = _allocator(roles=10)
    for handle in range(1, 21):
        first = 2000 + handle // 2 * 400  # each two share their rule
        hosts = "|".join(f"host-{number}" for number in range(first, first + 400))
        label = f"a0!=v1|v2;hostname!={hosts}|own-{handle}"
        allocator.step(AddFramework(handle, _framework(handle, label), (1 + handle % 10,)))
    _returns(allocator, 1)
    assert joined == [20]
    for number in range(2401, 6400, 5):  # named hosts, with a named value of a0
        _returns(allocator, number)
    looked_for.looks = 0
    joined.clear()
    _returns(allocator, 1)
    assert not joined
    assert not looked_for.looks
    allocator.state.eligibility.check()


def test_rules_of_all_frameworks_are_judged_in_one_look_at_all_agents(monkeypatch, looks):
    allocator = _allocator(roles=10)
    relation = allocator.state.eligibility
    held = count_calls(monkeypatch, Condition, "holds")
    for handle in range(1, 201):
        allocator.step(AddFramework(handle, _framework(handle, _label(handle)), (1 + handle % 10,)))
    assert dense(relation.excluded).any()
    assert looks == {"barred_on": 1}
    assert not held
    relation.check()

"""Exclusions of pairs: batches of rows or rules have the effect of single ones."""

import time
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books import agent_rules, eligibility, rule_index
from allocator.core.books.agent_rules import AgentColumns, AgentTraits, Rule, SortedRule
from allocator.core.books.eligibility import Eligibility, Late, set_of
from allocator.core.books.rule_index import RuleIndex
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.core.constraints import parse_constraint
from allocator.core.numba import bit_tables
from allocator.core.numba.shared_bits import shared_some_on
from tests.counting import count_calls
from tests.tables import dense

AGENTS, CLIENTS = 64, 150
ROWS_MAX = 1 << 18
"""Pairs that a module evaluates when a framework changes its offer constraints."""

ROWS_S_MAX = 2.0
"""Limit of processor time for all of them: about thirty times the usual."""

_rows = st.lists(
    st.tuples(st.integers(0, CLIENTS - 1), st.integers(0, 4), st.booleans()), max_size=40
)


def _relation(agents: int, clients: int) -> Eligibility:
    """Some clients have a rule that excludes every other agent."""
    relation = Eligibility()
    relation.reserve(agents=agents, clients=clients)
    traits = [
        AgentTraits({"rack": str(agent % 2)}, gpus=False, remote=False, many_roles=True,
                    nested_roles=True)
        for agent in range(agents)
    ]  # fmt: skip
    relation.set_agents(np.arange(agents), traits)
    for client in range(clients):
        clauses = tuple(parse_constraint("rack=1")) if client % 3 == 0 else ()
        relation.set_rule(client, Rule(clauses))
    return relation


def _columns(rows: list[tuple[int, int, bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    client, agent, excluded = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(client, np.int64), np.array(agent, np.int64), np.array(excluded, np.bool_)


@given(st.lists(_rows, max_size=4))
def test_many_rows_do_what_they_do_one_by_one(events):
    relation, slow = _relation(AGENTS, CLIENTS), _relation(AGENTS, CLIENTS)
    for rows in events:
        relation.tell(*_columns(rows))
        for row in rows:
            slow.tell(*_columns([row]))
        relation.check()
        assert all(
            relation.told_of(client).tolist() == slow.told_of(client).tolist()
            for client in range(CLIENTS)
        )
        assert dense(relation.excluded).tolist() == dense(slow.excluded).tolist()


def test_a_row_costs_little():
    """Otherwise constraints that are sent repeatedly take the core's time from other frameworks."""
    agents, clients = 1 << 10, 1 << 8
    relation = _relation(agents, clients)
    agent, client = (each.ravel() for each in np.mgrid[:agents, :clients])
    assert len(agent) == ROWS_MAX
    begun_s = time.process_time()
    relation.tell(client, agent, np.ones(ROWS_MAX, np.bool_))
    assert time.process_time() - begun_s < ROWS_S_MAX
    relation.check()


_clauses = st.sampled_from(
    ["", "rack=1", "rack!=1", "rack=0|1; disk", "!disk", "disk=ssd; rack!=0|2", "rack=7", "none!=a"]
)
_rules = st.builds(
    lambda text, *flags: Rule(parse_constraint(text), *flags),
    _clauses,
    *[st.booleans()] * 4,
)
_attributes = st.fixed_dictionaries(
    {}, optional={"rack": st.sampled_from("012"), "disk": st.sampled_from(["ssd", "hdd"])}
)
_traits = st.builds(AgentTraits, _attributes, *[st.booleans()] * 4)


def _barred_by(columns: AgentColumns, rule: Rule, agents: int) -> list[bool]:
    bars = columns.barred_by(SortedRule.of(rule))
    assert bars is None or bars.any()
    return [False] * agents if bars is None else bars.tolist()


def _barred_slowly(traits: Sequence[AgentTraits | None], rule: Rule) -> list[bool]:
    return [its is not None and not rule.allows(its) for its in traits]


@given(_traits, _rules)
def test_a_sorted_rule_says_what_the_rule_says(traits, rule):
    assert SortedRule.of(rule).allows(traits) == rule.allows(traits)


@given(
    st.lists(st.none() | _traits, max_size=20),
    st.lists(_rules, max_size=8),
    st.lists(st.dictionaries(st.integers(0, 29), st.none() | _traits, max_size=5), max_size=4),
    st.sampled_from([0, 3]),
)
def test_columns_of_agents_say_what_each_agent_says(traits, rules, changes, rare):
    """Includes agents that come, leave and change."""
    columns = AgentColumns(traits)
    for change in [{}, *changes]:
        if change:
            columns.reserve(max(change) + 1)
            columns.put(np.array(list(change)), list(change.values()))
            traits = [*traits, *[None] * (max(change) + 1 - len(traits))]
            traits = [change.get(agent, its) for agent, its in enumerate(traits)]
        for rule in rules:
            with patch.object(agent_rules, "RARE", rare):
                found = _barred_by(columns, rule, len(traits))
            assert found == _barred_slowly(traits, rule)


def test_columns_of_agents_are_bounded(monkeypatch):
    """Frameworks' labels may name any number of attributes."""
    monkeypatch.setattr(agent_rules, "COLUMNS_BYTES_MAX", 2000)
    monkeypatch.setattr(agent_rules, "RARE", 0)
    traits = [AgentTraits({name: "1"}, *[False] * 4) for name in "abcd"]
    columns = AgentColumns(traits)
    for name in "abcd" * 2 + "abcdefgh" * 3:
        value = "x" * 700
        rule = Rule(parse_constraint(f"{name}=1|{value}"))
        assert _barred_by(columns, rule, len(traits)) == _barred_slowly(traits, rule)
        # Agents have more values than the index holds.
        traits[0] = AgentTraits({name: value}, *[False] * 4)
        columns.put(np.array([0]), [traits[0]])
        assert sum(column.nbytes for column in columns.attributes.values()) <= 2000


def test_previous_attributes_of_agents_are_forgotten(monkeypatch):
    monkeypatch.setattr(agent_rules, "RARE", 0)
    columns = AgentColumns([None] * 4)
    for turn in range(1000):
        its = AgentTraits({"rack": str(turn), f"name{turn}": ""}, *[False] * 4)
        columns.put(np.array([turn % 4]), [its])
        assert _barred_by(columns, Rule(parse_constraint(f"!name{turn - 4}")), 4) == [False] * 4
        assert any(_barred_by(columns, Rule(parse_constraint(f"rack!={turn}")), 4))
    assert sum(column.nbytes for column in columns.attributes.values()) < 20_000
    columns.put(np.arange(4), [None] * 4)
    assert not any(_barred_by(columns, Rule(parse_constraint("rack=none")), 4))
    assert not columns.having


class _Watched(dict):
    """Attributes of an agent, and the number of lookups in them."""

    looks = 0

    def get(self, *arguments):
        _Watched.looks += 1
        return super().get(*arguments)

    def __getitem__(self, name):
        _Watched.looks += 1
        return super().__getitem__(name)


def _label(number: int, clauses: int = 128) -> Rule:
    """A framework's label that excludes agents with any of many attributes."""
    return Rule(parse_constraint(";".join(f"!a{number}-{name}" for name in range(clauses))))


def _plain(agents: int) -> list[AgentTraits]:
    return [
        AgentTraits(_Watched({"rack": str(agent % 7)}), *[False] * 4) for agent in range(agents)
    ]


def test_names_that_no_agent_has_cost_no_look_at_agents():
    """Otherwise a label that is sent repeatedly takes the core's time from other frameworks."""
    relation = Eligibility()
    relation.reserve(agents=512, clients=64)
    relation.set_agents(np.arange(256), _plain(256))
    _Watched.looks = 0
    for client in range(10):
        relation.set_rule(client, _label(client))
        assert not dense(relation.excluded).any()
    for some in (256, 8, 1):
        relation.set_agents(np.arange(256, 256 + some), _plain(some))
        assert not dense(relation.excluded).any()
    relation.set_rule(10, _label(10))
    assert not dense(relation.excluded).any()
    assert _Watched.looks == 0
    relation.check()


def test_an_attribute_is_read_once_for_all_rules():
    relation = Eligibility()
    relation.reserve(agents=512, clients=64)
    relation.set_agents(np.arange(256), _plain(256))
    _Watched.looks = 0
    for client in range(20):
        relation.set_rule(client, Rule(parse_constraint(f"rack=0|{client}; !a{client}")))
        assert dense(relation.excluded).any()
    assert _Watched.looks == 256
    # Also of later rules: about all agents, and about these.
    relation.set_agents(np.arange(256, 512), _plain(256))
    relation.set_rule(20, Rule(parse_constraint("rack!=3")))
    assert relation.excluded_of(20).any()
    assert _Watched.looks <= 3 * 256
    relation.drop_agent(0)
    relation.set_rule(21, Rule(parse_constraint("rack!=4")))
    assert relation.excluded_of(21).any()
    assert _Watched.looks <= 3 * 256
    relation.check()


def test_roles_of_a_framework_share_one_look_at_its_words(monkeypatch):
    relation = _relation(AGENTS, CLIENTS)
    hashed, slow = [], Rule.__hash__

    def watched(rule: Rule) -> int:
        hashed.append(rule)
        return slow(rule)

    monkeypatch.setattr(Rule, "__hash__", watched)
    for number in range(3):
        words = _label(number).clauses
        for _ in range(2):
            relation.set_rules({client: Rule(words) for client in range(CLIENTS)})
            assert not dense(relation.excluded)[0, :, 0].any()
    assert len(hashed) < 20
    relation.check()


def test_an_exclusion_that_ends_costs_a_look_at_its_own_agent(monkeypatch):
    """Otherwise constraints that are sent repeatedly take the core's time from other frameworks."""
    relation = _relation(AGENTS, CLIENTS)
    client, agent = np.arange(CLIENTS), np.arange(CLIENTS) % 4
    relation.tell(client, agent, np.ones(CLIENTS, np.bool_))
    relation.check()
    count = count_calls(monkeypatch, RuleIndex, "barred", "barred_on")
    relation.tell(client, agent, np.zeros(CLIENTS, np.bool_))
    assert dense(relation.excluded).any()
    assert count == {"barred": 4}
    relation.check()


def test_exclusions_before_drains_survive_changes_of_rules_and_agents():
    relation, plain = Eligibility(), Rule()
    relation.reserve(agents=AGENTS, clients=CLIENTS)
    relation.set_agents(np.arange(AGENTS), _plain(AGENTS))
    relation.set_rules(dict.fromkeys(range(CLIENTS), plain))
    late = Late(np.array([3, 50]), np.array([1, 0]), (set_of([1, 70]), set_of([2, 70])))
    relation.bar(late)
    assert np.flatnonzero(relation.excluded_of(70)).tolist() == [3, 50]
    assert [np.flatnonzero(relation.late_of(each)).tolist() for each in (1, 2)] == [[50], [3]]
    relation.check()
    for rule in (Rule(parse_constraint("rack=1")), plain, None, plain):
        relation.set_rule(70, rule)
        relation.check()
        relation.set_agents(np.array([3]), _plain(1))
        relation.check()
        if rule is not None:
            late = late._replace(group=late.group[::-1])
            relation.bar(late)
            relation.check()
    relation.bar(late._replace(agent=np.array([4, 50])))
    relation.check()
    relation.bar(Late())
    assert not dense(relation.excluded).any()
    relation.check()


def blocks_of_words(shift: int) -> Any:
    """Make blocks small, so that these clients are in several ones."""
    return patch.multiple(bit_tables, WORDS=1 << shift, _SHIFT=shift, _MASK=(1 << shift) - 1)


_few_clients = st.sampled_from(
    [0, 1, 63, 64, CLIENTS - 1]
)  # so few that rules and rows meet on the same pairs


@given(
    st.lists(_traits, min_size=5, max_size=5),
    st.lists(st.dictionaries(_few_clients, st.none() | _rules), max_size=4),
    st.lists(st.tuples(_few_clients, st.integers(0, 4), st.booleans()), max_size=20),
)
def test_many_rules_at_once_do_what_they_do_one_by_one(traits, batches, rows):
    with blocks_of_words(1):
        at_once, slow = _relation(AGENTS, CLIENTS), _relation(AGENTS, CLIENTS)
        for relation in (at_once, slow):
            relation.set_agents(np.arange(5), traits)
            relation.tell(*_columns(rows))
        for rules in batches:
            at_once.set_rules(rules)
            for client, rule in rules.items():
                slow.set_rule(client, rule)
            at_once.check()
            assert dense(at_once.excluded).tolist() == dense(slow.excluded).tolist()
            # The next rules are evaluated without an agent that existed before.
            for relation in (at_once, slow):
                relation.drop_agent(AGENTS - 1)
            assert not np.any(shared_some_on(at_once.excluded) & ~at_once.excluding)


_step = st.one_of(
    st.tuples(st.just("come"), st.dictionaries(st.integers(0, 20), _traits, min_size=1)),
    st.tuples(st.just("go"), st.integers(0, 20)),
    st.tuples(st.just("rules"), st.dictionaries(_few_clients, st.none() | _rules)),
    st.tuples(st.just("tell"), _rows),
    st.tuples(st.just("forget"), _few_clients),
    st.tuples(st.just("late"), st.dictionaries(st.integers(0, 20), st.integers(0, 2))),
    st.tuples(st.just("grow"), st.integers(1, 2)),
    st.tuples(st.just("restore"), st.none()),
)
_lives = st.lists(st.tuples(_step, st.booleans()), max_size=16)


def _sorted(said: dict[int, int]) -> tuple[list[int], list[int]]:
    keys = sorted(said)
    return keys, [said[key] for key in keys]


def _lived(relation: Eligibility, name: str, said) -> Eligibility:
    match name:
        case "come":
            relation.set_agents(np.array(list(said)), list(said.values()))
        case "go":
            relation.drop_agent(said)
        case "rules":
            relation.set_rules(said)
        case "tell":
            relation.tell(*_columns([row for row in said if row[0] in relation._rule]))
        case "forget":
            relation.forget([said])
        case "late":
            agent, group = (np.array(each, np.int64) for each in _sorted(said))
            some = [set_of(list(relation._rule)[first::3]) for first in range(3)]
            relation.bar(Late(agent, group, tuple(some)))
        case "grow":
            relation.reserve(agents=AGENTS * said, clients=CLIENTS * said)
        case _:
            return restore(to_columns(Detached(relation).value), Eligibility())
    return relation


@given(_lives, st.sampled_from([0, 64]), st.integers(0, 2))
def test_every_pair_is_judged_after_any_changes(life, few, shift):
    """Many changes at a time, or few; with caches, and without.

    Checked after each step, or after several.
    """
    with (
        blocks_of_words(shift),
        patch.object(eligibility, "_FEW", few),
        patch.object(agent_rules, "RARE", few),
        patch.object(rule_index, "RARE", few),
        patch.object(rule_index, "NAMING_BYTES", 4 * few),
    ):
        relation = Eligibility()
        relation.reserve(agents=AGENTS, clients=CLIENTS)
        for (name, said), looks in life:
            relation = _lived(relation, name, said)
            if looks:
                relation.check()
        relation.check()

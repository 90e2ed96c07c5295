"""Pairs that may not meet: many rows, or rules, at once do what they do one by one."""

import time
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.books import agent_rules, eligibility
from allocator.core.books.agent_rules import AgentColumns, AgentTraits, Rule
from allocator.core.books.eligibility import Eligibility
from allocator.core.constraints import parse_constraint

AGENTS, CLIENTS = 64, 150
ROWS_MAX = 1 << 18
"""So many pairs a module evaluates when a framework says other offer constraints."""

ROWS_S_MAX = 2.0
"""Of a processor, for all of them: some thirty times what they take."""

_rows = st.lists(
    st.tuples(st.integers(0, CLIENTS - 1), st.integers(0, 4), st.booleans()), max_size=40
)


def _relation(agents: int, clients: int) -> Eligibility:
    """Some clients have a rule that bars every other agent."""
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
        assert relation.excluded.tolist() == slow.excluded.tolist()


def test_a_row_costs_little():
    """Else constraints that are told anew all the time take the core's time from all others."""
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


@given(st.lists(st.none() | _traits, max_size=20), st.lists(_rules, max_size=8))
def test_columns_of_agents_say_what_each_agent_says(traits, rules):
    columns = AgentColumns(traits)
    for rule in rules:
        slow = [its is not None and not rule.allows(its) for its in traits]
        assert columns.barred_by(rule).tolist() == slow


def test_columns_of_agents_are_bounded(monkeypatch):
    """Frameworks' own labels may ask for any number of attributes."""
    monkeypatch.setattr(agent_rules, "COLUMNS_MAX", 2)
    traits = [AgentTraits({name: "1"}, *[False] * 4) for name in "abcd"]
    columns = AgentColumns(traits)
    for name in "abcdabcd":
        rule = Rule(parse_constraint(name))
        assert columns.barred_by(rule).tolist() == [not rule.allows(its) for its in traits]
        assert len(columns.attributes) <= 2


_few_clients = st.sampled_from([0, 1, 63, 64, CLIENTS - 1])  # so few that rules and rows meet


@given(
    st.lists(_traits, min_size=5, max_size=5),
    st.lists(st.dictionaries(_few_clients, st.none() | _rules), max_size=4),
    st.lists(st.tuples(_few_clients, st.integers(0, 4), st.booleans()), max_size=20),
)
def test_many_rules_at_once_do_what_they_do_one_by_one(traits, batches, rows):
    at_once, slow = _relation(AGENTS, CLIENTS), _relation(AGENTS, CLIENTS)
    for relation in (at_once, slow):
        relation.set_agents(np.arange(5), traits)
        relation.tell(*_columns(rows))
    for rules in batches:
        with patch.object(eligibility, "_BLOCK", 3):
            at_once.set_rules(rules)
        for client, rule in rules.items():
            slow.set_rule(client, rule)
        at_once.check()
        assert at_once.excluded.tolist() == slow.excluded.tolist()
        # The next rules are judged without an agent that was there before.
        for relation in (at_once, slow):
            relation.drop_agent(AGENTS - 1)
        assert not np.any(at_once.excluded.any(axis=1) & ~at_once.excluding)

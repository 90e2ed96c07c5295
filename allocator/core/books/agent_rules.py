"""Rules: what a client requires of agents, evaluated per agent or per value of an attribute.

`SortedRule.allows` evaluates a rule on one agent. For many agents, `AgentColumns` keeps each
attribute that rules name in a column, and evaluates a rule once per *value* of the attribute. An
attribute that no agent has costs one lookup.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from allocator.core.books.agent_set import AgentSet
from allocator.core.books.attribute_column import AttributeColumn, values_of
from allocator.core.constraints import Clause, Condition, conditions
from allocator.core.numba.array_structures import grow
from allocator.core.snapshot import Bools, Ints

COLUMNS_BYTES_MAX = 2**26
"""Maximum size of all columns, in bytes. A column of 50,000 agents takes 260 KB, or 1.5 MB if every
agent has another value; labels of frameworks may name any number of attributes."""

_FLAGS = ("gpus", "remote", "many_roles", "nested_roles")

RARE = 64
"""Up to this many agents with an attribute are evaluated one by one, which is cheaper than a
column."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a client requires of agents, apart from enough resources.

    `gpus`, `any_region`: the framework can use agents with GPUs; outside the master's region.
    `many_roles`: the framework needs agents with the capability MULTI_ROLE.
    `nested_role`: the role is below another role, so agents need the capability HIERARCHICAL_ROLE.
    """

    clauses: tuple[Clause, ...] = ()
    gpus: bool = True
    any_region: bool = True
    many_roles: bool = False
    nested_role: bool = False

    def allows(self, agent: "AgentTraits") -> bool:
        return self.is_capable(agent) and all(
            clause.holds(agent.attributes) for clause in self.clauses
        )

    def is_capable(self, agent: "AgentTraits") -> bool:
        """Whether the agent satisfies all of the rule except the clauses."""
        return (
            (self.gpus or not agent.gpus)
            and (self.any_region or not agent.remote)
            and (not self.many_roles or agent.many_roles)
            and (not self.nested_role or agent.nested_roles)
        )


@dataclass(frozen=True, slots=True)
class AgentTraits:
    """The properties of an agent that rules examine; each flag corresponds to one of `Rule`."""

    attributes: Mapping[str, str]
    gpus: bool
    remote: bool
    many_roles: bool
    nested_roles: bool


@dataclass(frozen=True, slots=True)
class SortedRule:
    """A rule whose clauses are combined by attribute, so that attributes no agent has are skipped.

    `must`: conditions by attribute; an agent without the attribute fails.
    `may`: conditions by attribute; an agent without the attribute passes.
    """

    rule: Rule
    must: Mapping[str, Condition]
    may: Mapping[str, Condition]

    @classmethod
    def of(cls, rule: Rule) -> "SortedRule":
        must, may = dict[str, Condition](), dict[str, Condition]()
        for name, condition in conditions(rule.clauses).items():
            (must if condition.must_be else may)[name] = condition
        return cls(rule, must, may)

    def asked(self, known: Mapping[str, object]) -> dict[str, Condition] | None:
        """Return conditions on known attributes; None: the rule requires an unknown one."""
        if not self.must.keys() <= known.keys():
            return None
        return {**self.must, **{name: self.may[name] for name in self.may.keys() & known.keys()}}

    def allows(self, agent: AgentTraits) -> bool:
        """Whether the agent satisfies the rule; equals `Rule.allows`."""
        if not self.rule.is_capable(agent):
            return False
        asked = self.asked(agent.attributes)
        return asked is not None and all(
            condition.holds(agent.attributes[name]) for name, condition in asked.items()
        )


class AgentColumns:
    """The properties of agents (N,), and the evaluation of rules on all of them at once.

    None in place of an agent's traits: the agent does not exist, and no rule bars it.

    `attributes`: columns by attribute, the most recently used one last. A column is made when a
        rule first names an attribute that some agent has.
    """

    def __init__(self, traits: Sequence[AgentTraits | None]) -> None:
        count = len(traits)
        self._said: list[Mapping[str, str]] = [{}] * count
        self._having: dict[str, AgentSet] | None = None
        self._there = np.zeros(count, np.bool_)
        self._flags = {name: np.zeros(count, np.bool_) for name in _FLAGS}
        self._incapable: dict[tuple[bool, ...], Bools | None] = {}
        self.attributes: dict[str, AttributeColumn] = {}
        self.put(np.arange(count), traits)

    def reserve(self, agents: int) -> None:
        more = agents - len(self._said)
        if more <= 0:
            return
        self._said.extend([{}] * more)
        self._there = grow(self._there, agents)[:agents]
        self._flags = {name: grow(flag, agents)[:agents] for name, flag in self._flags.items()}
        self._incapable.clear()
        for column in self.attributes.values():
            column.reserve(agents)

    def put(self, agents: Ints, traits: Sequence[AgentTraits | None]) -> None:
        said = [{} if its is None else its.attributes for its in traits]
        for agent, attributes in zip(agents.tolist(), said, strict=True):
            self._note(agent, attributes)
        self._there[agents] = [its is not None for its in traits]
        for name, flag in self._flags.items():
            flag[agents] = [its is not None and getattr(its, name) for its in traits]
        self._incapable.clear()
        for name, column in list(self.attributes.items()):
            column.put(agents, [attributes.get(name) for attributes in said])
            # A column with many unused values is deleted, and made again when needed.
            if column.has_idle_values(len(self.having.get(name, ()))):
                del self.attributes[name]
        self._shed()

    def _note(self, agent: int, attributes: Mapping[str, str]) -> None:
        before = self._said[agent].keys()
        self._said[agent] = attributes
        having = self._having
        if having is None or before == attributes.keys():
            return
        for name in before - attributes.keys():
            having[name].discard(agent)
            if not having[name]:
                del having[name]
        for name in attributes.keys() - before:
            having.setdefault(name, AgentSet()).update((agent,), len(self._said))

    @property
    def having(self) -> dict[str, AgentSet]:
        if self._having is None:
            self._having = {}
            # Usually all agents have the same attributes, so group agents by their names.
            alike: dict[tuple[str, ...], list[int]] = {}
            for agent, attributes in enumerate(self._said):
                alike.setdefault(tuple(attributes), []).append(agent)
            for names, agents in alike.items():
                for name in names:
                    self._having.setdefault(name, AgentSet()).update(agents, len(self._said))
        return self._having

    def said(self, agent: int) -> Mapping[str, str]:
        """Return an agent's attributes; empty if it does not exist."""
        return self._said[agent]

    @property
    def there(self) -> Bools:
        return self._there

    def flag(self, name: str) -> Bools:
        return self._flags[name]

    def barred_by(self, rule: SortedRule) -> Bools | None:
        """Return which agents (N,) a rule bars; None: none. The array must not be written."""
        incapable = self.incapable_of(rule.rule)
        if not rule.rule.clauses:
            return incapable
        asked = rule.asked(self.having)
        if asked is None:
            return self._there if self._there.any() else None
        if not asked:
            return incapable
        bars = np.zeros(len(self._there), np.bool_) if incapable is None else incapable.copy()
        for name, condition in asked.items():
            self._bar(bars, name, condition)
        bars &= self._there
        return bars if bars.any() else None

    def _bar(self, bars: Bools, name: str, condition: Condition) -> None:
        """Add to `bars` (N,) the agents that fail a condition on an attribute."""
        agents = self.having[name]
        if len(agents) > RARE:
            bars |= ~self.column(name).holds(condition)
            return
        good = {agent for agent in agents if condition.holds(self._said[agent][name])}
        if not condition.must_be:
            bars[[agent for agent in agents if agent not in good]] = True
            return
        lacking = np.ones(len(bars), np.bool_)
        lacking[list(good)] = False
        bars |= lacking

    def incapable_of(self, rule: Rule) -> Bools | None:
        """Return which agents (N,) a rule bars apart from its clauses; None: none of them."""
        key = rule.gpus, rule.any_region, rule.many_roles, rule.nested_role
        if key not in self._incapable:
            bars = np.zeros(len(self._there), np.bool_)
            bars |= self._flags["gpus"] & (not rule.gpus)
            bars |= self._flags["remote"] & (not rule.any_region)
            bars |= ~self._flags["many_roles"] & rule.many_roles
            bars |= ~self._flags["nested_roles"] & rule.nested_role
            bars &= self._there
            self._incapable[key] = bars if bars.any() else None
        return self._incapable[key]

    def column(self, name: str) -> AttributeColumn:
        column = self.attributes.pop(name, None)
        if column is None:
            agents = self.having[name].rows()
            column = AttributeColumn(len(self._said))
            column.put(agents, values_of(self._said, agents, name))
            self.attributes[name] = column
            self._shed()
        else:
            self.attributes[name] = column  # moves it to the end: the most recently used
        return column

    def _shed(self) -> None:
        """Drop the least recently used columns, all but one, until the limit is met."""
        total = sum(column.nbytes for column in self.attributes.values())
        while total > COLUMNS_BYTES_MAX and len(self.attributes) > 1:
            total -= self.attributes.pop(next(iter(self.attributes))).nbytes

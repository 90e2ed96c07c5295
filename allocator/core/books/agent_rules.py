"""Rules on agents: what a client requires of them, judged agent by agent, or value by value.

One agent is judged by `Rule.allows`. For many, `AgentColumns` puts what rules ask for in columns.
A rule then looks at each *value* of an attribute once, however many agents have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from allocator.core.constraints import Clause, Condition, conditions
from allocator.core.snapshot import Bools

COLUMNS_MAX = 64
"""So many attributes are kept as columns at once; frameworks' own labels may name any number."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a client requires of agents, beside enough resources.

    `gpus`: the framework can take agents that have GPUs.
    `any_region`: the framework can take agents outside the master's region.
    `many_roles`: the framework needs agents that know several roles.
    `nested_role`: the role is below another one, which the agent must understand.
    """

    clauses: tuple[Clause, ...] = ()
    gpus: bool = True
    any_region: bool = True
    many_roles: bool = False
    nested_role: bool = False

    def allows(self, agent: "AgentTraits") -> bool:
        """Whether the agent satisfies the rule."""
        return (
            (self.gpus or not agent.gpus)
            and (self.any_region or not agent.remote)
            and (not self.many_roles or agent.many_roles)
            and (not self.nested_role or agent.nested_roles)
            and all(clause.holds(agent.attributes) for clause in self.clauses)
        )


@dataclass(frozen=True, slots=True)
class AgentTraits:
    """What rules look at."""

    attributes: Mapping[str, str]
    gpus: bool
    remote: bool
    many_roles: bool
    nested_roles: bool


class AgentColumns:
    """What some agents (N,) are like, in columns that are made when a rule first asks for them.

    None is an agent that is not there; no rule bars it.
    `attributes`: the columns of attributes, by name.
    """

    def __init__(self, traits: Sequence[AgentTraits | None]) -> None:
        self._rows = np.flatnonzero([its is not None for its in traits])
        self._there = [its for its in traits if its is not None]
        self._count = len(traits)
        self._flags: dict[str, Bools] = {}
        self.attributes: dict[str, _Attribute] = {}

    def barred_by(self, rule: Rule) -> Bools:
        """Which agents (N,) a rule bars."""
        holds = np.ones(len(self._there), np.bool_)
        if not rule.gpus:
            holds &= ~self._flag("gpus")
        if not rule.any_region:
            holds &= ~self._flag("remote")
        if rule.many_roles:
            holds &= self._flag("many_roles")
        if rule.nested_role:
            holds &= self._flag("nested_roles")
        for name, condition in conditions(rule.clauses).items():
            holds &= self._attribute(name).holds(condition)
        bars = np.zeros(self._count, np.bool_)
        bars[self._rows] = ~holds
        return bars

    def _flag(self, name: str) -> Bools:
        if name not in self._flags:
            self._flags[name] = np.array(list(map(attrgetter(name), self._there)), np.bool_)
        return self._flags[name]

    def _attribute(self, name: str) -> "_Attribute":
        if name not in self.attributes:
            if len(self.attributes) == COLUMNS_MAX:
                del self.attributes[next(iter(self.attributes))]
            self.attributes[name] = _Attribute(its.attributes.get(name) for its in self._there)
        return self.attributes[name]


class _Attribute:
    """One attribute of agents (N,): each value once, and which of them each agent has.

    `_code`: a number for each value; 0 is for agents that lack the attribute.
    `_of` (N,): the code of each agent's value.
    """

    def __init__(self, values: Iterable[str | None]) -> None:
        self._code: dict[str | None, int] = {None: 0}
        code = self._code
        self._of = np.array([code.setdefault(each, len(code)) for each in values], np.int32)

    def holds(self, condition: Condition) -> Bools:
        """Which agents (N,) satisfy a condition: `Condition.holds`, of all values at once."""
        good = np.full(len(self._code), not condition.must_lack)
        if condition.one_of is not None:
            good[:] = False
            good[self._codes(condition.one_of)] = not condition.must_lack
        good[self._codes(condition.none_of)] = False
        good[0] = not condition.must_be
        return good[self._of]

    def _codes(self, values: Iterable[str]) -> list[int]:
        return [self._code[value] for value in values if value in self._code]

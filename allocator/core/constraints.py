"""Constraint expressions: conditions on the attributes of agents that a framework may use.

An expression is a list of clauses joined by ``;``; all must hold. Names and values are compared as
texts. Unknown operators are rejected, because a misread one might exclude every agent.

- ``zone=a|b``: the attribute has one of these values,
- ``model!=K80``: it has none of them, or the agent lacks the attribute,
- ``ssd``: the agent has the attribute,
- ``!ssd``: the agent lacks the attribute.

Besides its attributes, every agent has ``hostname``, ``region`` and ``zone``.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from allocator.core.bounds import quoted
from allocator.core.events import AgentInfo

_NAME = re.compile(r"[\w./:@+-]+")
_ANY = frozenset[str]()
_NO_VALUE = re.compile(r"[=<>!~&\"']|[^\S ]")


class Clause(NamedTuple):
    """One condition: `attribute` has one of `values` (empty: any value); `negated`: it has not."""

    attribute: str
    values: frozenset[str]
    negated: bool

    def holds(self, attributes: Mapping[str, str]) -> bool:
        value = attributes.get(self.attribute)
        found = value is not None and (not self.values or value in self.values)
        return found != self.negated


@dataclass(slots=True)
class Condition:
    """All clauses about one attribute, combined so that a few look-ups evaluate them.

    `one_of`: allowed values; None: all.
    `none_of`: forbidden values.
    `must_be`, `must_lack`: the agent must have the attribute; must lack it.
    """

    one_of: frozenset[str] | None = None
    none_of: AbstractSet[str] = frozenset()
    must_be: bool = False
    must_lack: bool = False

    def add(self, clause: Clause) -> None:
        if clause.negated:
            self.must_lack |= not clause.values
            # Share the set of a single clause; copy it only to add the values of another one.
            if not self.none_of:
                self.none_of = clause.values
            elif isinstance(self.none_of, set):
                self.none_of.update(clause.values)
            else:
                self.none_of = {*self.none_of, *clause.values}
        else:
            self.must_be = True
            if clause.values:
                self.one_of = clause.values if self.one_of is None else self.one_of & clause.values

    @property
    def bars_others(self) -> bool:
        """Whether values that no clause names fail the condition."""
        return self.must_lack or self.one_of is not None

    @property
    def exceptions(self) -> AbstractSet[str]:
        """The values that the condition treats differently from values that no clause names."""
        if self.must_lack:
            return frozenset()
        return self.none_of if self.one_of is None else self.one_of - self.none_of

    def holds(self, value: str | None) -> bool:
        """Whether an agent with this value satisfies the condition; None: it has no value."""
        if value is None:
            return not self.must_be
        fits = self.one_of is None or value in self.one_of
        return fits and not self.must_lack and value not in self.none_of


_BARE = {
    (must_be, must_lack): Condition(must_be=must_be, must_lack=must_lack)
    for must_be in (False, True)
    for must_lack in (False, True)
}
"""Conditions that name no value, shared to save memory: long labels contain many of them."""


def conditions(clauses: Iterable[Clause]) -> dict[str, Condition]:
    """Group clauses by attribute. Conditions may be shared: do not change them."""
    found: dict[str, Condition] = {}
    for clause in clauses:
        before = found.get(clause.attribute, _BARE[False, False])
        must_be, must_lack = before.must_be, before.must_lack
        is_bare = before is _BARE[must_be, must_lack]
        if is_bare and not clause.values:
            asked = must_be or not clause.negated, must_lack or clause.negated
            found[clause.attribute] = _BARE[asked]
            continue
        condition = Condition(must_be=must_be, must_lack=must_lack) if is_bare else before
        condition.add(clause)
        found[clause.attribute] = condition
    return found


def attributes_of(info: AgentInfo) -> dict[str, str]:
    """Return the attributes of an agent that clauses may refer to."""
    own = {"hostname": info.hostname, "region": info.region, "zone": info.zone}
    return {**own, **info.attributes}


def parse_constraint(expression: str) -> tuple[Clause, ...]:
    """Read an expression.

    Raises ValueError naming the clause that is wrong.

    Examples
    --------
    >>> clauses = parse_constraint("zone=a|b; model!=K80; ssd")
    >>> all(clause.holds({"zone": "a", "ssd": ""}) for clause in clauses)
    True
    """
    texts = map(str.strip, expression.split(";"))
    return tuple([_parse_clause(text) for text in texts if text])


def _parse_clause(text: str) -> Clause:
    attribute, equals, listed = text.partition("=")
    if not equals:
        negated = text.startswith("!")
        name, values = text[negated:].strip(), _ANY
    else:
        negated = attribute.endswith("!")
        name = attribute.removesuffix("!").strip()
        values = frozenset(map(str.strip, listed.split("|")))
    wrong = not _NAME.fullmatch(name) or "" in values
    if wrong or any(map(_NO_VALUE.search, values)):
        message = f"{quoted(text)} is not a clause; write 'name=a|b', 'name!=a', 'name' or '!name'"
        raise ValueError(message)
    return Clause(name, values, negated)

"""Constraint expressions: which agents something may use, by their attributes.

An expression is a list of clauses joined by ``;``, all of which must hold. Names and values are
compared as texts, and a sign that means nothing here is refused: a mistyped rule would keep
frameworks from every agent.

- ``zone=a|b``: the attribute has one of these values,
- ``model!=K80``: it has none of them (or the agent lacks the attribute),
- ``ssd``: the agent has the attribute,
- ``!ssd``: it has not.

Beside its attributes every agent has ``hostname``, ``region`` and ``zone``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from allocator.core.events import AgentInfo

_NAME = re.compile(r"[\w./:@+-]+")
_NO_VALUE = re.compile(r"[=<>!~&\"']|[^\S ]")


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition: `attribute` has one of `values` (any, where empty), or has not."""

    attribute: str
    values: frozenset[str]
    negated: bool

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether an agent with these attributes satisfies the clause."""
        value = attributes.get(self.attribute)
        found = value is not None and (not self.values or value in self.values)
        return found != self.negated


def attributes_of(info: AgentInfo) -> dict[str, str]:
    """Give all that clauses may ask of an agent."""
    own = {"hostname": info.hostname, "region": info.region, "zone": info.zone}
    return {**own, **info.attributes}


def parse_constraint(expression: str) -> tuple[Clause, ...]:
    """Read an expression.

    Raises
    ------
    ValueError
        Naming the clause that is wrong.

    Examples
    --------
    >>> clauses = parse_constraint("zone=a|b; model!=K80; ssd")
    >>> all(clause.holds({"zone": "a", "ssd": ""}) for clause in clauses)
    True
    """
    texts = (text.strip() for text in expression.split(";"))
    return tuple(_parse_clause(text) for text in texts if text)


def _parse_clause(text: str) -> Clause:
    attribute, equals, values = text.partition("=")
    if not equals:
        name = text.removeprefix("!").strip()
        clause = Clause(name, frozenset(), negated=text.startswith("!"))
    else:
        negated = attribute.endswith("!")
        name = attribute.removesuffix("!").strip()
        clause = Clause(name, frozenset(v.strip() for v in values.split("|")), negated)
    wrong = not _NAME.fullmatch(clause.attribute) or "" in clause.values
    if wrong or any(map(_NO_VALUE.search, clause.values)):
        message = f"{text!r} is no clause; write 'name=a|b', 'name!=a', 'name' or '!name'"
        raise ValueError(message)
    return clause

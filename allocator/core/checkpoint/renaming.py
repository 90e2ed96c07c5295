"""Copies the core's state with pseudonyms in place of names.

Names of frameworks, roles, agents, hosts and users, and names and values of attributes, are
replaced, the same name everywhere by the same pseudonym; each part of a role's path is renamed
separately. Amounts, times and handles stay, so decisions are the same. Every text that is not a
known word of Mesos or of this package is renamed, so a new field cannot leak a name.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from allocator.core.books.state import State
from allocator.core.books.tables import ClientTable
from allocator.core.checkpoint.classes import assemble, names_of
from allocator.core.constraints import parse_constraint
from allocator.core.demand.own_words import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    GANG_LABEL,
    read_words,
)
from allocator.core.events import AgentInfo, FrameworkInfo, SetAside, SetConstraint
from allocator.core.policy import PolicySpec
from allocator.core.resources import format_quantities

_WORDS = frozenset({"", "*", "hostname", "region", "zone", "name", "principal", "user"})
"""Texts that are kept: any role or pattern, and common attributes."""

_OURS: Mapping[type, frozenset[str]] = {
    AgentInfo: frozenset({"capabilities"}),
    FrameworkInfo: frozenset({"capabilities"}),
    SetAside: frozenset({"reason"}),
    ClientTable: frozenset({"demand_source"}),
}
"""Attributes whose texts are words of Mesos or of this package, which are kept."""


class Renamer:
    """Assigns pseudonyms, and remembers them."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        """Start without pseudonyms; `words`: texts to keep, such as names of resources."""
        self.pseudonyms: dict[str, str] = {}
        self._words = _WORDS.union(words)
        self._special: dict[type, Callable[[Any], object]] = {
            PolicySpec: self._policy,
            FrameworkInfo: self._framework,
            SetConstraint: self._constraint,
        }

    @classmethod
    def of(cls, state: State) -> "Renamer":
        names = {*state.space.names, *(kind.name for kind in state.space.kinds if kind)}
        names.update(*state.settings.limits.values())
        return cls(names)

    def text(self, text: str) -> str:
        """Rename each part of a path; a text without slashes has one part."""
        if text in self._words:
            return text
        return "/".join(map(self._part, text.split("/")))

    def _part(self, part: str) -> str:
        if part in self._words:
            return part
        return self.pseudonyms.setdefault(part, f"name{len(self.pseudonyms) + 1}")

    def value(self, value: Any) -> Any:  # noqa: ANN401
        """Rename all texts in a value; the result shares arrays and numbers with it."""
        kind: Any = type(value)
        if kind is str:
            return self.text(value)
        if value is None or isinstance(value, bool | int | float | np.ndarray | np.generic):
            return value
        if kind in (list, tuple, set, frozenset):
            return kind(map(self.value, value))
        if kind is dict:
            return {self.value(key): self.value(each) for key, each in value.items()}
        if kind in self._special:
            return self._special[kind](value)
        return self._object(value)

    def _object(self, value: Any) -> Any:  # noqa: ANN401
        ours, names = _OURS.get(type(value), frozenset()), names_of(value)
        kept = ((name, getattr(value, name)) for name in names)
        return assemble(
            type(value),
            names,
            [each if name in ours else self.value(each) for name, each in kept],
        )

    def _policy(self, spec: PolicySpec) -> PolicySpec:
        """Rename roles; keep the names of policies, which the registry must know."""
        subtrees = {self.text(role): below for role, below in spec.subtrees.items()}
        return PolicySpec(
            spec.name, spec.selection, spec.mode, spec.flat, dict(spec.parameters), subtrees
        )

    def _framework(self, info: FrameworkInfo) -> FrameworkInfo:
        """Keep only labels that this package reads."""
        labels = {}
        words, constraint = read_words(info), info.labels.get(CONSTRAINT_LABEL)
        if words.demand is not None:
            labels[DEMAND_LABEL] = format_quantities(self.value(words.demand))
        if constraint is not None:
            labels[CONSTRAINT_LABEL] = self._expression(constraint) if words.clauses else ""
        if words.gang:
            labels[GANG_LABEL] = f"tasks:{words.gang}"
        renamed: FrameworkInfo = self._object(info)
        object.__setattr__(renamed, "labels", labels)
        return renamed

    def _constraint(self, rule: SetConstraint) -> SetConstraint:
        expression = None if rule.expression is None else self._expression(rule.expression)
        return SetConstraint(self.text(rule.role), self.text(rule.framework_name), expression)

    def _expression(self, expression: str) -> str:
        """Rename attributes and values in an expression; one that does not parse becomes empty."""
        try:
            clauses = parse_constraint(expression)
        except ValueError:
            return ""
        texts = []
        for clause in clauses:
            name = self.text(clause.attribute)
            values = "|".join(sorted(map(self.text, clause.values)))
            if not values:
                texts.append(f"!{name}" if clause.negated else name)
            else:
                texts.append(f"{name}{'!=' if clause.negated else '='}{values}")
        return "; ".join(texts)

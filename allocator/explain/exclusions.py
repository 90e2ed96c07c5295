"""Why a client may not go to agents: constraints, capabilities, and what the master said."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allocator.core import CONSTRAINT_LABEL, Bools, Clause, Settings, harmless, parse_constraint
from allocator.explain.picture import Picture, Subject

_CLAUSE_MAX = 200
"""Of a clause so many characters are shown; a framework's own may be long."""

_CAPABILITIES = {
    "gpus": (
        "the framework lacks GPU_RESOURCES, and the agent has GPUs",
        "add the capability GPU_RESOURCES to the framework",
    ),
    "any_region": (
        "the framework lacks REGION_AWARE, and the agent is outside the master's region",
        "add the capability REGION_AWARE to the framework",
    ),
    "many_roles": (
        "the agent lacks MULTI_ROLE, and the framework may have several roles",
        "upgrade the agent to Mesos 1.3 or later",
    ),
    "nested_role": (
        "the agent lacks HIERARCHICAL_ROLE, and the role is below another",
        "upgrade the agent to Mesos 1.4 or later",
    ),
}
"""Each part of a rule beside its clauses: what it bars, and the mend."""


@dataclass(frozen=True)
class Exclusion:
    """One condition, and where it bars a client.

    `reason`: ``constraint`` or ``capability``.
    `where` (A,): by handle.
    """

    reason: str
    cause: str
    mend: str
    where: Bools


def exclusions(picture: Picture, subject: Subject) -> Iterator[Exclusion]:
    """Give each condition that bars the client somewhere."""
    bound = picture.agents.bound
    told = subject.told & bound
    if told.any():
        cause = "the framework's own offer constraints, as the master evaluates them"
        yield Exclusion("constraint", cause, "change the framework's offer constraints", told)
    rule: Any = subject.rule
    barred = np.flatnonzero(subject.excluded & bound).tolist()
    # A rule that asks for nothing, to which one condition at a time is added.
    anything = type(rule)()
    for part, (cause, mend) in _CAPABILITIES.items():
        alone = replace(anything, **{part: getattr(rule, part)})
        where = _where(picture, barred, alone)
        if where.any():
            yield Exclusion("capability", cause, mend, where)
    for clause in dict.fromkeys(rule.clauses):
        where = _where(picture, barred, replace(anything, clauses=(clause,)))
        if where.any():
            yield Exclusion("constraint", *_source(picture, subject.client, clause), where)


def _where(picture: Picture, barred: list[int], rule: Any) -> Bools:  # noqa: ANN401
    """On which of the agents that bar the client this rule does."""
    where = np.zeros(len(picture.agents.bound), np.bool_)
    for agent in barred:
        traits = picture.traits[agent]
        where[agent] = traits is not None and not rule.allows(traits)
    return where


def _source(picture: Picture, client: int, clause: Clause) -> tuple[str, str]:
    """Say where a clause comes from, and how it is taken back."""
    names = picture.names
    info = names.info[int(names.framework[client])]
    path = names.path[int(names.role[client])]
    text = harmless(text_of(clause), _CLAUSE_MAX)
    for rule in picture.constraints:
        # The same look-up as in the books, with this rule alone.
        key = (rule.role, rule.framework_name)
        found = Settings(constraints={key: rule}).constraint_rules(path, info.name if info else "")
        if any(clause in parse_constraint(each) for each in found):
            options = f" --role {rule.role!r}" * bool(rule.role)
            options += f" --framework-name {rule.framework_name!r}" * bool(rule.framework_name)
            whom = f"for{options.replace('--', '')}" if options else "for everybody"
            cause = f"{text}, an operator's rule {whom} ({rule.expression!r})"
            return cause, f"mesos-allocator constraint remove{options}"
    cause = f"{text}, of the framework's label {CONSTRAINT_LABEL}"
    return cause, f"change the label {CONSTRAINT_LABEL} of the framework"


def text_of(clause: Clause) -> str:
    """Write a clause as an operator would.

    Examples
    --------
    >>> [text_of(clause) for clause in parse_constraint("zone=b|a; !ssd")]
    ['zone=a|b', '!ssd']
    """
    if not clause.values:
        return "!" * clause.negated + clause.attribute
    return f"{clause.attribute}{'!' * clause.negated}={'|'.join(sorted(clause.values))}"

"""Finds resources and attributes that a rule names and no agent has: they are probably mistyped.

Reported for operators' changes, for rules of the configuration and the state file, and in the
status.
"""

from collections.abc import Collection, Iterator, Mapping

from allocator.core import Clause, OperatorChange, SetCap, SetConstraint, parse_constraint, quoted
from allocator.near import meant_resource, suggestion
from allocator.rule_kinds import Value, without_counts

OWN_RESOURCES = ("cpus", "mem", "disk", "gpus", "ports")
"""Resources that Mesos itself finds on agents; operators of a cluster may add others."""


def unknown_resources(
    amounts: Mapping[str, int], resources: Collection[str], then: str = ""
) -> list[str]:
    """Describe the resources that no agent has, with suggestions; `then`: the consequence."""
    return [
        f"no agent has any {quoted(name)}{then and ', ' + then}{meant_resource(name, resources)}"
        for name, amount in amounts.items()
        if amount and name not in resources
    ]


def unknown_attributes(
    clauses: Collection[Clause], attributes: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Describe the attributes and values that no agent has; `attributes`: values by attribute."""
    for clause in clauses:
        values = attributes.get(clause.attribute)
        if values is None:
            near = suggestion(clause.attribute, attributes)
            yield f"no agent has an attribute {quoted(clause.attribute)}{near}"
            continue
        for value in sorted(clause.values.difference(values)):
            yield f"no agent has {clause.attribute}={value}{suggestion(value, values)}"


def unknown_names(
    rule: OperatorChange, resources: Collection[str], attributes: Mapping[str, Collection[str]]
) -> list[str]:
    """Describe resources and attributes that a rule requires and no agent has.

    Clauses that exclude agents are not checked, as they may name anything.
    """
    if rule.takes_back:
        return []
    if rule.kind.value in {Value.AMOUNTS, Value.HOURS}:
        amounts = getattr(rule, rule.kind.field)
        amounts = without_counts(amounts) if isinstance(rule, SetCap) else amounts
        return unknown_resources(amounts, resources)
    if isinstance(rule, SetConstraint):
        clauses = parse_constraint(rule.expression or "")
        asked = [each for each in clauses if not each.negated]
        unknown = [each for each in asked if each.attribute not in attributes]
        return list(unknown_attributes(unknown, attributes))
    return []


def probably_mistyped(rule: OperatorChange) -> Iterator[str]:
    """Describe resources of a rule that look mistyped, when no agent is known yet."""
    if rule.kind.value not in {Value.AMOUNTS, Value.HOURS} or rule.takes_back:
        return
    for name in getattr(rule, rule.kind.field):
        if name not in OWN_RESOURCES and (near := meant_resource(name, OWN_RESOURCES)):
            yield f"{quoted(name)} is not one of Mesos's own resources{near}"

"""Where demand vectors come from.

The first source that answers counts: an operator's rule that overrides, the framework's REQUEST
call, a label on its information, any other rule of operators, what it accepted before. An unknown
demand is not zero: the framework is served with whatever is free.
"""

from collections.abc import Mapping

from allocator.core.events import EventError
from allocator.core.settings import Settings


def declared_demand(
    settings: Settings, own: tuple[str, Mapping[str, int]] | None, framework_name: str, role: str
) -> tuple[str, Mapping[str, int]] | None:
    """Find the demand that somebody stated.

    `own` (source, amounts): what the framework states itself.
    Returns (source, amounts): None where nobody did; empty amounts where the operator says that it
        is unknown.
    """
    rule = settings.demand_rule(role, framework_name)
    ruled = None if rule is None or rule.demand is None else ("operator", rule.demand)
    if rule is not None and rule.override:
        return ruled
    return own or ruled


def own_demand(
    of_label: Mapping[str, int] | None, request: Mapping[str, int] | None
) -> tuple[str, Mapping[str, int]] | None:
    """Find the demand that a framework states itself, as (source, amounts); None: it does not."""
    if request:
        return "request", request
    return ("label", of_label) if of_label else None


def check_demand(demand: Mapping[str, int] | None, field_name: str) -> None:
    """Raise an `EventError` where an operator's demand is not one."""
    if demand and not any(demand.values()):
        message = "all amounts are zero; leave the demand empty where it is unknown"
        raise EventError("value", field_name, message)

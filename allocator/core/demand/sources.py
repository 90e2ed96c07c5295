"""Where the demand of a framework comes from: the first source with an answer applies.

1. An operator's rule that overrides what frameworks state.
2. The framework's REQUEST call.
3. The label on the framework's information.
4. Any other rule of operators.
5. The demand learned from its acceptances, after enough of them; or after the first, if that agreed
   with 6.
6. The prior: the demand of similar frameworks (`demand_memory`).

An unknown demand is not zero: the framework is served with whatever is free.
"""

from collections.abc import Mapping
from typing import TypeAlias

from allocator.core.settings import Settings

Stated: TypeAlias = tuple[str, Mapping[str, int]] | None
"""A stated demand: its source (``operator``, ``request``, ``label``), and the amounts.

None: it is not stated. Empty amounts: the operator says that it is unknown.
"""


def declared_demand(settings: Settings, own: Stated, framework_name: str, role: str) -> Stated:
    """Find the stated demand that applies; `own`: the framework's own statement."""
    rule = settings.demand_rule(role, framework_name)
    ruled = None if rule is None or rule.demand is None else ("operator", rule.demand)
    if rule is not None and rule.override:
        return ruled
    return own or ruled


def own_demand(of_label: Mapping[str, int] | None, request: Mapping[str, int] | None) -> Stated:
    """Find the demand that a framework states itself."""
    if request:
        return "request", request
    return ("label", of_label) if of_label else None


def unstated_source(settings: Settings, *, accepts: int, has_prior: bool, mixed: bool) -> str:
    """Return the source of a demand that is not stated: ``learned``, ``prior``; empty: unknown.

    `accepts`: how often the client accepted something.
    `has_prior`: it has a prior, and no acceptance disagreed with that.
    `mixed`: its tasks are of several kinds, so no single demand fits all.
    """
    if not settings.learn_demand or mixed:
        return ""
    if accepts >= settings.learn_after or (accepts and has_prior):
        return "learned"
    return "prior" if has_prior else ""

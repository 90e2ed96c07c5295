"""Determines the demand of a framework: the first of these sources that has one.

1. An operator's rule that overrides what frameworks state.
2. The framework's REQUEST call.
3. The label in the framework's information.
4. Any other rule of operators.
5. The demand learnt from its acceptances: after `learn_after` of them, or after the first one if
   that agreed with the prior.
6. The prior: the demand of similar frameworks (`demand_memory`).

An unknown demand is not zero: the framework is offered all that is free.
"""

from collections.abc import Mapping
from typing import TypeAlias

from allocator.core.demand.own_words import Requested
from allocator.core.settings import Settings

Stated: TypeAlias = tuple[str, Mapping[str, int]] | None
"""A stated demand: its source (``operator``, ``request``, ``label``), and amounts by name.

None: not stated. Empty amounts: an operator's rule declares the demand unknown.
"""


def declared_demand(settings: Settings, own: Stated, framework_name: str, role: str) -> Stated:
    """Return the stated demand in force; `own`: what the framework itself states."""
    rule = settings.demand_rule(role, framework_name)
    ruled = None if rule is None or rule.demand is None else ("operator", rule.demand)
    if rule is not None and rule.override:
        return ruled
    return own or ruled


def own_demand(of_label: Mapping[str, int] | None, request: Requested) -> Stated:
    """Return the demand that a framework itself states: its first requested task, or its label."""
    if request:
        return "request", request[0].amounts
    return ("label", of_label) if of_label else None


def unstated_source(settings: Settings, *, accepts: int, has_prior: bool, mixed: bool) -> str:
    """Return the source of a demand that is not stated: ``learned``, ``prior``; empty: unknown.

    `has_prior`: whether it has a prior that no acceptance has contradicted.
    `mixed`: whether its tasks differ in size, so that no single demand fits.
    """
    if not settings.learn_demand or mixed:
        return ""
    if accepts >= settings.learn_after or (accepts and has_prior):
        return "learned"
    return "prior" if has_prior else ""

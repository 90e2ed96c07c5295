"""Where demand vectors come from.

The first source that answers counts: an operator's rule that overrides, the framework's REQUEST
call, a label on its information, any other rule of operators, what it accepted before. An unknown
demand is not zero: the framework is served with whatever is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from allocator.core.events import EventError, SetConstraint, SetDemand, SetWeight
from allocator.core.policy import PolicySpec


@dataclass(slots=True)
class Settings:
    """What operators set. Outlives sessions.

    Attributes
    ----------
    policy : PolicySpec
    seed : int
        Where all chance comes from.
    learn_demand : bool
        Whether what a framework accepted tells its demand.
    learn_after : int
        Acceptances before that counts.
    probe_after : int
        A characterised client that uses nothing and declined so often in a row is served with all
        that is free, until it accepts: its demand may be more than we think.
    priors_max : int
        So many demands are remembered of frameworks, for the next ones of their sort. 0: none.
    prior_half_life_ms : int
        After that time a demand that is remembered is half as certain.
    learn_patience_cycles : int
        A client of which the demand is learnt or remembered, and which was offered nothing in so
        many full cycles though it did not decline, is offered all that is free once; after twice as
        many again, and so on.
    patience_cycles : int
        A client that could be served, but was not in so many full cycles, comes first in the next,
        with one grant. 0: never.
    outstanding_max : float
        So much of the cluster, in any resource, a framework may have on offer and not in use, in
        all its roles together; then it is offered no more of what is neither reserved nor
        revocable. 1: no bound.
    limits : dict of role path to amounts by name
        What is granted in a role and below it at most, beside the limits of the master's quotas.
    demands, constraints : dict of (role, framework_name) to rule
        Patterns; of several that match, the one that was set last counts for a demand, and all of
        them for constraints.
    weights : dict of (role, framework_name) to rule
        The same for weights: the last one counts.
    drains : frozenset of str
        Ids or host names of agents of which nobody is offered anything.
    shadow : PolicySpec or None
        The policy that looks on, see `allocator.core.hindsight.shadow_comparison`.
    """

    policy: PolicySpec = field(default_factory=PolicySpec)
    seed: int = 0
    learn_demand: bool = True
    learn_after: int = 3
    probe_after: int = 3
    priors_max: int = 1000
    prior_half_life_ms: int = 7 * 24 * 3_600_000
    learn_patience_cycles: int = 30
    patience_cycles: int = 60
    outstanding_max: float = 1.0
    limits: dict[str, Mapping[str, int]] = field(default_factory=dict)
    demands: dict[tuple[str, str], SetDemand] = field(default_factory=dict)
    constraints: dict[tuple[str, str], SetConstraint] = field(default_factory=dict)
    weights: dict[tuple[str, str], SetWeight] = field(default_factory=dict)
    drains: frozenset[str] = frozenset()
    shadow: PolicySpec | None = None

    def copied(self) -> "Settings":
        """Copy them, so that the copy stays when these change."""
        return replace(
            self,
            limits=dict(self.limits),
            demands=dict(self.demands),
            constraints=dict(self.constraints),
            weights=dict(self.weights),
        )

    def demand_rule(self, role: str, framework_name: str) -> SetDemand | None:
        """Find the operator's rule for a client."""
        found = None
        for (role_pattern, name_pattern), rule in self.demands.items():
            if matches(role_pattern, role) and matches(name_pattern, framework_name):
                found = rule
        return found

    def framework_weight(self, role: str, framework_name: str) -> float:
        """Find the weight of a client beside that of its role; 1 where no rule says another."""
        found = 1.0
        for rule in self.weights.values():
            matched = matches(rule.role, role) and matches(rule.framework_name, framework_name)
            if matched and rule.weight is not None:
                found = rule.weight
        return found

    def constraint_rules(self, role: str, framework_name: str) -> list[str]:
        """Find the operator's expressions for a client."""
        return [
            rule.expression
            for (role_pattern, name_pattern), rule in self.constraints.items()
            if rule.expression is not None
            and matches(role_pattern, role)
            and matches(name_pattern, framework_name)
        ]


def matches(pattern: str, text: str) -> bool:
    """Whether a shell pattern matches; an empty one matches everything."""
    return not pattern or fnmatchcase(text, pattern)


def declared_demand(
    settings: Settings, own: tuple[str, Mapping[str, int]] | None, framework_name: str, role: str
) -> tuple[str, Mapping[str, int]] | None:
    """Find the demand that somebody stated.

    Parameters
    ----------
    settings : Settings
    own : tuple of (source, amounts), or None
        What the framework states itself.
    framework_name, role : str

    Returns
    -------
    (source, amounts) or None
        None where nobody did; empty amounts where the operator says that it is unknown.
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

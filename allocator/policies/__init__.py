"""Who is served next, and where: the policies by name.

A policy is three choices: a criterion (who), a selection (where) and a mode (how much). This is the
only list of criteria; a new one is a file, a line here and a test of its paper. Mode and hierarchy
are in the snapshot, made by whoever takes it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from allocator.core.policy import Policy, PolicySpec
from allocator.policies.asset_fairness import asset_fairness
from allocator.policies.choosy import UNITS, choosy
from allocator.policies.drf import drf
from allocator.policies.filling import SELECTIONS as SELECTIONS
from allocator.policies.filling import CriterionFunction, Filling
from allocator.policies.proportional_fairness import proportional_fairness
from allocator.policies.ps_dsf import ps_dsf
from allocator.policies.rps_dsf import rps_dsf
from allocator.policies.tsf import tsf
from allocator.testing import static_snapshot

MODES = ("oblivious", "characterised")


class Entry(NamedTuple):
    """A line of the registry.

    Attributes
    ----------
    criterion : function of the parameters
        Makes the criterion.
    selection : str
        The default.
    parameters : dict of str to tuple of str
        What may be set, and to what; the first value is the default.
    """

    criterion: Callable[..., CriterionFunction]
    selection: str = "random"
    parameters: Mapping[str, tuple[str, ...]] = {}


def _fixed(criterion: CriterionFunction) -> Callable[[], CriterionFunction]:
    """Wrap a criterion that takes no parameters."""
    return lambda: criterion


POLICIES: dict[str, Entry] = {
    "drf": Entry(_fixed(drf)),
    "tsf": Entry(_fixed(tsf)),
    "ps-dsf": Entry(_fixed(ps_dsf)),
    "rps-dsf": Entry(_fixed(rps_dsf)),
    "bf-drf": Entry(_fixed(drf), selection="best_fit"),
    "choosy": Entry(choosy, parameters={"unit": UNITS}),
    "pf": Entry(_fixed(proportional_fairness)),
    "ceei": Entry(_fixed(proportional_fairness)),
    "asset": Entry(_fixed(asset_fairness)),
}


def build(spec: PolicySpec) -> Policy:
    """Make the policy that a specification names.

    Raises
    ------
    ValueError
        Where the specification is wrong: what, and what it may be instead.

    Examples
    --------
    >>> build(PolicySpec("drff"))
    Traceback (most recent call last):
    ValueError: name: there is no policy 'drff'; choose from drf, tsf, ps-dsf, rps-dsf, bf-drf, ...
    """
    entry = POLICIES.get(spec.name)
    if entry is None:
        raise ValueError(f"name: there is no policy {spec.name!r}; {_choose_from(POLICIES)}")
    if spec.selection and spec.selection not in SELECTIONS:
        raise ValueError(
            f"selection: there is no selection {spec.selection!r}; {_choose_from(SELECTIONS)}, "
            f"or leave it empty for the default of {spec.name}, {entry.selection}"
        )
    if spec.mode not in MODES:
        raise ValueError(f"mode: there is no mode {spec.mode!r}; {_choose_from(MODES)}")
    for key, value in spec.parameters.items():
        if not entry.parameters:
            raise ValueError(
                f"parameters.{key}: the policy {spec.name} takes no parameters; remove it"
            )
        if key not in entry.parameters:
            raise ValueError(
                f"parameters.{key}: the policy {spec.name} has no such parameter; "
                f"{_choose_from(entry.parameters)}"
            )
        if value not in entry.parameters[key]:
            raise ValueError(
                f"parameters.{key}: {value!r} is not possible; "
                f"{_choose_from(entry.parameters[key])}"
            )
    return Filling(
        entry.criterion(**spec.parameters),
        spec.selection or entry.selection,
        others=tuple(_criterion_below(spec, role) for role in sorted(spec.subtrees)),
    )


def _criterion_below(spec: PolicySpec, role: str) -> CriterionFunction:
    """Find the criterion for the roles below one."""
    name = spec.subtrees[role]
    if not role or not all(role.split("/")):
        raise ValueError(f"subtrees: {role!r} is not a role; write it as 'eng' or 'eng/ads'")
    if spec.flat:
        raise ValueError(f"subtrees: {role!r} has no place in a flat competition; leave flat out")
    if name not in POLICIES:
        raise ValueError(f"subtrees.{role}: there is no policy {name!r}; {_choose_from(POLICIES)}")
    return POLICIES[name].criterion()


def _choose_from(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return "choose from " + ", ".join(names)


def warm(*selections: str) -> None:
    """Load the compiled loops that selections need, or compile them; without any, all."""
    cluster = static_snapshot(capacity=[[1, 1]], demand=[[1, 1]])
    for selection in selections or ("random", "joint"):
        Filling(drf, selection).allocate(cluster, seed=0)

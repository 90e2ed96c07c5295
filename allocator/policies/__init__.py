"""The registry of policies: each policy decides which client is served next, and where.

A policy is any object with `allocate(snapshot, seed)`. The policies of this package fill
progressively, by a criterion (which client), a selection (which agent) and a mode (how much; part
of the snapshot). To add a policy, add a file, an entry here and a row in the tests' tables. Hosts
add users' own policies to the registry, see ``examples/``.
"""

from collections.abc import Callable, ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from allocator import near
from allocator.core import PlanningPolicy, PlanProblem, Policy, PolicySpec, Subtree
from allocator.policies.asset_fairness import asset_fairness
from allocator.policies.choosy import UNITS, choosy
from allocator.policies.cmmf import STEER, as_it_stands, cmmf, machines
from allocator.policies.drf import drf
from allocator.policies.filling import SELECTIONS as SELECTIONS
from allocator.policies.filling import CriterionFunction, Filling
from allocator.policies.pf_exact import plan_proportional_fairness, spending
from allocator.policies.plan_guided import PlanFunction, PlanGuided, same_question
from allocator.policies.proportional_fairness import proportional_fairness
from allocator.policies.ps_dsf import ps_dsf
from allocator.policies.ps_dsf_exact import plan_per_server_fairness
from allocator.policies.quincy import LEAST, MOST, PREEMPT, TRANSFER, WAIT, quincy, same_places
from allocator.policies.rps_dsf import rps_dsf
from allocator.policies.tsf import tsf
from allocator.testing import problem_of, static_snapshot

MODES = ("oblivious", "characterised")


@dataclass(frozen=True)
class Entry:
    """A registry entry.

    - `build`: makes the policy; called with a specification whose selection, mode and parameters
      have been checked.
    - `selections`: the possible ways to choose an agent, the default first; empty if the policy
      chooses agents itself.
    - `parameters`: the possible values of each parameter, the default first.
    - `criterion`: makes the criterion with which the policy can decide below a single role; None if
      it can only decide for all roles.
    - `origin`: where the policy comes from; empty for those of this package.
    """

    build: Callable[[PolicySpec], Policy]
    selections: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    criterion: Callable[..., CriterionFunction] | None = None
    origin: str = ""


def filled_by(
    criterion: Callable[..., CriterionFunction],
    selection: str = "random",
    parameters: Mapping[str, tuple[str, ...]] | None = None,
) -> Entry:
    """Make the entry of a policy that fills by a criterion.

    `criterion`: takes the specification's parameters and returns the criterion.
    `selection`: the default selection.
    """

    def build_filling(spec: PolicySpec) -> Policy:
        return Filling(
            criterion(**spec.parameters),
            spec.selection or selection,
            others=tuple(_criterion_below(spec, role) for role in sorted(spec.subtrees)),
        )

    others = tuple(each for each in SELECTIONS if each != selection)
    return Entry(build_filling, (selection, *others), parameters or {}, criterion)


def _fixed(criterion: CriterionFunction, selection: str = "random") -> Entry:
    return filled_by(lambda: criterion, selection)


def planned_by(
    make_plan_function: Callable[..., PlanFunction],
    progress: CriterionFunction,
    criterion: CriterionFunction,
    parameters: Mapping[str, tuple[str, ...]] | None = None,
    stands: Callable[[PlanProblem, PlanProblem], bool] = same_question,
    *,
    about_holders: bool = False,
) -> Entry:
    """Make the entry of a policy that plans.

    `make_plan_function`: takes the specification's parameters and returns the function that
        computes plans.
    `progress`: measures what clients have, in the unit of the plan's targets.
    `criterion`: ranks clients where the plan does not decide, and if there is no plan.
    `stands`, `about_holders`: as in `PlanningPolicy`.
    """

    def build_planned(spec: PolicySpec) -> Policy:
        filling = Filling(criterion, spec.selection or SELECTIONS[0])
        return PlanGuided(
            make_plan_function(**spec.parameters), progress, filling, stands, about_holders
        )

    return Entry(build_planned, SELECTIONS, parameters or {})


class Registry(Mapping[str, Entry]):
    """Entries by name, replaced atomically: readers see either the old or the new ones."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> ItemsView[str, Entry]:
        return self._entries.items()

    def replace(self, entries: Mapping[str, Entry]) -> None:
        self._entries = dict(entries)


POLICIES = Registry(
    {
        "drf": _fixed(drf),
        "tsf": _fixed(tsf),
        "ps-dsf": _fixed(ps_dsf),
        "rps-dsf": _fixed(rps_dsf),
        "bf-drf": _fixed(drf, "best_fit"),
        "choosy": filled_by(choosy, parameters={"unit": UNITS}),
        "pf": _fixed(proportional_fairness),
        "ceei": _fixed(proportional_fairness),
        "asset": _fixed(asset_fairness),
        "cmmf": planned_by(cmmf, machines, machines, {"steer": STEER}, as_it_stands),
        "pf-exact": planned_by(lambda: plan_proportional_fairness, drf, spending),
        "quincy": planned_by(
            quincy,
            drf,
            drf,
            {"most": MOST, "least": LEAST, "transfer": TRANSFER, "wait": WAIT, "preempt": PREEMPT},
            same_places,
            about_holders=True,
        ),
        "ps-dsf-exact": planned_by(lambda: plan_per_server_fairness, drf, ps_dsf),
    }
)


def substitute() -> Policy:
    """Make the policy that decides when the configured one fails."""
    return build(PolicySpec("drf"))


def build(spec: PolicySpec) -> Policy:
    """Make the policy that a specification names.

    Raises ValueError if the specification is invalid; the message says what is possible.

    Examples
    --------
    >>> build(PolicySpec("drff"))
    Traceback (most recent call last):
    ValueError: name: there is no policy 'drff'; choose from drf, tsf, ps-dsf, rps-dsf, bf-drf, ...
    """
    entry = POLICIES.get(spec.name)
    if entry is None:
        choice = _choose_from(POLICIES, spec.name)
        raise ValueError(f"name: there is no policy {spec.name!r}; {choice}")
    if spec.selection and not entry.selections:
        raise ValueError(
            f"selection: the policy {spec.name} chooses agents by itself; leave it empty"
        )
    if spec.selection and spec.selection not in entry.selections:
        raise ValueError(
            f"selection: there is no selection {spec.selection!r}; leave it empty for the default"
            f" of {spec.name}, {entry.selections[0]}, or"
            f" {_choose_from(entry.selections, spec.selection)}"
        )
    if spec.mode not in MODES:
        raise ValueError(f"mode: there is no mode {spec.mode!r}; {_choose_from(MODES, spec.mode)}")
    _check_parameters("parameters", spec.name, spec.parameters)
    if spec.subtrees and entry.criterion is None:
        raise ValueError(
            f"subtrees: the policy {spec.name} decides for all roles; leave them out, or choose "
            "another policy"
        )
    return entry.build(spec)


def _criterion_below(spec: PolicySpec, role: str) -> CriterionFunction:
    if not role or not all(role.split("/")):
        raise ValueError(f"subtrees: {role!r} is not a role; write it as 'eng' or 'eng/ads'")
    if spec.flat:
        raise ValueError(f"subtrees: {role!r} cannot be used with flat; remove flat")
    ranking = {each: entry.criterion for each, entry in POLICIES.items() if entry.criterion}
    try:
        below = Subtree.read(spec.subtrees[role])
    except ValueError as error:
        raise ValueError(f"subtrees.{role}: {error}") from None
    if below.name not in ranking:
        text = f"there is no policy {below.name!r}; {_choose_from(ranking, below.name)}"
        raise ValueError(f"subtrees.{role}: {text}")
    if below.mode and below.mode not in MODES:
        text = f"there is no mode {below.mode!r}; {_choose_from(MODES, below.mode)}"
        raise ValueError(f"subtrees.{role}.mode: {text}")
    _check_parameters(f"subtrees.{role}", below.name, below.parameters)
    return ranking[below.name](**below.parameters)


def _check_parameters(field: str, name: str, parameters: Mapping[str, str]) -> None:
    """Raise a ValueError if a policy does not have these parameters or values."""
    possible = POLICIES[name].parameters
    for key, value in parameters.items():
        if not possible:
            raise ValueError(f"{field}.{key}: the policy {name} takes no parameters; remove it")
        if key not in possible:
            text = f"the policy {name} has no such parameter; {_choose_from(possible, key)}"
            raise ValueError(f"{field}.{key}: {text}")
        if value not in possible[key]:
            text = f"{value!r} is not possible; {_choose_from(possible[key], value)}"
            raise ValueError(f"{field}.{key}: {text}")


def _choose_from(names: Mapping[str, object] | tuple[str, ...], text: str) -> str:
    return f"choose from {', '.join(names)}{near.suggestion(text, names)}"


def load_ahead() -> None:
    """Import the loops' modules, so that no cycle has to read them from disk; not numba."""
    import_module("allocator.policies.filling.by_agent")
    import_module("allocator.policies.filling.by_client")
    import_module("numpy.ma")  # `np.unique` imports it on first use


def warm_plans() -> None:
    """Load the compiled loops of the solvers for plans from the cache, or compile them."""
    cluster = problem_of(static_snapshot(capacity=[[4, 8], [2, 16]], demand=[[1, 1], [0, 0]]))
    for name, entry in POLICIES.items():
        choices = [{key: value} for key, some in entry.parameters.items() for value in some] or [{}]
        for parameters in [] if entry.origin else choices:
            policy = entry.build(PolicySpec(name, parameters=parameters))
            if isinstance(policy, PlanningPolicy):
                policy.plan(cluster)


def warm(*selections: str) -> None:
    """Load or compile the loops that some selections need; without arguments, all of them."""
    cluster = static_snapshot(capacity=[[1, 1]], demand=[[1, 1]])
    for selection in selections or ("random", "joint"):
        Filling(drf, selection).allocate(cluster, seed=0)

"""What is tried: every policy of the registry, both modes, and a few settings of the best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from allocator.core import PolicySpec
from allocator.lab.master.ledger_rows import Quota
from allocator.policies import MODES, POLICIES


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy with its settings, and quotas in place of those that were recorded.

    quotas: by role.
    """

    spec: PolicySpec
    quotas: dict[str, Quota] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """In words; two that differ have different ones."""
        return " ".join([in_words(self.spec), *(f"quota of {role}" for role in self.quotas)])


def in_words(spec: PolicySpec) -> str:
    """Say which policy it is.

    >>> in_words(PolicySpec("choosy", "best_fit", parameters={"unit": "tasks"}))
    'choosy oblivious best_fit unit=tasks'
    """
    words = [spec.name, spec.mode, spec.selection, "flat" if spec.flat else ""]
    words += [f"{key}={value}" for key, value in sorted(spec.parameters.items())]
    words += [f"{role}:{below}" for role, below in sorted(spec.subtrees.items())]
    return " ".join(filter(None, words))


def plain(spec: PolicySpec) -> PolicySpec:
    """The same without what is the default anyway."""
    entry = POLICIES[spec.name]
    selection = "" if spec.selection in entry.selections[:1] else spec.selection
    chosen = spec.parameters.items()
    parameters = {key: value for key, value in chosen if value != entry.parameters[key][0]}
    return replace(spec, selection=selection, parameters=parameters)


def every_policy(now: PolicySpec) -> list[PolicySpec]:
    """List the policy in force, then every other one, in both modes and with its defaults."""
    now = plain(now)
    found = [now]
    for name, entry in POLICIES.items():
        for mode in MODES:
            subtrees = now.subtrees if entry.criterion is not None else {}
            spec = PolicySpec(name, mode=mode, flat=now.flat, subtrees=dict(subtrees))
            if spec not in found:
                found.append(spec)
    return found


def settings_of(spec: PolicySpec) -> Iterator[PolicySpec]:
    """Give the same policy with one other setting: each selection, each value of a parameter."""
    entry = POLICIES[spec.name]
    for selection in entry.selections[1:]:
        yield replace(spec, selection=selection)
    for key, values in entry.parameters.items():
        for value in values[1:]:
            yield replace(spec, parameters={**spec.parameters, key: value})


def more_of(best: Sequence[PolicySpec], tried: Sequence[PolicySpec]) -> list[PolicySpec]:
    """List the settings of the best that were not tried yet."""
    found: list[PolicySpec] = []
    for spec in best:
        found += [each for each in settings_of(spec) if each not in tried and each not in found]
    return found


def changes(spec: PolicySpec, now: PolicySpec) -> int:
    """Count what an operator has to change."""
    return sum(
        (
            spec.name != now.name,
            spec.mode != now.mode,
            spec.selection != now.selection,
            spec.flat != now.flat,
            spec.parameters != now.parameters,
            spec.subtrees != now.subtrees,
        )
    )

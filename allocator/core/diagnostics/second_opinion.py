"""Decides a cycle of another process again, and compares the decisions.

Nothing is charged, so the books stay unchanged.
"""

from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from allocator.core.cycle.cycle import decisions_of
from allocator.core.cycle.deciding import Decide, Decided, Question
from allocator.core.cycle.decisions import Decisions
from allocator.core.snapshot import Grants


class DecisionRow(NamedTuple):
    """One decision, by handles.

    `amounts`: pairs (kind, granted amount in thousandths), kinds ascending.
    """

    framework: int
    role: int
    agent: int
    amounts: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        given = ", ".join(f"{amount} of kind {kind}" for kind, amount in self.amounts)
        return f"{given} of agent {self.agent} to framework {self.framework} in role {self.role}"


class Dissent(NamedTuple):
    """A difference between two decisions of one cycle.

    `reason`: the difference, as text.
    `place`: index of the first decision that differs, from 0; -1 if no decision differs, or the
        cycle cannot be decided again.
    `told`, `own`: that decision by the other process, and by this one; None: missing.
    """

    cycle: int
    reason: str
    place: int = -1
    told: DecisionRow | None = None
    own: DecisionRow | None = None


def second_opinion(question: Question, told: Decided, decide: Decide) -> Dissent | None:
    """Decide a cycle again by `decide`, and compare; None: the decision equals `told`."""
    again = question._replace(overruled=told.policy_error)
    try:
        own = decide(again)
    except Exception as error:  # noqa: BLE001 - the host survives any error of a policy.
        reason = f"it cannot be decided: {type(error).__name__}: {error}"
        return Dissent(question.cycle, reason)
    if own.policy_error != told.policy_error:
        return Dissent(question.cycle, f"the policy fails here only: {own.policy_error}")
    if _same(told.grants, own.grants):
        return None
    return _first_difference(question, told.grants, own.grants)


def _same(one: Grants, other: Grants) -> bool:
    return all(
        np.array_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
    )


def _first_difference(question: Question, told: Grants, own: Grants) -> Dissent:
    state, snapshot, cycle = question.state, question.snapshot, question.cycle
    made = (_rows(decisions_of(state, snapshot, grants, cycle)) for grants in (told, own))
    for place, (one, other) in enumerate(zip_longest(*made)):
        if one != other:
            return Dissent(cycle, "another decision", place, one, other)
    return Dissent(cycle, "other grants make the same decisions")


def _rows(decisions: Decisions) -> Iterator[DecisionRow]:
    for group in decisions.groups:
        kinds = group.kind.tolist()
        columns = group.framework, group.role, group.agent, group.amount
        for who, role, agent, amounts in zip(*(each.tolist() for each in columns), strict=True):
            yield DecisionRow(who, role, agent, tuple(zip(kinds, amounts, strict=True)))

"""Converts criteria to the columns, gains and weights of the compiled loops.

Each criterion becomes a block of K columns. A criterion with preferences has an additional block
for each distinct row of preferences, whose denominators are multiplied by these preferences. A leaf
is scored by all preference blocks of its criterion, but has a measure above 0 only in its own; a
role is scored by the plain block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from allocator.core import distinct_rows
from allocator.core.numba.memo import fixed, memoize
from allocator.core.snapshot import Bools, Floats, Ints, Snapshot
from allocator.policies.filling.criterion import Criterion, CriterionError, check

KINDS_OF_PREFERENCE_MAX = 64
"""Maximum number of distinct rows of preferences; each costs as much as a criterion."""


class Blocks(NamedTuple):
    """Criteria as blocks of columns.

    `criteria`: G criteria, one per block.
    `first`, `end` (N,): the range of columns that score a node of the tree.
    `additive` (N,): whether its parts are summed.
    `weight` (N,): divides the score of a node.
    """

    criteria: tuple[Criterion, ...]
    first: Ints
    end: Ints
    additive: Bools
    weight: Floats


def lay_out(snapshot: Snapshot, criteria: Sequence[Criterion]) -> Blocks:
    """Check criteria, one per scheme of the tree, and make the blocks. Raises CriterionError."""
    blocks: list[Criterion] = []
    schemes: list[_Scheme] = []
    for criterion in criteria:
        check(snapshot, criterion)
        plain = len(blocks)
        blocks.append(criterion)
        if criterion.preference is not None:
            blocks.extend(_by_preference(snapshot, criterion, criterion.preference))
        schemes.append(
            _Scheme(
                plain,
                len(blocks),
                criterion.additive,
                criterion.preference is not None,
                criterion.weight_power,
                criterion.priority,
            )
        )
    tree, columns = snapshot.tree, len(snapshot.total) + 1
    return Blocks(
        tuple(blocks),
        *_score_by(tree.parent, tree.client, tree.scheme, tree.weight, columns, tuple(schemes)),
    )


class _Scheme(NamedTuple):
    plain: int
    end: int
    additive: bool
    prefers: bool
    weight_power: float
    priority: Floats | None


@memoize(size=2)
def _score_by(
    parent: Ints,
    client: Ints,
    scheme_of_children: Ints,
    tree_weight: Floats,
    columns: int,
    schemes: tuple[_Scheme, ...],
) -> tuple[Ints, Ints, Bools, Floats]:
    """Return for each node: first and end of its columns, whether parts are summed, its weight."""
    is_leaf = np.arange(len(parent)) < len(client)
    scheme = scheme_of_children[parent]  # the root's entry is meaningless and unused
    first, end = np.zeros(len(scheme), np.int64), np.zeros(len(scheme), np.int64)
    additive, weight = np.zeros(len(scheme), np.bool_), tree_weight.astype(np.float64)
    for number, each in enumerate(schemes):
        own = scheme == number
        first[own], end[own] = each.plain * columns, (each.plain + 1) * columns
        additive[own] = each.additive
        if each.prefers:
            # Leaves are scored by the preference blocks instead.
            _check_places(parent, own, is_leaf)
            first[own & is_leaf] = (each.plain + 1) * columns
            end[own & is_leaf] = each.end * columns
        # Scores are divided by the weight, so power and priority apply to the weight.
        if each.weight_power != 1:
            weight[own] **= each.weight_power
        if each.priority is not None:
            rows = np.flatnonzero(own & is_leaf)
            weight[rows] *= each.priority[client[rows]]
    return fixed(first), fixed(end), fixed(additive), fixed(weight)


def _check_places(parent: Ints, own: Bools, is_leaf: Bools) -> None:
    """Verify that siblings are scored by the same columns: all have preferences, or none."""
    both = set(parent[own & is_leaf].tolist()) & set(parent[own & ~is_leaf].tolist()) - {-1}
    if both:
        raise CriterionError(
            "preference: clients compete with sibling roles, which have none; give the"
            " clients a role of their own, or leave preferences out"
        )


def _by_preference(
    snapshot: Snapshot, criterion: Criterion, preference: Floats
) -> Iterator[Criterion]:
    """Yield a block for each distinct row of preferences; they do not score inner nodes."""
    client = snapshot.tree.client
    kinds, which, _ = distinct_rows(preference[client])
    if len(kinds) > KINDS_OF_PREFERENCE_MAX:
        raise CriterionError(
            f"preference: {len(kinds)} different rows; at most {KINDS_OF_PREFERENCE_MAX} are"
            " possible: round them"
        )
    for number, liked in enumerate(kinds):
        # Only these leaves have a measure in this block, and only their clients gain by grants.
        leaves = np.flatnonzero(which == number)
        measure = np.zeros_like(criterion.measure)
        measure[leaves] = criterion.measure[leaves]
        counts = np.zeros(len(criterion.amount_gain))
        counts[client[leaves]] = 1.0
        # A preferred agent counts as a larger one, so that the score there is smaller.
        yield replace(
            criterion,
            measure=measure,
            denominator=criterion.denominator * liked[:, None],
            amount_gain=criterion.amount_gain * counts,
            task_gain=criterion.task_gain * counts,
            agent_gain=criterion.agent_gain * counts,
            preference=None,
        )

"""Progressive filling: one grant after another to whoever the criterion puts first.

A policy is a criterion (who) and a selection (where); the mode (how much) is in the snapshot. The
criterion gives a few arrays (`Criterion`); two compiled loops do the rest, one that takes an agent
first and one that takes a client first. The slow obvious twin of both stands in the tests, and
gives the same grants.

Begin with `criterion`, then `by_agent`, the simpler loop.
"""

from allocator.policies.filling.criterion import (
    Criterion,
    CriterionError,
    CriterionFunction,
    characterised,
    cluster_total,
    mixed,
    of_amounts,
)
from allocator.policies.filling.policy import SELECTIONS, Filling

__all__ = [
    "SELECTIONS",
    "Criterion",
    "CriterionError",
    "CriterionFunction",
    "Filling",
    "characterised",
    "cluster_total",
    "mixed",
    "of_amounts",
]

"""Progressive filling: one grant at a time, to the client with the smallest score.

A policy is a criterion (who) and a selection (where); the mode (how much) is in the snapshot. The
criterion is a few arrays (`Criterion`); two compiled loops do the rest: `by_agent` picks an agent
first, and runs plain DRF (selections random, round_robin and listed); `by_client` picks a client
first (joint and best_fit). The tests contain a slow, obvious twin of both that gives the same
grants.

Start with `criterion`, then `by_agent`, the simpler loop.
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

"""Progressive filling: one grant at a time, to the client with the smallest score.

A policy is a criterion (which client) and a selection (which agent); the mode (how much) is in the
snapshot. The criterion is a few arrays (`Criterion`); two compiled loops do the rest: `by_agent`
chooses an agent first (selections random, round_robin and listed), `by_client` a client first
(joint and best_fit). A slow, simple twin of both in the tests must make the same grants.

Start with `criterion`, then `by_agent`, which is the simpler loop.
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

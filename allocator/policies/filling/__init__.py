"""Progressive filling: one grant at a time, to the client with the smallest score.

A policy is a criterion (which client) and a selection (which agent); the mode (how much) is in the
snapshot. The criterion is a few arrays (`Criterion`); two compiled loops do the rest: `by_agent`
chooses an agent first (selections random, round_robin and listed), `by_client` a client first
(joint and best_fit). A slow, simple twin of both in the tests must make the same grants.

Start with `criterion`, then `by_agent`, which is the simpler loop.
"""

from allocator.policies.filling.criterion import Criterion as Criterion
from allocator.policies.filling.criterion import CriterionError as CriterionError
from allocator.policies.filling.criterion import CriterionFunction as CriterionFunction
from allocator.policies.filling.criterion import characterised as characterised
from allocator.policies.filling.criterion import cluster_total as cluster_total
from allocator.policies.filling.criterion import mixed as mixed
from allocator.policies.filling.criterion import of_amounts as of_amounts
from allocator.policies.filling.policy import SELECTIONS as SELECTIONS
from allocator.policies.filling.policy import Filling as Filling

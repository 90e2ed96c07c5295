"""The data of a plan."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, the result of a policy that plans, see `allocator.core.plans.problems`.

    `target` (C,): the total that each client should have, in the policy's own unit; 0 for clients
        outside the plan.
    `group` (A,): the group of each agent; -1 outside the plan. By handle; in a snapshot by its
        rows.
    `allowed` (G, W): bit ``c % 64`` of word ``c // 64``: client c should have part of this group.
    `price` (G, R): price of a thousandth of a resource on agents of this group; no rows: no prices.
    `part` (P, C), P <= G: the fraction of its target that each client should have in each of the
        first P groups. In the other groups it may have any part.
    `leave` (P,): sorted keys ``agent * 2**32 + client``, by handle: clients that should leave an
        agent, because the plan gives all of it to others. Empty in a snapshot.
    `seen_ms`: time of the cluster state that the plan is for, by the master's clock. Clients that
        came to an agent later are not asked to leave it.
    `held` (P, C, R), in thousandths, only in a snapshot: the holdings of each client on all agents
        of each of the P groups, if the group has agents in the cycle.
    `agents_held` (P, C): the number of agents with these holdings.
    """

    target: NDArray[np.float64]
    group: NDArray[np.int64]
    allowed: NDArray[np.uint64]
    price: NDArray[np.float64]
    part: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    leave: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    seen_ms: int = 0
    held: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0, 0), np.int64))
    agents_held: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))

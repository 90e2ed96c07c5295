"""What a plan is; `allocator.core.plans.problems` says how one comes about."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy that plans worked out, see `allocator.core.plans.problems`.

    `target` (C,): what each client is to have in all, in the policy's own unit; 0 for clients
        outside the plan.
    `group` (A,): the group that each agent is of; -1 for one that is not in the plan. By handle; in
        a snapshot by its rows.
    `allowed` (G, W): bit ``c % 64`` of word ``c // 64``: client c is to have something of this
        group.
    `price` (G, R): what a thousandth of a resource costs on agents of this group; no rows without
        prices.
    `part` (P, C), P <= G: how much of its target each client is to have of each of the first
        groups. Of the others it may have any part.
    `leave` (P,): sorted keys ``agent * 2**32 + client``: which client is to leave which agent, by
        its handle, since all of it is to go to others. In a snapshot none.
    `seen_ms`: when the cluster stood as the plan has it, by the master's clock. A client that
        came to an agent later is not asked to leave it.
    `held` (P, C, R), in thousandths: in a snapshot: what each client holds on all agents of each
        group with parts that the cycle's agents are of.
    `agents_held` (P, C): the same of agents: on how many.
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

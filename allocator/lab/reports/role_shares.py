"""What roles hold over time, looked at every so often, and how even that is."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from allocator.core import Floats
from allocator.measures import jain_index, resource_share

if TYPE_CHECKING:
    from allocator.lab.master.emulated import EmulatedMaster


@dataclass(slots=True)
class RoleShares:
    """Samples of what the tasks of each role take.

    time_ms: when each sample was taken.
    held (R,): for each sample what the roles hold whose frameworks are there.
    total (R,): what the cluster had.
    """

    time_ms: list[int] = field(default_factory=list)
    held: list[dict[str, Floats]] = field(default_factory=list)
    total: list[Floats] = field(default_factory=list)

    def look(self, master: "EmulatedMaster") -> None:
        """Take a sample."""
        width = len(master.ledger.zero)  # what came later is reserved, or no plain resource
        held: dict[str, Floats] = defaultdict(lambda: np.zeros(width))
        for member in master.members.values():
            role = member.framework.identity.roles[0]
            held[role] += 0.0
            for task in member.tasks:
                held[role][: len(task.amount)] += task.amount[:width]
        self.time_ms.append(master.event_heap.now_ms)
        self.held.append(dict(held))
        self.total.append(np.array(master.ledger.total[:width], np.float64))

    def shares(self, role: str) -> Floats:
        """Dominant share of a role at each sample, (T,); 0 where it has no framework."""
        return np.array(
            [
                resource_share(held[role][None], total).max(initial=0.0) if role in held else 0.0
                for held, total in zip(self.held, self.total, strict=True)
            ]
        )

    def there(self, role: str) -> np.ndarray:
        """At which samples a role has a framework, (T,) bool."""
        return np.array([role in held for held in self.held], bool)


@dataclass(frozen=True, slots=True)
class RoleLevel:
    """Dominant share of a role while it has frameworks, 0 to 1: mean and least."""

    mean: float
    least: float


@dataclass(frozen=True, slots=True)
class Fairness:
    """How even the dominant shares of roles were.

    jain, jain_least: jain's index of the shares of the roles that are there: mean over the samples,
        and the least. 1 where there were never two.
    """

    roles: dict[str, RoleLevel]
    jain: float
    jain_least: float


def fairness(samples: RoleShares, from_ms: int, to_ms: int) -> Fairness:
    """Say how even shares were between two moments.

    from_ms, to_ms: samples of this time count; where there are none in it, all up to `to_ms`.
    """
    time_ms = np.array(samples.time_ms)
    counted = (time_ms >= from_ms) & (time_ms <= to_ms)
    if not counted.any():
        counted = time_ms <= to_ms
    roles = sorted({role for held in samples.held for role in held})
    share = np.array([samples.shares(role)[counted] for role in roles])
    there = np.array([samples.there(role)[counted] for role in roles])
    levels = {
        role: RoleLevel(float(share[row][there[row]].mean()), float(share[row][there[row]].min()))
        for row, role in enumerate(roles)
        if there[row].any()
    }
    several: list[int] = np.flatnonzero(there.sum(axis=0) >= 2).tolist() if roles else []
    jain = [jain_index(share[there[:, column], column]) for column in several]
    return Fairness(levels, float(np.mean(jain or [1.0])), min(jain, default=1.0))

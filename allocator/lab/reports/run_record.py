"""What a run writes down as it goes: use over time, counts, waits, latencies, what roles hold."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from allocator.core import Floats, Reason
from allocator.lab.master.ledger_rows import Amount
from allocator.measures import jain_index, resource_share

if TYPE_CHECKING:
    from allocator.lab.master.emulated import EmulatedMaster

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}
"""Resources as tables and axes name them."""

# What a run was like: use over time, counts, waits, latencies.


@dataclass(slots=True)
class Record:
    """Everything that a run writes down as it goes.

    time_ms, used, total: the used and total amounts from each moment on at which one of them
        changed.
    latency_s: wall time from the sending of each batch that asks for a cycle to the last of its
        decisions.
    outcomes: what became of all decisions.
    steady: of those between whose cycle and whose arrival nothing happened: there is no excuse.
    waits_ms: from a framework's subscription to its first offer.
    fallbacks: offers that the master made without the sidecar.
    inverse_offers: how often a framework was asked to leave an agent.
    """

    time_ms: list[int] = field(default_factory=list)
    used: list[Amount] = field(default_factory=list)
    total: list[Amount] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    outcomes: Counter[Reason] = field(default_factory=Counter)
    steady: Counter[Reason] = field(default_factory=Counter)
    waits_ms: list[int] = field(default_factory=list)
    batches: int = 0
    events: int = 0
    offers: int = 0
    declines: int = 0
    tasks: int = 0
    operations: int = 0
    resyncs: int = 0
    fallbacks: int = 0
    inverse_offers: int = 0

    def note_use(self, now_ms: int, used: Sequence[int], total: Sequence[int]) -> None:
        """Write down what is used from now on, if it is something else than before."""
        row, whole = tuple(used), tuple(total)
        if self.time_ms and self.used[-1] == row and self.total[-1] == whole:
            return
        if self.time_ms and self.time_ms[-1] == now_ms:
            self.used[-1], self.total[-1] = row, whole
            return
        self.time_ms.append(now_ms)
        self.used.append(row)
        self.total.append(whole)

    @property
    def rejected(self) -> Counter[Reason]:
        """Decisions of which no offer was made as they said, by reason."""
        return _without_offered(self.outcomes)

    @property
    def defects(self) -> Counter[Reason]:
        """The same of those that are steady: the sidecar was wrong."""
        return _without_offered(self.steady)


def _without_offered(outcomes: Counter[Reason]) -> Counter[Reason]:
    return Counter({r: n for r, n in outcomes.items() if r != Reason.OFFERED})


# What roles hold over time, looked at every so often, and how even that is.


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

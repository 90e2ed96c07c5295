"""Which operations a framework may ask for, given what it is offered."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.core import MILLI, Kind
from allocator.sim.frameworks.base import Conversion
from allocator.sim.master.kinds import (
    REFINEMENT,
    SHARED,
    lineage,
    persistent,
    reserved,
    unreserved,
    volume,
    without_volume,
)
from allocator.sim.random_cluster.population import one_of

VOLUMES = ("v0", "v1", "v2")
DETAILS: tuple[dict[str, str], ...] = ({"principal": "ops"}, {"label.purpose": "batch"})


@dataclass(frozen=True, slots=True)
class Wishes:
    """What could be done with an offer.

    Attributes
    ----------
    role : str
        Of the offer.
    capabilities : frozenset of str
    """

    chance: np.random.Generator
    role: str
    capabilities: frozenset[str]

    def draw(self, there: dict[Kind, int]) -> Conversion | None:
        """One operation that is possible with what is there; None where none is."""
        sorts: list[Callable[[dict[Kind, int]], Conversion | None]] = [
            self._reserve,
            self._unreserve,
            self._create,
            self._create,
            self._destroy,
            self._grow,
            self._shrink,
        ]
        return one_of(self.chance, sorts)(there)

    def _reserve(self, there: dict[Kind, int]) -> Conversion | None:
        """Reserve what is nobody's, or refine a reservation of an ancestor."""
        above = lineage(self.role)[:-1]
        kinds = [
            kind
            for kind in there
            if not kind.revocable
            and not persistent(kind)
            and (
                not kind.reservation
                or (kind.reserved_role in above and REFINEMENT in self.capabilities)
            )
        ]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        amount = self._part(kind, there[kind])
        made = reserved(kind, self.role, details=one_of(self.chance, DETAILS))
        return Conversion({kind: amount}, {made: amount})

    def _unreserve(self, there: dict[Kind, int]) -> Conversion | None:
        kinds = [
            kind
            for kind in there
            if not persistent(kind) and kind.reservation and kind.reservation[-1][:4] != "stat"
        ]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        amount = self._part(kind, there[kind])
        return Conversion({kind: amount}, {unreserved(kind): amount})

    def _create(self, there: dict[Kind, int]) -> Conversion | None:
        kinds = [
            kind
            for kind in there
            if kind.name == "disk"
            and kind.reservation
            and not persistent(kind)
            and not kind.disk.startswith("block")
        ]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        amount = self._part(kind, there[kind])
        shared = SHARED in self.capabilities and self.chance.random() < 0.5
        made = volume(kind, one_of(self.chance, VOLUMES), shared=shared)
        return Conversion({kind: amount}, {made: amount})

    def _destroy(self, there: dict[Kind, int]) -> Conversion | None:
        kinds = [kind for kind in there if persistent(kind)]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        return Conversion({kind: there[kind]}, {without_volume(kind): there[kind]})

    def _grow(self, there: dict[Kind, int]) -> Conversion | None:
        kinds = [kind for kind in there if _elastic(kind) and without_volume(kind) in there]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        space = without_volume(kind)
        more = self._part(space, there[space])
        return Conversion({kind: there[kind], space: more}, {kind: there[kind] + more})

    def _shrink(self, there: dict[Kind, int]) -> Conversion | None:
        kinds = [kind for kind in there if _elastic(kind) and there[kind] > MILLI]
        if not kinds:
            return None
        kind = one_of(self.chance, kinds)
        less = int(self.chance.integers(1, there[kind]))
        return Conversion(
            {kind: there[kind]}, {kind: there[kind] - less, without_volume(kind): less}
        )

    def _part(self, kind: Kind, there: int) -> int:
        """Some of it, or all; whole where it can only be whole."""
        if kind.atomic or self.chance.random() < 0.3:
            return there
        step = 1 if kind.scalar else MILLI
        return int(self.chance.integers(1, there // step + 1)) * step


def _elastic(kind: Kind) -> bool:
    """Whether a volume can grow and shrink: it lies on a disk that can be divided."""
    return persistent(kind) and kind.disk.startswith("root:") and not kind.shared

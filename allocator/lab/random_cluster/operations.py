"""Which operations a framework may ask for, given what it is offered."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from allocator.core import MILLI
from allocator.lab.frameworks.base import Conversion
from allocator.lab.master.resources import (
    REFINEMENT,
    SHARED,
    Resource,
    lineage,
    reserved,
    unreserved,
    volume,
    without_volume,
)
from allocator.lab.random_cluster.population import one_of

VOLUMES = ("v0", "v1", "v2")
PRINCIPALS = ("", "ops", "batch")


@dataclass(frozen=True, slots=True)
class OperationSampler:
    """What could be done with an offer.

    role: of the offer.
    """

    chance: np.random.Generator
    role: str
    capabilities: frozenset[str]

    def draw(self, there: dict[Resource, int]) -> Conversion | None:
        """One operation that is possible with what is there; None where none is."""
        sorts: list[Callable[[dict[Resource, int]], Conversion | None]] = [
            self._reserve,
            self._unreserve,
            self._create,
            self._create,
            self._destroy,
            self._grow,
            self._shrink,
        ]
        return one_of(self.chance, sorts)(there)

    def _reserve(self, there: dict[Resource, int]) -> Conversion | None:
        """Reserve what is nobody's, or refine a reservation of an ancestor."""
        above = lineage(self.role)[:-1]
        some = [
            each
            for each in there
            if not each.revocable
            and not each.persistence
            and (not each.reservations or (each.role in above and REFINEMENT in self.capabilities))
        ]
        if not some:
            return None
        one = one_of(self.chance, some)
        amount = self._part(one, there[one])
        made = reserved(
            one,
            self.role,
            principal=one_of(self.chance, PRINCIPALS),
            labels=(("purpose", f"p{self.chance.integers(20)}"),),
        )
        return Conversion({one: amount}, {made: amount})

    def _unreserve(self, there: dict[Resource, int]) -> Conversion | None:
        some = [
            each
            for each in there
            if not each.persistence and each.reservations and not each.reservations[-1].static
        ]
        if not some:
            return None
        one = one_of(self.chance, some)
        amount = self._part(one, there[one])
        return Conversion({one: amount}, {unreserved(one): amount})

    def _create(self, there: dict[Resource, int]) -> Conversion | None:
        some = [
            each
            for each in there
            if each.name == "disk"
            and each.reservations
            and not each.persistence
            and each.source not in {"block", "raw"}
        ]
        if not some:
            return None
        one = one_of(self.chance, some)
        amount = self._part(one, there[one])
        shared = SHARED in self.capabilities and self.chance.random() < 0.5
        made = volume(one, one_of(self.chance, VOLUMES), shared=shared)
        return Conversion({one: amount}, {made: amount})

    def _destroy(self, there: dict[Resource, int]) -> Conversion | None:
        volumes = [each for each in there if each.persistence]
        if not volumes:
            return None
        one = one_of(self.chance, volumes)
        return Conversion({one: there[one]}, {without_volume(one): there[one]})

    def _grow(self, there: dict[Resource, int]) -> Conversion | None:
        volumes = [each for each in there if _elastic(each) and without_volume(each) in there]
        if not volumes:
            return None
        one = one_of(self.chance, volumes)
        space = without_volume(one)
        more = self._part(space, there[space])
        return Conversion({one: there[one], space: more}, {one: there[one] + more})

    def _shrink(self, there: dict[Resource, int]) -> Conversion | None:
        volumes = [each for each in there if _elastic(each) and there[each] > MILLI]
        if not volumes:
            return None
        one = one_of(self.chance, volumes)
        less = int(self.chance.integers(1, there[one]))
        return Conversion({one: there[one]}, {one: there[one] - less, without_volume(one): less})

    def _part(self, resource: Resource, there: int) -> int:
        """Some of it, or all; whole where it can only be whole."""
        if resource.indivisible or self.chance.random() < 0.3:
            return there
        step = 1 if resource.scalar else MILLI
        return int(self.chance.integers(1, there // step + 1)) * step


def _elastic(resource: Resource) -> bool:
    """Whether a volume can grow and shrink: it lies on a disk that can be divided."""
    return bool(resource.persistence) and not resource.source and not resource.shared

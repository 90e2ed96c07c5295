"""A model of placement constraints: those that machines satisfy, and those that jobs request.

After Sharma et al. [1]_ as used by Choosy [2]_: about 21 constraints, the most common satisfied by
every machine and the rarest by 7 %, and 1.8 constraints per job. Their table of frequencies is not
public. Here frequencies decrease linearly, and rarer constraints are requested somewhat more often
(`rarer`). With the defaults a job can use 39 % of the machines on average, 44 % of the jobs less
than a fifth and 28 % less than a tenth; [2]_ reports 38 %, 40 % and 30 %.

References
----------
.. [1] Sharma, Chudnovsky, Hellerstein, Rifaat, Das. "Modeling and Synthesizing Task Placement
   Constraints in Google Compute Clusters." SoCC 2011.
.. [2] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 7.1.
"""

from dataclasses import dataclass

import numpy as np

from allocator.core import Bools, Floats

_DRAWS_MAX = 1000


@dataclass(frozen=True, slots=True)
class ConstraintModel:
    """Parameters of the random constraints.

    constraints: their number.
    per_job: mean number per job, before redrawing jobs that no machine satisfies.
    rarest, commonest: fraction of machine types that satisfy the rarest and the most common.
    rarer: power of the rank by which rare ones are requested more often; 0: all equally often.
    """

    constraints: int = 21
    per_job: float = 1.8
    rarest: float = 0.07
    commonest: float = 1.0
    rarer: float = 0.4

    def frequencies(self) -> Floats:
        """Fraction of the machine types that satisfy each constraint, rarest first."""
        return np.linspace(self.rarest, self.commonest, self.constraints)

    def wishes(self) -> Floats:
        """Probability that a job requests each constraint."""
        rank = np.linspace(1.0, 0.0, self.constraints) if self.constraints > 1 else np.ones(1)
        weight = np.maximum(rank, 1e-9) ** self.rarer
        return np.minimum(weight / weight.sum() * self.per_job, 1.0)

    def draw_types(self, types: int, rng: np.random.Generator) -> Bools:
        """Whether each type of machine satisfies each constraint, (types, constraints)."""
        return rng.random((types, self.constraints)) < self.frequencies()

    def draw_wishes(self, jobs: int, meets: Bools, rng: np.random.Generator) -> Bools:
        """Whether each job requests each constraint, (jobs, constraints).

        A job whose constraints no type of machine satisfies could never run; it is redrawn.
        """
        asks = np.zeros((jobs, self.constraints), np.bool_)
        left = np.arange(jobs)
        for _ in range(_DRAWS_MAX):
            asks[left] = rng.random((len(left), self.constraints)) < self.wishes()
            left = left[~eligible(asks[left], meets).any(axis=1)]
            if not len(left):
                return asks
        asks[left] = False
        return asks


def eligible(asks: Bools, meets: Bools) -> Bools:
    """Whether each job can use each type, (jobs, types)."""
    missing: Bools = asks[:, None, :] & ~meets[None, :, :]
    return np.logical_not(missing.any(axis=2))

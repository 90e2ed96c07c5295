"""A policy of one's own: fill agents that are in use before those that are empty.

Whoever pays for machines by the hour, or switches idle ones off, wants empty agents to stay empty.
So this policy offers the agents on which somebody holds something as long as they can serve
anybody, and the empty ones only when nobody can be served elsewhere. Among frameworks DRF decides.

To try it::

    mesos-allocator serve --set policy.plugins=examples/busy_first.py --policy busy-first

How it is made, and what holds for every policy, stands in ``docs/how-to/write-a-policy.md``.

References
----------
.. [1] Barroso, Hoelzle. "The Case for Energy-Proportional Computing." IEEE Computer 40(12), 2007.
"""

from dataclasses import replace

import numpy as np

from allocator.core import Bools, Floats, Grants, PolicySpec, Snapshot
from allocator.policies import Entry
from allocator.policies.drf import drf
from allocator.policies.filling import Filling


class BusyFirst:
    """Fill busy agents first.

    Parameters
    ----------
    among : str
        How an agent is chosen among those that are left: a selection of progressive filling.
    """

    def __init__(self, among: str) -> None:
        self._filling = Filling(drf, among)

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle: on busy agents where they can serve somebody, else on all."""
        is_busy = busy_agents(snapshot)[snapshot.agents]
        grants = self._filling.allocate(replace(snapshot, agents=snapshot.agents[is_busy]), seed)
        return grants if len(grants) else self._filling.allocate(snapshot, seed)

    def scores(self, snapshot: Snapshot) -> Floats:
        """Show DRF's scores to operators."""
        return self._filling.scores(snapshot)


def busy_agents(snapshot: Snapshot) -> Bools:
    """Say on which agents (A,) somebody holds something."""
    result = np.zeros(len(snapshot.capacity), np.bool_)
    result[snapshot.holder >> 32] = True
    return result


def build(spec: PolicySpec) -> BusyFirst:
    """Make the policy that operators ask for."""
    return BusyFirst(spec.parameters.get("among", "listed"))


POLICIES = {"busy-first": Entry(build, parameters={"among": ("listed", "random", "joint")})}

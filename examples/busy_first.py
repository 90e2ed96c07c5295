"""An example of a plugin: fill agents that are in use before empty ones.

If machines are paid by the hour, or switched off when idle, empty agents should stay empty. This
policy offers agents in use as long as they can serve a framework, and empty ones only if no
framework can be served otherwise. DRF decides among frameworks.

To try it::

    mesos-allocator serve --set policy.plugins=examples/busy_first.py --policy busy-first

``docs/how-to/write-a-policy.md`` explains how to write a policy, and the requirements.

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
        How an agent is selected among the remaining ones: a selection of progressive filling.
    """

    def __init__(self, among: str) -> None:
        self._filling = Filling(drf, among)

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle: on busy agents if they can serve a framework, else on all."""
        is_busy = busy_agents(snapshot)[snapshot.agents]
        grants = self._filling.allocate(replace(snapshot, agents=snapshot.agents[is_busy]), seed)
        return grants if len(grants) else self._filling.allocate(snapshot, seed)

    def scores(self, snapshot: Snapshot) -> Floats:
        """Show DRF's scores to operators."""
        return self._filling.scores(snapshot)


def busy_agents(snapshot: Snapshot) -> Bools:
    """Return which agents (A,) hold resources in use or on offer."""
    result = np.zeros(len(snapshot.capacity), np.bool_)
    result[snapshot.holder >> 32] = True
    return result


def build(spec: PolicySpec) -> BusyFirst:
    """Make the policy from its specification."""
    return BusyFirst(spec.parameters.get("among", "listed"))


POLICIES = {"busy-first": Entry(build, parameters={"among": ("listed", "random", "joint")})}

"""An example of a plugin: DRF in which large weights count less.

Weights are divided among frameworks as they are: a framework with weight 9 is entitled to nine
times the share of one with weight 1. Under this policy it is entitled to three times the share,
because weights count by their square root.

To try it::

    mesos-allocator serve --set policy.plugins=examples/damped_weights.py --policy damped-weights

``docs/how-to/write-a-policy.md`` explains how to write a policy, and the requirements.

References
----------
.. [1] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, eq. 8 and 9.
"""

from dataclasses import replace

from allocator.core import Snapshot
from allocator.policies import filled_by
from allocator.policies.filling import Criterion, CriterionFunction, cluster_total, of_amounts


def damped_weights(power: str = "0.5") -> CriterionFunction:
    """Make the criterion of DRF with weights to this power."""

    def criterion(snapshot: Snapshot) -> Criterion:
        drf = of_amounts(snapshot, cluster_total(snapshot))
        return replace(drf, weight_power=float(power))

    return criterion


POLICIES = {"damped-weights": filled_by(damped_weights, parameters={"power": ("0.5", "0.25", "0")})}

"""How often Mesos's own allocator and a policy that runs in its shadow make the same decisions.

`python -m tests.cluster.storm --shadow-s 60` prints it.
"""

import time
from dataclasses import dataclass

from tests.cluster.experiments import freeze, lost_tasks, told
from tests.cluster.framework_behaviours import fickle, work
from tests.cluster.mesos import Mesos
from tests.cluster.world import Sampler, World


@dataclass
class Agreement:
    """Decisions of a policy, by the framework to which Mesos's own allocator offered the agent.

    offers: number of offers of Mesos's own allocator.
    same, other, none: number of decisions whose agent Mesos's own allocator offered to the same
        framework, only to others, or to none within the interval.
    share: `same` as a fraction of all decisions compared.
    finished: number of tasks.
    """

    policy: str
    mode: str
    agents: int
    offers: int
    same: int
    other: int
    none: int
    share: float
    misfits: int
    finished: int


def agree(mesos: Mesos, policy: str, mode: str, agents: int, seconds: float) -> Agreement:
    """Run six frameworks in three roles under Mesos's own allocator, with a policy in its shadow.

    Both serve agents in random order, so with several agents even the same policy offers them to
    different frameworks. All books must agree at the end.
    """
    with World(mesos, agents=agents, parameters={"shadow": "true"}) as world:
        world.sidecar.set_policy(policy, mode)
        for role in ("eng", "ads", "ops"):
            world.sidecar.set_demand("cpus:0.5;mem:64", role)
        frameworks = [
            world.framework(f"{role}-{number}", role, manner=manner)
            for role in ("eng", "ads", "ops")
            for number, manner in enumerate(
                (work(0.5, 64, 2, at_once=6), fickle(1, 0.4, 64, 4, at_once=6))
            )
        ]
        with Sampler(world.operator) as sampler:
            time.sleep(seconds)
        freeze(world, frameworks)
        world.check_master()
        assert not sampler.found, sampler.found[:5]
        assert not lost_tasks(frameworks)
        counts = told(world.operator.metrics(), "shadow/")
        misfits = told(world.operator.metrics(), "misfits")
    same, other, none = (counts.get(each, 0) for each in ("same", "other", "none"))
    return Agreement(
        policy,
        mode,
        agents,
        counts.get("offers", 0),
        same,
        other,
        none,
        same / max(same + other + none, 1),
        sum(misfits.values()),
        sum(each.states()["FINISHED"] for each in frameworks),
    )

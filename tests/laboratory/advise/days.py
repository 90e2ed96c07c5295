"""Synthetic days for which the right advice is known."""

from allocator.core import PolicySpec, parse_quantities
from laboratory.master.ledger import Quota
from laboratory.resources import AgentSpec
from tests.laboratory.advise.made import Job, MadeDay, agents, drawn

OBLIVIOUS = PolicySpec("drf")


def one_greedy_framework() -> MadeDay:
    """Its tasks need much memory, and it keeps all CPUs of the agents on which they run."""
    greedy = Job(0, "greedy", "greedy", "cpus:1;mem:16384", drawn(12, 500, 1), greedy=True)
    modest = [
        Job(30 + 20 * n, f"modest-{n}", "modest", "cpus:1;mem:256", drawn(30, 30, n))
        for n in range(14)
    ]
    return MadeDay(agents(4, "cpus:16;mem:69632"), (greedy, *modest), OBLIVIOUS)


def unequal_agents() -> MadeDay:
    """Small tasks fit everywhere; large ones need agents that small ones should avoid."""
    cluster = (*agents(2, "cpus:16;mem:16384", "plain"), *agents(2, "cpus:7;mem:65536", "large"))
    work = [
        Job(8 * n, f"small-{n}", "small", "cpus:1;mem:1024", drawn(8, 30, n)) for n in range(54)
    ]
    work += [
        Job(30 + 40 * n, f"large-{n}", "large", "cpus:6;mem:57344", drawn(4, 15, 50 + n))
        for n in range(10)
    ]
    return MadeDay(cluster, tuple(work))


def quota_too_large() -> MadeDay:
    """Production is guaranteed three quarters of the cluster, and uses an eighth."""
    service = Job(0, "service", "production", "cpus:2;mem:4096", (700.0,) * 4)
    batch = [
        Job(45 * n, f"batch-{n}", "batch", "cpus:1;mem:2048", drawn(36, 45, n)) for n in range(12)
    ]
    guarantee = parse_quantities("cpus:48;mem:196608")
    return MadeDay(
        agents(4, "cpus:16;mem:65536"),
        (service, *batch),
        quotas={"production": Quota(guarantees=dict(guarantee))},
    )


def overlapping_constraints() -> MadeDay:
    """Two types of jobs may use the same three of ten agents, besides others of their own."""

    def only(*racks: str) -> dict[str, frozenset[str]]:
        return {"rack": frozenset(racks)}

    cluster: list[AgentSpec] = [
        *agents(1, "cpus:8;mem:16384", "left", rack="left"),
        *agents(1, "cpus:8;mem:16384", "both", rack="both"),
        *agents(1, "cpus:8;mem:16384", "right", rack="right"),
        *agents(7, "cpus:8;mem:16384", "free", rack="free"),
    ]
    work = []
    for n in range(6):
        at_s = 60 * n
        left, right = only("left", "both"), only("right", "both")
        work.append(Job(at_s, f"l-{n}", "left", "cpus:1;mem:1024", drawn(24, 60, n), left))
        work.append(Job(at_s, f"r-{n}", "right", "cpus:1;mem:1024", drawn(24, 60, 20 + n), right))
        work.append(Job(at_s, f"a-{n}", "any", "cpus:1;mem:1024", drawn(12, 60, 40 + n)))
    return MadeDay(tuple(cluster), tuple(work))


def nothing_wrong() -> MadeDay:
    """Equal agents, equal tasks, three roles alike, occasional waits."""
    work = [
        Job(25 * n, f"{role}-{n}", role, "cpus:1;mem:2048", drawn(12, 45, 10 * n + number))
        for n in range(12)
        for number, role in enumerate(("red", "green", "blue"))
    ]
    return MadeDay(agents(4, "cpus:15;mem:30720"), tuple(work))

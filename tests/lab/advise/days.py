"""The made days, and what is known of each."""

from allocator.core import PolicySpec, parse_quantities
from allocator.lab.master.ledger_rows import Quota
from allocator.lab.workloads.cluster import AgentSpec
from tests.lab.advise.made import Job, MadeDay, agents, drawn

OBLIVIOUS = PolicySpec("drf")


def one_greedy_framework() -> MadeDay:
    """It needs much memory a task, and keeps all CPUs of the agents on which it runs."""
    greedy = Job(0, "greedy", "greedy", "cpus:1;mem:16384", drawn(160, 60, 1), greedy=True)
    modest = [
        Job(30 + 15 * n, f"modest-{n}", "modest", "cpus:1;mem:1024", drawn(60, 30, n))
        for n in range(24)
    ]
    return MadeDay(agents(6, "cpus:16;mem:65536"), (greedy, *modest), OBLIVIOUS)


def unequal_agents() -> MadeDay:
    """Half of the agents are rich in CPUs, half in memory; so are the tasks."""
    cluster = (*agents(4, "cpus:50;mem:15360", "cpus"), *agents(4, "cpus:15;mem:51200", "mem"))
    work = []
    for n in range(20):
        work.append(Job(30 * n, f"count-{n}", "count", "cpus:5;mem:1024", drawn(40, 40, n)))
        work.append(Job(30 * n, f"keep-{n}", "keep", "cpus:1;mem:5120", drawn(40, 40, 50 + n)))
    return MadeDay(cluster, tuple(work))


def quota_too_large() -> MadeDay:
    """Production is guaranteed three quarters of the cluster, and uses an eighth."""
    service = Job(0, "service", "production", "cpus:2;mem:4096", (1500.0,) * 8)
    batch = [
        Job(60 * n, f"batch-{n}", "batch", "cpus:1;mem:2048", drawn(48, 60, n)) for n in range(20)
    ]
    guarantee = parse_quantities("cpus:96;mem:393216")
    return MadeDay(
        agents(8, "cpus:16;mem:65536"),
        (service, *batch),
        quotas={"production": Quota(guarantees=dict(guarantee))},
    )


def overlapping_constraints() -> MadeDay:
    """Two sorts of jobs may use the same three of ten agents, beside others of their own."""

    def only(*racks: str) -> dict[str, frozenset[str]]:
        return {"rack": frozenset(racks)}

    cluster: list[AgentSpec] = [
        *agents(1, "cpus:8;mem:16384", "left", rack="left"),
        *agents(1, "cpus:8;mem:16384", "both", rack="both"),
        *agents(1, "cpus:8;mem:16384", "right", rack="right"),
        *agents(7, "cpus:8;mem:16384", "free", rack="free"),
    ]
    work = []
    for n in range(10):
        at_s = 60 * n
        left, right = only("left", "both"), only("right", "both")
        work.append(Job(at_s, f"l-{n}", "left", "cpus:1;mem:1024", drawn(24, 60, n), left))
        work.append(Job(at_s, f"r-{n}", "right", "cpus:1;mem:1024", drawn(24, 60, 20 + n), right))
        work.append(Job(at_s, f"a-{n}", "any", "cpus:1;mem:1024", drawn(12, 60, 40 + n)))
    return MadeDay(tuple(cluster), tuple(work))


def nothing_wrong() -> MadeDay:
    """Equal agents, equal tasks, three roles alike, waits now and then."""
    work = [
        Job(25 * n, f"{role}-{n}", role, "cpus:1;mem:2048", drawn(14, 60, 10 * n + number))
        for n in range(20)
        for number, role in enumerate(("red", "green", "blue"))
    ]
    return MadeDay(agents(8, "cpus:12;mem:24576"), tuple(work))

"""The flow network of Quincy, which schedules tasks near their data within bounds per job.

Each task supplies one unit of flow, which flows to a preferred computer, to any computer of a
preferred rack, to any computer of the cluster, or, if the task does not run, to its job's node. The
caller sets the costs of these choices.

Shapes: N tasks, P pairs of a task and a computer, Q pairs of a task and a rack, M computers, J
jobs. In flows and potentials, A arcs and N nodes as in `min_cost_flow`.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 4.2 and Appendix.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.solvers.flow.min_cost_flow import FlowSolution, Network
from laboratory.solvers.flow_repair import UNKNOWN

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks to run, and their costs.

    `number` (N,): identifies a task across networks; distinct, less than 2**31.
    `job` (N,): the task's job.
    `unscheduled`, `anywhere` (N,): cost of not running the task now; of running it on an arbitrary
        computer.
    `task`, `computer`, `at_computer` (P,): the row of a task, a computer that it prefers or runs
        on, and the cost of running it there; each pair at most once.
    `rack_task`, `rack`, `in_rack` (Q,): the same for the racks that tasks prefer.
    """

    number: Ints
    job: Ints
    unscheduled: Ints
    anywhere: Ints
    task: Ints
    computer: Ints
    at_computer: Ints
    rack_task: Ints
    rack: Ints
    in_rack: Ints


@dataclass(frozen=True, slots=True)
class QuincyCluster:
    """The computers of a cluster, and the bounds of the jobs that run on it.

    `rack_of` (M,): the rack of each computer.
    `slots` (M,): maximum number of tasks that the computer runs at once.
    `least`, `most` (J,): minimum and maximum number of running tasks of each job. A job with fewer
        tasks than its minimum must run all of them.
    """

    rack_of: Ints
    slots: Ints
    least: Ints
    most: Ints


@dataclass(frozen=True, slots=True)
class QuincyNetwork:
    """The flow network, with the tasks and the cluster that it was built from.

    The order of nodes is: the sink, the cluster ("anywhere"), racks, computers, jobs, tasks. The
    order of arcs is: from tasks to their jobs, to the cluster, to preferred computers, and to
    preferred racks; from the cluster to racks; from racks to computers; from computers to the sink;
    and from jobs to the sink.
    """

    network: Network
    tasks: Tasks
    cluster: QuincyCluster

    @property
    def first_task(self) -> int:
        return len(self.network.supply) - len(self.tasks.number)

    def place(self, flow: Ints) -> Ints:
        """Return the computer of each task, (N,); -1 for tasks that do not run.

        Tasks whose flow goes to a rack, or to the cluster, get the remaining computers in the order
        of their rows.

        `flow` (A,): an optimal flow of the network.
        """
        tasks, cluster = self.tasks, self.cluster
        count, pairs, racked = len(tasks.job), len(tasks.task), len(tasks.rack_task)
        ends = np.cumsum([count, count, pairs, racked, len(self._racks()), len(cluster.rack_of)])
        _, anywhere, at_computer, in_rack, by_rack, on = np.split(flow, ends)[:6]
        result = np.full(count, -1)
        result[tasks.task[at_computer > 0]] = tasks.computer[at_computer > 0]
        # Rack by rack, first the tasks of the rack itself, then those that run anywhere.
        own = tasks.rack_task[in_rack > 0]
        free = np.flatnonzero(anywhere > 0)
        rows = np.concatenate([own, free])
        racks = np.concatenate([tasks.rack[in_rack > 0], np.repeat(self._racks(), by_rack)])
        computers = np.repeat(np.arange(len(on)), on)
        computers = computers[np.argsort(cluster.rack_of[computers], kind="stable")]
        result[rows[np.argsort(racks, kind="stable")]] = computers
        return result

    def begin_with(self, before: "QuincyNetwork", solution: FlowSolution) -> tuple[Ints, Ints]:
        """Translate the solution of the previous network to the arcs and nodes of this one.

        Tasks are matched by number. If the numbers of computers, racks and jobs differ, all flow is
        0 and all potentials are unknown.

        Returns the flow, (A,), and the potentials, (N,), to pass to `flow_repair.solve_again`.
        """
        fixed = _fixed(before.cluster)
        same = fixed == _fixed(self.cluster)
        potential = np.full(len(self.network.supply), UNKNOWN)
        flow = np.zeros(len(self.network.tail), np.int64)
        if not same:
            return flow, potential
        potential[: self.first_task] = solution.potential[: self.first_task]
        now, then = self.tasks.number, before.tasks.number
        order = np.argsort(then, kind="stable")
        at = np.minimum(np.searchsorted(then[order], now), max(len(then) - 1, 0))
        known = np.flatnonzero(then[order[at]] == now) if len(then) else np.zeros(0, np.int64)
        node_before = before.first_task + order[at[known]]
        potential[self.first_task + known] = solution.potential[node_before]
        # Arcs are matched by their tail and head.
        moved = np.arange(len(before.network.supply))
        moved[before.first_task :] = -1
        moved[node_before] = self.first_task + known
        keys_before = moved[before.network.tail] << 32 | before.network.head
        keys = self.network.tail << 32 | self.network.head
        used = np.flatnonzero((solution.flow > 0) & (moved[before.network.tail] >= 0))
        by_key = np.argsort(keys, kind="stable")
        place = np.minimum(np.searchsorted(keys[by_key], keys_before[used]), max(len(keys) - 1, 0))
        found = keys[by_key[place]] == keys_before[used]
        flow[by_key[place[found]]] = solution.flow[used[found]]
        return flow, potential

    def _racks(self) -> Ints:
        return np.arange(_racks(self.cluster))


def build(tasks: Tasks, cluster: QuincyCluster) -> QuincyNetwork:
    """Build the network. Raises ValueError if a job's bounds contradict each other."""
    computers, racks, jobs = len(cluster.rack_of), _racks(cluster), len(cluster.least)
    count = np.bincount(tasks.job, minlength=jobs)
    most = np.minimum(cluster.most, count)
    least = np.minimum(cluster.least, count)
    if (least > most).any():
        job = int((least > most).argmax())
        raise ValueError(f"job {job} must run at least {least[job]} tasks, but at most {most[job]}")
    sink, anywhere, first_rack = 0, 1, 2
    first_computer = first_rack + racks
    first_job = first_computer + computers
    first_task = first_job + jobs
    rows = first_task + np.arange(len(tasks.job))
    on, all_racks = first_computer + np.arange(computers), first_rack + np.arange(racks)
    of_jobs = first_job + np.arange(jobs)
    slots = np.bincount(cluster.rack_of, cluster.slots, racks).astype(np.int64)
    arcs: list[tuple[Ints, Ints, Ints, Ints]] = [
        _arcs(rows, first_job + tasks.job, 1, tasks.unscheduled),
        _arcs(rows, anywhere, 1, tasks.anywhere),
        _arcs(rows[tasks.task], first_computer + tasks.computer, 1, tasks.at_computer),
        _arcs(rows[tasks.rack_task], first_rack + tasks.rack, 1, tasks.in_rack),
        _arcs(anywhere, all_racks, slots, 0),
        _arcs(first_rack + cluster.rack_of, on, cluster.slots, 0),
        _arcs(on, sink, cluster.slots, 0),
        _arcs(of_jobs, sink, most - least, 0),
    ]
    tail, head, capacity, cost = (np.concatenate(each) for each in zip(*arcs, strict=True))
    supply = np.zeros(first_task + len(rows), np.int64)
    supply[first_task:] = 1
    supply[first_job:first_task] = most - count
    supply[sink] = -supply.sum()
    return QuincyNetwork(Network(tail, head, capacity, cost, supply), tasks, cluster)


def _arcs(
    tail: Ints | int, head: Ints | int, capacity: Ints | int, cost: Ints | int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Broadcast tails, heads, capacities and costs of arcs to equal length."""
    columns = (np.asarray(each, np.int64) for each in (tail, head, capacity, cost))
    one, two, three, four = np.broadcast_arrays(*columns)
    return one, two, three, four


def _racks(cluster: QuincyCluster) -> int:
    return int(cluster.rack_of.max(initial=-1)) + 1


def _fixed(cluster: QuincyCluster) -> tuple[int, int, int]:
    """Return the numbers of computers, racks and jobs, which determine all nodes but the tasks'."""
    return len(cluster.rack_of), _racks(cluster), len(cluster.least)

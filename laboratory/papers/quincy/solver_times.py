"""Quincy: time to solve its network while tasks end and others arrive.

Source: section 6.5 and Appendix of the paper.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from allocator.core import Ints
from allocator.solvers.flow.min_cost_flow import solve
from laboratory.papers.report import PaperReport, Row, TableCell, averaged, paragraphs
from laboratory.solvers.flow_repair import solve_again
from laboratory.solvers.quincy_network import QuincyCluster, Tasks, build

_RACK = 31  # computers: eight racks for 243 computers
_PREFERRED = 3  # computers that hold a task's data
_STEP_S = 1
_TASK_S = 60  # mean
_LOAD = 1.5  # tasks a computer
_COLD_EVERY = 5


class Size(NamedTuple):
    """A cluster, and the paper's times for it, if any."""

    computers: int
    jobs: int
    mean_ms: float | None = None
    largest_ms: float | None = None


SIZES = (Size(243, 10, 7.64, 57.59), Size(2500, 100, 1000.0), Size(12_500, 100))


class SolverWorld:
    """Tasks that wait and run on computers, with costs as in the Appendix, in hundredths.

    Tasks belong to random jobs, with exponential sizes and durations; each has its data on three
    computers. Reading across the core switch costs twice as much as reading within a rack.
    """

    def __init__(self, computers: int, jobs: int, load: float, seed: int) -> None:
        """Begin with `load` waiting tasks per computer."""
        self.rng = np.random.default_rng(seed)
        self.computers, self.jobs = computers, jobs
        self.rack_of = np.arange(computers) // _RACK
        self.next = 0
        # Number, job, GB, seconds waited, seconds run, computer or -1; and preferred computers.
        self.table = np.zeros((0, 6))
        self.preferred = np.zeros((0, _PREFERRED), np.int64)
        self.submit(int(load * computers))

    def submit(self, count: int) -> None:
        new = np.zeros((count, 6))
        new[:, 0] = self.next + np.arange(count)
        new[:, 1] = self.rng.integers(0, self.jobs, count)
        new[:, 2] = self.rng.exponential(1.0, count)
        new[:, 5] = -1
        self.next += count
        self.table = np.concatenate([self.table, new])
        held = np.sort(self.rng.integers(0, self.computers, (count, _PREFERRED)), axis=1)
        self.preferred = np.concatenate([self.preferred, held])

    def step(self, place: Ints) -> int:
        """Advance by one step; tasks end and are replaced. Returns their number."""
        self.table[:, 5] = place
        self.table[:, 3] += np.where(place < 0, _STEP_S, 0)
        self.table[:, 4] += np.where(place >= 0, _STEP_S, 0)
        ends = (place >= 0) & (self.rng.random(len(place)) < _STEP_S / _TASK_S)
        self.table, self.preferred = self.table[~ends], self.preferred[~ends]
        self.submit(int(ends.sum()))
        return int(ends.sum())

    def tasks(self) -> Tasks:
        """The tasks, and their costs by place."""
        number, job, size, waited, ran, at = self.table.T
        rows = np.arange(len(number))
        # Preferred computers, and the one that it runs on, without duplicates.
        runs = np.flatnonzero(at >= 0)
        task = np.concatenate([np.repeat(rows, _PREFERRED), runs])
        computer = np.concatenate([self.preferred.ravel(), at[runs].astype(np.int64)])
        _, once = np.unique(task * self.computers + computer, return_index=True)
        task, computer = task[once], computer[once]
        here = at[task] == computer
        local = (self.preferred[task] == computer[:, None]).any(axis=1)
        data = np.where(local, 0.5, 2.0) * size[task]
        pairs = np.unique(np.repeat(rows, _PREFERRED) * 2**20 + self.preferred.ravel() // _RACK)
        return Tasks(
            number.astype(np.int64),
            job.astype(np.int64),
            (50 * waited).astype(np.int64) + 100,
            (200 * size).astype(np.int64),
            task,
            computer,
            (100 * (data - here * ran[task])).astype(np.int64),
            pairs >> 20,
            pairs & 2**20 - 1,
            (100 * size[pairs >> 20]).astype(np.int64),
        )

    def cluster(self) -> QuincyCluster:
        """The computers, in racks; each job has at least a quarter of an equal part."""
        most = np.full(self.jobs, -(-self.computers // self.jobs))
        return QuincyCluster(self.rack_of, np.ones(self.computers, np.int64), most // 4, most)


def solver_times(seed: int = 0, trials: int = 50, sizes: Sequence[Size] = SIZES) -> PaperReport:
    """Section 6.5: processor time of a solution, in ms."""
    _times(20, 2, seed, 1)  # compiles the loops
    rows = []
    for size in sizes:
        begun, cold = _times(size.computers, size.jobs, seed, trials)
        cells = (
            averaged(begun, size.mean_ms, at_most=True),
            TableCell(max(begun), size.largest_ms, at_most=True),
            averaged(cold, size.mean_ms, at_most=True),
            TableCell(max(cold), size.largest_ms, at_most=True),
        )
        rows.append(Row(f"{size.computers} computers, {size.jobs} jobs", cells))
    return PaperReport(
        name="quincy-solver",
        title="Milliseconds of processor time that a solution takes, with its certificate",
        source="Isard et al., SOSP 2009, sec. 6.5",
        columns=("mean", "largest", "from nothing, mean", "largest"),
        rows=tuple(rows),
        notes=paragraphs(f"""
            {trials} networks, {_STEP_S} s apart, with {_LOAD:g} tasks a computer that take
            {_TASK_S} s in the mean. Each solution but the first begins with the one before; every
            {_COLD_EVERY}th network is also solved without a previous solution, as all networks in
            the paper were. The time for building the network is not included.

            The paper measured the times of 243 computers in its experiments, and those of 2,500 in
            a simulation, of which it says 'a little over a second'; it has no 12,500. Its machine
            was of 2009, so the comparison only shows that solving does not delay the scheduler, not
            which algorithm is faster.
        """),
    )


def _times(computers: int, jobs: int, seed: int, steps: int) -> tuple[list[float], list[float]]:
    """Times of solutions that started from the previous one, and of those from scratch."""
    world, begun, cold = SolverWorld(computers, jobs, _LOAD, seed), list[float](), list[float]()
    network = build(world.tasks(), world.cluster())
    solution = solve(network.network)
    for step in range(steps):
        world.step(network.place(solution.flow))
        before, network = network, build(world.tasks(), world.cluster())
        start = time.process_time()
        solution = solve_again(network.network, *network.begin_with(before, solution))
        begun.append(1000 * (time.process_time() - start))
        if step % _COLD_EVERY == 0:
            start = time.process_time()
            solve(network.network)
            cold.append(1000 * (time.process_time() - start))
    return begun, cold

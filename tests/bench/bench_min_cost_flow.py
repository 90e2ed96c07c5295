"""What Quincy's network costs to solve, again and again, while tasks end and others come.

``python -m tests.bench.bench_min_cost_flow [--computers 243 2500 12500] [--steps 50]`` prints a
table. All times are processor time of one thread, in ms, certificate included, building the
network left out; the baseline is OR-Tools on the same networks, in the same run. The costs agree.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from ortools.graph.python import min_cost_flow as ortools

from allocator.sim.papers.quincy import World
from allocator.solvers.min_cost_flow import Network, solve
from allocator.solvers.quincy_network import build

Answer = TypeVar("Answer")

JOBS = {243: 10, 2500: 100, 12_500: 100}


def clock_ms(call: Callable[..., Answer], *arguments: object) -> tuple[Answer, float]:
    begun = time.process_time()
    answer = call(*arguments)
    return answer, 1000 * (time.process_time() - begun)


def baseline(network: Network) -> int:
    solver = ortools.SimpleMinCostFlow()
    ends = (each.astype(np.int32) for each in (network.tail, network.head))
    solver.add_arcs_with_capacity_and_unit_cost(*ends, network.capacity, network.cost)
    nodes = np.arange(len(network.supply), dtype=np.int32)
    solver.set_nodes_supplies(nodes, network.supply)
    assert solver.solve() == solver.OPTIMAL
    return solver.optimal_cost()


def measure(computers: int, jobs: int, load: float, steps: int) -> list[float]:
    world = World(computers, jobs, load, seed=0)
    quincy = build(world.tasks(), world.cluster())
    solution, cold = clock_ms(solve, quincy.network)
    times, plain, changed = [], [], []
    for _ in range(steps):
        changed.append(world.step(quincy.place(solution.flow)))
        before, quincy = quincy, build(world.tasks(), world.cluster())
        begin, mapping = clock_ms(quincy.begin_with, before, solution)
        solution, took = clock_ms(solve, quincy.network, *begin)
        times.append(mapping + took)
        cost, theirs = clock_ms(baseline, quincy.network)
        assert cost == solution.cost
        plain.append(theirs)
    arcs = len(quincy.network.tail)
    ended = float(np.mean(changed))
    return [arcs, ended, cold, float(np.mean(times)), max(times), float(np.mean(plain))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--computers", type=int, nargs="+", default=list(JOBS))
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    measure(20, 2, 1.5, 3)  # compiles the loops
    print("| computers | jobs | tasks a computer | arcs | tasks that end in a step "
          "| cold | mean | largest | OR-Tools |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for computers in options.computers:
        jobs = JOBS.get(computers, 100)
        for load in (0.8, 1.5):
            arcs, ended, *times = measure(computers, jobs, load, options.steps)
            cells = " | ".join(f"{each:.1f}" for each in times)
            print(f"| {computers} | {jobs} | {load} | {arcs} | {ended:.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

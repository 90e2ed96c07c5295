"""Cost of solving Quincy's network repeatedly, while tasks end and others arrive.

``python -m tests.bench.bench_min_cost_flow [--computers 243 2500 12500] [--steps 50]`` prints a
table. All times are processor time of one thread, in ms, including the certificate but not the
construction of the network. The baseline is HiGHS (SciPy's linear programs) on the same networks,
in the same run; the costs agree.
"""

import argparse
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from allocator.solvers.flow.min_cost_flow import Network, solve
from laboratory.papers.quincy.solver_times import SolverWorld
from laboratory.solvers.flow_repair import solve_again
from laboratory.solvers.quincy_network import build
from tests.bench.yardstick import clock_ms

JOBS = {243: 10, 2500: 100, 12_500: 100}


def baseline(network: Network) -> int:
    arcs = np.arange(len(network.tail))
    ends = np.concatenate([network.tail, network.head]), np.concatenate([arcs, arcs])
    leaves = np.repeat([1.0, -1.0], len(arcs))
    balance: Any = csr_array((leaves, ends), (len(network.supply), len(arcs)))
    bounds: Any = np.column_stack([np.zeros(len(arcs)), network.capacity])
    cost, supply = network.cost.astype(float), network.supply.astype(float)
    best = linprog(cost, A_eq=balance, b_eq=supply, bounds=bounds)
    assert best.status == 0
    assert best.fun is not None
    return round(best.fun)


def measure(computers: int, jobs: int, load: float, steps: int) -> list[float]:
    world = SolverWorld(computers, jobs, load, seed=0)
    quincy = build(world.tasks(), world.cluster())
    solution, cold = clock_ms(solve, quincy.network)
    times, plain, changed = [], [], []
    for _ in range(steps):
        changed.append(world.step(quincy.place(solution.flow)))
        before, quincy = quincy, build(world.tasks(), world.cluster())
        begin, mapping = clock_ms(quincy.begin_with, before, solution)
        solution, took = clock_ms(solve_again, quincy.network, *begin)
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
          "| cold | mean | largest | HiGHS |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for computers in options.computers:
        jobs = JOBS.get(computers, 100)
        for load in (0.8, 1.5):
            arcs, ended, *times = measure(computers, jobs, load, options.steps)
            cells = " | ".join(f"{each:.1f}" for each in times)
            print(f"| {computers} | {jobs} | {load} | {arcs} | {ended:.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

"""Solvers against independent oracles on random instances, degenerate ones among them.

``python -m tests.solvers.agree [--instances 3000] [--seed 0] [--only NAME ...]`` prints a table of
results: agreement, refusal by the solver (`NotOptimal`: a clear status), no answer from the oracle,
and a wrong answer of the solver, for which the exit code is 1. Instances include users without
machines, empty types and agents, disconnected graphs, and weights over nine orders of magnitude.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from allocator.solvers import NotOptimal
from allocator.solvers.flow import min_cost_flow
from allocator.solvers.flow.min_cost_flow import Infeasible, Network
from allocator.solvers.fluid import per_server_fairness
from allocator.solvers.fluid import proportional_fairness_agents as pf_agents
from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from laboratory.solvers.online_max_min import OnlineMaxMin
from tests.solvers.oracles import (
    best_of_all,
    clarabel_tasks,
    exact_gap,
    exact_shares,
    gain_by_definition,
    linear_programs,
    simplex_cost,
)

Rng = np.random.Generator
AGREES, REFUSED, SILENT, WRONG = "agrees", "refused", "oracle silent", "wrong"
ORDERS = 9  # of magnitude, between the smallest and the largest weight


def wide(rng: Rng, count: int) -> np.ndarray:
    """Weights over nine orders of magnitude."""
    return 10.0 ** rng.uniform(-ORDERS / 2, ORDERS / 2, count)


def mild(rng: Rng, count: int) -> np.ndarray:
    """Weights within one order of magnitude; often all are 1."""
    return rng.uniform(0.3, 3.0, count) if rng.random() < 0.5 else np.ones(count)


def eligibility(rng: Rng, rows: int, columns: int) -> np.ndarray:
    """Random eligibility: sparse or dense, sometimes in two disconnected parts."""
    allowed = rng.random((rows, columns)) < rng.choice([0.15, 0.4, 0.8])
    if rng.random() < 0.3:
        allowed[: rows // 2, columns // 2 :] = False
        allowed[rows // 2 :, : columns // 2] = False
    return allowed


def graph(rng: Rng, users: int, types: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Eligibility and counts; a third of the types has no machine."""
    sizes = (rng.integers(0, most + 1), rng.integers(1, users + 1), rng.integers(1, types + 1))
    count = rng.integers(0, int(sizes[0]) + 1, sizes[2]) * (rng.random(sizes[2]) < 2 / 3)
    return eligibility(rng, int(sizes[1]), int(sizes[2])), count.astype(np.int64)


def limits(rng: Rng, users: int) -> np.ndarray | None:
    """Demands, for one instance in three."""
    return rng.integers(0, 7, users) if rng.random() < 1 / 3 else None


def by_linear_programs(rng: Rng) -> str:
    eligible, count = graph(rng, 6, 7, 20)
    problem = eligible, count, mild(rng, len(eligible)), limits(rng, len(eligible))
    ours = max_min.solve(*problem).machines
    return AGREES if np.allclose(ours, linear_programs(*problem), atol=1e-5) else WRONG


def by_all_sets(rng: Rng) -> str:
    eligible, count = graph(rng, 5, 6, int(rng.choice([5, 10**6])))
    problem = eligible, count, wide(rng, len(eligible)), limits(rng, len(eligible))
    ours = max_min.solve(*problem).machines
    exact = [float(share) for share in exact_shares(*problem)]
    near = np.allclose(ours, exact, rtol=1e-11, atol=1e-12 * max(1, count.sum()))
    return AGREES if near else WRONG


def by_all_assignments(rng: Rng) -> str:
    eligible, count = graph(rng, 4, 4, 3)
    weight = rng.choice([1.0, 1.5, 2.0, 4.0], len(eligible))
    most = limits(rng, len(eligible))
    ours = max_min_whole.solve(eligible, count, weight, most).machines
    shares = sorted(m / w for m, w in zip(ours.tolist(), weight.tolist(), strict=True))
    return AGREES if shares == best_of_all(eligible, count, weight.tolist(), most) else WRONG


def after_changes(rng: Rng) -> str:
    """Joins and leaves, against a solver that starts from scratch."""
    eligible, count = graph(rng, 30, 12, 200)
    weight = (wide if rng.random() < 0.5 else mild)(rng, len(eligible))
    online = OnlineMaxMin(eligible, count, weight)
    rows = {user: (eligible[user], weight[user]) for user in range(len(eligible))}
    for _ in range(6):
        if rows and rng.random() < 0.5:
            gone = int(rng.choice(list(rows)))
            online.leave(gone)
            del rows[gone]
        else:
            row, heavy = rng.random(len(count)) < 0.4, float(wide(rng, 1)[0])
            rows[online.join(row, heavy)] = row, heavy
        if not rows:
            continue
        there = [rows[user] for user in sorted(rows)]
        cold = max_min.solve(
            np.array([row for row, _ in there]), count, np.array([heavy for _, heavy in there])
        ).machines
        tiny = 1e-12 * max(1, count.sum())
        if not np.allclose(online.solution.machines, cold, rtol=1e-11, atol=tiny):
            return WRONG
    return AGREES


def cluster(rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Demands, capacities, eligibility; some agents lack a resource."""
    frameworks, agents, resources = (int(rng.integers(1, most)) for most in (6, 6, 4))
    demand = rng.choice([0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 100.0], (frameworks, resources))
    demand[:, 0] = np.where(demand.any(axis=1), demand[:, 0], 1.0)
    capacity = rng.choice([0.0, 1.0, 7.0, 100.0, 1e4], (agents, resources))
    return demand, capacity, eligibility(rng, frameworks, agents)


def alpha_fair(alpha: float, weights: Callable[[Rng, int], np.ndarray]) -> Callable[[Rng], str]:
    """Alpha-fairness over agents against conic programs; ours must be as good, and feasible."""

    def trial(rng: Rng) -> str:
        demand, capacity, eligible = cluster(rng)
        weight = weights(rng, len(demand))
        ours = pf_agents.solve(demand, capacity, eligible, weight, alpha).tasks
        if (ours.T @ demand > capacity * (1 + 1e-6)).any() or ours[~eligible].any():
            return WRONG
        lacks = ((demand[:, None] > 0) & (capacity[None] <= 0)).any(axis=2)
        able = eligible & ~lacks
        some = able.any(axis=1)
        if not some.any():
            return AGREES if not ours.any() else WRONG
        # Scaled by the number of tasks that each could run alone, so that values are near 1.
        part = np.divide(
            demand[:, None], capacity[None], out=np.zeros((*able.shape, demand.shape[1])),
            where=capacity[None] > 0,
        ).max(axis=2)  # fmt: skip
        alone = np.divide(1, part, out=np.zeros(able.shape), where=able).sum(axis=1)[some]
        income = weight[some] * alone ** (1 - alpha)
        used = capacity.any(axis=1)
        try:
            theirs = clarabel_tasks(
                demand[some] * alone[:, None], capacity[used], able[some][:, used],
                income / income.max(), alpha,
            )  # fmt: skip
        except AssertionError:
            return SILENT
        mine = ours[some].sum(axis=1) / alone
        # No feasible point improves on the optimum, to first order (Proposition 2).
        gain = (income * (theirs - mine) / mine**alpha).sum()
        return AGREES if gain <= 1e-5 * (income * mine ** (1 - alpha)).sum() else WRONG

    return trial


def by_fractions(rng: Rng) -> str:
    """Alpha 8, where no conic solver is exact enough: by duality, in fractions."""
    demand, capacity, eligible = cluster(rng)
    weight = mild(rng, len(demand))
    ours = pf_agents.solve(demand, capacity, eligible, weight, 8.0)
    lacks = ((demand[:, None] > 0) & (capacity[None] <= 0)).any(axis=2)
    if ours.tasks[~eligible | lacks].any():
        return WRONG
    if not (eligible & ~lacks).any():
        return AGREES
    gap = exact_gap(ours.tasks, ours.prices, demand, capacity, eligible, weight, 8)
    return AGREES if gap <= 1e-6 else WRONG


def by_definition(rng: Rng) -> str:
    demand, capacity, eligible = cluster(rng)
    weight = (wide if rng.random() < 0.3 else mild)(rng, len(demand))
    ours = per_server_fairness.solve(demand, capacity, eligible, weight).tasks
    gain = gain_by_definition(ours, demand, capacity, eligible, weight)
    return AGREES if gain <= 1e-5 else WRONG


def by_network_simplex(rng: Rng) -> str:
    """From scratch, and from the previous answer after changes of some arcs."""
    nodes, arcs = int(rng.integers(1, 25)), int(rng.integers(0, 90))
    tail, head = rng.integers(0, nodes, (2, arcs))
    capacity = rng.integers(0, 6, arcs)
    dearest = int(rng.choice([3, 100, 10**9]))
    cost = rng.integers(-dearest // 3, dearest, arcs)
    flow = rng.integers(0, capacity + 1)
    supply = np.zeros(nodes, np.int64)
    np.add.at(supply, tail, flow)
    np.subtract.at(supply, head, flow)
    if rng.random() < 0.2:
        supply[0] += 1
        supply[-1] -= 1
    network = Network(tail, head, capacity, cost, supply)
    expected = simplex_cost(network)
    try:
        found = min_cost_flow.solve(network)
    except Infeasible:
        return AGREES if expected is None else WRONG
    return AGREES if expected == found.cost else WRONG


TRIALS: Mapping[str, Callable[[Rng], str]] = {
    "max_min, linear programs (HiGHS)": by_linear_programs,
    "max_min, nine orders, all sets": by_all_sets,
    "max_min, after changes": after_changes,
    "max_min_whole, all assignments": by_all_assignments,
    "alpha 0.5, cones (Clarabel)": alpha_fair(0.5, mild),
    "alpha 1, cones (Clarabel)": alpha_fair(1.0, mild),
    "alpha 1, nine orders, cones": alpha_fair(1.0, wide),
    "alpha 2, cones (Clarabel)": alpha_fair(2.0, mild),
    "alpha 4, cones (Clarabel)": alpha_fair(4.0, mild),
    "alpha 8, cones (Clarabel)": alpha_fair(8.0, mild),
    "alpha 8, duality in fractions": by_fractions,
    "ps_dsf, its definition (HiGHS)": by_definition,
    "min_cost_flow, networkx": by_network_simplex,
}


def run(name: str, instances: int, seed: int) -> Counter[str]:
    """Verdicts on a number of instances; prints the seed of each wrong one."""
    verdicts: Counter[str] = Counter()
    for number in range(instances):
        try:
            verdict = TRIALS[name](np.random.default_rng([seed, number]))
        except NotOptimal:
            verdict = REFUSED
        verdicts[verdict] += 1
        if verdict == WRONG:
            print(f"wrong: {name}, seed {seed}, instance {number}", file=sys.stderr)
    return verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=list(TRIALS), choices=list(TRIALS))
    options = parser.parse_args()
    columns = AGREES, REFUSED, SILENT, WRONG
    print("| solver, oracle | instances | " + " | ".join(columns) + " | processor s |")
    print("|---|" + "---|" * (len(columns) + 2))
    wrong = 0
    for name in options.only:
        begun = time.process_time()
        found = run(name, options.instances, options.seed)
        wrong += found[WRONG]
        cells = " | ".join(str(found[each]) for each in columns)
        took = time.process_time() - begun
        print(f"| {name} | {options.instances} | {cells} | {took:.0f} |", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

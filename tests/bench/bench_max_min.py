"""Cost of constrained max-min fairness, for the sizes of Choosy's Figure 15.

``python -m tests.bench.bench_max_min [--users 100 1000 5000] [--seeds 3]`` prints a table. All
times are processor time of one thread, in ms, including certificates. *Change* is the median, and
*largest* the maximum, over solutions after one user joined or left. The baseline, in the same run,
finds each level by bisection with SciPy's maximum flows on the coalesced graph, and must give equal
shares.
"""

import argparse

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from allocator.solvers.max_min import max_min
from allocator.solvers.max_min import whole as max_min_whole
from allocator.solvers.max_min.constraint_graph import Graph, coalesce
from laboratory.papers.choosy.examples import constraint_graph
from laboratory.solvers.online_max_min import OnlineMaxMin
from tests.bench.yardstick import clock_ms

LARGEST = 2**30  # SciPy's flows are int32
CHANGES = 10


def flow(graph: Graph, claim: np.ndarray, unit: int) -> tuple[bool, np.ndarray]:
    """Whether claims are feasible, and which classes are on the source's side of the cut."""
    classes, groups = graph.eligible.shape
    rows, columns = np.nonzero(graph.eligible)
    tails = [np.full(classes, classes + groups), rows, classes + np.arange(groups)]
    heads = [np.arange(classes), classes + columns, np.full(groups, classes + groups + 1)]
    room = np.minimum(np.concatenate([claim, claim[rows], graph.count * unit]), LARGEST)
    ends = tuple(np.concatenate(each) for each in (tails, heads))
    size = classes + groups + 2
    network = coo_array((room.astype(np.int32), ends), (size, size)).tocsr()
    found = maximum_flow(network, size - 2, size - 1)
    # The nodes that the source still reaches are its side of the cut.
    left = (network - found.flow).tocsr()
    left.eliminate_zeros()
    side = breadth_first_order(left, size - 2, return_predecessors=False)
    low = np.zeros(classes, bool)
    low[side[side < classes]] = True
    return found.flow_value >= claim.sum(), low


def bisection(eligible: np.ndarray, count: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Machines of each user: bisect the level of all active users, fix those in the cut, repeat."""
    graph = coalesce(eligible, count, weight)
    level, unit = np.zeros(len(graph.size)), LARGEST // int(graph.count.sum())
    rising = graph.eligible.any(axis=1)
    while rising.any():
        low, high = level[~rising].max(initial=0.0), graph.count.sum() / graph.weight.min()
        stopped = rising.copy()
        while high - low > 1e-7 * high:
            middle = (low + high) / 2
            height = np.where(rising, middle, level)
            claim = np.minimum(height * graph.weight * graph.size * unit, LARGEST).astype(int)
            possible, cut = flow(graph, claim, unit)
            if possible:
                low = middle
            else:
                high, stopped = middle, cut & rising
        level[stopped], rising = low, rising & ~stopped
    return (level * graph.weight)[graph.class_of_user]


def measure(users: int, machines: int, types: int, weighted: bool, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    eligible, count = constraint_graph(users + CHANGES, machines, types, rng)
    weight = rng.uniform(0.5, 3, users + CHANGES) if weighted else np.ones(users + CHANGES)
    args = eligible[:users], count, weight[:users]
    solution, cold = clock_ms(max_min.solve, *args)
    _, whole = clock_ms(max_min_whole.solve, *args)
    online, changes = OnlineMaxMin(*args), []
    for new in range(users, users + CHANGES):
        changes.append(clock_ms(online.join, eligible[new], float(weight[new]))[1])
        changes.append(clock_ms(online.leave, int(rng.choice(online.users)))[1])
    found, baseline = clock_ms(bisection, *args)
    assert np.allclose(found, solution.machines, rtol=1e-3, atol=1e-3)
    return [cold, float(np.median(changes)), max(changes), whole, baseline]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    measure(20, 100, 5, weighted=True, seed=0)  # compiles the loops
    print("| users | machines | types | weights | cold | change | largest | whole | bisection |")
    print("|---|---|---|---|---|---|---|---|---|")
    for users in options.users:
        for machines in (1000, 10_000, 100_000):
            for types in (10, 100):
                for weighted in (False, True):
                    size = users, machines, types, weighted
                    ran = [measure(*size, seed) for seed in range(options.seeds)]
                    cells = " | ".join(f"{each:.1f}" for each in np.mean(ran, axis=0))
                    kind = "random" if weighted else "equal"
                    print(f"| {users} | {machines} | {types} | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

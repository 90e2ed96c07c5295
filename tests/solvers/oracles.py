"""Slow and independent methods for the solvers' problems: linear and conic programs, all sets.

Tests use them on Hypothesis's examples, `agree.py` on thousands of random instances.
"""

from collections.abc import Sequence
from fractions import Fraction

import clarabel
import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from allocator.solvers.flow.min_cost_flow import Network


def best_of_all(
    eligible: np.ndarray, count: np.ndarray, weight: Sequence[float], limit: np.ndarray | None
) -> list[float]:
    """The lexicographically largest sorted vector of weighted shares over all assignments."""
    vectors = {(0,) * len(eligible)}
    for kind in np.repeat(np.arange(len(count)), count):
        vectors |= {
            (*vector[:user], vector[user] + 1, *vector[user + 1 :])
            for vector in vectors
            for user in np.flatnonzero(eligible[:, kind])
            if limit is None or vector[user] < limit[user]
        }
    return max(sorted(x / w for x, w in zip(vector, weight, strict=True)) for vector in vectors)


def linear_programs(
    eligible: np.ndarray, count: np.ndarray, weight: np.ndarray, limit: np.ndarray | None
) -> np.ndarray:
    """Algorithm 1 of the paper, with a correction of the first constraint: x[i, j] <= C[i, j]."""
    users, types = eligible.shape
    columns = users * types + 1  # x[i, j] row by row, then the level
    machine = np.zeros((types, columns))
    user = np.zeros((users, columns))
    for i in range(users):
        user[i, i * types : (i + 1) * types] = -1.0
        machine[:, i * types : (i + 1) * types] = np.eye(types)
    bounds = [(0, c if e else 0) for row in eligible for e, c in zip(row, count, strict=True)]
    most = np.full(users, count.sum() + 1.0) if limit is None else limit.astype(float)
    within = -user

    def highest(fixed: dict[int, float], active: Sequence[int]) -> float:
        rows = user.copy()
        rows[list(active), -1] = weight[list(active)]
        right = [-fixed.get(i, 0.0) for i in range(users)]
        result = linprog(
            np.eye(columns)[-1] * -1.0,
            A_ub=np.vstack([machine, rows, within]),
            b_ub=np.concatenate([count, right, most]),
            bounds=[*bounds, (0, None)],
        )
        assert result.status == 0
        return -float(result.fun or 0.0)

    share: dict[int, float] = {}
    while active := [i for i in range(users) if i not in share]:
        level = highest(share, active)
        floor = {**share, **{i: level * float(weight[i]) for i in active}}
        stuck = [
            i
            for i in active
            if highest({k: v for k, v in floor.items() if k != i}, [i]) <= level + 1e-7
        ]
        share |= {i: floor[i] for i in stuck}
    return np.array([share[i] for i in range(users)])


def exact_shares(
    eligible: np.ndarray, count: np.ndarray, weight: np.ndarray, limit: np.ndarray | None
) -> list[Fraction]:
    """The optimum from all sets of users, in rational numbers.

    Fujishige: the set with the lowest attainable level by weight is fixed at that level; the others
    share the remainder.
    """
    users = range(len(eligible))
    most = [
        Fraction(float(each)) for each in (np.full(len(users), 2.0**60) if limit is None else limit)
    ]

    def members(which: int) -> list[int]:
        return [u for u in users if which >> u & 1]

    def machines(which: int) -> int:
        return int(count[eligible[members(which)].any(axis=0)].sum())

    usable = [machines(which) for which in range(1 << len(users))]
    # The maximum of a set: machines bound some of its members, limits the others.
    rank = [
        min(
            usable[part] + sum((most[u] for u in members(which & ~part)), Fraction(0))
            for part in range(which + 1)
            if part & which == part
        )
        for which in range(1 << len(users))
    ]
    share, done = [Fraction(0)] * len(users), 0
    while rest := ((1 << len(users)) - 1) & ~done:
        by_set = {
            which: (rank[done | which] - rank[done])
            / sum(Fraction(float(weight[u])) for u in members(which))
            for which in range(1, rest + 1)
            if which & rest == which
        }
        level = min(by_set.values())
        lowest = 0
        for which, height in by_set.items():
            lowest |= which if height == level else 0
        for u in members(lowest):
            share[u] = level * Fraction(float(weight[u]))
        done |= lowest
    return share


def clarabel_tasks(demand, capacity, eligible, weight, alpha: float) -> np.ndarray:
    """Tasks of each framework by power and exponential cones; all of them can run somewhere.

    The answer is scaled down by the solver's tolerance so that it is feasible.
    """
    frameworks, of, on = len(demand), *np.nonzero(eligible)
    pairs, rows = len(of), capacity.size
    # Relative to each capacity; otherwise the solver's tolerance refers to the largest of them.
    share = np.divide(
        demand[of], capacity[on], out=np.zeros((pairs, demand.shape[1])), where=capacity[on] > 0
    )
    count = pairs + frameworks
    # Variables: volumes of pairs, bounds on each framework's utility.
    upper = sparse.lil_matrix((rows + pairs, count))
    for k in range(pairs):
        upper[on[k] * demand.shape[1] + np.arange(demand.shape[1]), k] = share[k]
        upper[rows + k, k] = -1.0
    cone, right, cones = sparse.lil_matrix((3 * frameworks, count)), [], []
    for f in range(frameworks):
        mine = np.flatnonzero(of == f)
        if alpha == 1:  # (t, 1, x): t <= log x
            cone[3 * f, pairs + f], cone[3 * f + 2, mine] = -1.0, -1.0
            right += [0.0, 1.0, 0.0]
            cones.append(clarabel.ExponentialConeT())
        elif alpha < 1:  # (x, 1, t): t <= x ** (1 - alpha)
            cone[3 * f, mine], cone[3 * f + 2, pairs + f] = -1.0, -1.0
            right += [0.0, 1.0, 0.0]
            cones.append(clarabel.PowerConeT(1 - alpha))
        else:  # (t, x, 1): t ** (1 / alpha) * x ** (1 - 1 / alpha) >= 1, t >= x ** (1 - alpha)
            cone[3 * f, pairs + f], cone[3 * f + 1, mine] = -1.0, -1.0
            right += [0.0, 0.0, 1.0]
            cones.append(clarabel.PowerConeT(1 / alpha))
    sign = -1.0 if alpha <= 1 else 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    result = clarabel.DefaultSolver(
        sparse.csc_matrix((count, count)),
        np.concatenate([np.zeros(pairs), sign * weight]),
        sparse.csc_matrix(sparse.vstack([upper, cone])),
        np.concatenate([np.ones(rows), np.zeros(pairs), right]),
        [clarabel.NonnegativeConeT(rows + pairs), *cones],
        settings,
    ).solve()
    assert str(result.status) == "Solved"
    volume = np.maximum(np.array(result.x)[:pairs], 0)
    used = np.zeros(capacity.shape)
    np.add.at(used, on, share * volume[:, None])
    return np.bincount(of, volume / np.maximum(1, used.max(axis=1))[on], frameworks)


def exact_gap(tasks, prices, demand, capacity, eligible, weight, alpha: int) -> float:
    """Violation of a capacity, or an upper bound on the distance from the optimum, exactly.

    Weak duality: to first order, no allocation gains more than the value of the whole cluster at
    prices that no framework undercuts, minus the income; relative to the income. All in fractions.
    """
    task, price, need, room = (
        [[Fraction(value) for value in row] for row in each.tolist()]
        for each in (tasks, prices, demand, capacity)
    )
    able = eligible & ~((demand[:, None] > 0) & (capacity[None] <= 0)).any(axis=2)
    served, used = np.flatnonzero(able.any(axis=1)), np.flatnonzero(able.any(axis=0))
    resources = range(demand.shape[1])
    over = max(
        sum(task[f][a] * need[f][r] for f in served) / room[a][r] - 1
        for a in used
        for r in resources
        if room[a][r] > 0
    )
    volume = {f: sum(task[f]) for f in served}
    utility = {f: Fraction(weight[f]) / volume[f] ** alpha for f in served}
    dearer = max(
        utility[f] / sum(price[a][r] * need[f][r] for r in resources)
        for f in served
        for a in np.flatnonzero(able[f])
    )
    worth = dearer * sum(price[a][r] * room[a][r] for a in used for r in resources)
    earned = sum(utility[f] * volume[f] for f in served)
    return float(max(over, worth / earned - 1))


def gain_by_definition(tasks, demand, capacity, eligible, weight) -> float:
    """Definition 1, literally: the maximum by which any framework's tasks on an agent could grow
    there while none with an equal or smaller share loses; relative to what it could run alone.
    """
    most = 0.0
    for i, room in enumerate(capacity):
        lacks = (demand > 0) & (room <= 0)
        able = eligible[:, i] & ~lacks.any(axis=1)
        alone = np.array(
            [min(room[d > 0] / d[d > 0]) if ok else 0.0
             for d, ok in zip(demand, able, strict=True)]
        )  # fmt: skip
        for n in np.flatnonzero(able):
            level = tasks.sum(axis=1)[able] / weight[able] / alone[able]
            own = tasks.sum(axis=1)[n] / weight[n] / alone[n]
            # Relative to what each could run alone, so that values are near 1.
            have = tasks[able, i] / alone[able]
            kept = np.where(level <= own * (1 + 1e-7), have, 0.0)
            use = (demand[able] * alone[able, None]).T[room > 0] / room[room > 0][:, None]
            me = int(able[:n].sum())
            low = [(float(least), None) for least in kept]
            room_left = np.maximum(1, use @ kept)  # the rounding error
            best = linprog(-np.eye(len(have))[me], A_ub=use, b_ub=room_left, bounds=low)
            assert best.status == 0
            assert best.fun is not None
            most = max(most, -best.fun - have[me])
    return most


def simplex_cost(network: Network) -> int | None:
    """The minimum cost by networkx's network simplex; None if there is no flow."""
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from((v, {"demand": -int(s)}) for v, s in enumerate(network.supply))
    arcs = zip(network.tail.tolist(), network.head.tolist(), strict=True)
    data = zip(arcs, network.capacity.tolist(), network.cost.tolist(), strict=True)
    graph.add_edges_from((*ends, {"capacity": c, "weight": w}) for ends, c, w in data)
    try:
        return int(nx.network_simplex(graph)[0])
    except nx.NetworkXUnfeasible:
        return None


def machines_envied(
    given: NDArray[np.float64],
    eligible: NDArray[np.bool_],
    count: NDArray[np.int64],
    weight: NDArray[np.float64] | None = None,
    limit: NDArray[np.float64] | NDArray[np.int64] | None = None,
) -> float:
    """Distance of an allocation of machines from max-min fairness, without cuts.

    It is max-min fair if no machine is assigned twice, or to a user that cannot use it, and if no
    user below its limit could use a machine that is idle or held by a user with a larger weighted
    share.

    `given` (U, T): machines of each type that each user gets.
    `eligible`, `count`, `weight`, `limit`: as in `solve`.
    Returns the largest violation, in machines, divided by the number of machines.
    """
    if not len(given) or not count.sum():
        return 0.0
    machines = given.sum(axis=1)
    steps = np.ones(len(given)) if weight is None else np.asarray(weight, np.float64)
    most = np.full(len(given), np.inf) if limit is None else limit
    # Smaller amounts count as zero.
    small = 1e-9 * count.sum()
    idle = count - given.sum(axis=0)
    level = machines / steps
    # For each type the highest level of its holders; infinite if some of it is idle.
    holder = np.where(given > small, level[:, None], 0.0).max(axis=0)
    holder[idle > small] = np.inf
    # A user below its limit must not be able to use a type held by a user with a higher level.
    envied = np.where(eligible & (count > 0), holder, 0.0).max(axis=1)
    short = np.where(machines < most - small, (envied - level) * steps, 0.0)
    # Basic conditions: no negative amounts, no ineligible users, nothing assigned twice, limits
    # hold.
    wrong = [-given.min(), np.where(eligible, 0.0, given).max(), -idle.min()]
    wrong += [(machines - most).max(), min(short.max(), float(count.sum())), 0.0]
    return float(max(wrong) / count.sum())

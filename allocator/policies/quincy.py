"""Quincy: places tasks by minimum-cost flow, near their data, within fair bounds.

A unit of flow is one task's place. It goes from its client to an agent that has the client's data
(free of cost), to an agent in the same rack (the cost of moving the data across the rack's switch),
to any other agent (across the core switch), or stays without a place, which costs more the longer
the client has waited for an offer. Each client has bounds (E and F in [1]_). It gets at most
``most`` times its fair share of places, and none beyond its part of its roles' limits. While it has
less than ``least`` times its fair share, or than its part of its role's guarantee, staying without
a place is expensive.

Differences from [1]_:

- Mesos kills no task for another. The cost of a preemption is here a discount for keeping a place,
  and the plan takes effect as tasks end. With `preempt`, clients are asked to leave agents all of
  whose places go to others. The next plan asks the same clients first, until they have left or
  refused, or their places are no longer needed; so there are never more requests than needed.
- Mesos does not know how many tasks a framework has. Each client is assumed to have as many as its
  bound or, if it wants no offers, as it holds.
- Tasks have different sizes: an agent has as many places as average-sized tasks fit on it.

A framework states where its data is in the label ``allocator.preference`` of its FrameworkInfo: an
expression as for constraints, such as ``hostname=a|b``, that matches the agents it prefers. The
agents' attribute ``rack`` gives the racks.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 4 and Appendix.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from allocator.core import (
    AgentInfo,
    Bools,
    Condition,
    Floats,
    FrameworkInfo,
    Ints,
    Plan,
    PlanProblem,
    attributes_of,
    clauses_of_label,
    conditions,
    whole_above,
    whole_below,
)
from allocator.core.numba.memo import fixed
from allocator.core.numba.shared_bits import shared_words_on
from allocator.policies.plan_guided import (
    Groups,
    PlanFunction,
    bits_of,
    dominant_shares,
    group_agents,
    plan_by_agent,
)

if TYPE_CHECKING:
    from allocator.solvers.flow.min_cost_flow import Network

PREFERENCE_LABEL = "allocator.preference"
RACK = "rack"

MOST = ("1", "1.5", "2", "4")
LEAST = ("0.5", "0", "1")
TRANSFER = ("2", "1", "4", "20")
WAIT = ("0.5", "0", "1", "2")
PREEMPT = ("off", "on")

_UNIT = 100  # costs are whole hundredths
_WITHIN_RACK = 1.0  # psi: cost of reading a task's data within a rack
_TO_LEAVE = 1.0  # cost of giving up a place that a client has
_ASKED = 0.5  # factor of it if the client was asked to leave, so that the next plan asks it again
_REFUSED = 2.0  # factor of it if the client refused, so that the next plan asks another one
_BELOW_LEAST = 10_000 * _UNIT
_WAITED_S_MAX = 3600.0  # waiting longer costs no more

PAIRS_MAX = 2**26
"""Maximum number of pairs of a client and an agent, each of which takes some bytes for a plan."""

PREFERRED_MAX = 2**23
"""Maximum number of pairs of a client and an agent in a rack that it prefers: each is an arc."""

_WISHES = 64
"""Number of labels whose agents are kept while a plan is made."""


class Costs(NamedTuple):
    """Bounds and costs.

    `most`, `least`: bounds of a client's places, relative to its fair share.
    `transfer`: cost of reading a task's data across the core switch.
    `wait`: cost of waiting, per second.
    `preempt`: whether clients are asked to leave agents all of whose places go to others.
    """

    most: float
    least: float
    transfer: float
    wait: float
    preempt: bool = False


def quincy(
    most: str = MOST[0],
    least: str = LEAST[0],
    transfer: str = TRANSFER[0],
    wait: str = WAIT[0],
    preempt: str = PREEMPT[0],
) -> PlanFunction:
    """Make the function that plans; arguments are the fields of `Costs`, as text."""
    costs = Costs(float(most), float(least), float(transfer), float(wait), preempt == "on")

    def plan_places(problem: PlanProblem) -> Plan:
        return plan_by_flow(problem, costs)

    return plan_places


def same_places(before: PlanProblem, now: PlanProblem) -> bool:
    """Whether a plan is still valid: no client came, left, runs elsewhere, or refused to leave."""
    same = np.array_equal(_at_home(before), _at_home(now))
    return same and np.array_equal(before.refused, now.refused) and now.asks_the_same(before)


def _at_home(problem: PlanProblem) -> Ints:
    """Return the keys ``agent * 2**32 + client`` of holdings with something in use."""
    return problem.holder[~np.isin(problem.holder, problem.on_offer)]


def plan_by_flow(problem: PlanProblem, costs: Costs) -> Plan:
    """Assign places to clients; targets are dominant shares.

    Raises NotOptimal if the flow is not proved optimal.
    Raises ValueError if there are more than `PAIRS_MAX` pairs of a client and an agent.
    """
    from allocator.solvers.flow.min_cost_flow import solve

    clients, agents = len(problem.client), int(problem.capacity.any(axis=1).sum())
    if clients * agents > PAIRS_MAX:
        raise ValueError(
            f"policy.name = 'quincy': {clients} clients and {agents} agents make more than"
            f" {PAIRS_MAX} pairs, too many for a plan; choose another policy"
        )
    groups = group_agents(problem)
    places = _places(problem, groups)
    usable = np.flatnonzero(places)
    if not len(usable):
        nothing = np.zeros((len(groups.clients), 0), np.int64)
        return plan_by_agent(problem, groups, nothing, np.zeros(len(groups.clients)))
    most, least = _bounds(problem, groups, costs, int(places.sum()))
    network = _Arcs(len(groups.clients), len(groups.count), usable)
    # Tasks without a place; those below the lower bound cost more.
    waiting_s = np.where(problem.wants, problem.waiting_s[groups.clients], 0.0)
    waited = _UNIT * costs.wait * np.minimum(waiting_s, _WAITED_S_MAX)
    alone = (waited + _UNIT * (1 + costs.transfer)).astype(np.int64)
    network.waits(most - least, alone)
    network.waits(least, alone + _BELOW_LEAST)
    # Tasks with a place: on any eligible agent; near their data; and where they run already.
    near, in_rack = _near(problem, groups)
    far = np.where(near.any(axis=1), int(_UNIT * costs.transfer), 0)
    within = np.minimum(far, int(_UNIT * _WITHIN_RACK))
    asked, refused = (_there(problem, groups, each) for each in (problem.leave, problem.refused))
    # A pending offer does not count as running: it may be declined, which frees the agent.
    home = _there(problem, groups, _at_home(problem))
    wants = problem.wants[:, None]

    def cost(client: Ints, agent: Ints) -> Ints:
        moved = np.where(in_rack[client, agent], within[client], far[client])
        return np.where(near[client, agent], 0, moved)

    def cost_of_staying(client: Ints, agent: Ints) -> Ints:
        answers = [refused[client, agent], asked[client, agent]]
        saved = _UNIT * _TO_LEAVE * np.select(answers, [_REFUSED, _ASKED], 1.0)
        return cost(client, agent) - saved.astype(np.int64)

    network.in_groups(groups.eligible & wants, most, far)
    network.on_agents((in_rack | near) & ~home & wants, most, cost)
    network.on_agents(home, most, cost_of_staying)
    network.agents(groups.group, places, _entered(problem, groups, home))
    given = network.places_of(solve(network.network(most)).flow)
    # The agents of very large groups may differ: remove places on excluded agents.
    words = shared_words_on(problem.excluded, np.arange(given.shape[1]))
    given[bits_of(words, groups.clients).T] = 0
    plan = plan_by_agent(problem, groups, given, dominant_shares(problem, groups))
    if not costs.preempt:
        return plan
    leave = fixed(_leaving(groups, home, given, places))
    return replace(plan, leave=leave, seen_ms=problem.now_ms)


def _bounds(problem: PlanProblem, groups: Groups, costs: Costs, places: int) -> tuple[Ints, Ints]:
    """Return the maximum and minimum number of places of each client, (n,) each: E and F."""
    task = _tasks(problem, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(task > 0, problem.limit / task, np.inf).min(axis=1, initial=np.inf)
        owed = np.where(task > 0, problem.guarantee / task, 0).max(axis=1, initial=0)
    fair = groups.weight / groups.weight.sum() * places
    # A guarantee overrides the fair share, and a limit overrides both.
    least = np.maximum(whole_below(fair * costs.least), whole_above(owed))
    most = np.minimum(np.maximum(whole_above(fair * costs.most), least), places)
    most = np.minimum(most, whole_below(fits))
    # A client that takes no offers gets at most as many places as it has tasks.
    held = problem.held[groups.clients]
    with np.errstate(divide="ignore", invalid="ignore"):
        tasks = np.where(task > 0, held / task, 0).max(axis=1, initial=0)
    most = np.where(problem.wants, most, np.minimum(most, whole_above(tasks))).astype(np.int64)
    return most, np.minimum(least, most).astype(np.int64)


def _tasks(problem: PlanProblem, groups: Groups) -> Floats:
    """Return the size of each client's task, (n, R); the average agent if the demand is unknown."""
    known = (problem.demand[groups.clients] > 0).max(axis=1, initial=0)
    agent = groups.capacity.T @ groups.count / max(int(groups.count.sum()), 1)
    return np.where(known[:, None], groups.direction, agent)


def _places(problem: PlanProblem, groups: Groups) -> Ints:
    """Return how many tasks of the average size fit on each agent, (A,); at least 1 if usable."""
    weight = groups.weight / groups.weight.sum()
    size = weight @ _tasks(problem, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = np.where(size > 0, groups.capacity / size, np.inf).min(axis=1, initial=np.inf)
    of_group = np.where(np.isfinite(fit), np.maximum(whole_below(fit), 1), 0).astype(np.int64)
    of_group[~groups.eligible.any(axis=0)] = 0
    # Agents without a group (-1) use the appended zero.
    return np.append(of_group, 0)[groups.group]


def _near(problem: PlanProblem, groups: Groups) -> tuple[Bools, Bools]:
    """Return the agents that each client prefers, and those in the same racks, (n, A) each.

    A preference for more agents than a client's part of `PREFERRED_MAX` counts as none.
    """
    count = len(groups.clients), len(problem.capacity)
    near, in_rack = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    attributes, wishes = _Attributes(problem.agents), dict[str, tuple[Bools, Bools]]()
    for row, client in enumerate(groups.clients.tolist()):
        label = _preference(problem.frameworks[client])
        if not label:
            continue
        if label not in wishes:
            if len(wishes) >= _WISHES:  # equal labels are mostly those of one framework
                wishes.clear()
            wishes[label] = attributes.wish(label)
        if np.count_nonzero(wishes[label][1]) > PREFERRED_MAX // count[0]:
            continue
        suits = groups.eligible[row][groups.group] & (groups.group >= 0)
        near[row], in_rack[row] = (each & suits for each in wishes[label])
    return near, in_rack


def _preference(info: FrameworkInfo | None) -> str:
    return "" if info is None else info.labels.get(PREFERENCE_LABEL, "")


class _Attributes:
    """Agents by the values of their attributes, so that a condition looks at each value once."""

    def __init__(self, agents: tuple[AgentInfo | None, ...]) -> None:
        self._said = [{} if info is None else attributes_of(info) for info in agents]
        self._there = np.array([info is not None for info in agents], np.bool_)
        self._columns: dict[str, tuple[Ints, dict[str, int]]] = {}

    def wish(self, label: str) -> tuple[Bools, Bools]:
        """Return the agents (A,) that a label prefers, and also those in the same racks.

        A malformed label, which a framework may write, prefers no agents.
        """
        mine = self._there.copy()
        try:
            for name, condition in conditions(clauses_of_label(label)).items():
                mine &= self._holds(name, condition)
        except ValueError:
            mine[:] = False
        racks, codes = self._column(RACK)
        preferred = np.zeros(len(codes) + 1, np.bool_)
        preferred[racks[mine]] = True
        preferred[[0, codes.get("", 0)]] = False
        return mine, mine | preferred[racks]

    def _holds(self, name: str, condition: Condition) -> Bools:
        column, codes = self._column(name)
        good = np.full(len(codes) + 1, not condition.bars_others)
        good[0] = condition.holds(None)
        for value in condition.exceptions & codes.keys():
            good[codes[value]] = condition.holds(value)
        return good[column]

    def _column(self, name: str) -> tuple[Ints, dict[str, int]]:
        """Return a code for each agent's value, (A,), and the codes; 0: it has none."""
        if name not in self._columns:
            codes: dict[str, int] = {}
            values = (said.get(name) for said in self._said)
            column = [0 if v is None else codes.setdefault(v, len(codes) + 1) for v in values]
            self._columns[name] = np.array(column, np.int64), codes
        return self._columns[name]


def _there(problem: PlanProblem, groups: Groups, keys: Ints) -> Bools:
    """Convert keys to a mask of clients and agents, (n, A)."""
    there = np.zeros((len(groups.clients), len(problem.capacity)), np.bool_)
    row_of = np.full(len(problem.demand), -1)
    row_of[groups.clients] = np.arange(len(groups.clients))
    row, agent = row_of[keys & (2**32 - 1)], keys >> 32
    there[row[row >= 0], agent[row >= 0]] = True
    return there & groups.eligible[:, groups.group] & (groups.group >= 0)


def _entered(problem: PlanProblem, groups: Groups, home: Bools) -> Ints:
    """Return a cost of new places on each agent, which only breaks ties, (A,).

    Lowest where no client runs; then where a client was asked to leave; highest where one refused.
    """
    asked = _there(problem, groups, problem.leave).any(axis=0)
    refused = _there(problem, groups, problem.refused).any(axis=0)
    return np.select([refused, asked, home.any(axis=0)], [3, 1, 2], 0).astype(np.int64)


def _leaving(groups: Groups, home: Bools, given: Ints, places: Ints) -> Ints:
    """Return keys of clients that run on agents all of whose places go to others."""
    home, places = home[:, : given.shape[1]], places[: given.shape[1]]
    wanted = (given.sum(axis=0) >= places) & ((given > 0) & ~home).any(axis=0)
    agent, row = np.nonzero((home & (given == 0) & wanted).T)
    return np.sort(agent << 32 | groups.clients[row])


class _Arcs:
    """The arcs of the network under construction: sink, groups of agents, agents, clients."""

    def __init__(self, clients: int, groups: int, usable: Ints) -> None:
        self._usable = usable
        self._first_agent = 1 + groups
        self._first_client = self._first_agent + len(usable)
        self._clients = clients
        self._columns: list[tuple[Ints, Ints, Ints, Ints]] = []

    def waits(self, most: Ints, cost: Ints) -> None:
        """Let up to `most` (n,) tasks of each client stay without a place."""
        self._add(self._client(), np.zeros(self._clients, np.int64), most, cost)

    def in_groups(self, eligible: Bools, most: Ints, cost: Ints) -> None:
        """Let tasks run on any agent of an eligible group."""
        client, group = np.nonzero(eligible)
        self._add(self._first_client + client, 1 + group, most[client], cost[client])

    def on_agents(self, there: Bools, most: Ints, cost: Callable[[Ints, Ints], Ints]) -> None:
        """Let tasks run on these agents, (n, A); `cost`: of pairs of a client and an agent."""
        client, at = np.nonzero(there[:, self._usable])
        self._add(
            self._first_client + client,
            self._first_agent + at,
            most[client],
            cost(client, self._usable[at]),
        )

    def agents(self, group: Ints, places: Ints, cost: Ints) -> None:
        """Set the places of agents, (A,), and a cost for tasks that arrive through the group."""
        node = self._first_agent + np.arange(len(self._usable))
        nothing, room = np.zeros(len(node), np.int64), places[self._usable]
        self._add(1 + group[self._usable], node, room, cost[self._usable])
        self._add(node, nothing, room, nothing)

    def network(self, tasks: Ints) -> "Network":
        """Return the network in which each client has this many tasks, (n,)."""
        from allocator.solvers.flow.min_cost_flow import Network

        supply = np.zeros(self._first_client + self._clients, np.int64)
        supply[self._first_client :] = tasks
        supply[0] = -tasks.sum()
        columns = zip(*self._columns, strict=True)
        tail, head, capacity, cost = (np.concatenate(column) for column in columns)
        return Network(tail, head, capacity, cost, supply)

    def places_of(self, flow: Ints) -> Ints:
        """Return how many tasks of each client get a place on each agent, (n, A)."""
        tail = np.concatenate([column[0] for column in self._columns])
        head = np.concatenate([column[1] for column in self._columns])
        given = np.zeros((self._clients, int(self._usable.max(initial=-1)) + 1), np.int64)
        direct = (tail >= self._first_client) & (head >= self._first_agent) & (flow > 0)
        at = self._usable[head[direct] - self._first_agent]
        np.add.at(given, (tail[direct] - self._first_client, at), flow[direct])
        for group in range(1, self._first_agent):
            to, of = (head == group) & (flow > 0), (tail == group) & (flow > 0)
            clients = np.repeat(tail[to] - self._first_client, flow[to])
            agents = np.repeat(self._usable[head[of] - self._first_agent], flow[of])
            np.add.at(given, (clients, agents), 1)
        return given

    def _client(self) -> Ints:
        return self._first_client + np.arange(self._clients)

    def _add(self, tail: Ints, head: Ints, capacity: Ints, cost: Ints) -> None:
        self._columns.append((tail, head, capacity, cost))

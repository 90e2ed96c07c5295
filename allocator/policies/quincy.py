"""Quincy: place tasks by minimum-cost flow, near their data, within fair bounds.

A unit of flow is one task's place. It goes from its client to an agent that holds the client's data
(free), to one in the same rack (the cost of the data crossing the rack's switch), to any other
(crossing the core switch), or to none, which costs more the longer the client has waited for an
offer. Each client has bounds (E and F in [1]_). It gets no more places than ``most`` times its fair
share, and none beyond its part of its roles' limits; leaving it waiting is expensive while it has
less than ``least`` times its fair share, or than its part of its role's guarantee.

Differences from [1]_:

- Mesos kills no task for another, so the cost of a preemption there is here a discount for keeping
  a place, and the plan takes effect as tasks end. With `preempt`, clients are asked to leave agents
  all of whose places go to others. A client that was asked is the first that the next plan asks,
  until it has left or refused, or its place is no longer needed; so at no time are more clients
  asked than the plan needs.
- Mesos does not say how many tasks a framework has, so each client counts with as many as its
  bound, or, if it wants no offers, with as many as it holds.
- Tasks have different sizes: an agent has as many places as tasks of the average size fit.

A framework names the location of its data in the label ``allocator.preference`` of its
FrameworkInfo: an expression as for constraints, such as ``hostname=a|b``, that matches the agents
it prefers. Racks come from the agents' attribute ``rack``.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 4 and Appendix.
"""

from collections.abc import Mapping
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
_TO_LEAVE = 1.0  # cost of giving up a place that a client already has
_ASKED = 0.5  # factor if the client was asked to leave, so that the next plan asks the same one
_REFUSED = 2.0  # factor if it was asked and refused, so that the next plan asks another
_BELOW_LEAST = 10_000 * _UNIT
_WAITED_S_MAX = 3600.0  # waiting longer costs no more


class Costs(NamedTuple):
    """Bounds and costs.

    `most`, `least`: bounds of a client's places, as parts of its fair share.
    `transfer`: cost of reading a task's data across the core switch.
    `wait`: cost of a second of waiting.
    `preempt`: whether clients are asked to leave agents whose places all go to others.
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
    """Choose bounds and costs, each as text; see `Costs`."""
    costs = Costs(float(most), float(least), float(transfer), float(wait), preempt == "on")

    def plan_places(problem: PlanProblem) -> Plan:
        return plan_by_flow(problem, costs)

    return plan_places


def same_places(before: PlanProblem, now: PlanProblem) -> bool:
    """Whether a plan still holds: no client came, went, runs elsewhere, or refused to leave."""
    same = np.array_equal(_at_home(before), _at_home(now))
    return same and np.array_equal(before.refused, now.refused) and now.asks_the_same(before)


def _at_home(problem: PlanProblem) -> Ints:
    """Keys of the clients and agents where a client uses something."""
    return problem.holder[~np.isin(problem.holder, problem.on_offer)]


def plan_by_flow(problem: PlanProblem, costs: Costs) -> Plan:
    """Assign places to clients; targets are dominant shares.

    Raises NotOptimal if the flow is not proved optimal.
    """
    from allocator.solvers.flow.min_cost_flow import solve

    groups = group_agents(problem)
    places = _places(problem, groups)
    usable = np.flatnonzero(places)
    if not len(usable):
        nothing = np.zeros((len(groups.clients), 0), np.int64)
        return plan_by_agent(problem, groups, nothing, np.zeros(len(groups.clients)))
    most, least = _bounds(problem, groups, costs, int(places.sum()))
    network = _Arcs(len(groups.clients), len(groups.count), usable)
    # Tasks without a place; those below the lower bound have a price of their own.
    waiting_s = np.where(problem.wants, problem.waiting_s[groups.clients], 0.0)
    waited = _UNIT * costs.wait * np.minimum(waiting_s, _WAITED_S_MAX)
    alone = (waited + _UNIT * (1 + costs.transfer)).astype(np.int64)
    network.waits(most - least, alone)
    network.waits(least, alone + _BELOW_LEAST)
    # Tasks with a place: on any eligible agent, then in the racks and on the agents of their data,
    # then where they already run.
    near, in_rack = _near(problem, groups)
    far = np.where(near.any(axis=1), int(_UNIT * costs.transfer), 0)
    within = np.minimum(far, int(_UNIT * _WITHIN_RACK))
    cost = np.where(in_rack, within[:, None], far[:, None])
    cost[near] = 0
    # A pending offer makes no home: it may be declined, and the agent is then free for others.
    home = _there(problem, groups, _at_home(problem))
    stays = np.where(_there(problem, groups, problem.leave), _ASKED, 1.0)
    stays[_there(problem, groups, problem.refused)] = _REFUSED
    wants = problem.wants[:, None]
    network.in_groups(groups.eligible & wants, most, far)
    network.on_agents((in_rack | near) & ~home & wants, most, cost)
    network.on_agents(home, most, cost - (_UNIT * _TO_LEAVE * stays).astype(np.int64))
    network.agents(groups.group, places, _entered(problem, groups, home))
    given = network.places_of(solve(network.network(most)).flow)
    # If there are very many groups, agents within one may differ: give no place on excluded ones.
    given[bits_of(problem.excluded[: given.shape[1]], groups.clients).T] = 0
    plan = plan_by_agent(problem, groups, given, dominant_shares(problem, groups))
    if not costs.preempt:
        return plan
    leave = fixed(_leaving(groups, home, given, places))
    return replace(plan, leave=leave, seen_ms=problem.now_ms)


def _bounds(problem: PlanProblem, groups: Groups, costs: Costs, places: int) -> tuple[Ints, Ints]:
    """The most and the least places for each client, (n,) each: E and F."""
    task = _tasks(problem, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Resources that are not needed do not bound.
        fits = np.where(task > 0, problem.limit / task, np.inf).min(axis=1, initial=np.inf)
        owed = np.where(task > 0, problem.guarantee / task, 0).max(axis=1, initial=0)
    fair = groups.weight / groups.weight.sum() * places
    # A guarantee overrides the fair share, and a limit overrides both.
    least = np.maximum(whole_below(fair * costs.least), whole_above(owed))
    most = np.minimum(np.maximum(whole_above(fair * costs.most), least), places)
    most = np.minimum(most, whole_below(fits))
    # A client that wants no more gets no more places than it has tasks.
    held = problem.held[groups.clients]
    with np.errstate(divide="ignore", invalid="ignore"):
        tasks = np.where(task > 0, held / task, 0).max(axis=1, initial=0)
    most = np.where(problem.wants, most, np.minimum(most, whole_above(tasks))).astype(np.int64)
    return most, np.minimum(least, most).astype(np.int64)


def _tasks(problem: PlanProblem, groups: Groups) -> Floats:
    """What a task of each client takes, (n, R); a whole average agent if the demand is unknown."""
    known = (problem.demand[groups.clients] > 0).max(axis=1, initial=0)
    agent = groups.capacity.T @ groups.count / max(int(groups.count.sum()), 1)
    return np.where(known[:, None], groups.direction, agent)


def _places(problem: PlanProblem, groups: Groups) -> Ints:
    """How many tasks of the average size fit on each agent, (A,); at least one if usable at all."""
    weight = groups.weight / groups.weight.sum()
    size = weight @ _tasks(problem, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = np.where(size > 0, groups.capacity / size, np.inf).min(axis=1, initial=np.inf)
    of_group = np.where(np.isfinite(fit), np.maximum(whole_below(fit), 1), 0).astype(np.int64)
    of_group[~groups.eligible.any(axis=0)] = 0
    # Agents without a group (-1) get the appended zero.
    return np.append(of_group, 0)[groups.group]


def _near(problem: PlanProblem, groups: Groups) -> tuple[Bools, Bools]:
    """Agents that each client prefers, and those in their racks, (n, A) each."""
    count = len(groups.clients), len(problem.capacity)
    near, in_rack = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    racks = np.array([_rack(info) for info in problem.agents])
    wishes: dict[str, tuple[Bools, Bools]] = {}
    for row, client in enumerate(groups.clients.tolist()):
        label = _preference(problem.frameworks[client])
        if not label:
            continue
        if label not in wishes:
            mine = _preferred(label, problem.agents)
            known = set(racks[mine].tolist()) - {""}
            wishes[label] = mine, mine | np.isin(racks, list(known))
        suits = groups.eligible[row][groups.group] & (groups.group >= 0)
        near[row], in_rack[row] = (each & suits for each in wishes[label])
    return near, in_rack


def _rack(info: AgentInfo | None) -> str:
    return "" if info is None else info.attributes.get(RACK, "")


def _preference(info: FrameworkInfo | None) -> str:
    return "" if info is None else info.labels.get(PREFERENCE_LABEL, "")


def _preferred(label: str, agents: tuple[AgentInfo | None, ...]) -> Bools:
    """Which agents a label prefers; none if it is malformed (frameworks write it)."""
    try:
        asked = conditions(clauses_of_label(label))
    except ValueError:
        return np.zeros(len(agents), np.bool_)
    return np.array([info is not None and _suits(info, asked) for info in agents], np.bool_)


def _suits(info: AgentInfo, asked: Mapping[str, Condition]) -> bool:
    attributes = attributes_of(info)
    return all(each.holds(attributes.get(name)) for name, each in asked.items())


def _there(problem: PlanProblem, groups: Groups, keys: Ints) -> Bools:
    """Turn keys into a mask of clients and agents, (n, A)."""
    there = np.zeros((len(groups.clients), len(problem.capacity)), np.bool_)
    row_of = np.full(len(problem.demand), -1)
    row_of[groups.clients] = np.arange(len(groups.clients))
    row, agent = row_of[keys & (2**32 - 1)], keys >> 32
    there[row[row >= 0], agent[row >= 0]] = True
    return there & groups.eligible[:, groups.group] & (groups.group >= 0)


def _entered(problem: PlanProblem, groups: Groups, home: Bools) -> Ints:
    """Tie-breaking cost of a newcomer's place by agent, (A,).

    First agents that are no client's home, then those where a client has been asked to leave, then
    other homes, and last those where a client has refused.
    """
    asked = _there(problem, groups, problem.leave).any(axis=0)
    refused = _there(problem, groups, problem.refused).any(axis=0)
    return np.select([refused, asked, home.any(axis=0)], [3, 1, 2], 0).astype(np.int64)


def _leaving(groups: Groups, home: Bools, given: Ints, places: Ints) -> Ints:
    """Keys of clients at home on agents all of whose places go to others, some of them new."""
    home, places = home[:, : given.shape[1]], places[: given.shape[1]]
    wanted = (given.sum(axis=0) >= places) & ((given > 0) & ~home).any(axis=0)
    agent, row = np.nonzero((home & (given == 0) & wanted).T)
    return np.sort(agent << 32 | groups.clients[row])


class _Arcs:
    """The network under construction: the sink, groups of agents, agents, clients."""

    def __init__(self, clients: int, groups: int, usable: Ints) -> None:
        self._usable = usable
        self._first_agent = 1 + groups
        self._first_client = self._first_agent + len(usable)
        self._clients = clients
        self._columns: list[tuple[Ints, Ints, Ints, Ints]] = []

    def waits(self, most: Ints, cost: Ints) -> None:
        """Let up to `most` (n,) tasks of each client go without a place."""
        self._add(self._client(), np.zeros(self._clients, np.int64), most, cost)

    def in_groups(self, eligible: Bools, most: Ints, cost: Ints) -> None:
        """Let tasks run on any agent of an eligible group."""
        client, group = np.nonzero(eligible)
        self._add(self._first_client + client, 1 + group, most[client], cost[client])

    def on_agents(self, there: Bools, most: Ints, cost: Ints) -> None:
        """Let tasks run on these agents, (n, A), at a different cost, (n, A)."""
        client, at = np.nonzero(there[:, self._usable])
        self._add(
            self._first_client + client,
            self._first_agent + at,
            most[client],
            cost[client, self._usable[at]],
        )

    def agents(self, group: Ints, places: Ints, cost: Ints) -> None:
        """Give agents their places, (A,), at a cost for tasks that arrive through the group."""
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
        """How many tasks of each client get a place on each agent, (n, A)."""
        tail = np.concatenate([column[0] for column in self._columns])
        head = np.concatenate([column[1] for column in self._columns])
        given = np.zeros((self._clients, int(self._usable.max(initial=-1)) + 1), np.int64)
        direct = (tail >= self._first_client) & (head >= self._first_agent) & (flow > 0)
        at = self._usable[head[direct] - self._first_agent]
        np.add.at(given, (tail[direct] - self._first_client, at), flow[direct])
        # In each group clients and agents form two queues, matched in order.
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

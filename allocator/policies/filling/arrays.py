"""What the compiled loops work on, and how it is made from a snapshot.

Numba compiles a function once for each combination of argument types. So every array goes in with
one type, whatever the caller's flags: read-only where it is only read, the loop's own where not.

A *place* is a node of the tree, renumbered so that the children of a node are neighbours, in their
old order. Children come before their parents; the root is the last place.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Floats, Grants, Ints, Snapshot, Words
from allocator.policies.filling.criterion import Criterion, characterised


class Places(NamedTuple):
    """The tree, which no grant changes.

    Attributes
    ----------
    client : (P,) int64
        Client row of a leaf; -1 at an inner place.
    parent : (P,) int64
        -1 at the root.
    first, last : (P,) int64
        The children are ``range(first, last)``; a leaf has none.
    weight : (P,) float64
    known : (P,) bool
        A leaf that is served in whole tasks.
    demand : (P, R) int64, thousandths
        One task's needs; zeros where unknown and at inner places.
    amount_gain, task_gain, agent_gain : (P,) float64
        As in `Criterion`.
    of_client : (C,) int64
        Place of each client's leaf; -1 where it has none.
    """

    client: Ints
    parent: Ints
    first: Ints
    last: Ints
    weight: Floats
    known: Bools
    demand: Ints
    amount_gain: Floats
    task_gain: Floats
    agent_gain: Floats
    of_client: Ints


class Standing(NamedTuple):
    """Where everybody stands; changes with every grant.

    Attributes
    ----------
    measure : (K, P) float64
    denominator : (1, K) or (A, K) float64
    served : (P,) int64
    score : (P,) float64
        What the tournaments compare first.
    out : (P,) bool
        Takes no part in its tournament.
    winner : (2 * P,) int64
        The tournaments, see `tournament`.
    """

    measure: Floats
    denominator: Floats
    served: Ints
    score: Floats
    out: Bools
    winner: Ints


class Agents(NamedTuple):
    """The agents; `free` changes with every grant.

    Attributes
    ----------
    row : (J,) int64
        Candidates, ascending.
    free : (A, R) int64, thousandths
    minimum : (M, R) int64, thousandths
    excluded : (A, W) uint64
    head : (A,) int64
    next, client : (X,) int64
    amount : (X, R) int64, thousandths
        The filters: `Filters` of the snapshot.
    holder : (H,) int64
        As in the snapshot.
    """

    row: Ints
    free: Ints
    minimum: Ints
    excluded: Words
    head: Ints
    next: Ints
    client: Ints
    amount: Ints
    holder: Ints


class Rule(NamedTuple):
    """What kind of criterion it is.

    Attributes
    ----------
    shared : bool
        One denominator for all agents.
    residual, additive : bool
        As in `Criterion`.
    counts_agents : bool
        Somebody gains by the agent.
    """

    shared: bool
    residual: bool
    additive: bool
    counts_agents: bool


class Effort(NamedTuple):
    """Where the loops change from one way to another: matters for speed, never for the grants.

    Attributes
    ----------
    tries : int
        How many clients are tried in their order before an agent's visit looks through all.
    groups : int
        How many kinds of agents (equal denominators) are handled kind by kind at most.
    few : int
        How many of the best agents are kept for a client where all agents are scored at once.
    """

    tries: int = 8
    groups: int = 64
    few: int = 16


class Log(NamedTuple):
    """The grants so far; grown when full.

    Attributes
    ----------
    length : (1,) int64
    place, agent, tasks : (G,) int64
    amount : (G, R) int64, thousandths
    last_on_agent : (A,) int64
        Latest grant on each agent; -1 where there is none.
    previous : (G,) int64
        The grant before on the same agent.
    """

    length: Ints
    place: Ints
    agent: Ints
    tasks: Ints
    amount: Ints
    last_on_agent: Ints
    previous: Ints


def places_of(snapshot: Snapshot, criterion: Criterion) -> tuple[Places, Ints]:
    """Renumber the tree; returns the places and the node of each place, (P,)."""
    tree = snapshot.tree
    leaves = len(tree.client)
    node = np.append(tree.child, len(tree.parent) - 1)
    place = np.empty_like(node)
    place[node] = np.arange(len(node))
    is_leaf = node < leaves
    client = np.full(len(node), -1)
    client[is_leaf] = tree.client[node[is_leaf]]
    known = np.zeros(len(node), np.bool_)
    known[is_leaf] = characterised(snapshot)[client[is_leaf]]
    demand = np.zeros((len(node), len(snapshot.total)), np.int64)
    demand[known] = snapshot.demand[client[known]]
    of_client = np.full(len(snapshot.leaf_of_client), -1)
    of_client[client[is_leaf]] = np.flatnonzero(is_leaf)

    def of_leaf(values: Floats) -> Floats:
        result = np.zeros(len(node))
        result[is_leaf] = values[client[is_leaf]]
        return read_only(result, np.float64)

    parent = tree.parent[node]
    return Places(
        client=read_only(client, np.int64),
        parent=read_only(np.where(parent < 0, -1, place[parent]), np.int64),
        first=read_only(np.where(is_leaf, 0, tree.child_start[node]), np.int64),
        last=read_only(np.where(is_leaf, 0, tree.child_start[node + 1]), np.int64),
        weight=read_only(tree.weight[node], np.float64),
        known=read_only(known, np.bool_),
        demand=read_only(demand, np.int64),
        amount_gain=of_leaf(criterion.amount_gain),
        task_gain=of_leaf(criterion.task_gain),
        agent_gain=of_leaf(criterion.agent_gain),
        of_client=read_only(of_client, np.int64),
    ), node


def standing_of(snapshot: Snapshot, criterion: Criterion, node: Ints) -> Standing:
    """Say where everybody stands at the start of the cycle."""
    return Standing(
        measure=own(criterion.measure[node].T, np.float64),
        denominator=own(criterion.denominator, np.float64),
        served=own(snapshot.tree.served[node], np.int64),
        score=np.zeros(len(node)),
        out=np.zeros(len(node), np.bool_),
        winner=np.zeros(2 * len(node), np.int64),
    )


def agents_of(snapshot: Snapshot) -> Agents:
    """Take over the agents; `free` is copied, so that the snapshot can be used again."""
    filters = snapshot.filters
    return Agents(
        row=read_only(snapshot.agents, np.int64),
        free=own(snapshot.free, np.int64),
        minimum=read_only(snapshot.minimum, np.int64),
        excluded=read_only(snapshot.excluded, np.uint64),
        head=read_only(filters.head, np.int64),
        next=read_only(filters.next, np.int64),
        client=read_only(filters.client, np.int64),
        amount=read_only(filters.amount, np.int64),
        holder=read_only(snapshot.holder, np.int64),
    )


def rule_of(criterion: Criterion) -> Rule:
    """Sum up what kind of criterion it is."""
    return Rule(
        shared=len(criterion.denominator) == 1,
        residual=bool(criterion.residual),
        additive=bool(criterion.additive),
        counts_agents=bool((criterion.agent_gain > 0).any()),
    )


def empty_log(snapshot: Snapshot) -> Log:
    """Make room for as many grants as an oblivious cycle has at most."""
    size = len(snapshot.agents) + 1
    return Log(
        length=np.zeros(1, np.int64),
        place=np.empty(size, np.int64),
        agent=np.empty(size, np.int64),
        tasks=np.empty(size, np.int64),
        amount=np.empty((size, len(snapshot.total)), np.int64),
        last_on_agent=np.full(len(snapshot.capacity), -1),
        previous=np.empty(size, np.int64),
    )


def grants_of(log: Log, places: Places) -> Grants:
    """Show the log as grants."""
    count = int(log.length[0])
    return Grants(
        client=places.client[log.place[:count]],
        agent=log.agent[:count].copy(),
        tasks=log.tasks[:count].copy(),
        amount=log.amount[:count].copy(),
    )


def read_only(array: np.ndarray, dtype: type) -> np.ndarray:
    """View an array so that numba sees the one type that it was compiled for."""
    view: np.ndarray = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def own(array: np.ndarray, dtype: type) -> np.ndarray:
    """Copy an array, to be written."""
    return np.array(array, dtype, order="C", copy=True)

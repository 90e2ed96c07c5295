"""One cycle: freeze a snapshot, let the policy decide, check, charge, coalesce."""

from dataclasses import dataclass

import numpy as np

from allocator.core.decisions import Decisions
from allocator.core.policy import Policy
from allocator.core.snapshot import AgentClasses, Bools, Grants, Ints, Snapshot
from allocator.core.state import State
from allocator.core.tree import Shape, shape

FULL_MODE = "characterised"


class BadGrantError(AssertionError):
    """A policy granted what it must not."""


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What happened in the last cycle.

    Attributes
    ----------
    candidates, clients : int
        Agents with something to give, and clients that could take.
    grants, decisions : int
    policy_error : str
        Why the policy could not be used; empty where it could.
    """

    candidates: int = 0
    clients: int = 0
    grants: int = 0
    decisions: int = 0
    policy_error: str = ""


class Freezer:
    """Takes snapshots, and keeps from one to the next what did not change."""

    def __init__(self) -> None:
        """Begin with nothing kept."""
        self._shape: Shape | None = None
        self._shape_key: tuple[int, bool] = (-1, False)
        self._classes: AgentClasses | None = None
        self._classes_key = (-1, 0)

    def freeze(self, state: State, wanted: Ints | None) -> Snapshot:
        """Take a snapshot for a cycle.

        Parameters
        ----------
        state : State
        wanted : (n,) int64 or None
            The agents that the host asked a cycle for; None: all.
        """
        space, clients = state.space, state.clients
        plain = space.plain_kind
        capacity = space.by_column(state.agents.capacity)
        free = _plain_free(state, plain)
        minimum = _minimum(state)
        tree_shape = self._tree_shape(state)
        return Snapshot(
            resources=tuple(space.names),
            counted=space.counted,
            capacity=capacity,
            free=free,
            total=capacity.sum(axis=0),
            agents=_candidates(state, free, minimum, wanted),
            minimum=minimum,
            held=state.held_by_column(),
            agents_held=state.ledger.books.agents_held,
            demand=clients.demand,
            characterised=_characterised(state),
            excluded=state.eligibility.excluded,
            filters=state.filters.by_column(plain),
            holder=state.ledger.holders(),
            tree=tree_shape.tree(_weights(state), clients.served),
            leaf_of_client=tree_shape.leaf_of_client,
            parent_of_client=tree_shape.parent_of_client,
            classes=self._agent_classes(state, capacity),
        )

    def _tree_shape(self, state: State) -> Shape:
        flat = state.settings.policy.flat
        key = (state.clients.version, flat)
        if self._shape is None or self._shape_key != key:
            live = state.live_clients()
            self._shape = shape(live, state.clients.role, state.roles, flat=flat)
            self._shape_key = key
        return self._shape

    def _agent_classes(self, state: State, capacity: Ints) -> AgentClasses:
        key = (state.agents.version, capacity.shape[1])
        if self._classes is None or self._classes_key != key:
            rows, count = np.unique(capacity[state.agents.bound], axis=0, return_counts=True)
            self._classes = AgentClasses(rows, count.astype(np.int64))
            self._classes_key = key
        return self._classes


def _weights(state: State) -> np.ndarray:
    weight = state.roles.weight.copy()
    weight[0] = 1.0
    return weight


def _plain_free(state: State, plain: Ints) -> Ints:
    """What may be granted of each column, (A, R)."""
    if np.array_equal(plain, np.arange(state.agents.capacity.shape[1])):
        return state.free
    free = state.free
    columns = np.zeros((len(free), len(plain)), np.int64)
    some = plain >= 0
    columns[:, some] = free[:, plain[some]]
    return columns


def _minimum(state: State) -> Ints:
    """What an offer must reach: any one of the rows, (M, R)."""
    rows = [state.space.quantities(row) for row in state.options.minimum]
    columns = len(state.space.names)
    minimum = np.zeros((len(rows), columns), np.int64)
    for index, row in enumerate(rows):
        minimum[index, : len(row)] = row
    return minimum


def reaches(amount: Ints, minimum: Ints) -> Bools:
    """Which rows of amounts (n, R) are large enough to be offered."""
    enough = np.full(len(amount), not len(minimum))
    for row in minimum:
        enough |= (amount >= row).all(axis=1)
    enough &= amount.any(axis=1)
    return enough


def _candidates(state: State, free: Ints, minimum: Ints, wanted: Ints | None) -> Ints:
    agents = state.agents
    ready = agents.bound & agents.active & agents.whitelisted
    if wanted is not None:
        asked = np.zeros(len(ready), np.bool_)
        asked[wanted[(wanted > 0) & (wanted < len(ready))]] = True
        ready &= asked
    rows = np.flatnonzero(ready)
    return rows[reaches(free[rows], minimum)]


def _characterised(state: State) -> Bools:
    """Which clients are served in whole tasks."""
    clients, settings = state.clients, state.settings
    if settings.policy.mode != FULL_MODE:
        return np.zeros(len(clients.framework), np.bool_)
    books = state.ledger.books
    idle = (books.client_held == books.client_offered).all(axis=1)
    probe = idle & (clients.declines >= settings.probe_after)
    return clients.demand.any(axis=1) & ~probe


def check_grants(state: State, snapshot: Snapshot, grants: Grants, free: Ints) -> None:
    """Raise `BadGrantError` where the policy gave what it must not.

    Parameters
    ----------
    state : State
    snapshot : Snapshot
    grants : Grants
    free : (A, R) int64
        What was free when the snapshot was taken.
    """
    client, agent = grants.client, grants.agent
    shape_ok = grants.amount.shape == (len(client), free.shape[1])
    if not shape_ok or len(agent) != len(client) or len(grants.tasks) != len(client):
        raise BadGrantError("columns of unequal length")
    if not len(client):
        return
    leaf = snapshot.leaf_of_client
    if (client < 0).any() or (client >= len(leaf)).any() or (leaf[client] < 0).any():
        raise BadGrantError("a grant to a client that takes no offers")
    candidate = np.zeros(len(free), np.bool_)
    candidate[snapshot.agents] = True
    if (agent < 0).any() or (agent >= len(free)).any() or not candidate[agent].all():
        raise BadGrantError("a grant on an agent that is not to be offered")
    if state.eligibility.barred(client, agent).any():
        raise BadGrantError("a grant on an agent that is excluded")
    if (grants.amount < 0).any() or not grants.amount.any(axis=1).all():
        raise BadGrantError("an empty or negative grant")
    given = np.zeros_like(free)
    np.add.at(given, agent, grants.amount)
    if (given > free).any():
        raise BadGrantError("more granted than is free")


def coalesce(grants: Grants) -> Grants:
    """Add up grants of the same client and agent, in the order of the first of each."""
    key = (grants.agent << np.int64(32)) | grants.client
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if len(first) == len(key):
        return grants
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    amount = np.zeros((len(first), grants.amount.shape[1]), np.int64)
    np.add.at(amount, rank[group], grants.amount)
    tasks = np.zeros(len(first), np.int64)
    np.add.at(tasks, rank[group], grants.tasks)
    at = first[order]
    return Grants(grants.client[at], grants.agent[at], tasks, amount)


def run_policy(state: State, snapshot: Snapshot, policy: Policy, seed: int) -> Grants:
    """Let a policy decide, and check what it says; whatever it raises is the caller's."""
    free = snapshot.free.copy()
    grants = policy.allocate(snapshot, seed)
    check_grants(state, snapshot, grants, free)
    return grants


def commit(state: State, snapshot: Snapshot, grants: Grants, cycle: int) -> Decisions:
    """Charge grants to the books as tentative decisions."""
    merged = coalesce(grants)
    enough = reaches(merged.amount, snapshot.minimum)
    client, agent = merged.client[enough], merged.agent[enough]
    plain = state.space.plain_kind
    given = np.flatnonzero((plain >= 0) & merged.amount.any(axis=0))
    kind, amount = plain[given], merged.amount[enough][:, given]
    first = state.tentative.next
    wide = np.zeros((len(client), len(state.space)), np.int64)
    wide[:, kind] = amount
    state.ledger.charge(client, agent, kind, amount, as_offer=True)
    state.tentative.append(client, agent, wide)
    np.add.at(state.clients.served, client, 1)
    return Decisions(
        cycle=cycle,
        first_decision=first,
        framework=state.clients.framework[client],
        role=state.clients.role[client],
        agent=agent,
        kind=kind,
        amount=amount,
    )

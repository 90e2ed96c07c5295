"""The snapshot of a cycle: what policies see of the books."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from allocator.core.competition_tree import Shape, shape
from allocator.core.filters.coverage import Offerable
from allocator.core.quota import QuotaTree, bounds_of, quota_tree
from allocator.core.servable import servable
from allocator.core.snapshot import AgentClasses, Bools, Filters, Ints, Snapshot, Specials
from allocator.core.special_resources import Reach, reach_of, specials_of, without_refusers
from allocator.core.state import State

FULL_MODE = "characterised"

_Kept = TypeVar("_Kept")


class SnapshotBuilder:
    """Takes snapshots, and keeps from one to the next what did not change."""

    def __init__(self) -> None:
        """Begin with nothing kept."""
        self._kept: dict[str, tuple[Hashable, Any]] = {}

    def build(self, state: State, wanted: Ints | None) -> Snapshot:
        """Take a snapshot for a cycle.

        Parameters
        ----------
        state : State
        wanted : (n,) int64 or None
            The agents that the host asked a cycle for; None: all.
        """
        space, clients = state.space, state.clients
        plain = space.plain_kind
        capacity = self._keep(
            "capacity",
            (state.agents.version, len(space), len(space.names)),
            lambda: space.by_column(state.agents.capacity),
        )
        by_kind = state.free
        free = _plain(by_kind, plain)
        specials = without_refusers(specials_of(self._reach(state), by_kind), state.filters.rest)
        minimum, minimum_rows = minimum_of(state)
        known = _characterised(state)
        tree_shape = self._tree_shape(state)
        snapshot = Snapshot(
            resources=tuple(space.names),
            counted=space.counted,
            capacity=capacity,
            free=free,
            specials=specials,
            total=state.total_by_column(),
            agents=_candidates(state, free, specials, minimum, minimum_rows, wanted),
            minimum=minimum,
            minimum_rows=minimum_rows,
            bounds=bounds_of(state, self.quota_tree(state)),
            held=state.held_by_column(),
            agents_held=state.ledger.books.agents_held,
            demand=clients.demand,
            characterised=known,
            overdue=_overdue(state),
            excluded=state.eligibility.excluded,
            filters=self._filters(state, free, specials, plain, known),
            holder=state.ledger.holders(),
            tree=tree_shape.tree(_weights(state), self._schemes(state), clients.served),
            leaf_of_client=tree_shape.leaf_of_client,
            parent_of_client=tree_shape.parent_of_client,
            classes=self._agent_classes(state, capacity),
        )
        return _without_hopeless(snapshot)

    def _keep(self, name: str, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """Make something anew only where its key has changed."""
        kept_key, kept = self._kept.get(name, (None, None))
        if kept is None or kept_key != key:
            kept = make()
            self._kept[name] = (key, kept)
        return kept

    def _tree_shape(self, state: State) -> Shape:
        flat = state.settings.policy.flat
        return self._keep(
            "shape",
            (state.clients.version, flat),
            lambda: shape(state.live_clients(), state.clients.role, state.roles, flat=flat),
        )

    def _schemes(self, state: State) -> Ints:
        """Which scheme of the policy orders the children of each role, (n,)."""
        subtrees = sorted(state.settings.policy.subtrees)
        number = {path: index + 1 for index, path in enumerate(subtrees)}

        def make() -> Ints:
            return state.roles.inherit(number, 0)

        return self._keep("schemes", (state.roles.version, tuple(subtrees)), make)

    def _agent_classes(self, state: State, capacity: Ints) -> AgentClasses:
        def make() -> AgentClasses:
            rows, count = np.unique(capacity[state.agents.bound], axis=0, return_counts=True)
            return AgentClasses(rows, count.astype(np.int64))

        return self._keep("classes", (state.agents.version, capacity.shape[1]), make)

    def _reach(self, state: State) -> Reach:
        key = (state.clients.version, state.roles.version, state.space.version)
        return self._keep("reach", key, lambda: reach_of(state))

    def quota_tree(self, state: State) -> QuotaTree:
        """The quotas that each kind and each role is under."""
        names = len(state.space.names)
        key = (state.quota_version, state.roles.version, state.space.version, names)
        return self._keep("quotas", key, lambda: quota_tree(state))

    @staticmethod
    def _filters(
        state: State, free: Ints, specials: Specials, plain: Ints, known: Bools
    ) -> Filters:
        """Show the filters; what they cover depends on all that clients could be offered."""
        offerable = Offerable(
            free=free,
            start=specials.start,
            row=specials.row,
            special_free=specials.free,
            kind=specials.kind,
            reach=specials.reach,
            plain_kind=plain,
            demand=state.clients.demand,
            known=known,
            takes=state.clients.takes,
        )
        return state.filters.show(offerable, state.ledger.books.touched)


def _overdue(state: State) -> Bools:
    """Who waited so many full cycles that it comes first."""
    patience = state.settings.patience_cycles
    if not patience:
        return np.zeros(len(state.clients.framework), np.bool_)
    return state.clients.waited >= patience


def _without_hopeless(snapshot: Snapshot) -> Snapshot:
    """Let nobody come first whom no agent could serve now: that would cost a stage for nothing."""
    rows = np.flatnonzero(snapshot.overdue)
    if not len(rows):
        return snapshot
    overdue = np.zeros_like(snapshot.overdue)
    overdue[rows[servable(snapshot, rows)]] = True
    return replace(snapshot, overdue=overdue)


def _weights(state: State) -> np.ndarray:
    weight = state.roles.weight.copy()
    weight[0] = 1.0
    return weight


def _plain(free: Ints, plain: Ints) -> Ints:
    """What anybody may be granted of each column, (A, R)."""
    if np.array_equal(plain, np.arange(free.shape[1])):
        return free
    columns = np.zeros((len(free), len(plain)), np.int64)
    some = plain >= 0
    columns[:, some] = free[:, plain[some]]
    return columns


def minimum_of(state: State) -> tuple[Ints, Ints]:
    """What an offer must reach: rows (M, R), and which of them are each client's, (C, 2)."""
    usual = list(state.options.minimum)
    rows = list(usual)
    of_client = np.tile([0, len(usual)], (len(state.clients.framework), 1))
    for client, own in state.clients.minimum.items():
        of_client[client] = len(rows), len(rows) + len(own)
        rows.extend(own)
    minimum = np.zeros((len(rows), len(state.space.names)), np.int64)
    for index, row in enumerate(rows):
        for name, amount in row.items():
            minimum[index, state.space.column(name)] = amount
    return minimum, of_client


def reaches(amount: Ints, minimum: Ints) -> Bools:
    """Which rows of amounts (n, R) are large enough to be offered."""
    enough = np.full(len(amount), not len(minimum))
    for row in minimum:
        enough |= (amount >= row).all(axis=1)
    enough &= amount.any(axis=1)
    return enough


def _candidates(
    state: State,
    free: Ints,
    specials: Specials,
    minimum: Ints,
    minimum_rows: Ints,
    wanted: Ints | None,
) -> Ints:
    """Agents that may be offered, and have enough for somebody."""
    agents = state.agents
    ready = agents.bound & agents.active & agents.whitelisted
    if wanted is not None:
        asked = np.zeros(len(ready), np.bool_)
        asked[wanted[(wanted > 0) & (wanted < len(ready))]] = True
        ready &= asked
    rows = np.flatnonzero(ready)
    some = free if not len(specials.row) else free + specials.by_column(free.shape[1])
    if (minimum_rows[:, 0] == minimum_rows[:, 1]).any():
        return rows[some[rows].any(axis=1)]
    return rows[reaches(some[rows], minimum)]


def _characterised(state: State) -> Bools:
    """Which clients are served in whole tasks."""
    clients, settings = state.clients, state.settings
    if settings.policy.mode != FULL_MODE:
        return np.zeros(len(clients.framework), np.bool_)
    books = state.ledger.books
    idle = (books.client_held == books.client_offered).all(axis=1)
    probe = idle & (clients.declines >= settings.probe_after)
    return clients.demand.any(axis=1) & ~probe

"""Builds the snapshot of a cycle: the part of the books that policies see."""

from collections.abc import Callable, Hashable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from allocator.core.books.caps import CapTable, cap_table, with_caps
from allocator.core.books.competition_tree import Shape, shape
from allocator.core.books.quota import (
    QuotaTree,
    bounds_of,
    quota_tree,
    with_outstanding,
    with_roles_of,
)
from allocator.core.books.special_resources import special_kinds, with_free, without_refusers
from allocator.core.books.state import State
from allocator.core.books.turns import turns_of
from allocator.core.books.usage_over_time import counted, inherited
from allocator.core.cycle import before_drains
from allocator.core.cycle.characterised import characterised
from allocator.core.cycle.collecting import collected_on
from allocator.core.cycle.derived import barred
from allocator.core.cycle.gangs import LOOKED_AT_MAX, has_room
from allocator.core.cycle.minimums import MinimumRows, reaches
from allocator.core.cycle.servable import servable
from allocator.core.cycle.unlike_tasks import UnlikeTasks
from allocator.core.demand.lots import in_lots, lots_max
from allocator.core.filters.coverage import Offerable
from allocator.core.numba.array_structures import distinct_rows, read_only, some
from allocator.core.numba.memo import StableArrays, fixed
from allocator.core.numba.shared_bits import shared_rows_of, shared_width
from allocator.core.openings import opening_tasks
from allocator.core.plan import Plan
from allocator.core.plans.adopted import held_by_group, shown
from allocator.core.plans.problems import PlanProblem, problem_of
from allocator.core.snapshot import (
    AgentClasses,
    Bools,
    Bounds,
    Counts,
    Filters,
    Floats,
    Gangs,
    Ints,
    Snapshot,
    Specials,
    Tree,
)

_PARTS = tuple(each.name for each in fields(Snapshot))

_Kept = TypeVar("_Kept")


class SnapshotBuilder:
    """Takes snapshots, and reuses unchanged parts of the previous one."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Hashable, Any]] = {}
        self._steady = StableArrays()
        self._minimums = MinimumRows()
        self._unlike = UnlikeTasks()

    def build(self, state: State, wanted: Ints | None, *, by_plan: bool = False) -> Snapshot:
        """Take a snapshot for a cycle.

        `wanted` (n,): the agents that the host asked a cycle for; None: all.
        `by_plan`: the policy follows a plan, so only current holdings count, without averages.
        """
        before_drains.bar(state)
        space, steady, names = state.space, self._steady, len(state.space.names)
        plain = self._keep("plain", (space.version, names), lambda: space.plain_kind)
        kinds = self._special_kinds(state)
        minimum, minimum_rows = self._minimum(state)
        least = minimum if (minimum_rows[:, 0] < minimum_rows[:, 1]).all() else None
        rows, free, specials, agents = _candidates(state, kinds, plain, least, wanted)
        # From here on, an agent's row in the snapshot may differ from its handle.
        handle = np.arange(len(free)) if rows is None else rows
        specials = without_refusers(specials, handle, state.filters.rest_kinds)
        held, agents_held = self._held(state, by_plan=by_plan)
        capacity = self._capacity(state)
        excluded, excluding = state.eligibility.excluded, state.eligibility.excluding
        demand = self._demand(state, capacity)
        known = steady("characterised", self._characterised(state, demand))
        tree_shape = self._tree_shape(state)
        holder = state.ledger.holders(handle)
        bounds, claimed, counts = self._bounds(state, demand, holder)
        snapshot = Snapshot(
            resources=tuple(space.names),
            counted=self._keep("counted", (space.version, names), lambda: fixed(space.counted)),
            capacity=capacity if rows is None else capacity[rows],
            free=free,
            specials=specials,
            total=self._total(state),
            agents=agents,
            handle=handle,
            minimum=minimum,
            minimum_rows=minimum_rows,
            bounds=bounds,
            held=held,
            agents_held=agents_held,
            demand=demand,
            characterised=known,
            overdue=steady("overdue", _overdue(state)),
            excluded=shared_rows_of(excluded, rows),
            excluding=excluding if rows is None else excluding[rows],
            filters=self._filters(state, handle, free, specials, plain, demand, known),
            holder=holder,
            tree=self._tree(state, tree_shape),
            leaf_of_client=tree_shape.leaf_of_client,
            parent_of_client=tree_shape.parent_of_client,
            classes=self._agent_classes(state, capacity),
            plan=self._plan(state, handle, shared_width(excluded)),
            gangs=self._gangs(state, demand, tree_shape, handle) if state.clients.gangs else None,
            over_budget=_over_budget(state, tree_shape) if state.memory.budgets.over else None,
            claimed=claimed,
            counts=counts,
        )
        snapshot = snapshot if counts is None else barred(snapshot, counts.under_full())
        return frozen(_first_served(state, _to_place(state, snapshot, whole=wanted is None)))

    def problem(self, state: State, *, about_holders: bool) -> PlanProblem:
        """Copy the problem of a plan: the clients to serve and, if requested, all holders."""
        before_drains.bar(state)
        tree_shape, capacity = self._tree_shape(state), self._capacity(state)
        demand = self._demand(state, capacity)
        if about_holders:
            clients, flat = state.clients, state.settings.policy.flat
            holds = state.ledger.books.agents_held > 0
            takes_part = state.live_clients() | (holds & state.frameworks.active[clients.framework])
            tree_shape = shape(takes_part, clients.role, state.roles, flat=flat)
        return problem_of(
            state,
            tree_shape,
            self._tree(state, tree_shape),
            self.quota_tree(state),
            self.caps(state),
            capacity=capacity,
            free=state.space.by_column(state.free_on(None)),
            total=self._total(state),
            demand=demand,
            characterised=self._characterised(state, demand),
        )

    def _tree(self, state: State, tree_shape: Shape) -> Tree:
        clients, steady = state.clients, self._steady
        own = steady("own weights", clients.weight) if state.settings.weights else None
        weights = steady("weights", _weights(state))
        return tree_shape.tree(weights, self._schemes(state), turns_of(state), own)

    def _plan(self, state: State, handle: Ints, words: int) -> Plan | None:
        """Return the plan in force; equal values are returned as the same arrays as before."""
        if state.plan is None:
            return None
        steady, clients = self._steady, len(state.clients.framework)
        plan = shown(state.plan, handle, clients, words, len(state.space.names))
        held, agents_held = held_by_group(state, state.plan, handle)
        return Plan(
            steady("plan_target", plan.target),
            steady("plan_group", plan.group),
            steady("plan_allowed", plan.allowed),
            steady("plan_price", plan.price),
            steady("plan_part", plan.part),
            held=held,
            agents_held=agents_held,
        )

    def _keep(self, name: str, key: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """Return the value cached under a name; recompute it if its key has changed."""
        kept_key, kept = self._kept.get(name, (None, None))
        if kept is None or kept_key != key:
            kept = make()
            self._kept[name] = (key, kept)
        return kept

    def _held(self, state: State, *, by_plan: bool) -> tuple[Ints, Ints | Floats]:
        """Return what counts as held by each client, (C, R), and on how many agents, (C,)."""
        held, memory = state.held_by_column(), state.memory.usage
        if by_plan or not (memory.half_life_ms and state.settings.usage_weight):
            return held, state.ledger.books.agents_held
        sizes = len(held), len(state.space.names)
        key = (state.clients.version, state.roles.version, memory.version, sizes)
        return counted(state, held, self._keep("inherited", key, lambda: inherited(state)))

    def _tree_shape(self, state: State) -> Shape:
        flat = state.settings.policy.flat
        return self._keep(
            "shape",
            (state.clients.version, state.memory.budgets.version, state.satiated, flat),
            lambda: shape(state.live_clients(), state.clients.role, state.roles, flat=flat),
        )

    def _schemes(self, state: State) -> Ints:
        """Return the index of the policy's scheme for the children of each role, (n,)."""
        subtrees = sorted(state.settings.policy.subtrees)
        number = {path: index + 1 for index, path in enumerate(subtrees)}

        def make() -> Ints:
            return fixed(state.roles.inherit(number, 0))

        return self._keep("schemes", (state.roles.version, tuple(subtrees)), make)

    def _minimum(self, state: State) -> tuple[Ints, Ints]:
        clients = state.clients
        sizes = len(clients.framework), len(state.space.names)
        key = (clients, clients.minimum_version, sizes, state.options)
        return self._keep("minimum", key, lambda: self._minimums.gather(state))

    def _capacity(self, state: State) -> Ints:
        space, agents = state.space, state.agents
        key = (agents.version, space.version, len(space.names), len(agents.bound))
        return self._keep("capacity", key, lambda: fixed(space.by_column(agents.capacity)))

    def _demand(self, state: State, capacity: Ints) -> Ints:
        """Return the amounts of one grant, (C, R): one task, or a lot of tiny tasks."""
        key = (state.agents.version, state.space.version, len(state.space), len(state.space.names))
        largest = self._keep("largest", key, lambda: fixed(capacity.max(axis=0, initial=0)))
        most = lots_max(len(state.agents))
        return in_lots(self._steady("demand", state.clients.demand), largest, most)

    def _characterised(self, state: State, demand: Ints) -> Bools:
        return characterised(
            state, demand, self._total(state), *self._minimum(state), self._schemes(state)
        )

    def _total(self, state: State) -> Ints:
        key = (state.agents.version, state.space.version, len(state.space), len(state.space.names))
        return self._keep("total", key, lambda: fixed(state.total_by_column()))

    def _agent_classes(self, state: State, capacity: Ints) -> AgentClasses:
        def make() -> AgentClasses:
            classes = distinct_rows(capacity[state.agents.bound])
            return AgentClasses(fixed(classes.rows), fixed(classes.times))

        return self._keep("classes", (state.agents.version, capacity.shape[1]), make)

    def _special_kinds(self, state: State) -> Specials:
        key = (state.clients.version, state.roles.version, state.space.version)
        return self._keep("special kinds", key, lambda: special_kinds(state))

    def quota_tree(self, state: State) -> QuotaTree:
        """Return the roles with a quota, and which of them each kind and each role is in."""
        names = len(state.space.names)
        key = (state.quota_version, state.space.version, names)
        tree = self._keep("quotas", key, lambda: quota_tree(state))
        # Frameworks may add roles at any time, so update only the part that depends on roles.
        of_roles = (*key, state.roles.version)
        return self._keep("quotas of roles", of_roles, lambda: with_roles_of(state, tree))

    def caps(self, state: State) -> CapTable:
        """Return the caps inside roles, and which of them apply to each client."""
        names, clients = len(state.space.names), state.clients
        if not state.settings.caps:
            return CapTable.none(len(clients.role), names)
        sizes = len(clients.role), len(state.frameworks.info)
        key = (state.quota_version, names, clients.version, state.roles.version, sizes)
        return self._keep("caps", key, lambda: cap_table(state))

    def limits(self, state: State, snapshot: Snapshot) -> Ints:
        """Return the limits and caps of the first rows of a snapshot's bounds."""
        most = [] if snapshot.counts is None else [snapshot.counts.most()]
        caps = self.caps(state)
        return np.concatenate([self.quota_tree(state).limit, caps.limit[: caps.bounding], *most])

    def _bounds(
        self, state: State, demand: Ints, holder: Ints
    ) -> tuple[Bounds, Ints | None, Counts | None]:
        """Return all bounds, claims, and the counts with the place of their bounds."""
        (bounds, claimed), counts = bounds_of(state, self.quota_tree(state)), None
        if state.settings.caps:
            bounds, counts = with_caps(state, bounds, self.caps(state), holder)
        if counts is not None and len(counts.bounded):
            counts = counts._replace(first=len(bounds.above))
            own = np.full((len(bounds.of_client), 1), -1)
            own[counts.bounded, 0] = np.arange(len(counts.bounded))
            bounds = bounds.with_further(counts.left(), own)
        if state.settings.outstanding_max < 1:
            opening = opening_tasks(demand, *self._minimum(state))
            bounds = with_outstanding(state, bounds, demand * np.maximum(opening, 1)[:, None])
        return bounds, claimed, counts

    def _gangs(self, state: State, demand: Ints, tree_shape: Shape, handle: Ints) -> Gangs | None:
        """Return the gangs of this cycle, their sizes in lots if tasks are tiny; None: no gangs."""
        sizes = state.clients.gangs
        rows = [row for row in sorted(sizes) if tree_shape.leaf_of_client[row] >= 0]
        client = np.array(rows, np.int64)
        client = client[demand[client].any(axis=1)]
        if not len(client):
            return None
        lot = demand[client].max(axis=1) // state.clients.demand[client].max(axis=1)
        tasks = np.array([sizes[row] for row in client.tolist()], np.int64)
        gangs = Gangs.of(client, -(-tasks // lot))
        if state.clients.unlike:
            lot[np.isin(client, list(state.clients.unlike))] = 1
            gangs = self._unlike.added_to(state, gangs._replace(tasks=-(-tasks // lot)))
        return collected_on(state, gangs, handle)

    def _filters(
        self,
        state: State,
        handle: Ints,
        free: Ints,
        specials: Specials,
        plain: Ints,
        demand: Ints,
        known: Bools,
    ) -> Filters:
        """Return the filters, and which of them cover all of `offerable` for their clients."""
        offerable = Offerable(
            free=free,
            start=specials.start,
            row=specials.row,
            special_free=specials.free,
            kind=specials.kind,
            reach=specials.reach,
            plain_kind=plain,
            demand=demand,
            known=known,
            opening=opening_tasks(demand, *self._minimum(state)),
        )
        takes = self._steady("takes", state.clients.takes)
        return state.filters.show(offerable, takes, handle, state.ledger.books.touched)


def frozen(snapshot: Snapshot) -> Snapshot:
    """Make every array of a snapshot read-only, since many are arrays of the books."""
    return Snapshot(*(_frozen_part(getattr(snapshot, name)) for name in _PARTS))


def _frozen_part(part: Any) -> Any:  # noqa: ANN401 - arrays, tuples of them, and what is neither
    if isinstance(part, np.ndarray):
        return read_only(part)
    if isinstance(part, AgentClasses):
        return AgentClasses(read_only(part.capacity), read_only(part.count))
    if isinstance(part, Plan):
        return part  # its arrays are read-only already
    if hasattr(part, "_make"):
        return part._make(map(_frozen_part, part))
    return part


def _to_place(state: State, snapshot: Snapshot, *, whole: bool) -> Snapshot:
    """Return the snapshot without the gangs of one task that have room for it.

    These clients are served as if they had no gang. Gangs that collect stay, and so do those of
    clients that are offered all that is free, because agents may be too small for their task. Only
    a few clients are checked, those that have waited longest, and only in a cycle over all agents;
    the others count as having room.
    """
    gangs, clients = snapshot.gangs, state.clients
    if gangs is None:
        return snapshot
    every = clients.gangs.items()
    single = [row for row, tasks in every if tasks == 1 and row not in clients.unlike]
    usual = np.setdiff1d(np.intersect1d(np.array(single, np.int64), gangs.client), gangs.collects)
    usual = usual[snapshot.characterised[usual]]
    if whole:
        order = np.lexsort((usual, clients.served[usual], -clients.waited[usual]))
        late = usual[order][:LOOKED_AT_MAX].tolist()
        usual = np.setdiff1d(usual, [each for each in late if not has_room(snapshot, each)])
    kept = ~np.isin(gangs.client, usual)
    if not kept.any():
        return replace(snapshot, gangs=None)
    its = gangs._replace(client=gangs.client[kept], tasks=gangs.tasks[kept])
    return replace(snapshot, gangs=its)


def _over_budget(state: State, tree_shape: Shape) -> Bools | None:
    """Return the clients (C,) that are served last; None: none takes part in this cycle."""
    found = state.over_budget(hard=False)
    return found if found[tree_shape.client].any() else None


def _overdue(state: State) -> Bools:
    """Return which clients (C,) have waited for at least `patience_cycles` full cycles.

    Clients over budget do not count.
    """
    patience = state.settings.patience_cycles
    if not patience:
        return np.zeros(len(state.clients.framework), np.bool_)
    overdue: Bools = state.clients.waited >= patience
    return overdue & ~state.over_budget(hard=False) if state.memory.budgets.over else overdue


def _first_served(state: State, snapshot: Snapshot) -> Snapshot:
    """Restrict overdue clients to those that some agent can serve.

    Overdue clients are served in the policy's order, which could skip the same client every time if
    others become overdue as fast as they are served. Therefore, if some have waited for one more
    cycle per overdue client, only these are served first: all of them, because a limit may bar any
    single one forever.
    """
    rows = np.flatnonzero(snapshot.overdue)
    if not len(rows):
        return snapshot
    overdue = np.zeros_like(snapshot.overdue)
    rows = rows[servable(snapshot, rows)]
    patience = state.settings.patience_cycles + len(rows)
    late = rows[state.clients.waited[rows] >= patience]
    overdue[late if len(late) else rows] = True
    return replace(snapshot, overdue=overdue)


def _weights(state: State) -> np.ndarray:
    weight = state.roles.weight.copy()
    weight[0] = 1.0
    return weight


def _plain(free: Ints, plain: Ints) -> Ints:
    """Return free amounts (K, A) of plain kinds by column, (A, R)."""
    columns = np.zeros((free.shape[1], len(plain)), np.int64)
    grantable = plain >= 0
    columns[:, grantable] = free[plain[grantable]].T
    return columns


def _ready(state: State, wanted: Ints | None) -> Ints | None:
    """Return row 0 and the requested agents that may be offered.

    None: all agents are requested; the caller filters them later, without copying their rows.
    """
    if wanted is None:
        return None
    agents = state.agents
    # A cycle for one agent must not scan all.
    rows = wanted[(wanted > 0) & (wanted < len(agents.bound))]
    if len(rows) > 1:
        rows = np.unique(rows)
    ready = agents.bound[rows] & agents.active[rows] & agents.whitelisted[rows]
    return np.append(0, rows[ready & ~agents.drained[rows]])


def _candidates(
    state: State, kinds: Specials, plain: Ints, least: Ints | None, wanted: Ints | None
) -> tuple[Ints | None, Ints, Specials, Ints]:
    """Find the agents that are ready, and have enough free for some client: a row of `least`.

    Returns the rows of the snapshot as handles (None: all agents), what is free there, and the
    candidates' numbers among these rows.
    """
    rows = _ready(state, wanted)
    by_kind = state.free_on(rows)
    specials = with_free(kinds, by_kind)
    free = _plain(by_kind, plain)
    agents = _with_enough(free, specials, least)
    if rows is None:
        agents = agents[state.agents.ready[agents]]
    if 2 * len(agents) >= len(free):
        return rows, free, specials, agents
    # Leave other agents out.
    kept = np.append(0, agents)
    rows = kept if rows is None else rows[kept]
    by_kind = state.free_on(rows)
    return rows, _plain(by_kind, plain), with_free(kinds, by_kind), np.arange(1, len(kept))


def _with_enough(free: Ints, specials: Specials, least: Ints | None) -> Ints:
    """Return agents with enough for some client: a row of `least`; None: anything."""
    whole = free if not len(specials.row) else free + specials.by_column(free.shape[1])
    # Nothing is free: frequent on a busy master, and cheap to check.
    if least is None or not whole.any():
        return np.flatnonzero(some(whole))
    return np.flatnonzero(reaches(whole, least))

"""Caps inside roles: the most that each framework, principal or user may hold in a role.

What a framework holds counts as it does for limits of roles: unreserved or reserved, offered or
used, but neither revocable nor shared. As for limits, only grants of unreserved resources are
bounded. A cap also covers all descendants of its role.

A cap may also name a number of tasks and of agents (`rule_kinds.COUNTS`), see `Counts`.
"""

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np

from allocator.core.books.quota import innermost
from allocator.core.books.state import State
from allocator.core.numba.array_structures import DistinctRows, distinct_rows
from allocator.core.numba.memo import fixed
from allocator.core.resources import MILLI
from allocator.core.settings import SetCap
from allocator.core.snapshot import UNBOUNDED, Bools, Bounds, Counts, Floats, Ints
from allocator.core.task_counts import whole_above, whole_below
from allocator.rule_kinds import COUNTS, PER, without_counts


@dataclass(frozen=True, slots=True)
class CapTable:
    """The caps in force: Q rows, one for each rule and each holder that the rule applies to.

    `rule`: Q rules; the first `bounding` ones bound amounts.
    `limit` (Q, R), in thousandths; `UNBOUNDED`: no limit.
    `tasks`, `agents` (Q,): the largest numbers of tasks and of agents; `UNBOUNDED`: no limit.
    `of_client` (C, n): the rows that apply to each client; -1: none.
    """

    rule: tuple[SetCap, ...]
    limit: Ints
    tasks: Ints
    agents: Ints
    of_client: Ints

    @property
    def bounding(self) -> int:
        return int(np.count_nonzero((self.limit < UNBOUNDED).any(axis=1)))

    @property
    def counting(self) -> bool:
        """Whether some cap is on tasks or on agents."""
        return bool((np.minimum(self.tasks, self.agents) < UNBOUNDED).any())

    @staticmethod
    def none(clients: int, columns: int) -> "CapTable":
        """Return the value without caps."""
        limit, nothing = np.empty((0, columns), np.int64), np.empty(0, np.int64)
        return CapTable((), limit, nothing, nothing, np.empty((clients, 0), np.int64))


def cap_table(state: State) -> CapTable:
    """Find the caps that apply to each client."""
    rules = tuple(state.settings.caps.values())
    of_rule = np.full((len(rules), len(state.space.names)), UNBOUNDED)
    counts = np.full((len(rules), len(COUNTS)), UNBOUNDED)
    for index, rule in enumerate(rules):
        cap = rule.cap or {}
        for name, amount in without_counts(cap).items():
            of_rule[index, state.space.column(name)] = amount
        counts[index] = [cap[name] // MILLI if name in cap else UNBOUNDED for name in COUNTS]
    of_rule[:, ~state.space.scalar] = UNBOUNDED  # only scalars are bounded
    # Number the pairs of a rule and a holder.
    keys = [_pairs(state, rules, per) for per in PER]
    pairs = np.concatenate([np.empty((len(state.clients.role), 0), np.int64), *keys], axis=1)
    found, row = np.unique(pairs, return_inverse=True)
    row, none = row.reshape(pairs.shape), int(np.searchsorted(found, 0))
    rows = found[none:] >> np.int64(32)
    bounding = np.any(of_rule < UNBOUNDED, axis=1)[rows]
    order = np.argsort(~bounding, kind="stable")
    place = np.append(np.argsort(order), -1)  # -1: none
    which = rows[order].tolist()
    return CapTable(
        rule=tuple(rules[each] for each in which),
        limit=fixed(of_rule[which]),
        tasks=fixed(counts[which, 0]),
        agents=fixed(counts[which, 1]),
        of_client=fixed(place[np.maximum(row - none, -1)]),
    )


def _pairs(state: State, rules: tuple[SetCap, ...], per: str) -> Ints:
    """Return the rules for one kind of holder that apply to each client, (C, n).

    Each is the index of the rule times 2**32, plus the number of the client's holder; -1: none.
    """
    own = {rule.role: index for index, rule in enumerate(rules) if rule.per == per}
    if not own:
        return np.empty((len(state.clients.role), 0), np.int64)
    above = np.full(len(rules), -1)
    above[list(own.values())] = innermost(own, (path.rpartition("/")[0] for path in own))
    holder = _holders(state, per)[state.clients.framework]
    # The innermost rule for a client's role, then those for the roles above it.
    rule = np.where(holder >= 0, state.roles.inherit(own, -1)[state.clients.role], -1)
    columns = [np.empty((0, len(rule)), np.int64)]
    while (rule >= 0).any():
        columns.append(np.where(rule >= 0, (rule << np.int64(32)) + holder, -1)[None])
        rule = np.where(rule >= 0, above[rule], -1)
    return np.concatenate(columns).T


def _holders(state: State, per: str) -> Ints:
    """Number the holders, (F,) by framework; -1: an unused row, or the holder is unknown yet."""
    table = state.frameworks
    if per == "framework":
        return np.arange(len(table.info))
    name, number = attrgetter(per), dict[str, int]()
    holders = [
        -1 if info is None else number.setdefault(name(info), len(number)) for info in table.info
    ]
    return np.array(holders, np.int64)


def with_caps(
    state: State, bounds: Bounds, caps: CapTable, holder: Ints
) -> tuple[Bounds, Counts | None]:
    """Add a bound for each cap on amounts, and count under caps on tasks and agents (`_counts`).

    `holder` (H,): as in a snapshot.
    """
    held = _held_by_client(state)
    if caps.bounding:
        left = np.where(caps.limit < UNBOUNDED, caps.limit - _held(caps, held), UNBOUNDED)
        mine = caps.of_client < caps.bounding
        bounds = bounds.with_further(left[: caps.bounding], np.where(mine, caps.of_client, -1))
    return bounds, _counts(state, caps, holder, held)


def _counts(state: State, caps: CapTable, holder: Ints, held: Ints) -> Counts | None:
    """Count tasks and agents under caps on them; None: there is no such cap.

    `holder` (H,): as in a snapshot. `held` (C, R): as `_held_by_client` returns it.
    """
    if not caps.counting:
        return None
    size = task_sizes(state)
    bounded = np.append(caps.tasks < UNBOUNDED, False)[caps.of_client].any(axis=1)
    return Counts(
        of_client=caps.of_client,
        tasks=caps.tasks,
        agents=caps.agents,
        held=held,
        size=size,
        bounded=np.flatnonzero(bounded & size.any(axis=1)),
        first=0,
        taken=_agents_taken(state, caps),
        on=Counts.pairs(caps.of_client, caps.agents, holder),
    )


def task_sizes(state: State) -> Ints:
    """Return what one task of each client needs of scalars, (C, R), in thousandths."""
    return np.where(state.space.scalar, state.clients.demand, 0)


def _agents_taken(state: State, caps: CapTable) -> Ints:
    """Return the number of agents on which something is held under each cap on agents, (Q,)."""
    books, taken = state.ledger.books, np.zeros(len(caps.rule), np.int64)
    several = np.zeros(len(caps.rule), np.int64)
    for row in caps.of_client.T:
        inside = np.flatnonzero((row >= 0) & (books.agents_held > 0))
        np.add.at(taken, row[inside], books.agents_held[inside])
        np.add.at(several, row[inside], 1)
    if ((several > 1) & (caps.agents < UNBOUNDED)).any():  # their clients may share agents
        taken = state.ledger.agents_of(caps.of_client, len(caps.rule))
    return np.where(caps.agents < UNBOUNDED, taken, 0)


def capped(state: State, caps: CapTable) -> Bools:
    """Return which clients are under a cap that leaves nothing of something, (C,)."""
    if not len(caps.rule):
        return np.zeros(len(caps.of_client), np.bool_)
    held = _held_by_client(state)
    reached = (caps.limit <= _held(caps, held)).any(axis=1)
    counts = _counts(state, caps, np.empty(0, np.int64), held)
    if counts is not None:
        reached |= (counts.tasks_left() <= 0) | (counts.taken >= counts.agents)
    return np.asarray(np.append(reached, False)[caps.of_client].any(axis=1))


def _held_by_client(state: State) -> Ints:
    """Return what each client holds that counts under caps, (C, R), in thousandths."""
    space = state.space
    reserved = np.array([kind is not None and kind.depth > 0 for kind in space.kinds], np.bool_)
    counts = space.bounded_kind | (space.scalar_kind & ~space.shared_kind & reserved)
    return space.by_column(state.ledger.books.client_held, kinds=counts)


def _held(caps: CapTable, held: Ints) -> Ints:
    """Return what counts under each cap, (Q, R); `held` (C, R): as `_held_by_client` returns it."""
    found = np.zeros_like(caps.limit)
    for row in caps.of_client.T:
        inside = np.flatnonzero(row >= 0)
        np.add.at(found, row[inside], held[inside])
    return found


def within_caps(
    caps: CapTable, client: Ints, size: Ints, weight: Floats, capacity: Ints, limit: Ints
) -> Ints:
    """Reduce limits of clients (n, R) by the caps, each divided among its clients by weight.

    On which agents a client may be is not linear in amounts, so a cap on agents counts as what fits
    on that many agents, of those with most room for the client.

    `client` (n,); `weight` (n,): the weight of each client within its roles.
    `size` (n, R), in thousandths: one task of each; zeros if unknown.
    `capacity` (A, R), in thousandths.
    """
    rooms = _RoomOnAgents(capacity)
    for row in caps.of_client[client].T:
        inside = np.flatnonzero(row >= 0)
        here, its = row[inside], weight[inside]
        part = (its / np.bincount(here, its)[here])[:, None]
        bounded = caps.limit[here] < UNBOUNDED
        most = whole_below(np.where(bounded, caps.limit[here], 0) * part).astype(np.int64)
        limit[inside] = np.minimum(limit[inside], np.where(bounded, most, UNBOUNDED))
        bounded = (caps.tasks[here] < UNBOUNDED)[:, None] & (size[inside] > 0)
        tasks = whole_below(np.where(bounded, caps.tasks[here, None], 0) * part).astype(np.int64)
        tasks = np.minimum(tasks, UNBOUNDED // np.maximum(size[inside], 1))
        most = np.where(bounded, tasks * size[inside], UNBOUNDED)
        limit[inside] = np.minimum(limit[inside], most)
        few = np.flatnonzero(caps.agents[here] < UNBOUNDED)
        for at, number in zip(few.tolist(), caps.agents[here[few]].tolist(), strict=True):
            most = rooms.of(number, size[inside[at]], float(part[at, 0]))
            limit[inside[at]] = np.minimum(limit[inside[at]], most)
    return limit


class _RoomOnAgents:
    """What fits on a number of agents of the empty cluster: those with most room."""

    def __init__(self, capacity: Ints) -> None:
        """Take the capacities of all agents, (A, R), in thousandths."""
        self._capacity = capacity
        self._found = dict[tuple[int, bytes], Ints]()

    @cached_property
    def _classes(self) -> DistinctRows:
        return distinct_rows(self._capacity)

    def of(self, agents: int, size: Ints, part: float) -> Ints:
        """Return a part of what fits, (R,), in thousandths: in whole tasks if their size is known.

        `size` (R,), in thousandths: one task; zeros if unknown.
        """
        key = agents, size.tobytes()
        if key not in self._found:
            self._found[key] = self._units(agents, size)
        units = whole_above(self._found[key] * part).astype(np.int64)
        return np.where(size > 0, units * size, UNBOUNDED) if size.any() else units

    def _units(self, agents: int, size: Ints) -> Ints:
        """Return how many tasks fit, (1,); without a size, how much of each resource, (R,)."""
        room = self._classes.rows
        if size.any():
            room = (room[:, size > 0] // size[size > 0]).min(axis=1, keepdims=True)
        order = np.argsort(-room, axis=0, kind="stable")
        times = np.minimum(np.cumsum(self._classes.times[order], axis=0), agents)
        return (np.diff(times, axis=0, prepend=0) * np.take_along_axis(room, order, 0)).sum(axis=0)

"""Unmet demand: what clients want and no agent has room for, and how many agents are missing.

Both are lower bounds. A client that does not state how much more it wants counts with one task; a
gang counts completely, but of unlike tasks only those that do not fit. Only demand that more agents
would satisfy counts, so not that of clients that refuse offers, reached their limits, or have tasks
larger than every agent. Resources that are free now are used first, even if kept for a gang or a
guarantee.

Wants are packed by first-fit decreasing: onto free resources, then onto new agents of the cluster's
shapes, each want on the commonest shape on which it fits. Equal wants, and equal agents, are packed
together, so a gang of any size costs as much as one task.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from allocator.core import (
    Floats,
    Ints,
    SharedBits,
    Snapshot,
    State,
    bits,
    distinct_rows,
    format_quantities,
    shared_pairs,
    shared_rows_of,
    shared_words_on,
    tasks_in,
)
from allocator.explain.picture import Picture
from allocator.plain import counted

SHAPES_MAX = 8

DIGITS = 2
"""Number of first digits in which the amounts of agents of one shape agree."""

EXAMPLES_MAX = 16
"""Approximate number of agents of a shape whose exclusions stand for those of a new one."""

GROUPS_MAX = 256
"""Maximum number of different wants to pack; further ones, the smallest, do not count."""


class Shape(NamedTuple):
    """Agents with about the same capacity.

    `name`: the amounts, as text; `agents`: number of these agents.
    `capacity` (R,), in thousandths: the minimum over these agents.
    `excluded`: bits of the clients that may not use some of these agents, E.
    """

    name: str
    agents: int
    capacity: Ints
    excluded: SharedBits

    def is_open_to(self, client: int) -> bool:
        rows = np.arange(self.excluded.row.shape[1])
        return not shared_pairs(self.excluded, rows, np.full(len(rows), client)).all()


def shapes_of(state: State) -> list[Shape]:
    """Return the commonest shapes of agents; on the thread that owns the books."""
    handles = np.flatnonzero(state.agents.bound)
    capacity = state.space.by_column(state.agents.capacity, handles)
    counted = state.space.counted
    scale = 10 ** np.maximum(_digits(capacity) - DIGITS, 0)
    rounded = np.where(counted, capacity // scale * scale, 0)
    found = distinct_rows(rounded)
    order = np.argsort(-found.times, kind="stable")[:SHAPES_MAX]
    shapes = []
    for each in order.tolist():
        mine = np.flatnonzero(found.which == each)
        amounts = zip(state.space.names, found.rows[each].tolist(), strict=True)
        name = format_quantities({name: amount for name, amount in amounts if amount})
        some = handles[mine[:: max(1, len(mine) // EXAMPLES_MAX)]]
        excluded = shared_rows_of(state.eligibility.excluded, some)
        least = capacity[mine].min(axis=0)
        shapes.append(Shape(name, len(mine), least, excluded))
    return shapes


def _digits(amounts: Ints) -> Ints:
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    return np.searchsorted(powers, amounts, side="right") + 1


@dataclass(frozen=True)
class Unmet:
    """Demand that does not fit.

    `amounts` (dict of str to (R,)), in thousandths: by role, of its own clients.
    `agents` (dict of str to int): number of missing agents, by the name of their shape.
    `common`: resources that agents have and that count towards shares.
    """

    resources: tuple[str, ...] = ()
    amounts: Mapping[str, Ints] = field(default_factory=dict)
    clients: int = 0
    agents: Mapping[str, int] = field(default_factory=dict)
    common: tuple[bool, ...] = ()

    @property
    def text(self) -> str:
        if not self.clients:
            return ""
        total = sum(self.amounts.values(), np.zeros(len(self.resources), np.int64))
        pairs = zip(self.resources, total.tolist(), strict=True)
        amounts = format_quantities({name: each for name, each in pairs if each})
        needed = ", ".join(f"{count} of {name}" for name, count in self.agents.items() if count)
        whose = counted(self.clients, "client")
        return f"{amounts}, of {whose}; at least these agents are missing: {needed}"


class Want(NamedTuple):
    """Equal wants.

    `clients`: the clients; several only if the wants are single tasks.
    `item` (R,), in thousandths; `items`: number of these per client.
    """

    clients: list[int]
    item: Ints
    items: int


def unmet(picture: Picture, shapes: list[Shape]) -> Unmet:
    """Compute unmet demand; `shapes`: of the same moment as the picture."""
    snapshot, resources = picture.snapshot, picture.resources
    named = {shape.name: 0 for shape in shapes}
    common = tuple((picture.counted & (picture.total > 0)).tolist())
    if snapshot is None or picture.paused:
        return Unmet(resources, agents=named, common=common)
    room, left = _Room(snapshot), snapshot.bounds.left.copy()
    amounts, clients, lacks = dict[str, Ints](), set[int](), list[Want]()
    counts = snapshot.counts
    full = set() if counts is None else set(np.flatnonzero(counts.under_full()).tolist())
    for want in _wants(picture, snapshot):
        open_to = [each for each in want.clients if each not in full]
        inside = [each for each in open_to if _take_limit(snapshot, left, each, want)]
        fit = [shape for shape in shapes if (shape.capacity >= want.item).all()]
        if not inside or not any(shape.is_open_to(inside[0]) for shape in fit):
            continue
        short = want._replace(clients=inside[room.place(inside, want) :])
        for client in short.clients:
            path = picture.names.path[int(picture.names.role[client])]
            amounts.setdefault(path, np.zeros(len(resources), np.int64))
            amounts[path] = amounts[path] + want.items * want.item
        clients.update(short.clients)
        if short.clients:
            lacks.append(short)
    return Unmet(resources, amounts, len(clients), named | agents_needed(lacks, shapes), common)


def _wants(picture: Picture, snapshot: Snapshot) -> Iterator[Want]:
    several = snapshot.opening > 1
    one = np.where(several[:, None], snapshot.demand * snapshot.opening[:, None], 0)
    one = np.where(several[:, None], one, picture.clients.demand)
    items = np.zeros(len(one), np.int64)
    if snapshot.gangs is not None:
        clients, tasks = snapshot.gangs.client, snapshot.gangs.tasks
        one[clients], items[clients] = snapshot.demand[clients], tasks
    rows = snapshot.tree.client
    rows = rows[picture.clients.wants[rows] & one[rows].any(axis=1)]
    unlike = {} if snapshot.gangs is None else snapshot.gangs.unlike
    of_unlike = [row for row in rows.tolist() if row in unlike]
    lines = [unlike[row] for row in of_unlike]
    alike = rows[~np.isin(rows, of_unlike)]
    # A row for each client, and for each line of a gang of unlike tasks.
    rows = np.append(alike, np.repeat(of_unlike, [len(its.number) for its in lines]))
    rows = rows.astype(np.int64)
    item = np.vstack([one[alike], *(its.size for its in lines)])
    number = np.concatenate([items[alike], *(its.number for its in lines)])
    order = np.argsort(-_share(snapshot, item), kind="stable")
    groups = dict[tuple[bytes, ...], Want]()
    bars = _signatures(snapshot, rows[order])
    for at, bar in zip(order.tolist(), bars, strict=True):
        row = int(rows[at])
        whose = bytes(f"{row} {at}", "ascii") if number[at] else b""
        key = (item[at].tobytes(), bar, whose)
        if key in groups:
            groups[key].clients.append(row)
        elif len(groups) < GROUPS_MAX:
            groups[key] = Want([row], item[at], max(int(number[at]), 1))
    yield from groups.values()


def _share(snapshot: Snapshot, amounts: Ints) -> Floats:
    share: Floats = (amounts / np.maximum(snapshot.total, 1)).max(axis=1, initial=0.0)
    return share


def _signatures(snapshot: Snapshot, clients: Ints) -> list[bytes]:
    """For each client, bytes that are equal for clients with the same agents and resources."""
    agents = snapshot.agents[snapshot.excluding[snapshot.agents]]
    tables = shared_words_on(snapshot.excluded, agents), snapshot.specials.reach
    found = []
    for client in clients.tolist():
        word, bit = client >> 6, np.uint64(client & 63)
        flags = (np.packbits(table[:, word] >> bit & np.uint64(1) != 0) for table in tables)
        found.append(b"|".join(each.tobytes() for each in flags))
    return found


def _take_limit(snapshot: Snapshot, left: Ints, client: int, want: Want) -> bool:
    """Return whether limits allow a client's want; if so, subtract it from them."""
    bounds, amount = snapshot.bounds, want.item * want.items
    rows = bounds.rows_of(client)
    if ((left[rows] < amount) & (amount > 0)).any():
        return False
    left[rows] -= amount
    return True


class _Room:
    """Free resources that placed wants do not use.

    Clients that may use reserved resources use these first. Clients that may use different sets of
    reserved resources do not compete for these here, so the actual room may be smaller.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._agents = snapshot.agents
        self._plain = snapshot.free[self._agents].copy()
        self._special = dict[bytes, Ints]()

    def place(self, clients: list[int], want: Want) -> int:
        """Place wants of some clients, equal but for the client; return how many were placed."""
        if not len(self._agents):
            return 0
        snapshot, agents, client = self._snapshot, self._agents, clients[0]
        special = self._special_of(client)
        room = tasks_in(self._plain + special, want.item)
        room[shared_pairs(snapshot.excluded, agents, np.full(len(agents), client))] = 0
        room = np.minimum(room, want.items * len(clients))
        total = np.cumsum(room)
        placed = min(int(total[-1]) // want.items, len(clients))
        given = np.minimum(room, np.maximum(placed * want.items - (total - room), 0))
        at = np.flatnonzero(given)
        used = given[at, None] * want.item
        reserved = np.minimum(used, special[at])
        special[at] -= reserved
        self._plain[at] -= used - reserved
        return placed

    def _special_of(self, client: int) -> Ints:
        """Resources beside the plain ones that a client may use, (J, R)."""
        specials = self._snapshot.specials
        rows = np.arange(len(specials.kind))
        mine = bits(specials.reach, rows, np.full(len(rows), client))
        if mine.tobytes() not in self._special:
            found = np.zeros((len(specials.start) - 1, self._plain.shape[1]), np.int64)
            agent = np.repeat(np.arange(len(found)), np.diff(specials.start))
            kept = mine[specials.row]
            column = specials.column[specials.row[kept]]
            np.add.at(found, (agent[kept], column), specials.free[kept])
            self._special[mine.tobytes()] = found[self._agents]
        return self._special[mine.tobytes()]


def agents_needed(wants: list[Want], shapes: list[Shape]) -> dict[str, int]:
    """Return the number of new agents of each shape that hold all wants, the largest first.

    Each want is on the first shape on which it fits and that is open to its client.
    """
    bins = {shape.name: _Bins(shape.capacity) for shape in shapes}
    for want in wants:
        for shape in shapes:
            if (shape.capacity >= want.item).all() and shape.is_open_to(want.clients[0]):
                bins[shape.name].add(want.item, want.items * len(want.clients))
                break
    return {name: each.count for name, each in bins.items()}


class _Bins:
    """New agents of one shape; those with equal rests are one row.

    `rest` (n, R), in thousandths: what is left on each; `agents` (n,): their number.
    """

    def __init__(self, capacity: Ints) -> None:
        self._capacity = capacity
        self._rest = np.empty((0, len(capacity)), np.int64)
        self._agents = np.empty(0, np.int64)

    @property
    def count(self) -> int:
        return int(self._agents.sum())

    def add(self, item: Ints, items: int) -> None:
        per_agent = int(tasks_in(self._capacity[None], item)[0])
        new = -(-items // per_agent)  # enough even if no item fits on agents in use
        rest = np.vstack([self._rest, self._capacity[None]])
        agents = np.append(self._agents, new)
        room = tasks_in(rest, item)
        total = np.cumsum(room * agents)
        at = int(np.searchsorted(total, items))  # all rows before this one are filled
        left = items - int(total[at] - room[at] * agents[at])
        full, last = divmod(left, int(room[at]))
        some = np.array([full, int(last > 0), int(agents[at]) - full - (last > 0)])
        rest[:at] -= room[:at, None] * item
        split = rest[at] - np.array([room[at], last, 0])[:, None] * item
        if at == len(agents) - 1:
            some[2] = 0  # the remaining new agents are not needed
        agents[-1] = 0
        rest = np.vstack([rest[:at], split, rest[at + 1 :]])
        agents = np.concatenate([agents[:at], some, agents[at + 1 :]])
        self._rest, self._agents = rest[agents > 0], agents[agents > 0]

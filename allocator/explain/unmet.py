"""What clients want now and no agent has room for, and how many agents it would take.

Both are lower bounds. A client that does not say how much more it wants counts with one task; a
gang counts whole, but of a gang of unlike tasks only those that do not fit. Only what more agents
would help counts: not clients that refuse offers, whose limits are reached, or whose tasks exceed
every agent. Room that is free now is used up first, also if it is kept for a gang or a guarantee.

Wants are packed by first fit, the largest first: onto what is free, and what is left onto new
agents of the shapes that the cluster has, each want on the commonest shape on which it fits. Equal
wants, and equal agents, are packed together, so a gang of any size costs as much as one task.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from allocator.core import (
    BitWords,
    Floats,
    Ints,
    Snapshot,
    State,
    bits,
    distinct_rows,
    format_quantities,
    tasks_in,
)
from allocator.explain.picture import Picture
from allocator.plain import counted

SHAPES_MAX = 8
"""Shapes of agents, the commonest ones."""

DIGITS = 2
"""Agents whose amounts agree in the first digits, rounded down, have one shape."""

EXAMPLES_MAX = 16
"""Agents of a shape whose attributes are taken for those of a new one."""

GROUPS_MAX = 256
"""Different wants that are packed; further ones, the smallest, do not count."""


class Shape(NamedTuple):
    """Agents with about the same capacity.

    `name`: its amounts; `agents`: how many there are.
    `capacity` (R,), in thousandths: the least of what they have.
    `excluded` (E, W): the clients that may not use each of some of them, as bits.
    """

    name: str
    agents: int
    capacity: Ints
    excluded: BitWords

    def is_open_to(self, client: int) -> bool:
        rows = np.arange(len(self.excluded))
        return not bits(self.excluded, rows, np.full(len(rows), client)).all()


def shapes_of(state: State) -> list[Shape]:
    """The commonest shapes of agents; on the thread that owns the books."""
    handles = np.flatnonzero(state.agents.bound)
    capacity = state.space.by_column(state.agents.capacity[handles])
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
        excluded = state.eligibility.excluded[some]
        least = capacity[mine].min(axis=0)
        shapes.append(Shape(name, len(mine), least, excluded))
    return shapes


def _digits(amounts: Ints) -> Ints:
    """How many decimal digits whole numbers have."""
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    return np.searchsorted(powers, amounts, side="right") + 1


@dataclass(frozen=True)
class Unmet:
    """What is wanted and does not fit.

    `amounts` (dict of str to (R,)), in thousandths: by role, of its own clients.
    `clients`: how many clients want it.
    `agents` (dict of str to int): by the name of a shape, how many more of it are needed.
    `common`: resources that agents have and that count towards shares.
    """

    resources: tuple[str, ...] = ()
    amounts: Mapping[str, Ints] = field(default_factory=dict)
    clients: int = 0
    agents: Mapping[str, int] = field(default_factory=dict)
    common: tuple[bool, ...] = ()

    @property
    def text(self) -> str:
        """In a line; empty if everything fits."""
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

    `clients`: whose; several only if these are single tasks.
    `item` (R,), in thousandths; `items`: of each client.
    """

    clients: list[int]
    item: Ints
    items: int


def unmet(picture: Picture, shapes: list[Shape]) -> Unmet:
    """Compute what is wanted and does not fit.

    `shapes`: of the same moment.
    """
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
    """What clients want, the largest first."""
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
    """The dominant share of amounts (n, R), (n,)."""
    share: Floats = (amounts / np.maximum(snapshot.total, 1)).max(axis=1, initial=0.0)
    return share


def _signatures(snapshot: Snapshot, clients: Ints) -> list[bytes]:
    """What distinguishes clients that may use different agents or resources."""
    agents = snapshot.agents[snapshot.excluding[snapshot.agents]]
    tables = snapshot.excluded[agents], snapshot.specials.reach
    found = []
    for client in clients.tolist():
        word, bit = client >> 6, np.uint64(client & 63)
        flags = (np.packbits(table[:, word] >> bit & np.uint64(1) != 0) for table in tables)
        found.append(b"|".join(each.tobytes() for each in flags))
    return found


def _take_limit(snapshot: Snapshot, left: Ints, client: int, want: Want) -> bool:
    """Whether limits leave room for a client's want, which is then taken from them."""
    bounds, amount = snapshot.bounds, want.item * want.items
    rows = bounds.rows_of(client)
    if ((left[rows] < amount) & (amount > 0)).any():
        return False
    left[rows] -= amount
    return True


class _Room:
    """What is free, and not used by wants that were placed.

    Reserved resources are used before others by clients that may have them. Two clients that may
    have different ones are never in each other's way there, so there may be less room than this.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._agents = snapshot.agents
        self._plain = snapshot.free[self._agents].copy()
        self._special = dict[bytes, Ints]()

    def place(self, clients: list[int], want: Want) -> int:
        """Place wants of some clients, equal but for their owners; returns of how many."""
        if not len(self._agents):
            return 0
        snapshot, agents, client = self._snapshot, self._agents, clients[0]
        special = self._special_of(client)
        room = tasks_in(self._plain + special, want.item)
        room[bits(snapshot.excluded, agents, np.full(len(agents), client))] = 0
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
        """Resources beside the plain ones that a client may have, (J, R)."""
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
    """How many new agents of each shape hold all wants, the largest first.

    Each want is on the first shape on which it fits and that is open to it.
    """
    bins = {shape.name: _Bins(shape.capacity) for shape in shapes}
    for want in wants:
        for shape in shapes:
            if (shape.capacity >= want.item).all() and shape.is_open_to(want.clients[0]):
                bins[shape.name].add(want.item, want.items * len(want.clients))
                break
    return {name: each.count for name, each in bins.items()}


class _Bins:
    """New agents of one shape, those with equal rests together.

    `rest` (n, R), in thousandths: what is left on each; `agents` (n,): how many are so.
    """

    def __init__(self, capacity: Ints) -> None:
        self._capacity = capacity
        self._rest = np.empty((0, len(capacity)), np.int64)
        self._agents = np.empty(0, np.int64)

    @property
    def count(self) -> int:
        return int(self._agents.sum())

    def add(self, item: Ints, items: int) -> None:
        """Add equal items by first fit."""
        per_agent = int(tasks_in(self._capacity[None], item)[0])
        new = -(-items // per_agent)  # enough, if none fits beside others
        rest = np.vstack([self._rest, self._capacity[None]])
        agents = np.append(self._agents, new)
        room = tasks_in(rest, item)
        total = np.cumsum(room * agents)
        at = int(np.searchsorted(total, items))  # before these all are filled up
        left = items - int(total[at] - room[at] * agents[at])
        full, last = divmod(left, int(room[at]))
        some = np.array([full, int(last > 0), int(agents[at]) - full - (last > 0)])
        rest[:at] -= room[:at, None] * item
        split = rest[at] - np.array([room[at], last, 0])[:, None] * item
        if at == len(agents) - 1:
            some[2] = 0  # the other new ones are not needed
        agents[-1] = 0
        rest = np.vstack([rest[:at], split, rest[at + 1 :]])
        agents = np.concatenate([agents[:at], some, agents[at + 1 :]])
        self._rest, self._agents = rest[agents > 0], agents[agents > 0]

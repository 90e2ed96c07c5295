"""The input of a policy (`Snapshot`) and its output (`Grants`), as arrays.

All arrays of a snapshot are read-only.
Index spaces
------------
agent
    row of the snapshot's agent arrays, 0 to A-1. Rows are the agents of this cycle, in the order of
    their handles. Row 0 is never an agent; rows without an agent hold zeros.
client
    row of the client arrays, 0 to C-1: one framework in one role.
column
    a resource by name, 0 to R-1.
node
    a node of this cycle's tree, 0 to N-1: first one leaf for each client that may be served (L
    leaves, in the order of client rows), then the inner nodes, children before parents, so that the
    root is N-1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from allocator.core import counts as counting
from allocator.core.numba import array_types
from allocator.core.numba.array_structures import contains, distinct, pair
from allocator.core.numba.compiled import loop_view
from allocator.core.numba.shared_bits import SharedBits
from allocator.core.numba.tree_sums import add_up_amounts
from allocator.core.openings import opening_tasks
from allocator.core.plan import Plan
from allocator.core.task_counts import has_demand, tasks_held

Ints = array_types.Ints
Floats = array_types.Floats
Bools = array_types.Bools
BitTable = array_types.BitTable
BitWords = array_types.BitWords
Indices = array_types.Indices

Counts = counting.Counts

UNBOUNDED = counting.UNBOUNDED
"""An amount larger than any real one, used for "no limit"."""


class Tree(NamedTuple):
    """The competing clients of this cycle, as a tree.

    `client` (L,): client row of each leaf, ascending.
    `parent` (N,): parent node; -1 for the root.
    `child_start` (N + 1,): the children of node n are ``child[child_start[n]:child_start[n + 1]]``.
    `child` (N - 1,): children, ascending within a parent.
    `weight` (N,): weight among siblings, > 0.
    `served` (N,): breaks ties: of siblings with equal scores, the one with the smallest value is
        served first (see `turns`), then the one with the lowest number. The root has the largest
        value. A grant sets the leaf and all nodes above it to the root's value plus one.
    `scheme` (N,): index of the policy's criterion that orders the node's children: 0, or that of a
        subtree.
    """

    client: Ints
    parent: Ints
    child_start: Ints
    child: Ints
    weight: Floats
    served: Ints
    scheme: Ints


class Filters(NamedTuple):
    """Filters in force, as one linked list for each agent.

    Filter f bars a grant to ``client[f]`` on the list's agent if ``amount[f]`` covers all amounts
    of the resulting offer, kind by kind.
    `head` (A,): first filter of each agent; -1: none.
    `next` (X,): next filter of the same agent; -1: the last one.
    `amount` (K, X), in thousandths: by kind.
    `plain_kind` (R,): the kind of the snapshot's ``free`` in each column; -1: none.
    `largest` (K, A), in thousandths: the largest amount of any filter on the agent, or more.
    `covered` (B, A, V): a bit for each pair, see `bit_tables`: some filter covers all that the
        client could be offered on the agent, if it gets no other grant before and no quota bounds
        the offer.
    """

    head: Indices
    next: Indices
    client: Indices
    amount: Ints
    plain_kind: Ints
    largest: Ints
    covered: BitTable


class Specials(NamedTuple):
    """Free special resources: not for every client, or not divisible (reserved, revocable, disks).

    Agent a has the entries ``range(start[a], start[a + 1])``, in the order in which a task takes
    from them; each is an amount of one special kind.
    `row` (E,): the special kind of each entry, 0 to S-1.
    `free` (E,), in thousandths.
    `kind` (S,): handle.
    `tier` (S,): how a task may use it, see `Tier`.
    `bounded` (S,): whether it counts against quota.
    `whole` (S,): whether it is granted as a whole or not at all.
    `reach` (S, W): bit ``c % 64`` of word ``c // 64``: client c may have it.
    """

    start: Ints
    row: Ints
    free: Ints
    kind: Ints
    column: Ints
    tier: Ints
    bounded: Bools
    whole: Bools
    reach: BitWords

    @staticmethod
    def none(agents: int, words: int) -> "Specials":
        """Return the value without any special resources."""
        empty = np.empty(0, np.int64)
        flags = np.empty(0, np.bool_)
        return Specials(
            start=np.zeros(agents + 1, np.int64),
            row=empty,
            free=empty,
            kind=empty,
            column=empty,
            tier=empty,
            bounded=flags,
            whole=flags,
            reach=np.empty((0, words), np.uint64),
        )

    def entries(self, agent: Ints, special: Ints) -> Ints:
        """Return the entries of special kinds on agents, (n,); both (n,)."""
        owner = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        key = owner * len(self.kind) + self.row
        order = np.argsort(key)
        found: Ints = order[np.searchsorted(key[order], agent * len(self.kind) + special)]
        return found

    def by_column(self, columns: int) -> Ints:
        """Add up all special resources by column, (A, R), also those that no client may have."""
        result = np.zeros((len(self.start) - 1, columns), np.int64)
        agent = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        np.add.at(result, (agent, self.column[self.row]), self.free)
        return result


class Tier(IntEnum):
    """The order in which tasks use resources.

    Reserved resources come before plain ones (`OPEN`). A task takes all of a resource from
    revocable amounts or none, because Mesos does not let tasks mix them. Shared volumes add no room
    for tasks. Only the module knows what a rest (`Kind.rest`) contains, so tasks get nothing of it.
    """

    RESERVED = 0
    OPEN = 1
    REVOCABLE = 2
    SHARED = 3
    REST = 4


class Bounds(NamedTuple):
    """What quotas leave to each role, and what must stay free for guarantees.

    A row is the bound of a role with a quota, a cap inside a role, what a cap on tasks leaves to a
    client, or the bound of a framework (`outstanding_max`).

    `of_client` (C,): the innermost bound of a role that applies to each client; -1: none.
    `further` (C, n): further bounds of each client, which have no bound above: caps, and that of
        its framework; -1: none.
    `above` (Q,): the next bound outwards that applies as well; -1: none.
    `left` (Q, R), in thousandths: how much more may be granted under the bound; `UNBOUNDED`: no
        limit.
    `owed` (Q, R), in thousandths: the unmet part of the guarantee.
    `available` (R,), in thousandths: what is free on all agents and counts against quota.
    `required` (R,), in thousandths: the part of `available` that must stay free for guarantees.
    """

    of_client: Ints
    further: Ints
    above: Ints
    left: Ints
    owed: Ints
    available: Ints
    required: Ints

    @staticmethod
    def none(clients: int, columns: int) -> "Bounds":
        nothing = np.empty((0, columns), np.int64)
        return Bounds(
            of_client=np.full(clients, -1),
            further=np.empty((clients, 0), np.int64),
            above=np.empty(0, np.int64),
            left=nothing,
            owed=nothing,
            available=np.full(columns, UNBOUNDED),
            required=np.zeros(columns, np.int64),
        )

    def rows_of(self, client: int) -> list[int]:
        """Return the rows that bound a client: roles, innermost first, then further ones."""
        rows, row = [], int(self.of_client[client])
        while row >= 0:
            rows.append(row)
            row = int(self.above[row])
        return [*rows, *(row for row in self.further[client].tolist() if row >= 0)]

    def with_further(self, left: Ints, of_client: Ints) -> "Bounds":
        """Add bounds.

        `left` (q, R), in thousandths: what may be granted under each.
        `of_client` (C, n): those that apply to each client, 0 to q-1; -1: none.
        """
        rows = np.where(of_client >= 0, of_client + len(self.above), -1)
        return self._replace(
            further=np.concatenate([self.further, rows], axis=1),
            above=np.concatenate([self.above, np.full(len(left), -1)]),
            left=np.concatenate([self.left, left]),
            owed=np.concatenate([self.owed, np.zeros_like(left)]),
        )


class Lines(NamedTuple):
    """The tasks of a gang, as l lines of equal tasks.

    `size` (l, R), in thousandths: the need of one task.
    `number` (l,): number of tasks.
    `agent` (l,): handle of the only agent on which they may run; 0: any; -1: that agent does not
        exist.
    """

    size: Ints
    number: Ints
    agent: Ints


class Gangs(NamedTuple):
    """Clients that start several tasks at once or not at all; see `allocator.core.cycle.gangs`.

    `client` (n,): clients of this cycle with a gang and a known demand, ascending.
    `tasks` (n,): the size of each gang, in tasks (or lots) of the snapshot's demand.
    `unlike`: by client, the tasks of gangs whose tasks differ. All tasks of other gangs are of the
        client's demand.
    `refuser`, `refused` (q,): for each filter of a client in `unlike`: the client, ascending, and
        the handle of the agent.
    `collects` (k,): the clients whose gangs collect; the earliest collection comes first.
    `collector`, `collects_on`, `collects_line`, `collects_for` (m,): for each agent and line for
        which a gang collects: the client, the agent, the line, and the number of tasks.
    `guests` (k, C): the clients that may be offered what each gang of `collects` keeps, because
        their tasks end in time; None: no gang has guests.
    """

    client: Ints
    tasks: Ints
    unlike: Mapping[int, Lines]
    refuser: Ints
    refused: Ints
    collects: Ints
    collector: Ints
    collects_on: Ints
    collects_line: Ints
    collects_for: Ints
    guests: Bools | None = None

    @staticmethod
    def of(client: Ints, tasks: Ints) -> "Gangs":
        """Return gangs of equal tasks that do not collect."""
        none = _nothing()
        return Gangs(client, tasks, {}, none, none, none, none, none, none, none)


@dataclass(frozen=True, slots=True)
class AgentClasses:
    """Agents grouped by equal capacity, K groups.

    `capacity` (K, R), in thousandths; `count` (K,): number of agents.
    """

    capacity: Ints
    count: Ints


@dataclass(frozen=True)
class Snapshot:
    """The frozen input of one cycle.

    - `resources`: R names.
    - `counted` (R,): which resources count towards shares (scalars that the operator did not
      exclude).
    - `capacity` (A, R), in thousandths.
    - `free` (A, R), in thousandths: what any client may be granted now, in any part; from 0 to the
      capacity.
    - `specials`: the other free resources.
    - `total` (R,), in thousandths: capacity of the whole cluster.
    - `agents` (J,): candidate agents of this cycle, ascending.
    - `handle` (A,): the handle of each agent, ascending.
    - `minimum` (M, R), in thousandths: an offer must reach one of its client's rows in every
      column.
    - `minimum_rows` (C, 2): the range of each client's rows in `minimum`: first and end. Empty: any
      non-empty offer is enough.
    - `bounds`: quotas.
    - `held` (C, R), in thousandths: what each client holds, offered or used; mixed with its average
      over time if averages count.
    - `agents_held` (C,): the number of agents on which each client holds something; mixed as above.
    - `demand` (C, R), in thousandths: the size of one task; zeros if unknown. If thousands of tasks
      fit into an agent, the size of a lot of them.
    - `characterised` (C,): True: the client is offered whole tasks of its demand. False: all that
      is free.
    - `overdue` (C,): clients that have waited too long for an offer and can be served now; each
      gets one grant before all others.
    - `excluded`: a bit for each pair: the client may not be served on the agent;
      `allocator.core.shared_pairs` reads the bits of many pairs.
    - `excluding` (A,): False: no client is excluded from this agent.
    - `holder` (H,): sorted keys ``agent * 2**32 + client`` of all holdings.
    - `leaf_of_client` (C,): leaf of each client; -1 if it is not served in this cycle.
    - `parent_of_client` (C,): the innermost inner node whose sum contains the client's holdings:
      the parent of its leaf, or without a leaf the nearest ancestor in the tree.
    - `classes`: all agents by capacity.
    - `plan`: the plan in force; None if there is none.
    - `gangs`: None if there are none. Policies can ignore it.
    - `over_budget` (C,): clients that are served after all others; None if there are none. Policies
      can ignore it.
    - `counts`: caps on tasks and on agents; None if there are none. Policies can ignore it.
    - `claimed` (q, R), in thousandths: how much more each role, one of the first rows of `bounds`,
      is entitled to beyond what it consumes; -1: it makes no claim. None if there are no claims.
      Policies can ignore it.
    - `earlier`: what was granted before in this cycle, which asks the policy several times; None:
      this is the first time. Further grants to the same client on the same agent join the same
      offer, so they need not reach the minimum.
    """

    resources: tuple[str, ...]
    counted: Bools
    capacity: Ints
    free: Ints
    specials: Specials
    total: Ints
    agents: Ints
    handle: Ints
    minimum: Ints
    minimum_rows: Ints
    bounds: Bounds
    held: Ints
    agents_held: Ints | Floats
    demand: Ints
    characterised: Bools
    overdue: Bools
    excluded: SharedBits
    excluding: Bools
    filters: Filters
    holder: Ints
    tree: Tree
    leaf_of_client: Ints
    parent_of_client: Ints
    classes: AgentClasses
    plan: Plan | None = None
    gangs: Gangs | None = None
    over_budget: Bools | None = None
    claimed: Ints | None = None
    counts: Counts | None = None
    earlier: "Grants | None" = None

    @cached_property
    def free_by_column(self) -> Ints:
        """What is free on each agent, of all kinds, (A, R)."""
        return self.free + self.specials.by_column(self.free.shape[1])

    @property
    def has_demand(self) -> Bools:
        """Which clients have a known demand, in either mode, (C,)."""
        return has_demand(self.demand)

    @property
    def opening(self) -> Ints:
        """The number of tasks with which an offer to each client begins, (C,): `opening_tasks`."""
        return opening_tasks(self.demand, self.minimum, self.minimum_rows)

    @cached_property
    def tasks(self) -> Floats:
        """The number of tasks that each client holds, with fractions, (C,); 0 if unknown."""
        return tasks_held(self.held, self.demand, self.characterised)

    def new_pairs(self, grants: "Grants") -> Ints:
        """Return the pairs of grants that hold nothing before: keys as in `holder`, sorted."""
        pairs = distinct(grants.pair)
        return pairs[~contains(self.holder, pairs)]

    def held_over_tree(self, gain: Floats, count: Floats) -> Floats:
        """Add up clients' holdings, and a count, at every node of the tree.

        - `gain` (C,): a factor for the amounts of each client.
        - `count` (C,): a value of each client that is added up as well.

        Returns (N, R + 1): at a leaf the values of its client; at an inner node the sum over all
        clients below it, whether or not they are served in this cycle. The count is the last
        column.
        """
        tree = self.tree
        at = self.parent_of_client
        arrays = tree.parent, tree.client, at, self.held, gain, count
        summed: Floats = add_up_amounts(*map(loop_view, arrays))
        return summed


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Grants:
    """A policy's grants, one row each, in order.

    - `client` (G,); `agent` (G,).
    - `tasks` (G,): number of tasks granted; 0 if all that was free was granted.
    - `amount` (G, R), in thousandths: plain resources.
    - `special_grant` (X,): the grant to which each special part belongs, ascending.
    - `special` (X,): index of its kind in `Specials`.
    - `special_amount` (X,), in thousandths.
    """

    client: Ints
    agent: Ints
    tasks: Ints
    amount: Ints
    special_grant: Ints = field(default_factory=_nothing)
    special: Ints = field(default_factory=_nothing)
    special_amount: Ints = field(default_factory=_nothing)

    def __len__(self) -> int:
        return len(self.client)

    @property
    def pair(self) -> Ints:
        """The agent and client of each grant as one number, (G,): keys as in `Snapshot.holder`."""
        return pair(self.agent, self.client)

    def some(self, mask: Bools) -> "Grants":
        special = mask[self.special_grant]
        number = np.cumsum(mask) - 1
        return Grants(
            self.client[mask],
            self.agent[mask],
            self.tasks[mask],
            self.amount[mask],
            number[self.special_grant[special]],
            self.special[special],
            self.special_amount[special],
        )

    @staticmethod
    def none(resources: int) -> "Grants":
        empty = np.empty(0, np.int64)
        return Grants(empty, empty, empty, np.empty((0, resources), np.int64))

"""The input and output of a cycle's decision: arrays only.

The core takes a `Snapshot` at the start of a cycle and passes it to the policy, which returns
`Grants`. Its arrays are read-only.

Index spaces
------------
agent
    row of the snapshot's agent arrays, 0 to A-1: of the agents that this cycle is about, in the
    order of their handles. Row 0 is never an agent. Rows that are none hold zeros.
client
    row of the client arrays, 0 to C-1: one framework in one role.
column
    a resource by name, 0 to R-1.
node
    a place in the tree of this cycle, 0 to N-1: first one leaf for each client that may be served
    (L leaves, in the order of client rows), then the inner nodes, children before parents, so that
    the root is N-1.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from allocator.core.numba import array_types
from allocator.core.numba.tree_sums import add_up_amounts
from allocator.core.openings import opening_tasks
from allocator.core.plan import Plan
from allocator.core.task_counts import has_demand, tasks_held

Ints = array_types.Ints
Floats = array_types.Floats
Bools = array_types.Bools
BitWords = array_types.BitWords
Indices = array_types.Indices

UNBOUNDED = 2**62
"""An amount that is more than there ever is."""


class Tree(NamedTuple):
    """The competing clients of this cycle, as a tree.

    `client` (L,): client row of each leaf, ascending.
    `parent` (N,): parent node; -1 for the root.
    `child_start` (N + 1,): the children of node n are ``child[child_start[n]:child_start[n + 1]]``.
    `child` (N - 1,): children, ascending within a parent.
    `weight` (N,): weight among siblings, > 0.
    `served` (N,): of two siblings with equal scores the one with less comes first, see `turns`;
        then the one with the lower number. None has more than the root. Each grant of the cycle
        gives the leaf and all above it one more than the root had.
    `scheme` (N,): which criterion of the policy orders the children: 0, or that of the subtree.
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

    A grant to ``client[f]`` on the list's agent is barred when ``amount[f]`` covers what it would
    be offered, kind by kind.

    `head` (A,): first filter of each agent; -1 if there is none.
    `next` (X,): next filter of the same agent; -1 at the end.
    `client` (X,).
    `amount` (X, K), in thousandths: by kind.
    `plain_kind` (R,): the kind that ``free`` of the snapshot is of, in each column; -1 if there
        is none.
    `largest` (A, K), in thousandths: no filter on the agent has more of any kind.
    `covered` (A, W): bit ``c % 64`` of word ``c // 64``: some filter covers all that client c could
        be offered on this agent, if no other grant comes before and no quota bounds it.
    """

    head: Indices
    next: Indices
    client: Indices
    amount: Ints
    plain_kind: Ints
    largest: Ints
    covered: BitWords


class Specials(NamedTuple):
    """Free resources that are not for every client or not divisible: reserved, revocable, disks.

    Agent a has the rows ``range(start[a], start[a + 1])``, in the order in which a task takes from
    them; each is some amount of one special kind.

    `start` (A + 1,).
    `row` (E,): which special kind, 0 to S-1.
    `free` (E,), in thousandths.
    `kind` (S,): handle.
    `column` (S,).
    `tier` (S,): how a task may use it, see `Tier`.
    `bounded` (S,): counts against quota, as what is plain does.
    `whole` (S,): given whole or not at all.
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
        """Return the value for free resources that are all plain."""
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

    def by_column(self, columns: int) -> Ints:
        """Sum up everything, (A, R), for any client."""
        result = np.zeros((len(self.start) - 1, columns), np.int64)
        agent = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        np.add.at(result, (agent, self.column[self.row]), self.free)
        return result


class Tier(IntEnum):
    """The order in which tasks use resources.

    Plain resources come after those that are reserved. Revocable ones are used for all of a
    resource or for none of it, because Mesos does not let tasks mix them; shared volumes are no
    room. The contents of the rest are unknown, so no task is made of it.
    """

    RESERVED = 0
    OPEN = 1
    REVOCABLE = 2
    SHARED = 3
    REST = 4


class Bounds(NamedTuple):
    """What quotas leave to each role, and what they hold back from all.

    `of_client` (C,): the innermost bound of a role that a client is under; -1 if it is under
        none.
    `of_framework` (C,): another bound that a client is under, beside those: its framework's own,
        the same for all its roles; nothing is above it. -1 if there is none.
    `above` (Q,): the bound that this one is under; -1 if there is none.
    `left` (Q, R), in thousandths: how much more may be given below; `UNBOUNDED` if there is no
        limit.
    `owed` (Q, R), in thousandths: the unmet part of the guarantee.
    `available` (R,), in thousandths: what is free and counts against quota, on all agents.
    `required` (R,), in thousandths: the part of it that must stay free for guarantees.
    """

    of_client: Ints
    of_framework: Ints
    above: Ints
    left: Ints
    owed: Ints
    available: Ints
    required: Ints

    @staticmethod
    def none(clients: int, columns: int) -> "Bounds":
        """Return the value without quotas."""
        nothing = np.empty((0, columns), np.int64)
        return Bounds(
            of_client=np.full(clients, -1),
            of_framework=np.full(clients, -1),
            above=np.empty(0, np.int64),
            left=nothing,
            owed=nothing,
            available=np.full(columns, UNBOUNDED),
            required=np.zeros(columns, np.int64),
        )


class Gangs(NamedTuple):
    """Clients that start several tasks at once or not at all; see `allocator.core.cycle.gangs`.

    `client` (n,): ascending; of this cycle, with a known demand.
    `tasks` (n,): how many of the snapshot's demand.
    `collects` (k,): those that collect, in the order of their turns.
    `collector`, `collects_on`, `collects_for` (m,): where: which of them, on which agent, for how
        many tasks; no two on one agent.
    `guests` (k, C): which clients may be offered what each of `collects` keeps, for their tasks end
        in time; None: none may.
    """

    client: Ints
    tasks: Ints
    collects: Ints
    collector: Ints
    collects_on: Ints
    collects_for: Ints
    guests: Bools | None = None

    @staticmethod
    def of(client: Ints, tasks: Ints) -> "Gangs":
        """Gangs before one begins to collect."""
        none = _nothing()
        return Gangs(client, tasks, none, none, none, none)


@dataclass(frozen=True, slots=True)
class AgentClasses:
    """Agents grouped by equal capacity.

    `capacity` (K, R), in thousandths; `count` (K,).
    """

    capacity: Ints
    count: Ints


@dataclass(frozen=True)
class Snapshot:
    """The frozen input of one cycle.

    - `resources`, R names.
    - `counted` (R,): which resources count towards shares (scalars that the operator did not
      exclude).
    - `capacity` (A, R), in thousandths.
    - `free` (A, R), in thousandths: what any client may be granted now, in any part; from 0 to the
      capacity.
    - `specials`: what else is free.
    - `total` (R,), in thousandths: capacity of the whole cluster.
    - `agents` (J,): candidate agents of this cycle, ascending.
    - `handle` (A,): the handle of each agent, ascending.
    - `minimum` (M, R), in thousandths: an offer must reach one of its client's rows in every
      column.
    - `minimum_rows` (C, 2): first row of each client, and the end; none: anything that is not empty
      is offered.
    - `bounds`: quotas.
    - `held` (C, R), in thousandths: offered and used, of every client; with averages over time if
      these count.
    - `agents_held` (C,): on how many agents each client holds something; the same.
    - `demand` (C, R), in thousandths: one task's needs; zeros if unknown. Of tasks so small that
      thousands fit into an agent it is what a lot of them needs.
    - `characterised` (C,): True: the client is served in whole tasks of its demand. False: with all
      that is free.
    - `overdue` (C,): who has waited for an offer too long, and could be served now: it is given one
      before the others.
    - `excluded` (A, W): bit ``c % 64`` of word ``c // 64``: client c may not be served on this
      agent.
    - `excluding` (A,): False: no client is excluded from this agent.
    - `holder` (H,): sorted keys ``agent * 2**32 + client`` of who holds something where.
    - `leaf_of_client` (C,): leaf of each client; -1 if it is not served in this cycle.
    - `parent_of_client` (C,): the innermost node of this cycle that counts the client's holdings
      (the parent of its leaf; the nearest ancestor in the tree if it has no leaf).
    - `classes`: all agents by capacity.
    - `plan`: the plan in force.
    - `gangs`: None if there is none. Policies need not look at it.
    - `over_budget` (C,): clients that are served after all others; None if there is none. Policies
      need not look at it either.
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
    excluded: BitWords
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

    @cached_property
    def free_by_column(self) -> Ints:
        """What is free on each agent, for any client, (A, R)."""
        return self.free + self.specials.by_column(self.free.shape[1])

    @property
    def has_demand(self) -> Bools:
        """Which clients have a known demand, in either mode, (C,)."""
        return has_demand(self.demand)

    @property
    def opening(self) -> Ints:
        """How many tasks an offer to each client begins with, (C,), see `opening_tasks`."""
        return opening_tasks(self.demand, self.minimum, self.minimum_rows)

    @cached_property
    def tasks(self) -> Floats:
        """Whole and part tasks that each client holds, (C,); 0 if the demand is unknown."""
        return tasks_held(self.held, self.demand, self.characterised)

    def held_over_tree(self, gain: Floats, count: Floats) -> Floats:
        """Sum up clients' holdings, and a count, at every node of the tree.

        - `gain` (C,): what the amounts of each client are multiplied by.
        - `count` (C,).

        Returns (N, R + 1): at a leaf what is its client's, at an inner node the sum over all
        clients below it, served in this cycle or not. The count is the last column.
        """
        tree = self.tree
        at = self.parent_of_client
        return add_up_amounts(tree.parent, tree.client, at, self.held, gain, count)


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Grants:
    """A policy's grants, one row each, in order.

    - `client` (G,); `agent` (G,).
    - `tasks` (G,): tasks of the demand vector; 0 if all that was free was given.
    - `amount` (G, R), in thousandths: of what is plain.
    - `special_grant` (X,): the grant that each special part belongs to, ascending.
    - `special` (X,): row of `Specials`.
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

    def some(self, mask: Bools) -> "Grants":
        """Those of a mask (G,)."""
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
        """No grants, over a number of resources."""
        empty = np.empty(0, np.int64)
        return Grants(empty, empty, empty, np.empty((0, resources), np.int64))

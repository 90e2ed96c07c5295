"""The arrays of the compiled loops.

A *place* is a node of the tree, renumbered so that a node's children are adjacent, in their old
order. Children still come before their parents; the root is the last place.
"""

from typing import NamedTuple

from allocator.core.needs import ThresholdIndex
from allocator.core.numba.shared_bits import SharedBits
from allocator.core.snapshot import BitTable, Bools, Bounds, Floats, Indices, Ints, Specials


class Places(NamedTuple):
    """The tree; grants do not change it.

    `client` (P,): client row of a leaf; -1 at an inner place.
    `parent` (P,): -1 at the root.
    `first`, `last` (P,): the children are ``range(first, last)``; a leaf has none.
    `weight` (P,).
    `known` (P,): whether the place is a leaf that is served in whole tasks.
    `demand` (P, R), in thousandths: the size of one task; zeros if unknown and at inner places.
    `opening` (P,): tasks in the first grant on an agent, as in the snapshot; 1 if not known.
    `least_row`, `end_row` (P,): the leaf's range of rows of the minimum.
    `usual` (P,): whether the leaf has the usual rows of the minimum and, if it is known, one task
        makes an offer.
    `first_column`, `end_column` (P,): the columns of the criterion that scores a place and its
        siblings; `additive` (P,): as in that `Criterion`.
    `amount_gain`, `task_gain`, `agent_gain` (G, P): as in each `Criterion`.
    `residual` (K,): whether the column's denominators are what is free now.
    `overdue` (P,): whether the leaf has waited too long and is served before the others.
    `of_client` (C,): place of each client's leaf; -1 if it has none.
    """

    client: Ints
    parent: Ints
    first: Ints
    last: Ints
    weight: Floats
    known: Bools
    demand: Ints
    opening: Ints
    least_row: Ints
    end_row: Ints
    usual: Bools
    first_column: Ints
    end_column: Ints
    additive: Bools
    amount_gain: Floats
    task_gain: Floats
    agent_gain: Floats
    residual: Bools
    overdue: Bools
    of_client: Ints


class Standing(NamedTuple):
    """The state of the competition; changes with every grant.

    `measure` (K, P): as in each `Criterion`, transposed: columns of resources and a count column.
    `denominator` (1, K) or (A, K); `served` (P,).
    `score` (P,): the first key of the tournaments.
    `out` (P,): whether the place takes no part in its tournament.
    `winner` (2 * P,): the tournaments, see `tournament`.
    `spent` (P,): whether quotas are known to leave the clients below nothing more in this stage, on
        agents without special resources.
    """

    measure: Floats
    denominator: Floats
    served: Ints
    score: Floats
    out: Bools
    winner: Ints
    spent: Bools


class Agents(NamedTuple):
    """The agents; `free`, `special_free`, `taker`, `barred` and `stands` change with every grant.

    `row` (J,): candidates, ascending.
    `free` (A, R), in thousandths; `minimum` (M, R), in thousandths.
    `excluded`; `covered` (B, A, V): bits of the clients that an agent may not serve, because they
        are excluded, or because their filters cover all that they could be offered: as in the
        snapshot.
    `barred` (B, A, V): bits of further clients that it may not serve, found by the loops. Separate,
        as copies of the other two would take hundreds of MiB if there are many clients.
    `barring` (A,): agents that may have any of these bits; the others need no look-up.
    `head` (A,); `next`, `client` (X,); `amount` (K, X), in thousandths; `plain_kind` (R,);
        `largest` (K, A), in thousandths: the filters, as in `Filters` of the snapshot.
    `start` (A + 1,): as in `Specials` of the snapshot.
    `special`, `special_free` (E,): `row` and `free` of `Specials`.
    `special_whole` (E,), in thousandths: what was free of it initially.
    `taker` (E,): the place that was granted a shared volume; -1 if none.
    `stands` (B, A, V): bits of the clients that were granted something on an agent in this cycle,
        so that there is an offer to add to. Clients with unknown demands, which are granted all
        that is free, count only if that was before these loops (`Snapshot.earlier`). No rows if
        `Rule.joins` is false.
    `holder` (H,): as in the snapshot, with `Snapshot.earlier` if `Rule.counts_agents`.
    """

    row: Ints
    free: Ints
    minimum: Ints
    excluded: SharedBits
    covered: BitTable
    barred: BitTable
    barring: Bools
    head: Indices
    next: Indices
    client: Indices
    amount: Ints
    plain_kind: Ints
    largest: Ints
    start: Ints
    special: Ints
    special_free: Ints
    special_whole: Ints
    taker: Ints
    stands: BitTable
    holder: Ints


class Rule(NamedTuple):
    """Properties of the criteria and the snapshot that select code paths.

    `shared`: there is one denominator for all agents.
    `residual`: some denominators are what is free now.
    `counts_agents`: some client's `agent_gain` is above 0.
    `bounded`: there are quotas.
    `simple`: every offer is all that is free, or one task: nothing is special, bounded, or kept
        free for guarantees.
    `adds`: some clients have offers from before these loops to add to (`Snapshot.earlier`).
    `several`: some clients' offers begin with several tasks, or `adds`.
    `joins`: it matters whether there is an offer to add to: `several`, or some client is served in
        tasks and some resources are special.
    `stage`: see `stages_of`.
    """

    shared: bool
    residual: bool
    counts_agents: bool
    bounded: bool
    simple: bool
    adds: bool
    several: bool
    joins: bool
    stage: int


class Effort(NamedTuple):
    """When the loops switch between methods; affects speed, never grants.

    `tries`: number of clients tried in order before an agent's visit examines all.
    `groups`: maximum number of groups of agents with equal denominators that are handled as groups.
    `few`: number of best agents kept for a client if all agents are scored at once.
    `block`: number of agents that the best-fit search examines together.
    `looks`: number of failed tests of single pairs before all pairs are tested together, relative
        to the number of pairs of an agent and a word of 64 clients.
    `thresholds_from`: number of agents from which an index of clients by their needs pays off.
    `rare`: number of visits between two agents that may serve a parked client, from which such
        agents count as rare.
    """

    tries: int = 8
    groups: int = 64
    few: int = 16
    block: int = 16
    looks: int = 1
    thresholds_from: int = 8
    rare: int = 16


class Offer(NamedTuple):
    """What a leaf would be offered on an agent; the arrays are reused for every offer.

    `plain` (R,), in thousandths: plain resources.
    `whole` (R,), in thousandths: all resources by column.
    `bounded` (R,), in thousandths: the part of `whole` that counts against quota.
    `ceiling` (R,), in thousandths: the maximum of `bounded`.
    `special` (T,), in thousandths: amounts of each of the agent's special resources.
    `tasks` (1,): number of tasks; 0 if the offer is not made of tasks.
    `before` (3, R), `special_before` (T,): `plain`, `whole`, `bounded` and `special` before the
        last task was added.
    """

    plain: Ints
    whole: Ints
    bounded: Ints
    ceiling: Ints
    special: Ints
    tasks: Ints
    before: Ints
    special_before: Ints


class Scene(NamedTuple):
    """All arrays together, as most steps take them.

    `kinds`: the special kinds; what is free of them is in `agents`.
    `thresholds`: the clients by their needs, see `core.needs`; empty if there are few agents.
    """

    places: Places
    standing: Standing
    agents: Agents
    kinds: Specials
    bounds: Bounds
    rule: Rule
    offer: Offer
    thresholds: ThresholdIndex


class Log(NamedTuple):
    """The grants so far; the arrays grow when they are full.

    `length` (2,): number of grants, and of their special parts.
    `place`, `agent`, `tasks` (G,); `amount` (G, R), in thousandths.
    `last_on_agent` (A,): latest grant on each agent; -1 if none.
    `previous` (G,): the previous grant on the same agent.
    `part_of`, `part`, `part_amount` (Y,): special parts: their grant, their index among the agents'
        special resources, and their amount.
    """

    length: Ints
    place: Ints
    agent: Ints
    tasks: Ints
    amount: Ints
    last_on_agent: Ints
    previous: Ints
    part_of: Ints
    part: Ints
    part_amount: Ints

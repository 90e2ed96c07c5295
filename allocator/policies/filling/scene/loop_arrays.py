"""What the compiled loops work on.

A *place* is a node of the tree, renumbered so that the children of a node are neighbours, in their
old order. Children come before their parents; the root is the last place.
"""

from typing import NamedTuple

from allocator.core.snapshot import Bools, Bounds, Floats, Indices, Ints, Words
from allocator.core.wants import Ladders


class Places(NamedTuple):
    """The tree, which no grant changes.

    `client` (P,): client row of a leaf; -1 at an inner place.
    `parent` (P,): -1 at the root.
    `first`, `last` (P,): the children are ``range(first, last)``; a leaf has none.
    `weight` (P,).
    `known` (P,): a leaf that is served in whole tasks.
    `demand` (P, R), in thousandths: one task's needs; zeros where unknown and at inner places.
    `opening` (P,): how many tasks an offer begins with, as in the snapshot; 1 where not known.
    `least_row`, `end_row` (P,): which rows of the minimum are the leaf's.
    `usual` (P,): a leaf with the rows that most have, of which one task is an offer where known.
    `first_column`, `end_column` (P,): the columns that a place and its siblings are scored by:
        those of one criterion.
    `additive` (P,): as in that `Criterion`.
    `amount_gain`, `task_gain`, `agent_gain` (G, P): as in each `Criterion`.
    `residual` (K,): columns whose denominators are what is free now.
    `overdue` (P,): a leaf that waited too long, and is served before the others.
    `of_client` (C,): place of each client's leaf; -1 where it has none.
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
    """Where everybody stands; changes with every grant.

    `measure` (K, P): criterion after criterion: a column for each resource, and one that counts.
    `denominator` (1, K) or (A, K); `served` (P,).
    `score` (P,): what the tournaments compare first.
    `out` (P,): takes no part in its tournament.
    `winner` (2 * P,): the tournaments, see `tournament`.
    `spent` (P,): a place below which quotas leave nothing more to anybody in this stage, where
        nothing is special; not all are known.
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
    `barred` (A, W): bits of the clients that may not be served on an agent, be it that they are
        excluded or that their filters cover all that they could be offered.
    `barring` (A,): agents that may have such a bit; the others need not be asked for it.
    `head` (A,); `next`, `client` (X,); `amount` (X, K), in thousandths; `plain_kind` (R,).
    `largest` (A, K), in thousandths: the filters: `Filters` of the snapshot.
    `start` (A + 1,).
    `special`, `special_free` (E,): `Specials` of the snapshot: row and free.
    `special_whole` (E,), in thousandths: what was free of it at first.
    `taker` (E,): the place that was given a shared volume; -1: nobody.
    `stands` (A, W): bits of the clients with known demands that were given something of an agent in
        this cycle, so that there is an offer to add to. Without rows where no rule `joins`.
    `holder` (H,): as in the snapshot.
    """

    row: Ints
    free: Ints
    minimum: Ints
    barred: Words
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
    stands: Words
    holder: Ints


class Kinds(NamedTuple):
    """The special kinds, each (S,), and (S, W): as in `Specials` of the snapshot."""

    kind: Ints
    column: Ints
    tier: Ints
    bounded: Bools
    whole: Bools
    reach: Words


class Rule(NamedTuple):
    """What kind of criterion it is.

    `shared`: one denominator for all agents.
    `residual`: some denominators are what is free now.
    `counts_agents`: somebody gains by the agent.
    `bounded`: there are quotas.
    `simple`: offers are all that is free, or a task of it: nothing is special, bounded or held
        back.
    `several`: somebody's offers begin with several tasks.
    `joins`: so it matters whether there is an offer to add to: then, or where somebody is served in
        tasks and something is special.
    `stage`: see `stages_of`.
    """

    shared: bool
    residual: bool
    counts_agents: bool
    bounded: bool
    simple: bool
    several: bool
    joins: bool
    stage: int


class Effort(NamedTuple):
    """When the loops change from one method to another: matters for speed, never for grants.

    `tries`: how many clients are tried in their order before an agent's visit looks through all.
    `groups`: how many kinds of agents (equal denominators) are handled kind by kind at most.
    `few`: how many of the best agents are kept for a client where all agents are scored at once.
    `block`: how many agents the search for the best fit looks at together.
    `looks`: how many looks at a pair may be in vain, for each pair of an agent and a word of
        clients, before all pairs are looked at by words.
    `ladders_from`: from how many agents on clients are put on ladders. For fewer, to put thousands
        of clients there costs more than it spares.
    """

    tries: int = 8
    groups: int = 64
    few: int = 16
    block: int = 16
    looks: int = 1
    ladders_from: int = 8


class Offer(NamedTuple):
    """What a leaf would be offered on an agent; the same arrays are used for every offer.

    `plain` (R,), in thousandths.
    `whole` (R,), in thousandths: by column, with what is special.
    `bounded` (R,), in thousandths: the part of it that counts against quota.
    `ceiling` (R,), in thousandths: the most that may count.
    `special` (T,), in thousandths: of each of the agent's special rows.
    `tasks` (1,): how many it is made of; 0: it is not made of tasks.
    `before` (3, R), `special_before` (T,): plain, whole, bounded and special without its last task.
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
    """All of it together, as most steps take it.

    `ladders`: the clients by what they want, see `core.wants`; without layers for few agents.
    """

    places: Places
    standing: Standing
    agents: Agents
    kinds: Kinds
    bounds: Bounds
    rule: Rule
    offer: Offer
    ladders: Ladders


class Log(NamedTuple):
    """The grants so far; grown when full.

    `length` (2,): grants, and special parts of them.
    `place`, `agent`, `tasks` (G,); `amount` (G, R), in thousandths.
    `last_on_agent` (A,): latest grant on each agent; -1 where there is none.
    `previous` (G,): the grant before on the same agent.
    `part_of`, `part`, `part_amount` (Y,): special parts: of which grant, which row of the agents'
        special rows, and how much.
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

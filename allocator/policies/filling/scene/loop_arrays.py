"""What the compiled loops work on.

A *place* is a node of the tree, renumbered so that the children of a node are neighbours, in their
old order. Children come before their parents; the root is the last place.
"""

from typing import NamedTuple

from allocator.core.snapshot import Bools, Bounds, Floats, Indices, Ints, Words


class Places(NamedTuple):
    """The tree, which no grant changes.

    Attributes
    ----------
    client : (P,) int64
        Client row of a leaf; -1 at an inner place.
    parent : (P,) int64
        -1 at the root.
    first, last : (P,) int64
        The children are ``range(first, last)``; a leaf has none.
    weight : (P,) float64
    known : (P,) bool
        A leaf that is served in whole tasks.
    demand : (P, R) int64, thousandths
        One task's needs; zeros where unknown and at inner places.
    least_row, end_row : (P,) int64
        Which rows of the minimum are the leaf's.
    usual : (P,) bool
        A leaf with the rows that most have.
    first_column, end_column : (P,) int64
        The columns that a place and its siblings are scored by: those of one criterion.
    additive : (P,) bool
        As in that `Criterion`.
    amount_gain, task_gain, agent_gain : (G, P) float64
        As in each `Criterion`.
    residual : (K,) bool
        Columns whose denominators are what is free now.
    overdue : (P,) bool
        A leaf that waited too long, and is served before the others.
    of_client : (C,) int64
        Place of each client's leaf; -1 where it has none.
    """

    client: Ints
    parent: Ints
    first: Ints
    last: Ints
    weight: Floats
    known: Bools
    demand: Ints
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

    Attributes
    ----------
    measure : (K, P) float64
        Criterion after criterion: a column for each resource, and one that counts.
    denominator : (1, K) or (A, K) float64
    served : (P,) int64
    score : (P,) float64
        What the tournaments compare first.
    out : (P,) bool
        Takes no part in its tournament.
    winner : (2 * P,) int64
        The tournaments, see `tournament`.
    spent : (P,) bool
        A place below which quotas leave nothing more to anybody in this stage, where nothing is
        special; not all are known.
    """

    measure: Floats
    denominator: Floats
    served: Ints
    score: Floats
    out: Bools
    winner: Ints
    spent: Bools


class Agents(NamedTuple):
    """The agents; `free`, `special_free` and `barred` change with every grant.

    Attributes
    ----------
    row : (J,) int64
        Candidates, ascending.
    free : (A, R) int64, thousandths
    minimum : (M, R) int64, thousandths
    barred : (A, W) uint64
        Bits of the clients that may not be served on an agent, be it that they are excluded or that
        their filters cover all that they could be offered.
    barring : (A,) bool
        Agents that may have such a bit; the others need not be asked for it.
    head : (A,) int32
    next, client : (X,) int32
    amount : (X, K) int64, thousandths
    plain_kind : (R,) int64
    largest : (A, K) int64, thousandths
        The filters: `Filters` of the snapshot.
    start : (A + 1,) int64
    special, special_free : (E,) int64
        `Specials` of the snapshot: row and free.
    holder : (H,) int64
        As in the snapshot.
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

    Attributes
    ----------
    shared : bool
        One denominator for all agents.
    residual : bool
        Some denominators are what is free now.
    counts_agents : bool
        Somebody gains by the agent.
    bounded : bool
        There are quotas.
    simple : bool
        Offers are all that is free, or a task of it: nothing is special, bounded or held back.
    stage : int
        See `cycle_stages`.
    """

    shared: bool
    residual: bool
    counts_agents: bool
    bounded: bool
    simple: bool
    stage: int


class Effort(NamedTuple):
    """When the loops change from one method to another: matters for speed, never for grants.

    Attributes
    ----------
    tries : int
        How many clients are tried in their order before an agent's visit looks through all.
    groups : int
        How many kinds of agents (equal denominators) are handled kind by kind at most.
    few : int
        How many of the best agents are kept for a client where all agents are scored at once.
    block : int
        How many agents the search for the best fit looks at together.
    """

    tries: int = 8
    groups: int = 64
    few: int = 16
    block: int = 16


class Offer(NamedTuple):
    """What a leaf would be offered on an agent; the same arrays are used for every offer.

    Attributes
    ----------
    plain : (R,) int64, thousandths
    whole : (R,) int64, thousandths
        By column, with what is special.
    bounded : (R,) int64, thousandths
        The part of it that counts against quota.
    ceiling : (R,) int64, thousandths
        The most that may count.
    special : (T,) int64, thousandths
        Of each of the agent's special rows.
    """

    plain: Ints
    whole: Ints
    bounded: Ints
    ceiling: Ints
    special: Ints


class Scene(NamedTuple):
    """All of it together, as most steps take it."""

    places: Places
    standing: Standing
    agents: Agents
    kinds: Kinds
    bounds: Bounds
    rule: Rule
    offer: Offer


class Log(NamedTuple):
    """The grants so far; grown when full.

    Attributes
    ----------
    length : (2,) int64
        Grants, and special parts of them.
    place, agent, tasks : (G,) int64
    amount : (G, R) int64, thousandths
    last_on_agent : (A,) int64
        Latest grant on each agent; -1 where there is none.
    previous : (G,) int64
        The grant before on the same agent.
    part_of, part, part_amount : (Y,) int64
        Special parts: of which grant, which row of the agents' special rows, and how much.
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

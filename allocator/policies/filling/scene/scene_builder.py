"""Builds the compiled loops' arrays from a snapshot, and grants from their log.

Numba compiles a function once for each combination of argument types. Therefore each array always
has the same type: read-only if the loop only reads it, and a copy if it writes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from allocator.core.needs import ThresholdIndex, needs_of, threshold_index
from allocator.core.numba.bit_tables import set_pairs
from allocator.core.numba.compiled import loop, loop_view
from allocator.core.numba.memo import fixed, memoize
from allocator.core.numba.shared_bits import for_loops, shared_width
from allocator.core.numba.wide_tables import untouched
from allocator.core.openings import opens_with_several
from allocator.core.snapshot import (
    BitTable,
    Bools,
    Bounds,
    Floats,
    Grants,
    Ints,
    Snapshot,
    Specials,
)
from allocator.policies.filling.criterion import Criterion, characterised
from allocator.policies.filling.scene.blocks import Blocks, lay_out
from allocator.policies.filling.scene.loop_arrays import (
    Agents,
    Effort,
    Log,
    Offer,
    Places,
    Rule,
    Scene,
    Standing,
)
from allocator.policies.filling.scene.scoring import USUAL


def scene_of(
    snapshot: Snapshot, criteria: Sequence[Criterion], effort: Effort | None = None
) -> Scene:
    """Build the scene of a cycle.

    `criteria`: one per scheme of the tree.
    `effort`: that of the loop that uses the scene; None: no loop fills it.
    Raises CriterionError if the loops cannot use one of the criteria.
    """
    blocks = lay_out(snapshot, criteria)
    places, node = places_of(snapshot, blocks)
    earlier = _earlier(snapshot, places)
    rule = _rule_of(snapshot, blocks.criteria, adds=earlier is not None)
    return Scene(
        places=places,
        standing=_standing_of(snapshot, blocks.criteria, node),
        agents=_agents_of(snapshot, rule, earlier, places),
        kinds=Specials(*map(loop_view, snapshot.specials)),
        bounds=_bounds_of(snapshot),
        rule=rule,
        offer=_empty_offer(snapshot),
        thresholds=_thresholds_of(snapshot, effort),
    )


def _thresholds_of(snapshot: Snapshot, effort: Effort | None) -> ThresholdIndex:
    words = shared_width(snapshot.excluded)
    if effort is None or len(snapshot.agents) < effort.thresholds_from:
        return _no_thresholds(words)
    known, client = characterised(snapshot), snapshot.tree.client
    minimum = snapshot.minimum, snapshot.minimum_rows
    return _thresholds(known, snapshot.demand, *minimum, client, words)


@memoize()
def _no_thresholds(words: int) -> ThresholdIndex:
    """Make an index without clients, which excludes nothing."""
    none, nobody = np.zeros(0, np.int64), np.zeros((0, words), np.uint64)
    empty = ThresholdIndex(none, none, none, none, nobody, nobody, np.zeros(words, np.uint64))
    return ThresholdIndex(*map(_fixed_view, empty))


@memoize()
def _thresholds(
    known: Bools, demand: Ints, minimum: Ints, minimum_rows: Ints, client: Ints, width: int
) -> ThresholdIndex:
    """Index the leaves' clients; `width`: number of words of bits."""
    needs = needs_of(known, demand, minimum, minimum_rows)
    return ThresholdIndex(*map(_fixed_view, threshold_index(needs, client, np.arange(width))))


def _fixed_view(array: np.ndarray) -> np.ndarray:
    return loop_view(fixed(array))


class _Layout(NamedTuple):
    """The tree as places, without the numbers that change from cycle to cycle.

    `node` (P,): the node of each place.
    `leaf`, `of_leaf` (L,): the places that are leaves, ascending, and their clients.
    """

    node: Ints
    leaf: Ints
    of_leaf: Ints
    client: Ints
    parent: Ints
    first: Ints
    last: Ints
    of_client: Ints


@memoize()
def _layout(
    client_of_leaf: Ints, parent: Ints, child_start: Ints, child: Ints, leaf_of_client: Ints
) -> _Layout:
    """Renumber the tree so that a node's children are adjacent."""
    # `child` lists children parent by parent, which is the order of the places. `place` is the
    # inverse of `node`.
    node = np.append(child, len(parent) - 1)
    place = np.empty_like(node)
    place[node] = np.arange(len(node))
    is_leaf = node < len(client_of_leaf)
    leaf = np.flatnonzero(is_leaf)
    of_leaf = client_of_leaf[node[leaf]]
    client = np.full(len(node), -1)
    client[leaf] = of_leaf
    of_client = np.full(len(leaf_of_client), -1)
    of_client[of_leaf] = leaf
    above = parent[node]
    return _Layout(
        node=fixed(node),
        leaf=fixed(leaf),
        of_leaf=fixed(of_leaf),
        client=fixed(client),
        parent=fixed(np.where(above < 0, -1, place[above])),
        first=fixed(np.where(is_leaf, 0, child_start[node])),
        last=fixed(np.where(is_leaf, 0, child_start[node + 1])),
        of_client=fixed(of_client),
    )


def places_of(snapshot: Snapshot, blocks: Blocks) -> tuple[Places, Ints]:
    """Build the places; return them, and the node of each place, (P,)."""
    tree, criteria = snapshot.tree, blocks.criteria
    layout = _layout(
        tree.client, tree.parent, tree.child_start, tree.child, snapshot.leaf_of_client
    )
    terms = _Terms(
        characterised(snapshot),
        snapshot.demand,
        snapshot.opening,
        snapshot.minimum_rows,
        snapshot.overdue,
    )
    gains = _Gains(
        tuple(each.amount_gain for each in criteria),
        tuple(each.task_gain for each in criteria),
        tuple(each.agent_gain for each in criteria),
        tuple(each.residual for each in criteria),
    )
    return _places(layout, terms, gains, blocks[1:]), layout.node


class _Terms(NamedTuple):
    """Demands, minimums and waits of clients, (C,) or (C, ...), as in the snapshot."""

    known: Bools
    demand: Ints
    opening: Ints
    minimum_rows: Ints
    overdue: Bools


class _Gains(NamedTuple):
    """The gains of each criterion, (C,) each, see `Criterion`."""

    amount: tuple[Floats, ...]
    task: tuple[Floats, ...]
    agent: tuple[Floats, ...]
    residual: tuple[bool, ...]


@memoize(size=2)
def _places(
    layout: _Layout, terms: _Terms, gains: _Gains, score_by: tuple[Ints, Ints, Bools, Floats]
) -> Places:
    """Build the places from clients' terms; `score_by`: the result of `blocks._score_by`."""
    count, leaf, of_leaf = len(layout.node), layout.leaf, layout.of_leaf
    known = np.zeros(count, np.bool_)
    known[leaf] = terms.known[of_leaf]
    demand = np.zeros((count, terms.demand.shape[1]), np.int64)
    demand[leaf] = np.where(known[leaf, None], terms.demand[of_leaf], 0)
    opening = np.ones(count, np.int64)
    opening[leaf] = np.where(known[leaf], terms.opening[of_leaf], 1)
    # Inner places have the usual minimum, although nothing is offered to them.
    usual = terms.minimum_rows[0]
    least_row, end_row = np.full(count, usual[0]), np.full(count, usual[1])
    least_row[leaf] = terms.minimum_rows[of_leaf, 0]
    end_row[leaf] = terms.minimum_rows[of_leaf, 1]
    overdue = np.zeros(count, np.bool_)
    overdue[leaf] = terms.overdue[of_leaf]

    def gain(values: Sequence[Floats]) -> Floats:
        result = np.zeros((len(values), count))
        for row, each in zip(result, values, strict=True):
            row[leaf] = each[of_leaf]
        return fixed(result)

    first_column, end_column, additive, weight = score_by
    node = layout.node
    return Places(
        client=layout.client,
        parent=layout.parent,
        first=layout.first,
        last=layout.last,
        weight=fixed(weight[node]),
        known=fixed(known),
        demand=fixed(demand),
        opening=fixed(opening),
        least_row=fixed(least_row),
        end_row=fixed(end_row),
        usual=fixed((least_row == usual[0]) & (end_row == usual[1]) & (opening == 1)),
        first_column=fixed(first_column[node]),
        end_column=fixed(end_column[node]),
        additive=fixed(additive[node]),
        amount_gain=gain(gains.amount),
        task_gain=gain(gains.task),
        agent_gain=gain(gains.agent),
        residual=fixed(np.repeat(gains.residual, demand.shape[1] + 1)),
        overdue=fixed(overdue),
        of_client=layout.of_client,
    )


def _standing_of(snapshot: Snapshot, criteria: Sequence[Criterion], node: Ints) -> Standing:
    # If one criterion has a denominator per agent, repeat shared ones for each agent.
    rows = max(len(each.denominator) for each in criteria)
    denominators = [
        np.broadcast_to(each.denominator, (rows, each.denominator.shape[1])) for each in criteria
    ]
    return Standing(
        measure=_stacked([_by_column(loop_view(each.measure), node) for each in criteria]),
        denominator=own(np.hstack(denominators), np.float64),
        served=own(snapshot.tree.served[node], np.int64),
        score=np.zeros(len(node)),
        out=np.zeros(len(node), np.bool_),
        winner=np.zeros(2 * len(node), np.int64),
        spent=np.zeros(len(node), np.bool_),
    )


@loop
def _by_column(measure: Floats, node: Ints) -> Floats:
    """Convert measures by node (N, K) to measures by column and place (K, P)."""
    result = np.empty((measure.shape[1], len(node)))
    for place in range(len(node)):
        for k in range(measure.shape[1]):
            result[k, place] = measure[node[place], k]
    return result


def _stacked(tables: Sequence[Floats]) -> Floats:
    return tables[0] if len(tables) == 1 else np.vstack(tables)


def _earlier(snapshot: Snapshot, places: Places) -> Grants | None:
    """Return what was granted before to the clients that are served; None: nothing."""
    before = snapshot.earlier
    if before is None:
        return None
    served = places.of_client[before.client] >= 0
    return before.some(served) if served.any() else None


def _agents_of(snapshot: Snapshot, rule: Rule, earlier: Grants | None, places: Places) -> Agents:
    filters, specials = snapshot.filters, snapshot.specials
    barring = snapshot.excluding | (filters.head >= 0)
    stands = untouched(filters.covered.shape if rule.joins else (1, 0, 0), np.uint64)
    holder, taker, whole = snapshot.holder, np.full(len(specials.free), -1), specials.free
    if earlier is not None:
        client, agent = earlier.client, earlier.agent
        set_pairs(stands, agent, client)
        if rule.counts_agents:
            holder = np.union1d(holder, earlier.pair)
        entry = specials.entries(agent[earlier.special_grant], earlier.special)
        taker[entry] = places.of_client[client[earlier.special_grant]]
        whole = specials.free.copy()
        np.add.at(whole, entry, earlier.special_amount)
    return Agents(
        row=read_only(snapshot.agents, np.int64),
        free=_copied(snapshot.free, int(snapshot.agents.max(initial=-1)) + 1),
        minimum=read_only(snapshot.minimum, np.int64),
        excluded=for_loops(snapshot.excluded),
        covered=read_only(filters.covered, np.uint64),
        barred=untouched(filters.covered.shape, np.uint64),
        barring=read_only(barring, np.bool_),
        head=read_only(filters.head, np.int32),
        next=read_only(filters.next, np.int32),
        client=read_only(filters.client, np.int32),
        amount=read_only(filters.amount, np.int64),
        plain_kind=read_only(filters.plain_kind, np.int64),
        largest=read_only(filters.largest, np.int64),
        start=read_only(specials.start, np.int64),
        special=read_only(specials.row, np.int64),
        special_free=own(specials.free, np.int64),
        special_whole=read_only(whole, np.int64),
        taker=taker,
        stands=stands,
        holder=read_only(holder, np.int64),
    )


def with_barred(agents: Agents, more: BitTable, barring: Bools) -> Agents:
    """Bar more clients, (B, A, V) bits; what the loops bar does not affect the given agents."""
    barred, barring = agents.barred | more, read_only(barring, np.bool_)
    return agents._replace(barred=barred, barring=barring)


def _copied(free: Ints, end: int) -> Ints:
    """Copy what is free, for the loops to write; rows from `end` on are not used."""
    copy = untouched(free.shape, np.int64)
    copy[:end] = free[:end]
    return copy


def _bounds_of(snapshot: Snapshot) -> Bounds:
    bounds = snapshot.bounds
    return Bounds(
        of_client=read_only(bounds.of_client, np.int64),
        further=read_only(bounds.further, np.int64),
        above=read_only(bounds.above, np.int64),
        left=own(bounds.left, np.int64),
        owed=own(bounds.owed, np.int64),
        available=own(bounds.available, np.int64),
        required=own(bounds.required, np.int64),
    )


def _rule_of(snapshot: Snapshot, criteria: Sequence[Criterion], *, adds: bool) -> Rule:
    bounded = bool(len(snapshot.bounds.above)) or bool(snapshot.bounds.required.any())
    # Offers are unusual for clients with a minimum of their own, or one above their task.
    known, client = characterised(snapshot), snapshot.tree.client
    several = adds or _has_any(opens_with_several(known, snapshot.opening), client)
    unusual = several or not _is_usual(snapshot.minimum_rows, client)
    special = bool(len(snapshot.specials.row))
    return Rule(
        shared=all(len(each.denominator) == 1 for each in criteria),
        residual=any(each.residual for each in criteria),
        counts_agents=any(_is_any(each.agent_gain) for each in criteria),
        bounded=bounded,
        simple=not (bounded or special or unusual),
        adds=adds,
        several=several,
        joins=several or (special and _has_any(known, client)),
        stage=USUAL,
    )


@memoize(size=4)
def _is_any(gain: Floats) -> bool:
    return bool((gain > 0).any())


@memoize(size=2)
def _has_any(marked: Bools, client: Ints) -> bool:
    return bool(marked[client].any())


@memoize()
def _is_usual(minimum_rows: Ints, client: Ints) -> bool:
    """Whether all clients have the usual minimum, which is that of row 0."""
    return bool((minimum_rows[client] == minimum_rows[0]).all())


def _empty_offer(snapshot: Snapshot) -> Offer:
    columns = len(snapshot.total)
    most = int(np.diff(snapshot.specials.start).max(initial=0))
    return Offer(
        plain=np.zeros(columns, np.int64),
        whole=np.zeros(columns, np.int64),
        bounded=np.zeros(columns, np.int64),
        ceiling=np.zeros(columns, np.int64),
        special=np.zeros(most, np.int64),
        tasks=np.zeros(1, np.int64),
        before=np.zeros((3, columns), np.int64),
        special_before=np.zeros(most, np.int64),
    )


def empty_log(snapshot: Snapshot) -> Log:
    size, parts = len(snapshot.agents) + 1, len(snapshot.specials.row) + 1
    return Log(
        length=np.zeros(2, np.int64),
        place=np.empty(size, np.int64),
        agent=np.empty(size, np.int64),
        tasks=np.empty(size, np.int64),
        amount=np.empty((size, len(snapshot.total)), np.int64),
        last_on_agent=np.full(len(snapshot.capacity), -1),
        previous=np.empty(size, np.int64),
        part_of=np.empty(parts, np.int64),
        part=np.empty(parts, np.int64),
        part_amount=np.empty(parts, np.int64),
    )


def grants_of(log: Log, scene: Scene) -> Grants:
    places, agents = scene.places, scene.agents
    count, parts = log.length.tolist()
    return Grants(
        client=places.client[log.place[:count]],
        agent=log.agent[:count].copy(),
        tasks=log.tasks[:count].copy(),
        amount=log.amount[:count],  # not copied: it is large, and nothing writes it any more
        special_grant=log.part_of[:parts].copy(),
        special=agents.special[log.part[:parts]],
        special_amount=log.part_amount[:parts].copy(),
    )


def read_only(array: np.ndarray, dtype: type) -> np.ndarray:
    """View an array as the type that numba compiled for; copied only if type or layout differ."""
    return loop_view(np.asarray(array, dtype))


def own(array: np.ndarray, dtype: type) -> np.ndarray:
    return np.array(array, dtype, order="C", copy=True)

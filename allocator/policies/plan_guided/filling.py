"""Filling that is steered towards a plan.

Before the usual stage of a cycle there is a stage in which each agent serves only clients to which
the plan gives some of it, the client furthest below its target first. What they leave goes to any
client in the usual stage. So freed resources move the cluster towards the plan, and none stay idle
for it, except parts of small tasks (see `keeping`). Guarantees and overdue clients take precedence
over the plan.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from allocator.core import Floats, Grants, Ints, Plan, PlanProblem, Snapshot
from allocator.core.numba.bit_tables import in_blocks, packed, some_on, width
from allocator.core.numba.memo import fixed, memoize
from allocator.core.snapshot import BitTable, BitWords
from allocator.policies.filling import Criterion, CriterionFunction, Filling
from allocator.policies.filling.policy import in_stages
from allocator.policies.filling.scene import scene_builder
from allocator.policies.filling.scene.blocks import lay_out
from allocator.policies.filling.scene.loop_arrays import Scene
from allocator.policies.filling.scene.scoring import USUAL
from allocator.policies.plan_guided.keeping import Wish, behind, mask, parts_of_tasks

PlanFunction: TypeAlias = Callable[[PlanProblem], Plan]

_NOTHING = 1e-12  # weight of a client without a target; such clients are barred everywhere


def same_question(before: PlanProblem, now: PlanProblem) -> bool:
    """Whether two problems differ only in held and free amounts."""
    return now.asks_the_same(before)


@dataclass(frozen=True, slots=True)
class PlanGuided:
    """A policy that plans.

    `progress`: measures what a client has, in the unit of the plan's targets.
    `filling`: decides where the plan does not; everything, if there is no plan.
    `stands`, `about_holders`: as in `PlanningPolicy`.
    """

    plan_function: PlanFunction
    progress: CriterionFunction
    filling: Filling
    stands: Callable[[PlanProblem, PlanProblem], bool] = same_question
    about_holders: bool = False

    def plan(self, problem: PlanProblem) -> Plan:
        return self.plan_function(problem)

    def scores(self, snapshot: Snapshot) -> Floats:
        return self.filling.scores(snapshot)

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        plan = snapshot.plan
        if plan is None or not plan.target[snapshot.tree.client].any():
            return self.filling.allocate(snapshot, seed)
        return self.filling.fill(snapshot, seed, _Towards(plan), (self.progress,))


@dataclass(frozen=True, slots=True)
class _Towards:
    """The passes of a cycle towards a plan."""

    plan: Plan

    def __call__(
        self, snapshot: Snapshot, scene: Scene, criteria: Sequence[Criterion]
    ) -> Iterator[Scene]:
        """Yield the scene of each pass: the usual stages, with the planned passes before USUAL."""
        kept = np.zeros_like(scene.agents.barred)
        for staged in in_stages(snapshot, scene):
            if staged.rule.stage == USUAL:
                yield from self._planned(snapshot, staged, criteria, kept)
            yield _without(staged, kept) if kept.any() else staged

    def _planned(
        self, snapshot: Snapshot, scene: Scene, criteria: Sequence[Criterion], kept: BitTable
    ) -> Iterator[Scene]:
        """Yield scenes in which agents serve only their clients by the plan, ranked by progress.

        A plan's targets already include the weights of all roles above a client, so roles do not
        count. Adds to `kept` (B, A, V) bits of the clients barred because parts of tasks are kept.
        """
        plan, tree, agents = self.plan, snapshot.tree, scene.agents
        scheme = _all_of(len(criteria) - 1, len(tree.parent))
        towards = replace(snapshot, tree=tree._replace(scheme=scheme))
        places, node = scene_builder.places_of(towards, lay_out(towards, criteria))
        unplanned = _unplanned(plan.group, plan.allowed, width(agents.barred))
        planned = scene._replace(
            agents=scene_builder.with_barred(agents, unplanned, np.ones_like(agents.barring)),
            places=places._replace(**_side_by_side(len(node))._asdict()),
        )
        before = scene.standing.measure.copy(), scene.standing.served.copy()
        _rank_newcomers(planned, plan.target)
        yield from self._by_group(towards, planned, node, criteria, kept)
        np.maximum(scene.standing.served, 0, out=scene.standing.served)
        _add_up(scene, *before)

    def _by_group(
        self,
        snapshot: Snapshot,
        scene: Scene,
        node: Ints,
        criteria: Sequence[Criterion],
        kept: BitTable,
    ) -> Iterator[Scene]:
        """Fill group by group, by each group's parts of the targets; then all other agents.

        `node` (P,): the node of each place.
        """
        plan, agents, places, progress = self.plan, scene.agents, scene.places, criteria[-1]
        columns = len(snapshot.total) + 1
        own = scene.standing.measure[(len(criteria) - 1) * columns : len(criteria) * columns]
        in_all = own.copy()
        barred = agents.barred
        rows = _with_something_free(scene) if len(plan.part) else agents.row
        group = plan.group[rows]
        for each in np.unique(group[(group >= 0) & (group < len(plan.part))]).tolist():
            held, agents_held = _held_in(snapshot, plan, each)
            count = progress.agent_gain * agents_held
            of_group = replace(snapshot, held=held)
            began = of_group.held_over_tree(progress.amount_gain, count)[node].T
            own[:] = began
            row = scene_builder.read_only(rows[group == each], np.int64)
            mine_only = _weighed(scene, plan.part[each])._replace(agents=agents._replace(row=row))
            wish = Wish(plan.part[each], progress, own)
            late = behind(snapshot, places, wish)
            if len(late):
                # Clients that lack a task come first, before others take what they wait for.
                others = barred[:, row]
                barred[:, row] |= ~packed(mask(late, len(snapshot.demand)), barred)
                yield mine_only
                barred[:, row] = others
                late = behind(snapshot, places, wish)
                kept[:, row] |= parts_of_tasks(snapshot, mine_only.agents, late)
                barred[:, row] |= kept[:, row]
            yield mine_only
            in_all += own - began
        own[:] = in_all
        rest = rows[group >= len(plan.part)] if len(plan.part) else rows
        if len(rest):
            row = scene_builder.read_only(rest, np.int64)
            yield _weighed(scene, plan.target)._replace(agents=agents._replace(row=row))


def _held_in(snapshot: Snapshot, plan: Plan, group: int) -> tuple[Ints, Ints]:
    """Return what clients hold in a group of agents, (C, R), and on how many of these, (C,)."""
    held, agents_held, earlier = plan.held[group], plan.agents_held[group], snapshot.earlier
    if earlier is None or not (mine := plan.group[earlier.agent] == group).any():
        return held, agents_held
    more, specials = earlier.some(mine), snapshot.specials
    held, agents_held = held.copy(), agents_held.copy()
    np.add.at(held, more.client, more.amount)
    by = more.client[more.special_grant], specials.column[more.special]
    np.add.at(held, by, more.special_amount)
    np.add.at(agents_held, snapshot.new_pairs(more) & (2**32 - 1), 1)
    return held, agents_held


class _Flat(NamedTuple):
    """The tree without roles; fields as in `Places`."""

    parent: Ints
    first: Ints
    last: Ints


@memoize()
def _side_by_side(count: int) -> _Flat:
    """Make all places children of the root, so that those of roles have none."""
    parent, first = np.full(count, count - 1), np.zeros(count, np.int64)
    parent[-1] = -1
    last = first.copy()
    last[-1] = count - 1
    return _Flat(fixed(parent), fixed(first), fixed(last))


def _weighed(scene: Scene, target: Floats) -> Scene:
    """Use each client's target, (C,), as its weight, so that scores are progress."""
    client = scene.places.client
    weight = np.where(client >= 0, target[client], 0)
    return scene._replace(places=scene.places._replace(weight=fixed(np.maximum(weight, _NOTHING))))


def _rank_newcomers(scene: Scene, target: Floats) -> None:
    """Let the clients that were never served come first in the order of their targets, (C,).

    By number, those with a small part of an agent might fill it before those with most of it.
    """
    served, client = scene.standing.served, scene.places.client
    new = np.flatnonzero((served == 0) & (client >= 0))
    order = np.argsort(-target[client[new]], kind="stable")
    served[new[order]] = np.arange(-len(new), 0)


def _add_up(scene: Scene, measure: Floats, served: Ints) -> None:
    """Add the gains and turns of clients to the roles above them.

    `measure` (K, P), `served` (P,): the values before these gains.
    """
    parent, standing = scene.places.parent, scene.standing
    took = np.where(standing.served > served, standing.served, 0)
    more = standing.measure - measure
    took[-1], more[:, -1] = 0, 0  # the root is up to date already
    for level in _levels(parent):
        np.maximum.at(took, parent[level], took[level])
        np.add.at(more.T, parent[level], more[:, level].T)
    roles = np.flatnonzero(scene.places.client[:-1] < 0)
    standing.served[roles] = np.maximum(standing.served[roles], took[roles])
    standing.measure[:, roles] += more[:, roles]


def _with_something_free(scene: Scene) -> Ints:
    agents, row = scene.agents, scene.agents.row
    special = agents.start[row + 1] > agents.start[row]
    return row[special | agents.free[row].any(axis=1)]


def _without(scene: Scene, barred: BitTable) -> Scene:
    agents = scene.agents
    barring = agents.barring | some_on(barred)
    return scene._replace(agents=scene_builder.with_barred(agents, barred, barring))


@memoize()
def _levels(parent: Ints) -> tuple[Ints, ...]:
    """List the places of each level below the root's children, the deepest level first."""
    depth = np.zeros(len(parent), np.int64)
    for place in range(len(parent) - 2, -1, -1):
        depth[place] = depth[parent[place]] + 1
    levels = range(int(depth.max(initial=0)), 1, -1)
    return tuple(fixed(np.flatnonzero(depth == each)) for each in levels)


@memoize()
def _all_of(scheme: int, nodes: int) -> Ints:
    return fixed(np.full(nodes, scheme))


@memoize()
def _unplanned(group: Ints, allowed: BitWords, words: int) -> BitTable:
    """Return bits of the clients to which the plan gives nothing of an agent, (B, A, V)."""
    everybody = np.full((1, words), ~np.uint64(0))
    of_group = in_blocks(np.concatenate([everybody, ~allowed[:, :words]]))
    barred = np.empty((len(of_group), len(group), of_group.shape[2]), np.uint64)
    return fixed(np.take(of_group, group + 1, axis=1, out=barred))

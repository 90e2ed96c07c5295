"""The policy that fills: a criterion chooses the client, a selection the agent.

References
----------
.. [1] Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica. "Dominant Resource Fairness: Fair
   Allocation of Multiple Resource Types." NSDI 2011, sec. 4.2 (progressive filling, task by task).
.. [2] Kesidis, Shan, Jain, Urgaonkar, Khamse-Ashari, Lambadaris. "Scheduling Distributed Resources
   in Heterogeneous Private Clouds." MASCOTS 2018, sec. IV (the selections).
.. [3] Wang, Liang, Li. "Multi-Resource Fair Allocation in Heterogeneous Cloud Computing Systems."
   IEEE TPDS 26(10), 2015, sec. 5 (best fit).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from allocator.core.snapshot import BitWords, Floats, Grants, Ints, Snapshot
from allocator.policies.filling.criterion import Criterion, CriterionFunction, leaf_scores
from allocator.policies.filling.scene import blocks, scene_builder
from allocator.policies.filling.scene.loop_arrays import Effort, Log, Scene
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER, OVERDUE, USUAL

SELECTIONS = ("random", "round_robin", "listed", "joint", "best_fit")
"""How the agent is chosen; see `Filling`."""

Passes: TypeAlias = Callable[[Snapshot, Scene, Sequence[Criterion]], Iterable[Scene]]
"""A function that yields the scene of each pass of `Filling.fill` over the agents, in order."""

_AGENT_FIRST = SELECTIONS[:3]
_USUAL = Effort()


@dataclass(frozen=True, slots=True)
class Filling:
    """Progressive filling.

    - `criterion`: the client with the smallest score is served next.
    - `selection`: ``random``: each step draws an agent uniformly from those that can still serve
      a client, and serves the best client for it. ``round_robin``: the same in rounds, each a new
      random permutation of these agents. ``listed``: the lowest agent until it can serve no client.
      ``joint``: the client with the smallest score on any agent that can serve it, on that agent.
      ``best_fit``: the same client, on the agent whose free amounts are nearest in proportion to
      its demand.
    - `effort`: affects speed only.
    - `others`: the criteria below the nodes of scheme 1, 2, ... of the tree.
    """

    criterion: CriterionFunction
    selection: str
    effort: Effort = _USUAL
    others: tuple[CriterionFunction, ...] = ()

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Fill until nothing more fits; the same seed gives the same grants."""
        return self.fill(snapshot, seed, in_stages)

    def fill(
        self,
        snapshot: Snapshot,
        seed: int,
        passes: Passes,
        more: tuple[CriterionFunction, ...] = (),
    ) -> Grants:
        """Fill in several passes.

        - `passes`: yields the scene of each pass: the given scene with other rules, places or bars.
        - `more`: criteria that passes use in addition to those of the tree's schemes.
        """
        if not len(snapshot.agents) or not len(snapshot.tree.client):
            return Grants.none(len(snapshot.resources))
        # The loops change only copies.
        criteria = [criterion(snapshot) for criterion in (self.criterion, *self.others, *more)]
        scene = scene_builder.scene_of(snapshot, criteria, self.effort)
        log = scene_builder.empty_log(snapshot)
        state = np.array([seed], np.uint64)
        # Only searches by client use and change holdings.
        held = snapshot.held
        if self.selection not in _AGENT_FIRST:
            held = scene_builder.own(held, np.int64)
        # Each pass continues with the free amounts, measures and log of the previous one.
        for each in passes(snapshot, scene, criteria):
            log = self._fill(each, log, held, state)
        return scene_builder.grants_of(log, scene)

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score the clients that may be served, (C,); NaN for others, or if it differs by agent."""
        found = np.full(len(snapshot.held), np.nan)
        criterion = self.criterion(snapshot)
        # A single score must be the same on all agents, and must not depend on what is free.
        depends = len(criterion.denominator) != 1 or criterion.preference is not None
        if self.others or depends or criterion.residual:
            return found
        weight = blocks.lay_out(snapshot, [criterion]).weight[: len(snapshot.tree.client)]
        found[snapshot.tree.client] = leaf_scores(criterion, weight)
        return found

    def _fill(self, scene: Scene, log: Log, held: Ints, state: BitWords) -> Log:
        # The compiled loops are loaded on first use: see `warm`.
        from allocator.policies.filling import by_agent, by_client

        if self.selection in _AGENT_FIRST:
            order = _AGENT_FIRST.index(self.selection)
            return by_agent.fill(scene, self.effort, log, order, state)[0]
        return by_client.fill(scene, self.effort, log, held, self.selection == "best_fit")[0]


def in_stages(
    snapshot: Snapshot, scene: Scene, _criteria: Sequence[Criterion] = ()
) -> Iterator[Scene]:
    """Yield the scene of each stage of the cycle."""
    for stage in stages_of(snapshot):
        yield scene._replace(rule=scene.rule._replace(stage=stage))


def stages_of(snapshot: Snapshot) -> list[int]:
    """List the stages of a cycle, in order."""
    # First guarantees, then overdue clients, then the usual stage, and last special resources that
    # are left over.
    stages = [USUAL]
    if snapshot.overdue.any() and snapshot.overdue[snapshot.tree.client].any():
        stages.insert(0, OVERDUE)
    if snapshot.bounds.owed.any():
        stages.insert(0, GUARANTEED)
    if len(snapshot.specials.row) and snapshot.characterised[snapshot.tree.client].any():
        stages.append(LEFT_OVER)
    return stages

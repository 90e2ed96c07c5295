"""Tests whether agents can serve leaves outside of a cycle, for explanations.

The test is that of the filling loops, `offers.can_serve`, on a scene that is not being filled. With
some rules lifted, it shows which rules bar a client.
"""

from collections.abc import Callable

import numpy as np

from allocator.core.numba import pointers
from allocator.core.numba.compiled import entry, loop_view
from allocator.core.numba.pointers import as_pointer, keep_alive
from allocator.core.snapshot import Bools, Ints
from allocator.policies.filling.criterion import cluster_total, of_amounts
from allocator.policies.filling.rules import offers
from allocator.policies.filling.scene import loop_arrays, scoring, tournament
from allocator.policies.filling.scene.compiled import compiled, fingerprint
from allocator.policies.filling.scene.loop_arrays import Scene
from allocator.policies.filling.scene.scene_builder import scene_of
from allocator.testing import static_snapshot


@compiled
def _look(scene: Scene, place: Ints, agent: Ints, alive: Bools, able: Bools) -> None:
    places, agents, standing = scene.places, scene.agents, scene.standing
    offers.mark_taking_part(places, scene.bounds, scene.rule.stage, alive)
    for i in range(len(place)):
        leaf, where = place[i], agent[i]
        # Clear cached results about quotas of earlier pairs.
        standing.spent[leaf] = False
        offerable = offers.is_offerable(places, agents, where)
        able[i] = alive[leaf] and offers.can_serve(scene, offerable, leaf, where)


def _compile(sources: int) -> Callable[[Scene, Ints, Ints], tuple[Bools, int]]:

    @entry(error_model="numpy")
    def look(scene: Scene, place: Ints, agent: Ints) -> tuple[Bools, int]:
        scene_ptr = as_pointer(scene)
        alive = np.zeros(len(scene.places.parent), np.bool_)
        able = np.zeros(len(place), np.bool_)
        _look(scene_ptr, place, agent, alive, able)
        keep_alive(scene)
        return able, sources

    return look


_look_at_all = _compile(fingerprint(pointers, loop_arrays, scoring, tournament, offers))


def can_serve(scene: Scene, place: Ints, agent: Ints) -> Bools:
    """Return whether the agent of each pair can serve its leaf, in the scene's stage, (n,).

    `scene`: only `offer` and `standing.spent` are written.
    `place`, `agent` (n,): leaves, and rows of agents.
    """
    return _look_at_all(scene, loop_view(place), loop_view(agent))[0]


def warm() -> None:
    """Load or compile the loop."""
    cluster = static_snapshot(capacity=[[1, 1]], demand=[[1, 1]])
    # The test does not depend on the criterion, so any one will do.
    scene = scene_of(cluster, [of_amounts(cluster, cluster_total(cluster))])
    can_serve(scene, np.zeros(1, np.int64), np.ones(1, np.int64))

"""A quick test which clients an agent may be able to serve within quotas, before computing offers.

What quotas leave is computed once per role, not once per client. There are no false negatives: a
client that the test excludes cannot be served.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.snapshot import Bools, Ints
from allocator.policies.filling.rules import offers, quotas
from allocator.policies.filling.scene.compiled import allocating, compiled, hot
from allocator.policies.filling.scene.loop_arrays import Scene


class QuotaPrecheck(NamedTuple):
    """What an agent could give under each bound, and what clients below each place need.

    The Q rows are those of roles; further bounds of clients are left out.

    `amount` (Q + 2, R), in thousandths: what is free of each resource, as far as quotas allow. The
        second-last row is for clients under no bound, the last one an upper bound for all clients.
    `enough` (Q + 2,): whether that amount makes an offer, by the usual minimum.
    `row` (P,): the row of a place's innermost bound; the last row if clients below it have several.
    `takes_all` (P,): whether all clients below a place are offered all that is free, have the usual
        minimum, and no offers to add to.
    `in_use` (Q + 1,): rows that apply to some client.
    `most` (R,), in thousandths: the most that quotas left to any client when last computed: an
        upper bound, because what quotas leave only decreases.
    `charged` (1,): whether there were grants since then.
    """

    amount: Ints
    enough: Bools
    row: Ints
    takes_all: Bools
    in_use: Bools
    most: Ints
    charged: Bools


@allocating
def begin_precheck(scene: Scene) -> QuotaPrecheck:
    places, bounds = scene.places, scene.bounds
    count, last = len(places.parent), 0
    for client in range(len(bounds.of_client) if len(bounds.above) else 0):
        last = max(last, bounds.of_client[client] + 1)
    row, takes_all = np.full(count, -1), np.ones(count, np.bool_)
    in_use = np.zeros(last + 1, np.bool_)
    for place in range(count):
        client = places.client[place]
        if client >= 0:
            row[place] = bounds.of_client[client] if bounds.of_client[client] >= 0 else last
            takes_all[place] = places.usual[place] and not (places.known[place] or scene.rule.adds)
            in_use[row[place]] = True
        # Children come before parents, so place and row are complete.
        above = places.parent[place]
        if above >= 0:
            # A place with children under different bounds uses the row for all clients.
            alike = row[above] == -1 or row[above] == row[place]
            takes_all[above] &= takes_all[place]
            row[above] = row[place] if alike else last + 1
    resources = scene.agents.free.shape[1]
    amount, enough = np.zeros((last + 2, resources), np.int64), np.zeros(last + 2, np.bool_)
    most, charged = np.empty(resources, np.int64), np.ones(1, np.bool_)
    precheck = QuotaPrecheck(amount, enough, row, takes_all, in_use, most, charged)
    renew(scene, precheck)
    return precheck


@hot
def renew(scene: Scene, precheck: QuotaPrecheck) -> None:
    """Recompute `most` if there were grants since the last time."""
    if not precheck.charged[0]:
        return
    precheck.charged[0] = False
    for r in range(len(precheck.most)):
        precheck.most[r] = 0
        for row in range(len(precheck.in_use)):
            if precheck.in_use[row]:
                precheck.most[r] = max(precheck.most[r], _ceiling(scene, precheck, row, r))


@hot
def may_serve(scene: Scene, precheck: QuotaPrecheck, place: int, agent: int) -> bool:
    """Whether the agent may be able to serve a client below a place."""
    agents = scene.agents
    if not precheck.takes_all[place] or agents.start[agent] < agents.start[agent + 1]:
        return True
    _measure(scene, precheck, precheck.row[place], agent)
    return precheck.enough[precheck.row[place]]


@compiled
def measure_all(scene: Scene, precheck: QuotaPrecheck, agent: int) -> None:
    """Compute what the agent could give below each bound, for `is_hopeful`."""
    for row in range(len(precheck.in_use)):
        if precheck.in_use[row]:
            _measure(scene, precheck, row, agent)


@hot
def is_hopeful(scene: Scene, precheck: QuotaPrecheck, leaf: int) -> bool:
    """Whether the agent of the last `measure_all` may be able to serve a leaf.

    This considers plain resources only; special ones may reach a client in addition.
    """
    places, row = scene.places, precheck.row[leaf]
    if places.known[leaf]:
        for r in range(precheck.amount.shape[1]):
            if places.demand[leaf, r] > precheck.amount[row, r]:
                return False
        return True
    return scene.rule.adds or not places.usual[leaf] or precheck.enough[row]


@hot
def _measure(scene: Scene, precheck: QuotaPrecheck, row: int, agent: int) -> None:
    """Compute what the agent could give under the bound of a row, or to any client."""
    anybody = row == len(precheck.in_use)
    for r in range(precheck.amount.shape[1]):
        ceiling = precheck.most[r] if anybody else _ceiling(scene, precheck, row, r)
        precheck.amount[row, r] = min(scene.agents.free[agent, r], ceiling)
    root = len(scene.places.parent) - 1
    precheck.enough[row] = offers.reaches(scene.places, scene.agents, root, precheck.amount[row])


@hot
def _ceiling(scene: Scene, precheck: QuotaPrecheck, row: int, r: int) -> int:
    """Return the most of a resource that quotas allow under the bound of a row."""
    unbounded = len(precheck.in_use) - 1
    return quotas.ceiling_below(scene.rule, scene.bounds, row if row < unbounded else -1, r)

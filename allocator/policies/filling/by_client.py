"""The loop that takes a client first, then the agent for it: joint, best_fit.

From the root down goes the child with the smallest score on any agent that can serve somebody below
it. Within a cycle these smallest scores only grow, for measures grow, what is free shrinks, and
whoever cannot be served on an agent never can be again. So the tournaments stand on the scores last
found, which are lower bounds: only the champion is looked at anew, until it stays the champion.
"""

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from allocator.core.snapshot import Ints
from allocator.policies.filling import arrays, search, steps, tournament
from allocator.policies.filling import field as fields
from allocator.policies.filling.arrays import Agents, Effort, Log, Places, Rule, Standing
from allocator.policies.filling.compiled import allocating, compiled, fingerprint
from allocator.policies.filling.field import Field


class Findings(NamedTuple):
    """What was found out about each place, and when; a time is the number of grants before it.

    Attributes
    ----------
    slot : (P,) int64
        Where its score is smallest.
    found : (P,) int64
        When that was found; -1: never.
    grown : (P,) int64
        When its measure last grew.
    changed : (J,) int64
        When the free amounts of each agent last changed.
    """

    slot: Ints
    found: Ints
    grown: Ints
    changed: Ints


@allocating
def _begin(places: Places, standing: Standing, agents: Agents, rule: Rule) -> Findings:
    """Give every place the score that it would have on an agent with the most of everything."""
    count = len(places.parent)
    most = np.zeros((1, standing.denominator.shape[1]))
    for agent in agents.row:
        row = 0 if rule.shared else agent
        for k in range(most.shape[1]):
            most[0, k] = max(most[0, k], standing.denominator[row, k])
    alive = np.ones(count, np.bool_)
    steps.mark_alive(places, alive)
    for place in range(count):
        standing.out[place] = not alive[place]
        standing.score[place] = steps.score(
            standing, places.weight[place], place, most, 0, rule.additive
        )
    tournament.begin(places, standing)
    return Findings(
        np.zeros(count, np.int64),
        np.full(count, -1),
        np.zeros(count, np.int64),
        np.zeros(len(agents.row), np.int64),
    )


@compiled
def _is_current(findings: Findings, place: int) -> bool:
    """Say whether nothing has changed what was found about a place.

    Grants to others, on other agents, only made its score there grow.
    """
    found = findings.found[place]
    return findings.grown[place] <= found and findings.changed[findings.slot[place]] <= found


@compiled
def _examine(
    places: Places,
    standing: Standing,
    agents: Agents,
    rule: Rule,
    field: Field,
    findings: Findings,
    log: Log,
    place: int,
) -> None:
    """Find the smallest score of a place anew, and where; out it goes when it has none."""
    slot, score = search.smallest(places, standing, agents, rule, field, place)
    if slot < 0:
        standing.out[place] = True
    else:
        standing.score[place] = score
        findings.slot[place] = slot
        findings.found[place] = log.length[0]
    tournament.replay(places, standing, place)


@compiled
def _choose(
    places: Places,
    standing: Standing,
    agents: Agents,
    rule: Rule,
    field: Field,
    findings: Findings,
    log: Log,
) -> int:
    """Return the leaf that is served next; -1 where nobody can be."""
    root = len(places.parent) - 1
    place = root
    while places.client[place] < 0:
        child = tournament.champion(places, standing, place)
        if child < 0 or standing.out[child]:
            if place == root:
                return -1
            standing.out[place] = True
            tournament.replay(places, standing, place)
            place = places.parent[place]
        elif _is_current(findings, child):
            place = child
        else:
            _examine(places, standing, agents, rule, field, findings, log, child)
    return place


@compiled
def _serve(
    places: Places,
    standing: Standing,
    agents: Agents,
    rule: Rule,
    field: Field,
    findings: Findings,
    log: Log,
    leaf: int,
    slot: int,
) -> None:
    """Give one grant and note what it changed."""
    more = steps.grant(places, standing, agents, rule, log, leaf, agents.row[slot])
    fields.note_grant(places, standing, agents, field, log, leaf, slot, more)
    now = log.length[0]
    findings.changed[slot] = now
    place = leaf
    while place >= 0:
        findings.grown[place] = now
        tournament.replay(places, standing, place)
        place = places.parent[place]


def _compile(sources: int) -> Callable[..., tuple[Log, int]]:
    """Make the loop; it captures the fingerprint of its sources."""

    @numba.njit(cache=True, error_model="numpy")
    def fill(
        places: Places,
        standing: Standing,
        agents: Agents,
        rule: Rule,
        effort: Effort,
        log: Log,
        held: Ints,
        best_fit: bool,
    ) -> tuple[Log, int]:
        findings = _begin(places, standing, agents, rule)
        field = fields.begin(places, standing, agents, rule, held, effort, best_fit)
        while True:
            if log.length[0] == len(log.place):
                log = steps.doubled(log)
            leaf = _choose(places, standing, agents, rule, field, findings, log)
            if leaf < 0:
                return log, sources
            slot = findings.slot[leaf]
            if best_fit:
                slot = search.nearest(places, agents, field, leaf)
            _serve(places, standing, agents, rule, field, findings, log, leaf, slot)

    return fill


fill = _compile(fingerprint(arrays, steps, tournament, fields, search))

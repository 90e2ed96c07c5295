"""Forecasts when a waiting client gets its next offer: a range, and its basis.

The next offer needs room for the client's next task on an agent that it may use, and its turn. Room
becomes free as tasks of others end. Only the distribution of their durations is learnt, so their
ends are drawn many times, given how long they have run; the range is the median and the 95th
percentile of the times at which there was room. Tasks that still run count as lasting at least that
long (life table [1]_). A task that exceeds every known duration is as likely as not to run as long
again.

Turns are counted in room: what clients with a smaller share take first, and what must stay free for
guarantees, is not available to the client. Otherwise the forecast assumes that nothing changes: no
client joins or leaves, and limits stay.

References
----------
.. [1] Cutler, Ederer. "Maximum utilization of the life table method in analyzing survival."
   Journal of Chronic Diseases 8(6), 1958.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from allocator.core import (
    BUCKETS,
    EDGES_MS,
    Bools,
    Floats,
    Ints,
    Snapshot,
    State,
    bits,
    bucket_of,
    collectors,
    learnt,
    need_of,
    tasks_in,
)
from allocator.explain.turns import Turns, turns_of
from allocator.plain import counted

DRAWS = 100

CELLS_MAX = 500_000
"""Maximum number of amounts to copy, by holding and kind; beyond it, only every nth agent is
copied."""

PIECES_MAX = 5_000
"""Maximum number of ends of tasks in one draw. If there are more, the agents with the earliest ends
are used or, if many others are served before the client, every nth agent."""

TIMES = 32
"""Number of times, between now and the last end, at which turns are evaluated."""

TASKS_MAX = 4

LINES_MAX = 4
"""Maximum number of sizes of a gang's unlike tasks that must have room individually, largest
first."""

_NEVER_BITS = 44

NEVER = np.int64(1 << _NEVER_BITS)
"""Later than anything, in milliseconds from now."""

_EDGES = np.array((0, *EDGES_MS), np.int64)


class Held(NamedTuple):
    """What is held on agents that may be offered, and what is free there.

    `part`: n, if only every nth of these agents is included.
    `agent` (m,): handles, ascending; `free` (K, m), in thousandths.
    `keeper` (m,): the client whose gang collects on the agent; -1: none.
    `collects`: clients whose gangs collect.
    `place` (n,): row of the agent of each holding, ascending; `client` (n,).
    `began_ms` (n,): since when something is used there; -1: since before the session.
    `held`, `offered` (K, n), in thousandths: offered or used; only offered.
    `column_of_kind` (K,), `plain_kind` (R,): as in the books.
    `topic` (C,): each client's row of `ends`; -1: none.
    `ends` (T, BUCKETS): number of tasks that ended, by duration.
    """

    part: int
    agent: Ints
    free: Ints
    keeper: Ints
    collects: frozenset[int]
    place: Ints
    client: Ints
    began_ms: Ints
    held: Ints
    offered: Ints
    column_of_kind: Ints
    plain_kind: Ints
    topic: Ints
    ends: Ints
    interval_ms: int


def take_held(state: State, barred: Bools) -> Held:
    """Copy what forecasts need; on the thread that owns the books.

    `barred` (A,): agents, by handle, that none of the clients may use.
    """
    kinds = len(state.space)
    usable = state.agents.ready & ~barred
    keeper, collecting = np.full(len(usable), -1), collectors(state)
    for row, its in collecting.items():
        keeper[list(its.agent)] = row
    agent, books = np.flatnonzero(usable), state.ledger.books
    rows = state.ledger.rows()
    rows = rows[usable[books.agent[rows]]]
    part = max(1, -(-(len(rows) + len(agent)) * max(kinds, 1) // CELLS_MAX))
    if part > 1:
        agent = agent[::part]
        rows = rows[np.isin(books.agent[rows], agent)]
    rows = rows[np.argsort(books.agent[rows], kind="stable")]
    client = books.client[rows]
    topic, ends = learnt(state, np.unique(client))
    return Held(
        part=part,
        agent=agent,
        free=state.free_on(agent)[:kinds],
        keeper=keeper[agent],
        collects=frozenset(collecting),
        place=np.searchsorted(agent, books.agent[rows]),
        client=client,
        began_ms=books.used_ms[rows],
        held=books.held[:kinds, rows],
        offered=books.offered[:kinds, rows],
        column_of_kind=state.space.column_of_kind[:kinds].copy(),
        plain_kind=state.space.plain_kind.copy(),
        topic=topic,
        ends=ends,
        interval_ms=state.options.allocation_interval_ms,
    )


@dataclass(frozen=True)
class NextOffer:
    """A forecast.

    `expected_ms`, `latest_ms`: median and 95th percentile of the time from now; -1: not known.
    `text`: the basis of the forecast, or why there is none.
    `interval_ms`: the allocation interval.
    """

    expected_ms: int
    latest_ms: int
    text: str
    interval_ms: int = 0

    @property
    def base_ms(self) -> int:
        """The median, but at least the allocation interval, in which nothing is decided."""
        return max(self.expected_ms, self.interval_ms, 1)

    @staticmethod
    def none(why: str) -> "NextOffer":
        return NextOffer(-1, -1, f"no forecast: {why}")


class _Pieces(NamedTuple):
    """Amounts (n) that become free together, on agents (m,) in ascending order.

    `place` (n,): row of the agent; `client` (n,).
    `age_ms` (n,): for how long they are in use; -1: not known.
    `amount` (n, R), in thousandths.
    """

    place: Ints
    client: Ints
    age_ms: Ints
    amount: Ints

    def some(self, rows: Ints) -> "_Pieces":
        return _Pieces._make(column[rows] for column in self)


def forecast(
    snapshot: Snapshot,
    held: Held,
    now_ms: int,
    client: int,
    demand: Ints,
    excluded: Bools,
    filters: tuple[Ints, Ints],
    seed: int,
) -> NextOffer:
    """Forecast the next offer of a client that may be offered something.

    `demand` (C, R): one task of each client; zeros if unknown.
    `excluded` (A,): agents that the client must not use, by handle.
    `filters` (n,), (n,): handles of agents that it refused, and until when.
    """
    if _is_bounded(snapshot, client):
        return NextOffer.none("its limits leave no room for its next task")
    mine = (held.keeper < 0) | (held.keeper == client)
    usable = np.flatnonzero(~excluded[held.agent] & mine)
    if not len(usable):
        return NextOffer.none("every agent is blocked, not offered, or kept for a gang")
    needed, opening = _needed(snapshot, client)
    kinds = _kinds(snapshot, held, client)
    columns = len(snapshot.resources)
    free = _by_column(held.free[:, usable], held.column_of_kind, kinds, columns)
    pieces = _pieces(held, usable, kinds, demand, now_ms)
    most = free.copy()
    np.add.at(most, pieces.place, pieces.amount)
    fits = tasks_in(most, needed) >= opening
    lines = _lines(snapshot, held.agent[usable], client)
    of_lines = [here & (tasks_in(most, size) > 0) for size, _, here in lines]
    if not all(each.any() for each in (fits, *of_lines)):
        return NextOffer.none("none of its agents would have room for its next task if empty")
    fits = np.any([fits, *of_lines], axis=0)
    opens_ms = _opens_ms(held.agent[usable], filters, now_ms)
    turns, more = turns_of(snapshot, held.agent[usable], client, needed).limited()
    kept = _kept(snapshot, client, needed) + more
    wanted = _wanted(snapshot, client, opening)
    known = held.topic[pieces.client] >= 0
    known &= pieces.age_ms >= 0
    part, chosen = 1, _chosen(held, pieces, known, fits)
    first = turns.room(np.zeros(len(turns.way_weight)), np.zeros(len(turns.way)))
    if len(chosen) < fits[pieces.place].sum() and first + kept > len(chosen) // 8:
        part = -(-len(pieces.place) // PIECES_MAX)
        chosen = np.flatnonzero(pieces.place % part == 0)
        free = free * (np.arange(len(free)) % part == 0)[:, None]
    part *= held.part
    chance = np.random.default_rng(seed).random((DRAWS, len(chosen)))
    some = pieces.some(chosen)
    ends_ms = _Lives.of(held, pieces, known).ends_ms(some, known[chosen], chance)
    gain, gain_ms = _gains(_Agents(free, opens_ms, needed, opening), some, ends_ms)
    if part > 1:  # a line for a single agent may be about one that is left out
        lines = [each for each in lines if each[2].all()]
    gains = [
        _gains(_Agents(free, opens_ms, size, 1), some, ends_ms, here) for size, _, here in lines
    ]
    counted_in = snapshot.counted & (snapshot.total > 0)
    share = (some.amount / np.maximum(snapshot.total, 1))[:, counted_in].max(axis=1, initial=0.0)
    grid_ms = _grid([(gain, gain_ms), *gains])
    before = kept + _room_before(turns, grid_ms, ends_ms, some.client, share * part)
    before *= client not in held.collects  # a gang that collects comes before all others
    room = _by_time(grid_ms, gain_ms, gain)
    enough = room * part >= np.ceil(before) + wanted
    for (_, number, _), (gain, gain_ms) in zip(lines, gains, strict=True):
        enough &= _by_time(grid_ms, gain_ms, gain) * part >= number
    if len(grid_ms) == TIMES:  # the true time lies between two of these: take the middle
        grid_ms = (grid_ms + np.append(0, grid_ms[:-1])) // 2
    when_ms = np.sort(np.where(enough.any(axis=1), grid_ms[np.argmax(enough, axis=1)], NEVER))
    return _in_words(held, client, when_ms, pieces, known, int(np.ceil(before[0, 0])), fits)


def _in_words(
    held: Held,
    client: int,
    when_ms: Ints,
    pieces: _Pieces,
    known: Bools,
    before: int,
    fits: Bools,
) -> NextOffer:
    expected_ms, latest_ms = (int(when_ms[at]) for at in (DRAWS // 2, -(-95 * DRAWS // 100) - 1))
    behind = f", after {counted(before, 'task')} of others" if before else ""
    if expected_ms >= NEVER:
        if 2 * (unknown := int((~known).sum())) > len(known) or (unknown and not before):
            of_all = f"{unknown} of {counted(len(known), 'task')} on its agents"
            return NextOffer.none(f"the durations of {of_all} are not known")
        return NextOffer.none(
            f"the resources that become free on its agents do not suffice{behind}"
        )
    on = counted(int(fits.sum()), "agent") + f" (one in {held.part} is simulated)" * (held.part > 1)
    rests = "there is room now"
    if expected_ms:
        rests = f"from learnt durations of the {counted(len(pieces.place), 'task')} there"
    if expected_ms and not len(pieces.place):
        rests = "when its refusals expire"
    if client in held.collects:
        rests = f"its gang collects: {rests}"
    late_ms = latest_ms + held.interval_ms if latest_ms < NEVER else -1
    return NextOffer(expected_ms, late_ms, f"{rests}, on any of {on}{behind}", held.interval_ms)


def _needed(snapshot: Snapshot, client: int) -> tuple[Ints, int]:
    """Return one task (R,) and the number of tasks of an offer; if unknown, the offer's minimum."""
    demand, gangs = snapshot.demand[client], snapshot.gangs
    if gangs is not None and client in gangs.unlike:
        lines = gangs.unlike[client]  # tasks of several sizes: use their average
        return -(-(lines.number @ lines.size) // int(lines.number.sum())), 1
    if demand.any():
        return demand, max(int(snapshot.opening[client]), 1)
    first, end = snapshot.minimum_rows[client].tolist()
    if first < end:
        return snapshot.minimum[first], 1
    return (snapshot.total > 0).astype(np.int64), 1


def _wanted(snapshot: Snapshot, client: int, opening: int) -> int:
    """Return the number of tasks for which there must be room at once."""
    if snapshot.gangs is not None and client in snapshot.gangs.client:
        return max(need_of(snapshot, client), opening)
    return opening


def _lines(snapshot: Snapshot, agent: Ints, client: int) -> list[tuple[Ints, int, Bools]]:
    """Return the largest unlike tasks of a gang: size (R,), number, and agents of `agent` (m,)."""
    gangs = snapshot.gangs
    if gangs is None or client not in gangs.unlike:
        return []
    lines = gangs.unlike[client]
    order = np.argsort(-(lines.size / np.maximum(snapshot.total, 1)).max(axis=1), kind="stable")
    return [
        (lines.size[at], int(lines.number[at]), (agent == only) | (only == 0))
        for at in order[:LINES_MAX].tolist()
        for only in (int(lines.agent[at]),)
    ]


def _is_bounded(snapshot: Snapshot, client: int) -> bool:
    needed, opening = _needed(snapshot, client)
    left = snapshot.bounds.left[snapshot.bounds.rows_of(client)]
    return bool(((left < opening * needed) & (needed > 0)).any())


def _kinds(snapshot: Snapshot, held: Held, client: int) -> Bools:
    """Return the kinds that the client's tasks may use, (K,), without revocable ones."""
    found = np.zeros(len(held.column_of_kind), np.bool_)
    found[held.plain_kind[held.plain_kind >= 0]] = True
    specials = snapshot.specials
    rows = np.arange(len(specials.kind))
    mine = bits(specials.reach, rows, np.full(len(rows), client)) & (specials.tier <= 1)
    found[specials.kind[mine]] = True
    return found


def _by_column(amounts: Ints, column_of_kind: Ints, kinds: Bools, columns: int) -> Ints:
    """Sum amounts (K, n) of some kinds by column, (n, R)."""
    found = np.zeros((amounts.shape[1], columns), np.int64)
    for kind in np.flatnonzero(kinds).tolist():
        found[:, column_of_kind[kind]] += amounts[kind]
    return found


def _pieces(held: Held, usable: Ints, kinds: Bools, demand: Ints, now_ms: int) -> _Pieces:
    """Divide holdings into tasks; offered amounts count as used from now on."""
    row = np.full(len(held.agent), -1)
    row[usable] = np.arange(len(usable))
    mine = np.flatnonzero(row[held.place] >= 0)
    columns = demand.shape[1]
    offered = _by_column(held.offered[:, mine], held.column_of_kind, kinds, columns)
    used = _by_column(held.held[:, mine], held.column_of_kind, kinds, columns) - offered
    client, began_ms = held.client[mine], held.began_ms[mine]
    one = demand[client]
    tasks = np.full(len(mine), TASKS_MAX)
    for column in range(columns):
        np.minimum(
            tasks,
            np.where(one[:, column] > 0, used[:, column] // np.maximum(one[:, column], 1), tasks),
            out=tasks,
        )
    tasks = np.where(one.any(axis=1), np.clip(tasks, 1, TASKS_MAX), 1)
    has = used.any(axis=1)
    at = np.repeat(np.flatnonzero(has), tasks[has])
    first = np.append(True, at[1:] != at[:-1])[: len(at)]
    amount = used[at] // tasks[at, None]
    amount[first] += used[at[first]] - amount[first] * tasks[at[first], None]
    more = np.flatnonzero(offered.any(axis=1))
    age_ms = np.where(began_ms < 0, -1, now_ms - began_ms)
    place = np.append(row[held.place[mine]][at], row[held.place[mine]][more])
    order = np.argsort(place, kind="stable")
    return _Pieces(
        place[order],
        np.append(client[at], client[more])[order],
        np.append(age_ms[at], np.zeros(len(more), np.int64))[order],
        np.vstack([amount, offered[more]])[order],
    )


def _opens_ms(agent: Ints, filters: tuple[Ints, Ints], now_ms: int) -> Ints:
    """Time from now until each agent is no longer refused, in ms."""
    found = np.zeros(len(agent), np.int64)
    refused, expires_ms = filters
    at = np.minimum(np.searchsorted(agent, refused), max(len(agent) - 1, 0))
    there = agent[at] == refused
    np.maximum.at(found, at[there], np.maximum(expires_ms[there] - now_ms, 0))
    return found


def _kept(snapshot: Snapshot, client: int, needed: Ints) -> int:
    """Room that must stay free for guarantees, in tasks of the client."""
    bounds = snapshot.bounds
    kept = bounds.required.copy()
    for row in bounds.rows_of(client):
        if row < len(bounds.owed):
            kept = np.maximum(kept - bounds.owed[row], 0)
    kept = -(-kept[needed > 0] // needed[needed > 0])
    return int(kept.max(initial=0))


class _Agents(NamedTuple):
    """Agents (m), as room for the tasks of one client.

    `free` (m, R), in thousandths.
    `opens_ms` (m,): time from now until the client no longer refuses the agent.
    `needed` (R,), `opening`: one task, and the minimum number of tasks of an offer.
    """

    free: Ints
    opens_ms: Ints
    needed: Ints
    opening: int

    def room(self, amounts: Ints) -> Ints:
        """Number of tasks that fit in amounts (n, R); 0 if they are too few for an offer."""
        tasks = tasks_in(amounts, self.needed)
        return np.where(tasks >= self.opening, tasks, 0)


class _Lives(NamedTuple):
    """Distributions of the durations of tasks, by topic.

    `surviving` (T, BUCKETS): fraction that lasts longer than the lower edge of each bucket.
    `last` (T,): the bucket of the longest known duration.
    """

    surviving: Floats
    last: Ints
    topic: Ints

    @staticmethod
    def of(held: Held, pieces: _Pieces, known: Bools) -> "_Lives":
        """Estimate from tasks that ended, and from the ages of those that run."""
        ends = held.ends.astype(np.float64)
        cell = held.topic[pieces.client[known]] * BUCKETS + bucket_of(pieces.age_ms[known])
        runs = np.bincount(cell, minlength=ends.size).reshape(ends.shape)
        reached = np.cumsum((ends + runs)[:, ::-1], axis=1)[:, ::-1]
        at_risk = reached - runs / 2  # a task that runs counts for half of its bucket
        lost = np.where(at_risk > 0, ends / np.maximum(at_risk, 1e-9), 0.0)
        kept = np.cumprod(1.0 - np.clip(lost, 0.0, 1.0), axis=1)
        surviving = np.hstack([np.ones((len(ends), 1)), kept[:, :-1]])
        last = BUCKETS - 1 - np.argmax(ends[:, ::-1] > 0, axis=1)
        return _Lives(surviving, np.minimum(last, BUCKETS - 2), held.topic)

    def ends_ms(self, pieces: _Pieces, known: Bools, chance: Floats) -> Ints:
        """Time from now until pieces (n,) end, for chances (D, n); `NEVER`: not known."""
        found = np.full(chance.shape, NEVER)
        topic = self.topic[pieces.client]
        for each in np.unique(topic[known]).tolist():
            at = np.flatnonzero(known & (topic == each))
            left_ms = self._drawn(each, pieces.age_ms[at], chance[:, at])
            found[:, at] = np.minimum(left_ms, float(NEVER)).astype(np.int64)
        return found

    def _drawn(self, topic: int, age_ms: Ints, chance: Floats) -> Floats:
        last = int(self.last[topic])
        edges, surviving = _EDGES[: last + 2], self.surviving[topic, : last + 2]
        falling = surviving[::-1]
        # The fraction that lasts as long as each piece has run, and that at its drawn end.
        reached = np.interp(age_ms, edges, surviving)
        level = np.maximum(reached * chance, 1e-12)
        inside = np.interp(level, falling, edges[::-1].astype(np.float64))
        end, tail = float(edges[-1]), max(float(surviving[-1]), 1e-12)
        lasts = np.where(level >= tail, inside, end * tail / level)
        # Beyond every known duration: as likely as not to run as long again.
        beyond = age_ms >= end
        lasts = np.where(beyond, np.maximum(age_ms, 1) / np.maximum(chance, 1e-12), lasts)
        return np.maximum(lasts - age_ms, 0.0)


def _chosen(held: Held, pieces: _Pieces, known: Bools, fits: Bools) -> Ints:
    """Choose the pieces to consider, ascending: those of agents on which some end soonest."""
    some = np.flatnonzero(fits[pieces.place])
    if len(some) <= PIECES_MAX:
        return some
    ends = held.ends.astype(np.float64)
    total_ms = (ends * np.append(_EDGES[1:], _EDGES[-1])).sum(axis=1)
    per_ms = np.append(ends.sum(axis=1) / np.maximum(total_ms, 1.0), 0.0)  # the last: not known
    rate = np.where(known, per_ms[held.topic[pieces.client]], 0.0)
    of_agent = np.bincount(pieces.place[some], rate[some], len(fits))
    size = np.bincount(pieces.place[some], minlength=len(fits))
    order = np.argsort(-of_agent, kind="stable")
    taken = np.zeros(len(fits), np.bool_)
    taken[order[np.cumsum(size[order]) <= PIECES_MAX]] = True
    return some[taken[pieces.place[some]]]


def _gains(
    agents: _Agents, pieces: _Pieces, ends_ms: Ints, usable: Bools | None = None
) -> tuple[Ints, Ints]:
    """Return the room that is free now and that each piece leaves: amount and time, (D, m + n).

    `ends_ms` (D, n): when each piece ends.
    `usable` (m,): the agents that count; None: all.
    """
    order = np.argsort((pieces.place << _NEVER_BITS) + np.minimum(ends_ms, NEVER - 1), axis=1)
    now = agents.room(agents.free)
    draws, begins = len(ends_ms), np.searchsorted(pieces.place, np.arange(len(agents.free) + 1))
    room = np.full(ends_ms.shape, 2**31)
    for column in np.flatnonzero(agents.needed).tolist():
        total = np.zeros((draws, len(pieces.place) + 1), np.int64)
        np.cumsum(pieces.amount[order, column], axis=1, out=total[:, 1:])
        here = total[:, 1:] - total[:, begins[pieces.place]]
        here += agents.free[pieces.place, column]
        np.minimum(room, here // agents.needed[column], out=room)
    room = np.where(room >= agents.opening, room, 0)
    before = np.hstack([np.zeros((draws, 1), np.int64), room[:, :-1]])
    first = begins[:-1][np.diff(begins) > 0]
    before[:, first] = now[pieces.place[first]]
    when_ms = np.take_along_axis(ends_ms, order, axis=1)
    when_ms = np.maximum(when_ms, agents.opens_ms[pieces.place])
    gain = np.where(when_ms < NEVER, room - before, 0)
    gain = np.hstack([np.broadcast_to(now, (draws, len(now))), gain])
    when_ms = np.hstack([np.broadcast_to(agents.opens_ms, (draws, len(now))), when_ms])
    if usable is not None:
        gain = gain * np.append(usable, usable[pieces.place])
    return gain, when_ms


def _grid(gains: list[tuple[Ints, Ints]]) -> Ints:
    """Times at which turns are evaluated, (G,), ascending; denser where more room becomes free."""
    when_ms = (gain_ms[(gain > 0) & (gain_ms < NEVER)] for gain, gain_ms in gains)
    every = np.unique(np.concatenate([np.zeros(1, np.int64), *when_ms]))
    if len(every) <= TIMES // 2:
        return every
    at = ((np.arange(TIMES) / (TIMES - 1)) ** 2 * (len(every) - 1)).astype(np.int64)
    return every[at]


def _by_time(grid_ms: Ints, when_ms: Ints, amount: Floats | Ints) -> Floats:
    """Sums of amounts (D, n) up to each time, (D, G)."""
    draws, times = len(when_ms), len(grid_ms)
    at = np.searchsorted(grid_ms, when_ms) + np.arange(draws)[:, None] * (times + 1)
    sums = np.bincount(at.ravel(), np.ravel(amount), draws * (times + 1))
    return np.cumsum(sums.reshape(draws, -1)[:, :-1], axis=1)


def _room_before(turns: Turns, grid_ms: Ints, ends_ms: Ints, client: Ints, share: Floats) -> Floats:
    """Room that rivals get before the client by each time, (D, G).

    `ends_ms` (D, n), `client` (n,), `share` (n,): of the pieces.
    """
    draws, levels = len(ends_ms), len(turns.way_weight)
    mine = np.zeros((draws, len(grid_ms), levels))
    for level in range(levels):
        lower = np.flatnonzero(turns.level[client] <= level)
        each = np.broadcast_to(share[lower], (draws, len(lower)))
        mine[:, :, level] = _by_time(grid_ms, ends_ms[:, lower], each)
    its = np.zeros((draws, len(grid_ms), len(turns.way)))
    rival = turns.rival[client]
    for each_one in np.unique(rival[rival >= 0]).tolist():
        rows = np.flatnonzero(rival == each_one)
        each = np.broadcast_to(share[rows], (draws, len(rows)))
        its[:, :, each_one] = _by_time(grid_ms, ends_ms[:, rows], each)
    return turns.room(mine, its)

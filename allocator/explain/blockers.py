"""Finds and ranks the current reasons why agents are not offered to a client."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from allocator.core import (
    NOWHERE,
    UNBOUNDED,
    Bools,
    Collecting,
    Ints,
    Lines,
    SetCap,
    Snapshot,
    bits,
    format_quantities,
    in_utc,
    need_of,
    out_of_reach,
    quoted,
    reaches,
    tasks_at_most,
    tasks_collected,
    tasks_that_fit,
)
from allocator.explain import budgets, cycles
from allocator.explain.barring import Barring, PairChecker, Pairs, exclusions
from allocator.explain.picture import NEVER, Picture, Subject
from allocator.near import meant_resource
from allocator.plain import counted
from allocator.v1.explain_pb2 import Blocker

REASONS = (
    "paused",
    "unsubscribed",
    "inactive",
    "suppressed",
    "role paused",
    "budget",
    "agent inactive",
    "whitelist",
    "drained",
    "drained soon",
    "constraint",
    "capability",
    "too large",
    "limit",
    "cap",
    "headroom",
    "reserved",
    "filter",
    "full",
    "minimum",
    "gang",
    "outranked",
)
"""Reasons why a client gets nothing of an agent, the most persistent first."""

EXAMPLES = 3

_REVIVE = "wait until it expires, or let the framework REVIVE; its refuse_seconds sets the duration"
TOO_LITTLE = (
    "one task may need more than any agent has, or a resource that no agent has: check the"
    " framework's log; add such agents, or lower the need and state it (mesos-allocator demand set)"
)
_LOWER = (
    "lower the minimum: the framework's offer_filters, or --min_allocatable_resources of the master"
)
_RAISE = "raise the cap, or wait"
_RECONNECT = "the framework must connect to the master again"
_RESUME = "wait: the master recovers from a failover, and then resumes by itself"


@dataclass
class BlockerFindings:
    """The findings about a client.

    `largest_free` (R,), in thousandths: what is free on the agent that comes nearest to a task;
    zeros if there is none.
    `declined_whole`: number of whole agents that the client declined since it last accepted.
    """

    blockers: list[Blocker]
    open: int
    largest_free: Ints
    largest_agent: int = 0
    declined_whole: int = 0


@dataclass
class _Work:
    """State shared by the steps; `marks`: each blocker and the agents that it bars, by handle."""

    picture: Picture
    subject: Subject
    marks: list[tuple[Blocker, Bools]] = field(default_factory=list)
    declined_whole: int = 0

    def mark(
        self,
        reason: str,
        cause: str,
        where: Bools,
        mend: str = "",
        *,
        since_ms: int = NEVER,
        until_ms: int = NEVER,
    ) -> None:
        if where.any():
            found = Blocker(
                reason=reason, cause=cause, since_ms=since_ms, until_ms=until_ms, mend=mend
            )
            self.marks.append((found, where & self.picture.agents.bound))

    def by_handle(self, handles: Ints, flags: Bools) -> Bools:
        where = np.zeros(len(self.picture.agents.bound), np.bool_)
        where[handles[flags]] = True
        return where


def find(picture: Picture, subject: Subject, checker: PairChecker | None) -> BlockerFindings:
    """Find what blocks a client, agent by agent; `checker`: None if the picture has no snapshot."""
    work = _Work(picture, subject)
    work.declined_whole = cycles.declined_whole(picture, subject.client)
    _of_the_client(work)
    _of_the_agents(work)
    for exclusion in exclusions(picture, subject):
        work.mark(exclusion.reason, exclusion.cause, exclusion.where, exclusion.mend)
    nothing = np.zeros(len(picture.resources), np.int64)
    largest, agent = nothing, 0
    if checker is not None and checker.snapshot.leaf_of_client[subject.client] >= 0:
        barring = _of_pairs(work, checker)
        largest, agent = _largest_free(work, checker, barring)
    elif picture.clients.live[subject.client]:
        _of_busy_agents(work, picture.agents.ready)
    return BlockerFindings(*_ranked(work), largest, agent, work.declined_whole)


def _of_the_client(work: _Work) -> None:
    picture, client = work.picture, work.subject.client
    rows, everywhere = picture.clients, picture.agents.bound
    if picture.paused:
        cause = "the master makes no offers yet"
        work.mark("paused", cause, everywhere, _RESUME, since_ms=picture.paused_ms)
    if not rows.active[client]:
        since = int(rows.inactive_ms[client])
        cause = "the framework is not connected"
        work.mark("inactive", cause, everywhere, _RECONNECT, since_ms=since)
    if not rows.subscribed[client]:
        cause = "the framework left this role, but still holds resources in it"
        work.mark("unsubscribed", cause, everywhere, "let the framework subscribe to the role")
    elif rows.suppressed[client]:
        since = int(rows.changed_ms[client])
        cause = "the framework suppressed offers (SUPPRESS)"
        mend = "let the framework REVIVE its offers in this role"
        work.mark("suppressed", cause, everywhere, mend, since_ms=since)
    if rows.satiated[client]:
        cause = "the framework has as many refusals in force as one may have, in all of its roles"
        work.mark("filter", cause, everywhere, _REVIVE)
    if rows.paused[client]:
        role = picture.names.path[int(picture.names.role[client])]
        cause = f"an operator, or the calendar, paused the role {role} or one above it"
        work.mark("role paused", cause, everywhere, "mesos-allocator resume ROLE")
    path = picture.names.path[int(picture.names.role[client])]
    for cause, until_ms in budgets.over(picture.budgets, path, hard=True):
        mend = "wait, raise it (mesos-allocator budget set), or add to it (budget credit)"
        work.mark("budget", cause, everywhere, mend, until_ms=until_ms)


def _of_the_agents(work: _Work) -> None:
    agents = work.picture.agents
    inactive = agents.bound & ~agents.active
    since = int(agents.changed_ms[inactive].min(initial=work.picture.now_ms))
    cause = "the master does not offer them: disconnected, or drained"
    work.mark("agent inactive", cause, inactive, "bring the agents back", since_ms=since)
    unlisted = agents.bound & agents.active & ~agents.whitelisted
    mend = "add them to the master's whitelist"
    work.mark("whitelist", "not on the master's whitelist", unlisted, mend)
    drained = agents.bound & agents.active & agents.whitelisted & agents.drained
    work.mark("drained", "an operator drains them", drained, "mesos-allocator drain remove AGENT")
    _of_coming_drains(work)


def _of_coming_drains(work: _Work) -> None:
    """Mark agents that are drained before tasks of the client would end."""
    agents, subject = work.picture.agents, work.subject
    late = agents.ready & subject.late
    times_ms = np.unique(agents.drained_from_ms[late])
    if not len(times_ms):
        return
    each = "the drain" if len(times_ms) == 1 else "drains, the first"
    cause = f"its tasks would not end before {each} at {in_utc(int(times_ms[0]))}; "
    if subject.lasts_ms:
        cause += f"95 % of them end within {subject.lasts_ms / 1000:g} s"
    else:
        cause += "too few of them have ended to know how long they run"
    mend = "wait, remove the drain (mesos-allocator schedule remove), or lower maintenance.ahead_s"
    work.mark("drained soon", cause, late, mend)


def _of_pairs(work: _Work, checker: PairChecker) -> Barring:
    picture, subject, snapshot = work.picture, work.subject, checker.snapshot
    rows = snapshot.agents
    pairs = Pairs(np.full(len(rows), subject.client), rows)
    barring, handles = checker.barring(pairs), snapshot.handle[rows]
    _of_refusals(work, work.by_handle(handles, barring.filtered))
    _of_reservations(work, checker, pairs, barring)
    _of_bounds(work, checker, pairs, barring)
    _of_caps_on_agents(work, snapshot, barring.excluded)
    _of_minimum(work, work.by_handle(handles, barring.minimum))
    # Candidates with too little, and agents that have nothing to offer and so are no candidates.
    short = picture.agents.ready & ~work.by_handle(handles, ~(barring.no_room & ~barring.reserved))
    fits = checker.fits_when_empty(_all(work), picture.agents.capacity)
    _of_size(work, checker, short & ~fits)
    _of_busy_agents(work, short & fits)
    gangs = snapshot.gangs
    if gangs is not None and len(gangs.collects) and subject.client not in gangs.collects:
        checker = checker.beside_gangs
        left = checker.barring(pairs)
        kept = work.by_handle(handles, barring.open & ~left.open)
        cause = "free resources there are kept for a gang of another framework, which collects"
        cause += _until(picture, kept)
        if subject.ends_within_ms is None:
            cause += "; too few tasks of this framework have ended to lend it some of that"
        else:
            cause += (
                f"; 95 % of this framework's tasks end within {subject.ends_within_ms / 1000:g} s"
            )
        work.mark("gang", cause, kept, "wait until it begins; starvation.collect_s limits the time")
        barring = left
    _of_gang(work, checker, barring)
    return barring


def _all(work: _Work) -> Pairs:
    handles = np.arange(len(work.picture.agents.bound))
    return Pairs(np.full(len(handles), work.subject.client), handles)


def _of_refusals(work: _Work, where: Bools) -> None:
    subject, now_ms = work.subject, work.picture.now_ms
    here = where[subject.filter_agent]
    cause, mend = "the framework refused the resources that could be offered", _REVIVE
    if work.declined_whole:
        declined = counted(work.declined_whole, "whole agent")
        cause = f"the framework declined {declined}, and accepted nothing"
        mend = TOO_LITTLE
    if not here.any():
        work.mark("filter", cause, where, mend)
        return
    expires = subject.filter_expires_ms[here]
    first = max(int(expires.min()) - now_ms, 0) / 1000
    cause += f"; the first refusal ends in {first:.1f} s"
    work.mark("filter", cause, where, mend, until_ms=int(expires.max()))


def _of_reservations(work: _Work, checker: PairChecker, pairs: Pairs, barring: Barring) -> None:
    """Mark reservations that put free resources out of reach, by cause."""
    picture, client, specials = work.picture, work.subject.client, checker.snapshot.specials
    role = picture.names.path[int(picture.names.role[client])]
    takes = int(picture.clients.takes[client])
    below = _below_minimum(work, checker, pairs.agent, barring.reserved)
    agents = pairs.agent[barring.reserved & ~below]
    causes: dict[str, list[int]] = {}
    for agent in agents.tolist():
        entries = np.arange(specials.start[agent], specials.start[agent + 1])
        row = specials.row[entries]
        for special in row[~bits(specials.reach, row, np.full(len(row), client))].tolist():
            kind = picture.kinds[int(specials.kind[special])]
            assert kind is not None
            inside = f"{role}/".startswith(f"{kind.reserved_role}/")
            lacking = out_of_reach(kind, takes, inside) or ("another cycle: it got none of it",)
            causes.setdefault(", ".join(lacking), []).append(agent)
    for why, where in causes.items():
        handles = checker.snapshot.handle[np.array(where)]
        flags = work.by_handle(handles, np.ones(len(handles), np.bool_))
        if why.startswith("@"):
            cause = f"the free resources are reserved to the role {why[1:]}"
            work.mark("reserved", cause, flags, f"unreserve it, or run in the role {why[1:]}")
        else:
            cause = f"the free resources need {why}"
            work.mark("capability", cause, flags, "add the capability to the framework")


def _below_minimum(work: _Work, checker: PairChecker, agents: Ints, where: Bools) -> Bools:
    """Mark agents on which a task fits, but where the client's resources are below its minimum.

    If only these and the resources reserved for others together would make an offer, the minimum is
    reported, not the reservation.

    `where` (n,): which of the agents (n rows) to consider.

    Returns (n,): the agents that were marked.
    """
    snapshot, client = checker.snapshot, work.subject.client
    begin, end = snapshot.minimum_rows[client].tolist()
    minimum, demand = snapshot.minimum[begin:end], snapshot.demand[client]
    found = np.zeros(len(agents), np.bool_)
    if begin == end or not where.any():
        return found
    mine, whole = _within_reach(snapshot, client)[agents], snapshot.free_by_column[agents]
    found[:] = where & mine.any(axis=1) & (mine >= demand).all(axis=1)
    found &= ~reaches(mine, minimum) & ~reaches(whole - mine, minimum)
    if found.any():
        most = _text(work.picture, mine[found].max(axis=0))
        least = " or ".join(_text(work.picture, row) for row in minimum[:EXAMPLES])
        cause = f"at most {most} are free for it there, less than the minimum of an offer"
        handles = work.by_handle(snapshot.handle[agents], found)
        work.mark("minimum", f"{cause}, {least}", handles, _LOWER)
    return found


def _within_reach(snapshot: Snapshot, client: int) -> Ints:
    """Free resources of each agent that the client may have, (A, R)."""
    found, specials = snapshot.free_by_column.copy(), snapshot.specials
    agent = np.repeat(np.arange(len(found)), np.diff(specials.start))
    barred = ~bits(specials.reach, specials.row, np.full(len(specials.row), client))
    column = specials.column[specials.row[barred]]
    np.subtract.at(found, (agent[barred], column), specials.free[barred])
    return found


def _of_bounds(work: _Work, checker: PairChecker, pairs: Pairs, barring: Barring) -> None:
    """Mark which limit, cap or guarantee leaves too little, on agents as they are or when empty."""
    capacity, everywhere = work.picture.agents.capacity, _all(work)
    handles = checker.snapshot.handle[pairs.agent]
    roomy = work.by_handle(handles, ~barring.no_room)
    ready = work.picture.agents.bound & work.picture.agents.active
    left = work.by_handle(handles, barring.bounded)
    for bound in [*checker.snapshot.bounds.rows_of(work.subject.client), None]:
        here = work.by_handle(handles, checker.bounded_by(pairs, bound))
        emptied = checker.bounded_by(everywhere, bound, capacity)
        left &= ~here
        _mark_bound(work, checker, bound, here | (emptied & ready & ~roomy))
    if left.any():
        text = "limits and resources kept for guarantees together leave too little"
        work.mark("limit", text, left, "raise the limits, or add agents")


def _mark_bound(work: _Work, checker: PairChecker, bound: int | None, where: Bools) -> None:
    picture, bounds = work.picture, checker.snapshot.bounds
    roles, caps = len(picture.quotas.path), picture.caps
    counts = checker.snapshot.counts
    if bound is None:
        owed = [
            f"{path} ({_text(picture, bounds.owed[row])})"
            for row, path in enumerate(picture.quotas.path)
            if bounds.owed[row].any()
        ]
        cause = f"free resources are kept for guarantees: {', '.join(owed[:EXAMPLES])}"
        work.mark("headroom", cause, where, "lower a guarantee, or add agents")
    elif bound < roles:
        path, quotas = picture.quotas.path[bound], picture.quotas
        limited = bounds.left[bound] < UNBOUNDED
        had = _text(picture, np.where(limited, quotas.consumed[bound], 0)) or "nothing"
        limit = _text(picture, np.where(limited, quotas.limit[bound], 0)) or "nothing"
        cause = f"the limit of the role {path}: {had} of {limit} is consumed"
        work.mark("limit", cause, where, f"raise the limit of {path}, or free what it holds")
    elif bound < roles + caps.bounding:
        rule, limit = caps.rule[bound - roles], caps.limit[bound - roles]
        limited = limit < UNBOUNDED
        had = _text(picture, np.where(limited, limit - bounds.left[bound], 0)) or "nothing"
        most = _text(picture, np.where(limited, limit, 0)) or "nothing"
        work.mark("cap", f"{_cap(work, rule)} has {had} of {most}", where, _RAISE)
    elif counts is not None and bound < counts.first + len(counts.bounded):
        row, left = _least_left(work, counts.of_client, counts.tasks, counts.tasks_left())
        most = f"{counts.tasks[row] - left} of {counted(int(counts.tasks[row]), 'task')}"
        work.mark("cap", f"{_cap(work, caps.rule[row])} has {most}", where, _RAISE)
    else:
        part = f"{100 * picture.outstanding_max:g} %"
        mine = picture.names.framework == picture.names.framework[work.subject.client]
        offered = _text(picture, picture.clients.offered[mine].sum(axis=0))
        if offered:
            cause = f"it has {offered} on offer and not in use; one framework may have {part}"
            mend = "the framework must answer its offers; or raise outstanding_max"
            work.mark("cap", cause, where, mend)
        else:
            cause = f"one framework may have {part} on offer: less than the minimum of an offer"
            work.mark("cap", cause, where, "raise outstanding_max, or lower the minimum")


def _of_caps_on_agents(work: _Work, snapshot: Snapshot, excluded: Bools) -> None:
    """Mark agents beyond the number that a cap allows.

    `excluded` (n,): which of the snapshot's candidates bar the client, for any reason.
    """
    counts, subject = snapshot.counts, work.subject
    where = work.by_handle(snapshot.handle[snapshot.agents], excluded) & ~subject.excluded
    if counts is None or not where.any():
        return
    row, left = _least_left(
        work, counts.of_client, counts.agents, np.asarray(counts.agents - counts.taken)
    )
    most = f"{counts.agents[row] - left} of {counted(int(counts.agents[row]), 'agent')}"
    cause = f"{_cap(work, work.picture.caps.rule[row])} has something on {most}"
    work.mark("cap", cause, where, _RAISE)


def _least_left(work: _Work, of_client: Ints, most: Ints, left: Ints) -> tuple[int, int]:
    """Return the cap of the client that leaves the least, and how much it leaves.

    `of_client` (C, n); `most`, `left` (Q,).
    """
    rows = of_client[work.subject.client]
    rows = rows[(rows >= 0) & (most[rows] < UNBOUNDED)]
    row = int(rows[np.argmin(left[rows])])
    return row, int(left[row])


def _cap(work: _Work, rule: SetCap) -> str:
    """Name a cap and the holder it applies to."""
    return f"the cap per {rule.per} of the role {rule.role}: {_holder(work, rule.per)}"


def _holder(work: _Work, per: str) -> str:
    """Name what a cap applies to: the client's framework, its principal or its user."""
    if per == "framework":
        return "it"
    names = work.picture.names
    info = names.info[int(names.framework[work.subject.client])]
    name = getattr(info, per, "")
    return f"{per} {quoted(name)}" if name else f"every framework without a {per} together"


def _of_minimum(work: _Work, where: Bools) -> None:
    cause = "an offer there would be less than its minimum"
    work.mark("minimum", cause, where, f"{_LOWER}, or state a larger demand")


def _of_gang(work: _Work, checker: PairChecker, barring: Barring) -> None:
    """Mark agents with room for tasks of the client's gang, if there is not enough for all."""
    picture, client, snapshot = work.picture, work.subject.client, checker.snapshot
    gangs = snapshot.gangs
    if gangs is None or client not in gangs.client:
        return
    need = need_of(snapshot, client)
    if need == 1 and client not in gangs.unlike and client not in picture.collecting:
        return  # agents without room for one task are marked as such
    of_gang = f"its gang starts {counted(need, 'task')} at once"
    smaller = "make the gang smaller (mesos-allocator gang set)"
    if client in gangs.unlike:
        of_gang += f" ({_sizes(picture, gangs.unlike[client])})"
        smaller = "let the framework request fewer or smaller tasks"
    usable = picture.agents.ready.copy()
    for blocker, where in work.marks:
        usable &= ~where if blocker.reason in {"constraint", "capability"} else True
    most = tasks_at_most(snapshot, client, picture.agents.capacity, usable)
    if client in picture.collecting:
        _of_collecting(work, snapshot, need)
        return
    if most < need:
        nowhere = _unknown_resources(picture, work.subject.unfit)
        room = f"the agents that it may use, and its limits, have room for {most or 'none of them'}"
        cause = "; ".join(filter(None, (of_gang, nowhere, room)))
        mend = f"{smaller}, add agents, or raise the limit"
        work.mark("gang", cause, picture.agents.ready, mend)
        return
    found, on = tasks_that_fit(snapshot, client, snapshot.agents[barring.open])
    if found < need:
        room = f"{found} on {counted(on, 'agent')}" if found else "none of them"
        cause = f"{of_gang}; there is room for {room} now"
        if (end_ms := picture.resting.get(client)) is not None:
            again_s = -(-(end_ms - picture.now_ms) // 1000)
            cause += f"; gangs of its principal may collect again in {again_s} s"
        where = work.by_handle(snapshot.handle[snapshot.agents], barring.open)
        work.mark("gang", cause, where, f"wait, {smaller}, or add agents")


def _sizes(picture: Picture, lines: Lines) -> str:
    told = []
    for size, number, only in zip(*(column[:EXAMPLES].tolist() for column in lines), strict=True):
        amounts = picture.named(np.array(size))
        nowhere = "a resource that no agent has" if amounts.pop(NOWHERE, 0) else ""
        needs = " and ".join(filter(None, (format_quantities(amounts), nowhere)))
        where = f" only on agent {picture.agent_name(only)}" if only > 0 else ""
        where = " only on an agent that does not exist" if only < 0 else where
        told.append(f"{number} of {needs}{where}")
    more = len(lines.number) - len(told)
    return ", ".join(told) + f" and {more} more sizes" * bool(more)


def _of_collecting(work: _Work, snapshot: Snapshot, need: int) -> None:
    """Mark all agents if free resources are being collected for the client's gang."""
    picture, client = work.picture, work.subject.client
    its, found = picture.collecting[client], tasks_collected(snapshot, client)
    handles = list(dict.fromkeys(its.agent))
    names = ", ".join(map(picture.agent_name, handles[:EXAMPLES]))
    more = f" and {len(handles) - EXAMPLES} more" if len(handles) > EXAMPLES else ""
    since_s = (picture.now_ms - its.since_ms) // 1000
    on = f" on agents {names}{more}" if names else ""
    progress = f"collecting: {found} of {counted(need, 'task')} for {since_s} s"
    cause = f"{progress}{on}{_lent(picture, its)}"
    work.mark(
        "gang", cause, picture.agents.ready, "wait: resources that become free are kept for it"
    )


def _until(picture: Picture, kept: Bools) -> str:
    """Format when the gangs that collect on some agents (by handle) are expected to begin."""
    gangs = [its for its in picture.collecting.values() if kept[list(its.agent)].any()]
    if not gangs or any(its.expected_ms < 0 for its in gangs):
        return ""
    first_s = _in_s(picture, min(its.expected_ms for its in gangs))
    last_s = _in_s(picture, max(its.latest_ms for its in gangs))
    return f" and is expected to start in {first_s} to {last_s} s (p50 to p95)"


def _in_s(picture: Picture, when_ms: int) -> int:
    return max(-(-(when_ms - picture.now_ms) // 1000), 0)


def _lent(picture: Picture, its: Collecting) -> str:
    """Format which of a gang's agents are lent to others, or why none can be."""
    if its.expected_ms < 0:
        return (
            "; none of it is lent to others: too few tasks like those on its agents have ended to"
            " forecast its start"
        )
    if not its.lent:
        return ""
    ends_s, agents = _in_s(picture, its.expected_ms), counted(len(its.lent), "agent")
    return f"; {agents} lent to tasks of others that end within {ends_s} s"


def _of_size(work: _Work, checker: PairChecker, where: Bools) -> None:
    """Mark agents that would be too small even if they were empty."""
    if not where.any():
        return
    picture, client = work.picture, work.subject.client
    capacity = picture.agents.capacity
    short = checker.short_of(_all(work), capacity)[where].any(axis=0)
    # If some agents are large enough, the message is about the other ones only.
    every = bool(where[picture.agents.bound].all())
    nowhere = _unknown_resources(picture, work.subject.unfit)
    largest = np.where(short, capacity[where].max(axis=0, initial=0), 0)
    if short.any():
        one = picture.clients.demand[client]
        gangs = checker.snapshot.gangs
        if gangs is not None and client in gangs.unlike:
            one = checker.snapshot.demand[client]
        needed = picture.named(np.where(short, one, 0))
        needed.pop(NOWHERE, None)
        most = _text(picture, largest) or "nothing of it"
        whose = "the largest agent" if every else "the largest of these agents"
        has = f"one task needs {format_quantities(needed)}; {whose} has {most}" if needed else ""
        cause = "; ".join(filter(None, (nowhere, has)))
        mend = "correct the demand (mesos-allocator demand set), or add larger agents"
    else:
        less = "the whole agent is less than the minimum of an offer"
        cause = "; ".join(filter(None, (nowhere, less)))
        mend = _LOWER
    work.mark("too large", cause, where, mend)


def _unknown_resources(picture: Picture, names: frozenset[str]) -> str:
    if not names:
        return ""
    known = [each for each in picture.resources if each != NOWHERE]
    told = [quoted(each) + meant_resource(each, known) for each in sorted(names)[:EXAMPLES]]
    more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
    return f"it asks for resources that no agent has: {', '.join(told)}{more}"


def _of_busy_agents(work: _Work, where: Bools) -> None:
    """Mark agents that would be large enough if less were held on them."""
    picture, client = work.picture, work.subject.client
    share = picture.held_share
    order = np.argsort(-share, kind="stable")[:EXAMPLES]
    held = [row for row in order.tolist() if share[row] > 0]
    named = told_apart(picture, held) | {client: "itself"}
    holders = [f"{named[row]} {100 * share[row]:.0f} %" for row in held]
    idle = picture.offered_share.max(initial=0.0)
    cause = f"in use or on offer, most of the cluster by {', '.join(holders) or 'no framework'}"
    mend = "wait, add agents, or give the role a weight or a guarantee"
    if idle >= 0.5:
        mend = (
            "bound unused offers (starvation.outstanding_max), or shorten the master's"
            " offer_timeout"
        )
    work.mark("full", cause, where, mend)


def told_apart(picture: Picture, clients: Sequence[int]) -> dict[int, str]:
    """Name the clients' frameworks; add the role, then the id, to equal names."""
    names = picture.names
    told = {row: picture.framework_name(row) for row in clients}
    further: tuple[Callable[[int], str], ...] = (
        lambda row: f" in {names.path[int(names.role[row])]}",
        lambda row: f" ({picture.framework_id(row)})",
    )
    for more in further:
        count = Counter(told.values())
        told = {row: name + more(row) * (count[name] > 1) for row, name in told.items()}
    return told


def _largest_free(work: _Work, checker: PairChecker, barring: Barring) -> tuple[Ints, int]:
    """Return what is free on the agent that comes nearest to a task, and its handle."""
    snapshot, client = checker.snapshot, work.subject.client
    usable = np.flatnonzero(~barring.excluded)
    if not len(usable):
        return np.zeros(len(snapshot.total), np.int64), 0
    free = snapshot.free_by_column[snapshot.agents[usable]]
    wanted = snapshot.demand[client]
    against = np.where(wanted > 0, wanted, np.maximum(snapshot.total, 1))
    columns = wanted > 0 if wanted.any() else snapshot.total > 0
    nearest = int((free[:, columns] / against[columns]).min(axis=1, initial=np.inf).argmax())
    return free[nearest], int(snapshot.handle[snapshot.agents[usable[nearest]]])


def _ranked(work: _Work) -> tuple[list[Blocker], int]:
    """Count agents, and rank blockers: first those of all agents, then by agents blocked alone."""
    picture, bound = work.picture, work.picture.agents.bound
    count = np.zeros(len(bound), np.int64)
    for _, where in work.marks:
        count += where
    for blocker, where in work.marks:
        handles = np.flatnonzero(where)
        blocker.agents, blocker.alone = len(handles), int((count[handles] == 1).sum())
        blocker.examples.extend(map(picture.agent_name, handles[:EXAMPLES].tolist()))
    found = [blocker for blocker, _ in work.marks]
    whole = REASONS[: REASONS.index("agent inactive")]
    found.sort(
        key=lambda each: (
            each.reason not in whole,
            -each.alone,
            -each.agents,
            REASONS.index(each.reason),
            each.cause,
        )
    )
    return found, int((bound & (count == 0)).sum())


def _text(picture: Picture, amounts: Ints) -> str:
    return format_quantities(picture.named(amounts))

"""Reconstructs a cluster's workload from its allocator's journal: agents, frameworks, tasks."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from allocator.core import (
    DEMAND_LABEL,
    AddAgent,
    AddAgents,
    AddFramework,
    AdoptPlan,
    Allocator,
    Bools,
    Event,
    ForgetUsage,
    FrameworkInfo,
    Hold,
    Holdings,
    Ints,
    Moves,
    Options,
    Release,
    RemoveAgent,
    RemoveFramework,
    Revive,
    SetQuota,
    Settings,
    SetWeights,
    State,
    Transition,
    UpdateAgent,
    UpdateFramework,
    parse_quantities,
)
from laboratory.frameworks.base import Quantities
from laboratory.master.ledger import Quota


@dataclass(frozen=True, slots=True)
class Ran:
    """An amount that a framework used on an agent for some time.

    framework: its id.
    need: thousandths
    wanted_ms: the earliest time at which the framework is assumed to have wanted it.
    whole: whether it was a whole offer, as far as is known.
    agent: its id; empty: unknown.
    """

    framework: str
    role: str
    need: Quantities
    wanted_ms: int
    start_ms: int
    end_ms: int
    whole: bool = False
    agent: str = ""


@dataclass(slots=True)
class DayAgent:
    """An agent, and when it was present.

    capacity: thousandths by name, including reservations; the maximum over time.
    left_ms: -1 if it was present at the end.
    """

    agent_id: str
    hostname: str
    capacity: Quantities
    came_ms: int
    left_ms: int = -1


@dataclass(slots=True)
class DayFramework:
    """A framework, and when it was present.

    demand: thousandths that it stated one task needs; empty: none stated.
    allowed: by role: ids of the agents that it could be offered; no entry: all.
    refuse_ms: its most frequent filter on declined offers; -1: it declined none.
    gang: number of tasks that start together, as stated or by an operator's rule; 0: no gang.
    left_ms: -1 if it was present at the end.
    """

    framework_id: str
    name: str
    roles: tuple[str, ...]
    came_ms: int
    demand: Quantities = field(default_factory=dict)
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    refuse_ms: int = -1
    gang: int = 0
    left_ms: int = -1


@dataclass(slots=True)
class Day:
    """Everything recorded; times are in milliseconds of the master's clock.

    begin_ms, end_ms: from the first record to the last.
    settings: the operators' settings at the end.
    kinds: names of the resources.
    agents, frameworks: by id.
    ran: in the order of their ends.
    unfinished: how many of these were still running at the end.
    quotas: time, role and quota of each change.
    """

    begin_ms: int = 0
    end_ms: int = 0
    options: Options = field(default_factory=Options)
    settings: Settings | None = None
    kinds: tuple[str, ...] = ()
    agents: dict[str, DayAgent] = field(default_factory=dict)
    frameworks: dict[str, DayFramework] = field(default_factory=dict)
    ran: list[Ran] = field(default_factory=list)
    unfinished: int = 0
    quotas: list[tuple[int, str, Quota]] = field(default_factory=list)
    weights: list[tuple[int, Mapping[str, float]]] = field(default_factory=list)


# The latest offers of each size that a framework declined.

KEPT_MAX = 32


class Declined:
    """The latest offers that a framework declined, without redundant ones.

    An offer makes an earlier one redundant if it is at least as large in every resource.
    """

    def __init__(self) -> None:
        self._offers: list[tuple[int, Mapping[str, int]]] = []

    def add(self, now_ms: int, amounts: Mapping[str, int]) -> None:
        kept = [offer for offer in self._offers if not _holds(amounts, offer[1])]
        self._offers = [*kept[1 - KEPT_MAX :], (now_ms, dict(amounts))]

    def copy(self) -> "Declined":
        twin = Declined()
        twin._offers = self._offers  # the list is replaced, never modified
        return twin

    def last_ms(self, need: Mapping[str, int]) -> int:
        """When an offer that holds a need was last declined; -1: never.

        >>> declined = Declined()
        >>> declined.add(10, {"cpus": 4000})
        >>> declined.add(20, {"cpus": 1000})
        >>> declined.last_ms({"cpus": 2000}), declined.last_ms({"cpus": 500})
        (10, 20)
        >>> declined.last_ms({"cpus": 8000})
        -1
        """
        return max((when for when, offer in self._offers if _holds(offer, need)), default=-1)


def _holds(amounts: Mapping[str, int], need: Mapping[str, int]) -> bool:
    return all(amounts.get(name, 0) >= amount for name, amount in need.items())


# The allocator's state, with ids and names instead of handles.

Place: TypeAlias = tuple[str, str, str]
"""Id of the framework, role, id of the agent."""

SAME_ANSWER_MS = 100
"""Events closer together than this belong to one answer of a framework."""


def agent_id(state: State, agent: int) -> str:
    """Return the id of an agent; empty if there is none."""
    info = state.agents.info[agent] if 0 < agent < len(state.agents.info) else None
    return info.agent_id if info else ""


def framework_id(state: State, framework: int) -> str:
    """Return the id of a framework; empty if it is unknown."""
    known = state.frameworks.info
    info = known[framework] if 0 < framework < len(known) else None
    return info.framework_id if info else ""


def roles_of(state: State, framework: int) -> list[str]:
    """List the roles that a framework is in, or holds something in."""
    clients = state.frameworks.clients[framework]
    return [state.roles.path[int(state.clients.role[client])] for client in clients]


def by_name(state: State, amounts: Ints) -> Quantities:
    """Add up amounts (K,) of all kinds by name; zeros are left out."""
    columns = state.space.by_column(amounts[:, None])[0].tolist()
    return {name: n for name, n in zip(state.space.names, columns, strict=True) if n}


def used_on(state: State, agents: Iterable[int]) -> dict[Place, Quantities]:
    """Resources in use on some agents, without offers."""
    result: dict[Place, Quantities] = {}
    books, clients = state.ledger.books, state.clients
    for agent in agents:
        for row in state.ledger.rows_of_agent(agent).tolist():
            amounts = by_name(state, books.held[:, row] - books.offered[:, row])
            client = books.client[row]
            who = framework_id(state, int(clients.framework[client]))
            if amounts and who:
                role = state.roles.path[int(clients.role[client])]
                result[who, role, agent_id(state, agent)] = amounts
    return result


def rows_by_name(
    state: State, holdings: Holdings, wanted: Bools
) -> Iterator[tuple[Place, Quantities]]:
    """Yield the selected rows (N,) that have a known framework and agent."""
    whole = np.zeros(len(state.space), np.int64)
    for row in np.flatnonzero(wanted).tolist():
        who = framework_id(state, int(holdings.framework[row]))
        where = agent_id(state, int(holdings.agent[row]))
        whole[holdings.kind] = holdings.amount[row]
        amounts = by_name(state, whole)
        if who and where and amounts:
            yield (who, state.roles.path[int(holdings.role[row])], where), amounts


# Reconstruction of tasks from the events sent to an allocator.
#
# Events contain amounts in use, not tasks. So each amount released in one piece counts as a task. A
# release is matched with the earliest unmatched amount that came into use for the same framework
# and role on the same agent; the task is assumed to have started then.


@dataclass(slots=True)
class _Begun:
    """The part of an amount that came into use at one moment and is not released yet."""

    start_ms: int
    amounts: Quantities
    wanted_since_ms: int
    declined: Declined
    whole: bool


@dataclass(slots=True)
class _Wishes:
    """What is known about when a framework wanted resources in a role.

    since_ms: when it subscribed or last revived.
    """

    since_ms: int
    declined: Declined = field(default_factory=Declined)


class DayRecorder:
    """Fills a `Day` during the replay of a journal.

    day: complete after `finish`.
    """

    def __init__(self) -> None:
        self.day = Day()
        self._state: State | None = None
        self._begun: defaultdict[Place, list[_Begun]] = defaultdict(list)
        self._before: defaultdict[Place, list[_Begun]] = defaultdict(list)
        self._wishes: dict[tuple[str, str], _Wishes] = {}
        self._usual: dict[tuple[str, str], Quantities] = {}
        self._rest_ms: dict[Place, int] = {}
        self._refused_ms: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._now_ms = 0
        self._first = True

    # Hooks of the allocator.

    def begin(self, state: State) -> None:
        """Continue with another allocator, after a new session or from a checkpoint."""
        if self._state is not None:
            self._note_allowed(self._state, range(1, len(self._state.frameworks.info)))
            self._note_gangs(self._state)
        # Keep the rows of the old session until the new one has reported what is in use.
        for place, rows in self._begun.items():
            self._before[place].extend(rows)
        self._begun.clear()
        self._state = state
        self.tell_time(state)
        for agent in np.flatnonzero(state.agents.bound).tolist():
            self._note_agent(state, agent)
        for framework in np.flatnonzero(state.frameworks.bound).tolist():
            self._note_framework(state, framework)
        for place, amounts in used_on(state, np.flatnonzero(state.agents.bound).tolist()).items():
            self._start(place, amounts, answered=False)
        self._note_standing(state)

    def step(self, state: State, event: Event, apply: Callable[[], None]) -> None:
        """Apply an event, and record it."""
        self.tell_time(state)
        # Read the departing framework or agent, and the amounts in use, before the event removes
        # them.
        if isinstance(event, RemoveFramework):
            self._note_allowed(state, [event.framework])
            self._note_gangs(state)
        agents = _agents_of(event)
        before = used_on(state, agents)
        names = _ids(state, event)
        apply()
        self._note(state, event, names)
        self._compare(before, used_on(state, agents), event, state)

    def finish(self) -> Day:
        """End the recording; running tasks are assumed to end now."""
        day, state = self.day, self._state
        if state is None:
            return day
        self._note_allowed(state, range(1, len(state.frameworks.info)))
        self._note_gangs(state)
        day.settings = state.settings
        # The state names only resources of the last session; agents of the day name earlier ones.
        seen = (name for agent in day.agents.values() for name in agent.capacity)
        day.kinds = tuple(dict.fromkeys((*state.space.names, *seen)))
        for framework, known in day.frameworks.items():
            for refuse_ms, _ in self._refused_ms[framework].most_common(1):
                known.refuse_ms = refuse_ms
        for left in (self._before, self._begun):
            day.unfinished += self._give_up(left)
        day.end_ms = self._now_ms
        return day

    # Use.

    def _compare(
        self,
        before: dict[Place, Quantities],
        now: dict[Place, Quantities],
        event: Event,
        state: State,
    ) -> None:
        """Record the amounts that an event used or released."""
        if isinstance(event, Release):
            # Each released row is a task, or several that ended at once.
            for place, amounts in rows_by_name(state, event.released, event.allocated):
                self._end(place, amounts)
            for place, amounts in rows_by_name(state, event.released, ~event.allocated):
                self._rest_ms[place] = self._now_ms
                wishes = self._wishes.get(place[:2])
                if wishes is not None:
                    wishes.declined.add(self._now_ms, amounts)
            self._note_filters(state, event)
            return
        for place in {**before, **now}:  # in a deterministic order
            old, new = before.get(place, {}), now.get(place, {})
            more = {name: n - old.get(name, 0) for name, n in new.items() if n > old.get(name, 0)}
            less = {name: n - new.get(name, 0) for name, n in old.items() if n > new.get(name, 0)}
            if more:
                self._start(place, more)
            if less:
                self._end(place, less)

    def _note_filters(self, state: State, event: Release) -> None:
        """Count the filters of each framework's declines."""
        declined = ~event.allocated & (event.refuse_ms >= 0)
        who = event.released.framework[declined].tolist()
        for framework, refuse_ms in zip(who, event.refuse_ms[declined].tolist(), strict=True):
            self._refused_ms[framework_id(state, framework)][refuse_ms] += 1

    def _start(self, place: Place, amounts: Quantities, *, answered: bool = True) -> None:
        """Record an amount that came into use; `answered`: a framework accepted it just now."""
        framework, role, _ = place
        known = self._before.get(place)
        if known:
            # The amount came into use in an earlier session; this one only reports it again.
            row = known.pop(0)
            row.amounts = amounts
        else:
            wishes = self._wishes.get((framework, role)) or _Wishes(self._now_ms)
            # The rest of an offer is released just before the accepted part comes into use.
            rest_ms = self._rest_ms.get(place, -SAME_ANSWER_MS)
            whole = answered and self._now_ms - rest_ms >= SAME_ANSWER_MS
            declined = wishes.declined.copy()
            row = _Begun(self._now_ms, amounts, wishes.since_ms, declined, whole)
        self._begun[place].append(row)

    def _end(self, place: Place, amounts: Quantities) -> None:
        """Record a release, attributed to the earliest start."""
        left = dict(amounts)
        rows = self._begun.get(place, [])
        # Prefer rows of exactly this amount, then the earliest.
        rows.sort(key=lambda row: (row.amounts != amounts, row.start_ms))
        for row in rows:
            part = {n: min(a, row.amounts.get(n, 0)) for n, a in left.items()}
            part = {name: amount for name, amount in part.items() if amount}
            if not part:
                continue
            # A framework that takes offers whole releases them whole, not task by task.
            row.whole = row.whole and part == row.amounts
            self._ran(place, row, part)
            for name, amount in part.items():
                left[name] -= amount
                row.amounts[name] -= amount
            if not any(left.values()):
                break
        self._begun[place] = [row for row in rows if any(row.amounts.values())]

    def _ran(self, place: Place, row: _Begun, need: Quantities) -> None:
        framework, role, agent = place
        self._usual[framework, role] = need
        wanted_ms = min(max(row.wanted_since_ms, row.declined.last_ms(need)), row.start_ms)
        times_ms = wanted_ms, row.start_ms, self._now_ms
        self.day.ran.append(Ran(framework, role, need, *times_ms, row.whole, agent))

    def _pieces(self, place: Place, amounts: Quantities) -> list[Quantities]:
        """Divide an amount in use into tasks of the size that ended last there.

        Returns the amount as one task if it is not a multiple of that size.
        """
        framework, role, _ = place
        need = self._usual.get((framework, role), amounts)
        times = amounts.get(next(iter(need)), 0) // max(next(iter(need.values())), 1)
        if amounts == {name: amount * times for name, amount in need.items()}:
            return [dict(need)] * times
        return [dict(amounts)]

    def _give_up(self, left: dict[Place, list[_Begun]]) -> int:
        """Count the remaining amounts as tasks that end now; returns their number."""
        # Divide all amounts first, because `_ran` changes the size that `_pieces` uses.
        parts = [
            (place, row, part)
            for place, rows in left.items()
            for row in rows
            for part in self._pieces(place, row.amounts)
        ]
        for place, row, part in parts:
            self._ran(place, row, part)
        left.clear()
        return len(parts)

    # Agents and frameworks.

    def _note(self, state: State, event: Event, names: tuple[str, str]) -> None:
        """Record arrivals and departures; `names`: ids of agent and framework before the event."""
        day = self.day
        if isinstance(event, AddAgent | UpdateAgent):
            self._note_agent(state, event.agent)
        elif isinstance(event, AddAgents):
            for agent in event.agent.tolist():
                self._note_agent(state, agent)
        elif isinstance(event, RemoveAgent) and names[0] in day.agents:
            day.agents[names[0]].left_ms = self._now_ms
        elif isinstance(event, AddFramework | UpdateFramework):
            self._note_framework(state, event.framework)
        elif isinstance(event, RemoveFramework) and names[1] in day.frameworks:
            day.frameworks[names[1]].left_ms = self._now_ms
        elif isinstance(event, Revive):
            for (framework, _), wishes in self._wishes.items():
                if framework == names[1]:
                    wishes.since_ms = self._now_ms
        elif isinstance(event, SetQuota):
            quota = Quota(dict(event.guarantees), dict(event.limits))
            day.quotas.append((self._now_ms, event.role, quota))
        elif isinstance(event, SetWeights):
            day.weights.append((self._now_ms, dict(event.weights)))
        if isinstance(event, Transition | Release):
            # Amounts that this session has not reported by now have ended.
            self._give_up(self._before)

    def _note_agent(self, state: State, agent: int) -> None:
        info = state.agents.info[agent]
        assert info is not None
        capacity = by_name(state, state.agents.capacity[:, agent])
        known = self.day.agents.get(info.agent_id)
        if known is None:
            self.day.agents[info.agent_id] = DayAgent(
                info.agent_id, info.hostname, capacity, self._now_ms
            )
            return
        known.left_ms = -1
        for name, amount in capacity.items():
            known.capacity[name] = max(known.capacity.get(name, 0), amount)

    def _note_framework(self, state: State, framework: int) -> None:
        info = state.frameworks.info[framework]
        assert info is not None
        roles = tuple(sorted(roles_of(state, framework)))
        known = self.day.frameworks.get(info.framework_id)
        if known is None:
            known = DayFramework(info.framework_id, info.name, roles, self._now_ms)
            self.day.frameworks[info.framework_id] = known
        known.roles = tuple(sorted({*known.roles, *roles}))
        known.demand, known.left_ms = _demand(info), -1
        for role in roles:
            self._wishes.setdefault((info.framework_id, role), _Wishes(self._now_ms))

    def _note_standing(self, state: State) -> None:
        """Record quotas and weights that were set before the journal begins."""
        for event in state.quotas.values():
            quota = Quota(dict(event.guarantees), dict(event.limits))
            self.day.quotas.append((self._now_ms, event.role, quota))
        roles = state.roles
        weights = {
            path: float(weight)
            for path, weight in zip(roles.path, roles.weight.tolist(), strict=False)
            if path and weight != 1
        }
        if weights:
            self.day.weights.append((self._now_ms, weights))

    def _note_allowed(self, state: State, frameworks: Iterable[int]) -> None:
        """Record which agents frameworks could be offered, if not all."""
        agents = np.flatnonzero(state.agents.bound)
        for framework in frameworks:
            info = state.frameworks.info[framework]
            known = self.day.frameworks.get(info.framework_id) if info else None
            if known is None or not len(agents):
                continue
            for client in state.frameworks.clients[framework]:
                barred = state.eligibility.barred(np.full(len(agents), client), agents)
                if barred.any():
                    role = state.roles.path[int(state.clients.role[client])]
                    known.allowed[role] = frozenset(
                        agent_id(state, agent) for agent in agents[~barred].tolist()
                    )

    def _note_gangs(self, state: State) -> None:
        """Record gangs of equal tasks; unlike tasks count as single ones."""
        for client, tasks in state.clients.gangs.items():
            info = state.frameworks.info[int(state.clients.framework[client])]
            known = self.day.frameworks.get(info.framework_id) if info else None
            if known is not None and client not in state.clients.unlike:
                known.gang = max(known.gang, tasks)

    def tell_time(self, state: State) -> None:
        """Note the time, also of cycles without events."""
        # A new allocator has no time yet.
        if state.now_ms:
            self._now_ms, self.day.options = state.now_ms, state.options
        if self._first and state.now_ms:
            self._first, self.day.begin_ms = False, state.now_ms


def watched(recorder: DayRecorder) -> Callable[..., Allocator]:
    """Make a subclass of `Allocator` that reports its events to a recorder."""

    class Watched(Allocator):
        def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
            super().__init__(*arguments, **named)
            recorder.begin(self.state)

        def step(self, event: Event | AdoptPlan | ForgetUsage) -> None:
            # Not recorded: every policy makes its own plans; averages begin at zero, and operators'
            # other changes are not played at their time either.
            if isinstance(event, AdoptPlan | ForgetUsage):
                super().step(event)
            else:
                recorder.step(self.state, event, lambda: Allocator.step(self, event))

        def move(self, moves: Moves) -> int:
            """Refuse to apply moves at once, so that each comes as an event and is recorded."""
            return 0

        def advance(self, now_ms: int) -> None:
            super().advance(now_ms)
            recorder.tell_time(self.state)

        def resume(self, kept: Any) -> None:  # noqa: ANN401
            super().resume(kept)
            recorder.begin(self.state)

    return Watched


def _agents_of(event: Event) -> list[int]:
    """Agents on which an event may change what is in use."""
    if isinstance(event, Transition):
        return np.unique(event.used.agent).tolist()
    if isinstance(event, Hold):
        return np.unique(event.holdings.agent).tolist()
    return [event.agent] if isinstance(event, RemoveAgent) else []


def _ids(state: State, event: Event) -> tuple[str, str]:
    """Ids of the agent and of the framework of an event; empty: it has none."""
    # Events about several agents or frameworks have arrays instead of handles, and operators' rules
    # may have names.
    handles = (getattr(event, kind, 0) for kind in ("agent", "framework"))
    agent, framework = (each if isinstance(each, int) else 0 for each in handles)
    return agent_id(state, agent), framework_id(state, framework)


def _demand(info: FrameworkInfo) -> Quantities:
    """The demand that a framework states; empty if it cannot be parsed."""
    try:
        return dict(parse_quantities(info.labels.get(DEMAND_LABEL, "")))
    except ValueError:
        return {}

"""What ran on a cluster, as far as its allocator's journal tells: agents, frameworks, tasks."""

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
from allocator.lab.frameworks.base import Quantities
from allocator.lab.master.ledger import Quota


@dataclass(frozen=True, slots=True)
class Ran:
    """What a framework had in use on an agent, from one moment to another.

    framework: its id.
    need: thousandths
    wanted_ms: the earliest moment at which the framework is taken to have wanted it.
    whole: whether it was all of an offer, as far as is known.
    agent: its id; empty: not known.
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
    """An agent, and when it was there.

    capacity: thousandths; by name, whatever it is reserved for; the most that it had.
    left_ms: -1 where it was there at the end.
    """

    agent_id: str
    hostname: str
    capacity: Quantities
    came_ms: int
    left_ms: int = -1


@dataclass(slots=True)
class DayFramework:
    """A framework, and when it was there.

    demand: thousandths; what it said that a task needs; empty: nothing.
    allowed: by role: the ids of the agents that it could be offered; no entry: all of them.
    refuse_ms: the filter that it mostly set on what it declined; -1: it declined nothing.
    left_ms: -1 where it was there at the end.
    """

    framework_id: str
    name: str
    roles: tuple[str, ...]
    came_ms: int
    demand: Quantities = field(default_factory=dict)
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    refuse_ms: int = -1
    left_ms: int = -1


@dataclass(slots=True)
class Day:
    """All that was recorded; times are in milliseconds of the master's clock.

    begin_ms, end_ms: from the first record to the last.
    settings: what operators had set at the end.
    kinds: names of the resources.
    agents, frameworks: by id.
    ran: in the order in which they ended.
    unfinished: how many of these were still running at the end.
    quotas: when a role was given which.
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


# What a framework declined last, of each size.

KEPT_MAX = 32


class Declined:
    """The latest offers that a framework gave back, without those that say nothing more.

    An offer that was declined later, and was larger in everything, says more than one before it.
    """

    def __init__(self) -> None:
        self._offers: list[tuple[int, Mapping[str, int]]] = []

    def add(self, now_ms: int, amounts: Mapping[str, int]) -> None:
        kept = [offer for offer in self._offers if not _holds(amounts, offer[1])]
        self._offers = [*kept[1 - KEPT_MAX :], (now_ms, dict(amounts))]

    def copy(self) -> "Declined":
        twin = Declined()
        twin._offers = self._offers  # a list that is never changed, only replaced
        return twin

    def last_ms(self, need: Mapping[str, int]) -> int:
        """When an offer that holds a need was declined last; -1: never.

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


# What an allocator's books say, with ids and names instead of handles.

Place: TypeAlias = tuple[str, str, str]
"""Id of the framework, role, id of the agent."""

SAME_ANSWER_MS = 100
"""What comes closer together than this belongs to one answer of a framework."""


def agent_id(state: State, agent: int) -> str:
    """Return the id of an agent; empty where there is none."""
    info = state.agents.info[agent] if 0 < agent < len(state.agents.info) else None
    return info.agent_id if info else ""


def framework_id(state: State, framework: int) -> str:
    """Return the id of a framework; empty where it is not known."""
    known = state.frameworks.info
    info = known[framework] if 0 < framework < len(known) else None
    return info.framework_id if info else ""


def roles_of(state: State, framework: int) -> list[str]:
    """List the roles that a framework is in, or holds something in."""
    clients = state.frameworks.clients[framework]
    return [state.roles.path[int(state.clients.role[client])] for client in clients]


def by_name(state: State, amounts: Ints) -> Quantities:
    """Add amounts (K,) of all kinds up by name; zeros are left out."""
    columns = state.space.by_column(amounts[None])[0].tolist()
    return {name: n for name, n in zip(state.space.names, columns, strict=True) if n}


def used_on(state: State, agents: Iterable[int]) -> dict[Place, Quantities]:
    """What is in use on some agents, and not only on offer."""
    result: dict[Place, Quantities] = {}
    books, clients = state.ledger.books, state.clients
    for agent in agents:
        for row in state.ledger.rows_of_agent(agent).tolist():
            amounts = by_name(state, books.held[row] - books.offered[row])
            client = books.client[row]
            who = framework_id(state, int(clients.framework[client]))
            if amounts and who:
                role = state.roles.path[int(clients.role[client])]
                result[who, role, agent_id(state, agent)] = amounts
    return result


def rows_by_name(
    state: State, holdings: Holdings, wanted: Bools
) -> Iterator[tuple[Place, Quantities]]:
    """Give the rows that are wanted, (N,), and that name a framework and an agent there is."""
    whole = np.zeros(len(state.space), np.int64)
    for row in np.flatnonzero(wanted).tolist():
        who = framework_id(state, int(holdings.framework[row]))
        where = agent_id(state, int(holdings.agent[row]))
        whole[holdings.kind] = holdings.amount[row]
        amounts = by_name(state, whole)
        if who and where and amounts:
            yield (who, state.roles.path[int(holdings.role[row])], where), amounts


# Reads what ran on a cluster out of the events that its allocator was told.
#
# An allocator is told what is in use, but not of tasks. So a task is what comes back in one piece:
# it is taken to have begun when so much came into use there, for that framework, the earliest
# first.


@dataclass(slots=True)
class _Begun:
    """What came into use at one moment, as far as it did not come back yet."""

    start_ms: int
    amounts: Quantities
    wanted_since_ms: int
    declined: Declined
    whole: bool


@dataclass(slots=True)
class _Wishes:
    """What is known of how much a framework wants in a role."""

    since_ms: int
    declined: Declined = field(default_factory=Declined)


class DayRecorder:
    """Fills a `Day` while a journal is replayed.

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

    # What happens to allocators.

    def begin(self, state: State) -> None:
        """Another allocator goes on from here: with a new session, or from a checkpoint."""
        if self._state is not None:
            self._note_allowed(self._state, range(1, len(self._state.frameworks.info)))
        # What is in use is told anew. Until then it is kept aside.
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
        """Apply an event, and note what it says."""
        self.tell_time(state)
        # What can be seen only before: who goes, and what was in use.
        if isinstance(event, RemoveFramework):
            self._note_allowed(state, [event.framework])
        agents = _agents_of(event)
        before = used_on(state, agents)
        names = _ids(state, event)
        apply()
        self._note(state, event, names)
        self._compare(before, used_on(state, agents), event, state)

    def finish(self) -> Day:
        """All is read: what still runs is taken to end now."""
        day, state = self.day, self._state
        if state is None:
            return day
        self._note_allowed(state, range(1, len(state.frameworks.info)))
        day.settings = state.settings
        # Between two sessions nothing is known: what was there is in the day.
        seen = (name for agent in day.agents.values() for name in agent.capacity)
        day.kinds = tuple(dict.fromkeys((*state.space.names, *seen)))
        for framework, known in day.frameworks.items():
            for refuse_ms, _ in self._refused_ms[framework].most_common(1):
                known.refuse_ms = refuse_ms
        for left in (self._before, self._begun):
            day.unfinished += self._give_up(left)
        day.end_ms = self._now_ms
        return day

    # What is in use.

    def _compare(
        self,
        before: dict[Place, Quantities],
        now: dict[Place, Quantities],
        event: Event,
        state: State,
    ) -> None:
        """Note what came into use by an event, and what was given back."""
        if isinstance(event, Release):
            # Row by row: each is a task, or several that ended at once.
            for place, amounts in rows_by_name(state, event.released, event.allocated):
                self._end(place, amounts)
            for place, amounts in rows_by_name(state, event.released, ~event.allocated):
                self._rest_ms[place] = self._now_ms
                wishes = self._wishes.get(place[:2])
                if wishes is not None:
                    wishes.declined.add(self._now_ms, amounts)
            self._note_filters(state, event)
            return
        for place in {**before, **now}:  # in an order that is always the same
            old, new = before.get(place, {}), now.get(place, {})
            more = {name: n - old.get(name, 0) for name, n in new.items() if n > old.get(name, 0)}
            less = {name: n - new.get(name, 0) for name, n in old.items() if n > new.get(name, 0)}
            if more:
                self._start(place, more)
            if less:
                self._end(place, less)

    def _note_filters(self, state: State, event: Release) -> None:
        """Count which filters came with what was declined, by framework."""
        declined = ~event.allocated & (event.refuse_ms >= 0)
        who = event.released.framework[declined].tolist()
        for framework, refuse_ms in zip(who, event.refuse_ms[declined].tolist(), strict=True):
            self._refused_ms[framework_id(state, framework)][refuse_ms] += 1

    def _start(self, place: Place, amounts: Quantities, *, answered: bool = True) -> None:
        """So much came into use; `answered`: a framework accepted it now."""
        framework, role, _ = place
        known = self._before.get(place)
        if known:
            # Told anew in this session, and begun in one before.
            row = known.pop(0)
            row.amounts = amounts
        else:
            wishes = self._wishes.get((framework, role)) or _Wishes(self._now_ms)
            # The rest of an offer is given back just before what was taken comes into use.
            rest_ms = self._rest_ms.get(place, -SAME_ANSWER_MS)
            whole = answered and self._now_ms - rest_ms >= SAME_ANSWER_MS
            declined = wishes.declined.copy()
            row = _Begun(self._now_ms, amounts, wishes.since_ms, declined, whole)
        self._begun[place].append(row)

    def _end(self, place: Place, amounts: Quantities) -> None:
        """So much was given back: of what began first."""
        left = dict(amounts)
        rows = self._begun.get(place, [])
        # One that fits in whole, if there is one; else the earliest, as far as they go.
        rows.sort(key=lambda row: (row.amounts != amounts, row.start_ms))
        for row in rows:
            part = {n: min(a, row.amounts.get(n, 0)) for n, a in left.items()}
            part = {name: amount for name, amount in part.items() if amount}
            if not part:
                continue
            # Who keeps an offer gives it back as it was, and not task by task.
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
        """Divide what still runs into tasks like the last one of its framework, where that fits."""
        framework, role, _ = place
        need = self._usual.get((framework, role), amounts)
        times = amounts.get(next(iter(need)), 0) // max(next(iter(need.values())), 1)
        if amounts == {name: amount * times for name, amount in need.items()}:
            return [dict(need)] * times
        return [dict(amounts)]

    def _give_up(self, left: dict[Place, list[_Begun]]) -> int:
        """Take what is left to end now, as nobody knows when it ended; return how many tasks."""
        # All are divided by what ended before, and not by one another.
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

    # Who is there.

    def _note(self, state: State, event: Event, names: tuple[str, str]) -> None:
        """Note who came and went; `names`: ids of the agent and the framework before the event."""
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
            # What this session did not tell anew is no more.
            self._give_up(self._before)

    def _note_agent(self, state: State, agent: int) -> None:
        info = state.agents.info[agent]
        assert info is not None
        capacity = by_name(state, state.agents.capacity[agent])
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
        """Note quotas and weights that were set before the journal begins."""
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
        """Note which agents frameworks could be offered, where these are not all."""
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

    def tell_time(self, state: State) -> None:
        """Time went on, also where nothing happened but a cycle."""
        # An allocator that was just made knows no time yet.
        if state.now_ms:
            self._now_ms, self.day.options = state.now_ms, state.options
        if self._first and state.now_ms:
            self._first, self.day.begin_ms = False, state.now_ms


def watched(recorder: DayRecorder) -> Callable[..., Allocator]:
    """Give what makes allocators that tell a recorder all that they are told."""

    class Watched(Allocator):
        def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401
            super().__init__(*arguments, **named)
            recorder.begin(self.state)

        def step(self, event: Event | AdoptPlan) -> None:
            if isinstance(event, AdoptPlan):  # the policy's own; another one makes its own
                super().step(event)
            else:
                recorder.step(self.state, event, lambda: Allocator.step(self, event))

        def move(self, moves: Moves) -> int:
            """None together: each comes as an event, which the recorder is told of."""
            return 0

        def advance(self, now_ms: int) -> None:
            super().advance(now_ms)
            recorder.tell_time(self.state)

        def resume(self, kept: Any) -> None:  # noqa: ANN401
            super().resume(kept)
            recorder.begin(self.state)

    return Watched


def _agents_of(event: Event) -> list[int]:
    """On which agents an event may change what is in use."""
    if isinstance(event, Transition):
        return np.unique(event.used.agent).tolist()
    if isinstance(event, Hold):
        return np.unique(event.holdings.agent).tolist()
    return [event.agent] if isinstance(event, RemoveAgent) else []


def _ids(state: State, event: Event) -> tuple[str, str]:
    """Ids of the agent and of the framework that an event is about; empty: of none."""
    # Events about several have arrays, and an operator's rule has a name that may match none.
    handles = (getattr(event, kind, 0) for kind in ("agent", "framework"))
    agent, framework = (each if isinstance(each, int) else 0 for each in handles)
    return agent_id(state, agent), framework_id(state, framework)


def _demand(info: FrameworkInfo) -> Quantities:
    """What a framework says that a task needs; nothing where that is not to be understood."""
    try:
        return dict(parse_quantities(info.labels.get(DEMAND_LABEL, "")))
    except ValueError:
        return {}

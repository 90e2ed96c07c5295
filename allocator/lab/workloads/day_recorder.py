"""Reads what ran on a cluster out of the events that its allocator was told.

An allocator is told what is in use, but not of tasks. So a task is what comes back in one piece: it
is taken to have begun when so much came into use there, for that framework, the earliest first.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allocator.core import (
    DEMAND_LABEL,
    AddAgent,
    AddAgents,
    AddFramework,
    AdoptPlan,
    Allocator,
    Event,
    FrameworkInfo,
    Hold,
    Release,
    RemoveAgent,
    RemoveFramework,
    Revive,
    SetQuota,
    SetWeights,
    State,
    Transition,
    UpdateAgent,
    UpdateFramework,
    parse_quantities,
)
from allocator.lab.frameworks.base import Quantities
from allocator.lab.master.ledger_rows import Quota
from allocator.lab.workloads.books_by_name import (
    Place,
    agent_id,
    by_name,
    framework_id,
    roles_of,
    rows_by_name,
    used_on,
)
from allocator.lab.workloads.declined import Declined
from allocator.lab.workloads.recorded_day import Day, DayAgent, DayFramework, Ran


@dataclass(slots=True)
class _Begun:
    """What came into use at one moment, as far as it did not come back yet."""

    start_ms: int
    amounts: Quantities
    wanted_since_ms: int
    declined: Declined


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
        """Begin with nothing recorded."""
        self.day = Day()
        self._state: State | None = None
        self._begun: defaultdict[Place, list[_Begun]] = defaultdict(list)
        self._before: defaultdict[Place, list[_Begun]] = defaultdict(list)
        self._wishes: dict[tuple[str, str], _Wishes] = {}
        self._usual: dict[tuple[str, str], Quantities] = {}
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
        self._tell_time(state)
        for agent in np.flatnonzero(state.agents.bound).tolist():
            self._note_agent(state, agent)
        for framework in np.flatnonzero(state.frameworks.bound).tolist():
            self._note_framework(state, framework)
        for place, amounts in used_on(state, np.flatnonzero(state.agents.bound).tolist()).items():
            self._start(place, amounts)

    def step(self, state: State, event: Event, apply: Callable[[], None]) -> None:
        """Apply an event, and note what it says."""
        self._tell_time(state)
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
        day.options, day.settings = state.options, state.settings
        # Between two sessions nothing is known: what was there is in the day.
        seen = (name for agent in day.agents.values() for name in agent.capacity)
        day.kinds = tuple(dict.fromkeys((*state.space.names, *seen)))
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
            for (framework, role, _), amounts in rows_by_name(
                state, event.released, ~event.allocated
            ):
                wishes = self._wishes.get((framework, role))
                if wishes is not None:
                    wishes.declined.add(self._now_ms, amounts)
            return
        for place in before.keys() | now.keys():
            old, new = before.get(place, {}), now.get(place, {})
            more = {name: n - old.get(name, 0) for name, n in new.items() if n > old.get(name, 0)}
            less = {name: n - new.get(name, 0) for name, n in old.items() if n > new.get(name, 0)}
            if more:
                self._start(place, more)
            if less:
                self._end(place, less)

    def _start(self, place: Place, amounts: Quantities) -> None:
        framework, role, _ = place
        known = self._before.get(place)
        if known:
            # Told anew in this session, and begun in one before.
            row = known.pop(0)
            row.amounts = amounts
        else:
            wishes = self._wishes.get((framework, role)) or _Wishes(self._now_ms)
            row = _Begun(self._now_ms, amounts, wishes.since_ms, wishes.declined.copy())
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
            self._ran(place, row, part)
            for name, amount in part.items():
                left[name] -= amount
                row.amounts[name] -= amount
            if not any(left.values()):
                break
        self._begun[place] = [row for row in rows if any(row.amounts.values())]

    def _ran(self, place: Place, row: _Begun, need: Quantities) -> None:
        framework, role, _ = place
        self._usual[framework, role] = need
        wanted_ms = min(max(row.wanted_since_ms, row.declined.last_ms(need)), row.start_ms)
        self.day.ran.append(Ran(framework, role, need, wanted_ms, row.start_ms, self._now_ms))

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
        tasks = 0
        for place, rows in left.items():
            for row in rows:
                for part in self._pieces(place, row.amounts):
                    self._ran(place, row, part)
                    tasks += 1
        left.clear()
        return tasks

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

    def _tell_time(self, state: State) -> None:
        # An allocator that was just made knows no time yet.
        if state.now_ms:
            self._now_ms = state.now_ms
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

"""A recorded day under another policy: the same tasks, wanted at the same times.

Facts that the journal does not contain are assumed. A task is wanted from the latest time at which
its framework subscribed, revived, or declined an offer that would have fit it. It takes as long as
recorded, on any agent. A framework launches it on the first offer that fits it, declines others
with its usual filter, and wants nothing that it never ran. Reserved and revocable resources count
as plain ones.

A framework with a gang of equal tasks states it again, and launches as many tasks at once. A gang
of unlike tasks, stated by requests, is played as single tasks.

A framework that declares the needs of a task, and used each accepted offer completely, is greedy:
it accepts whole offers, and runs as many tasks in each as fit.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from allocator import policies
from allocator.core import GANG_LABEL, Floats, PolicySpec, Settings
from laboratory.frameworks.base import REFUSE_DEFAULT_MS, Identity, Quantities
from laboratory.frameworks.batch import RecordedFramework, Wanted
from laboratory.links.base import DirectLink
from laboratory.resources import AgentSpec
from laboratory.workloads.play import UnfinishedError, play
from laboratory.workloads.recorded_day import Day, DayAgent, DayFramework, Ran
from laboratory.workloads.scenario import JobProgress, JobStage

OWN_AGENT = "recorded-agent"
"""An attribute of each agent: its id."""


class WhatIf:
    """A recorded day as a scenario; times count from its beginning.

    ran: tasks that have ended in this run.
    """

    def __init__(self, day: Day) -> None:
        self.ran: list[Ran] = []
        self._day = day
        self._tasks: defaultdict[Who, list[Wanted]] = defaultdict(list)
        self._players: dict[Who, RecordedFramework] = {}
        self._greedy = greedy(day)
        for task in day.ran:
            who = task.framework, task.role
            need = self._greedy.get(who, task.need)
            wanted = Wanted(need, self._when(task.wanted_ms), task.end_ms - task.start_ms)
            self._tasks[who] += [wanted] * (times(task.need, need) if who in self._greedy else 1)
        for tasks in self._tasks.values():
            tasks.sort(key=lambda task: task.wanted_ms)

    @property
    def kinds(self) -> tuple[str, ...]:
        return self._day.kinds

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        return tuple(
            (
                self._when(agent.came_ms),
                AgentSpec(agent.hostname, agent.capacity, {OWN_AGENT: agent.agent_id}),
            )
            for agent in self._day.agents.values()
        )

    @property
    def jobs(self) -> int:
        """Number of pairs of a framework and a role in which it ran tasks."""
        return len(self._tasks)

    def waits(self, now_ms: int) -> bool:
        return any(
            tasks[-1].wanted_ms > now_ms or who not in self._players or self._players[who].waits
            for who, tasks in self._tasks.items()
        )

    def left(self, now_ms: int) -> list[Ran]:
        """List unfinished tasks with when they will end, or would if they started now.

        Tasks that have not started have a start of -1.
        """
        found = []
        for who, tasks in self._tasks.items():
            player = self._players.get(who)
            rows = player.unended() if player else [(task, -1) for task in tasks]
            found += [
                Ran(*who, task.need, task.wanted_ms, begun_ms, _end_ms(task, begun_ms, now_ms))
                for task, begun_ms in rows
                if task.wanted_ms <= now_ms
            ]
        return found

    def begin(self, stage: JobStage) -> None:
        day = self._day
        for when_ms, weights in day.weights:
            stage.at(self._when(when_ms), partial(stage.master.set_weights, weights))
        for when_ms, role, quota in day.quotas:
            stage.at(self._when(when_ms), partial(stage.master.set_quota, role, quota))
        for (framework_id, role), tasks in self._tasks.items():
            framework = day.frameworks.get(framework_id)
            came_ms = self._when(framework.came_ms) if framework else tasks[0].wanted_ms
            submit = partial(self._submit, stage, framework_id, role, framework)
            stage.at(came_ms, submit)
        for agent in day.agents.values():
            if agent.left_ms >= 0:
                stage.at(self._when(agent.left_ms), partial(_remove, stage, agent))

    def _when(self, time_ms: int) -> int:
        return max(time_ms - self._day.begin_ms, 0)

    def _submit(
        self, stage: JobStage, framework_id: str, role: str, framework: DayFramework | None
    ) -> None:
        allowed = framework.allowed.get(role) if framework else None
        gang = framework.gang if framework else 0
        identity = Identity(
            framework.name if framework else framework_id,
            (role,),
            framework.demand if framework else {},
            allowed={} if allowed is None else {OWN_AGENT: allowed},
            capabilities=frozenset({"GPU_RESOURCES"}),
            more_labels={GANG_LABEL: f"tasks:{gang}"} if gang else {},
        )

        def ran(task: Wanted, held: Quantities, begun_ms: int) -> None:
            now_ms = stage.master.event_heap.now_ms
            self.ran.append(Ran(framework_id, role, held, task.wanted_ms, begun_ms, now_ms))

        who = framework_id, role
        left = partial(stage.ended, role)
        player = RecordedFramework(
            identity,
            self._tasks[who],
            ran,
            left,
            refuse_ms=_refuse_ms(framework),
            gang=max(gang, 1),
            keeps_whole=who in self._greedy,
        )
        self._players[who] = player
        stage.submit(player)


Who: TypeAlias = tuple[str, str]
"""Id of a framework, and role."""

MOSTLY = 0.9
"""A framework is greedy if it took at least this part of its offers whole."""


def greedy(day: Day) -> dict[Who, Quantities]:
    """Find the frameworks that take offers whole, and what one task of each needs.

    Such a framework states what a task needs. It used each accepted offer completely, and released
    it in one piece rather than task by task.
    """
    pieces: defaultdict[Who, list[Ran]] = defaultdict(list)
    for task in day.ran:
        pieces[task.framework, task.role].append(task)
    found = {}
    for who, tasks in pieces.items():
        need = _stated(day, *who)
        # Leave out tasks that ran before the day began: how they were accepted is unknown.
        whole = sum(task.whole for task in tasks) >= MOSTLY * len(tasks)
        several = need and any(task.need != need for task in tasks)
        if whole and several and all(times(task.need, need) for task in tasks):
            found[who] = need
    return found


def _stated(day: Day, framework_id: str, role: str) -> Quantities:
    """The needs of a framework's task, declared by itself or by an operator's rule."""
    framework = day.frameworks.get(framework_id)
    if framework is None:
        return {}
    rule = day.settings.demand_rule(role, framework.name) if day.settings else None
    if rule is not None and (rule.override or not framework.demand):
        return dict(rule.demand or {})
    return framework.demand


def times(amounts: Quantities, need: Quantities) -> int:
    """How many times a need fits into amounts."""
    return min(amounts.get(name, 0) // amount for name, amount in need.items() if amount)


def _refuse_ms(framework: DayFramework | None) -> int:
    """A framework's recorded filter duration, or Mesos's default."""
    return framework.refuse_ms if framework and framework.refuse_ms >= 0 else REFUSE_DEFAULT_MS


def _remove(stage: JobStage, agent: DayAgent) -> None:
    """Remove an agent that left, if it is still there."""
    for handle, row in stage.master.ledger.agents.items():
        if row.info.attributes.get(OWN_AGENT) == agent.agent_id:
            stage.master.remove_agent(handle)
            return


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a day.

    name: the policy, or that it was recorded.
    tasks: number that ran to their end.
    unfinished: why some did not; empty if all did.
    makespan_s: until the last of them ended.
    used: mean part of each resource of the cluster in use, over the recorded time.
    wait_mean_s, wait_p95_s, wait_max_s: from when a task was wanted to its start.
    role_share: mean dominant share of each role, over the recorded time.
    role_wait_s: mean wait of its tasks.
    """

    name: str
    tasks: int
    unfinished: str
    makespan_s: float
    used: dict[str, float]
    wait_mean_s: float
    wait_p95_s: float
    wait_max_s: float
    role_share: dict[str, float]
    role_wait_s: dict[str, float]


def as_recorded(day: Day) -> Outcome:
    begin = day.begin_ms
    ran = [
        replace(
            task,
            wanted_ms=max(task.wanted_ms - begin, 0),
            start_ms=max(task.start_ms - begin, 0),
            end_ms=task.end_ms - begin,
        )
        for task in day.ran
    ]
    return describe("as recorded", day, ran)


def play_day(
    day: Day, policy: PolicySpec, name: str, watch: Callable[[JobProgress], None] | None = None
) -> Outcome:
    """Play a day under a policy.

    name: that of the outcome.
    watch: called every ten simulated seconds.
    """
    assert day.settings is not None
    scenario, unfinished = WhatIf(day), ""
    link = DirectLink(policies.build, settings_for(day, policy))
    if scenario.jobs:
        try:
            play(scenario, link, tell_demand=True, options=day.options, watch=watch)
        except UnfinishedError as error:
            unfinished = str(error)
    return describe(name, day, scenario.ran, unfinished)


def settings_for(day: Day, policy: PolicySpec) -> Settings:
    """The recorded operators' settings, with another policy.

    Their constraints are left out: the day lists the agents that each framework may use, and the
    played agents lack the recorded attributes.
    """
    assert day.settings is not None
    return replace(day.settings.copied(), policy=policy, constraints={}, shadow=None)


def describe(name: str, day: Day, ran: list[Ran], unfinished: str = "") -> Outcome:
    """Describe what ran, with times from the beginning of the day."""
    total = _total(day)
    span_ms = max(day.end_ms - day.begin_ms, 1)
    waits_s = np.array([task.start_ms - task.wanted_ms for task in ran] or [0]) / 1000
    roles = np.array([task.role for task in ran])
    # Amount times time of each task within the recorded time, (T, R), as a share of the cluster.
    held = np.array([[task.need.get(kind, 0) for kind in day.kinds] for task in ran], float)
    inside_ms = [min(task.end_ms, span_ms) - min(task.start_ms, span_ms) for task in ran]
    part = held.reshape(-1, len(day.kinds)) / total * np.array(inside_ms)[:, None] / span_ms
    names = sorted(set(roles.tolist()))
    return Outcome(
        name=name,
        tasks=len(ran),
        unfinished=unfinished,
        makespan_s=max((task.end_ms for task in ran), default=0) / 1000,
        used=dict(zip(day.kinds, part.sum(axis=0).tolist(), strict=True)),
        wait_mean_s=float(waits_s.mean()),
        wait_p95_s=float(np.percentile(waits_s, 95)),
        wait_max_s=float(waits_s.max()),
        role_share={role: float(part[roles == role].sum(axis=0).max()) for role in names},
        role_wait_s={role: float(waits_s[roles == role].mean()) for role in names},
    )


def _total(day: Day) -> Floats:
    """The cluster's mean amount of each resource over the day; infinite if it had none."""
    span_ms = max(day.end_ms - day.begin_ms, 1)
    total = np.zeros(len(day.kinds))
    for agent in day.agents.values():
        left_ms = day.end_ms if agent.left_ms < 0 else agent.left_ms
        present = max(left_ms - max(agent.came_ms, day.begin_ms), 0) / span_ms
        total += [agent.capacity.get(kind, 0) * present for kind in day.kinds]
    return np.where(total > 0, total, np.inf)


def _end_ms(task: Wanted, begun_ms: int, now_ms: int) -> int:
    return (now_ms if begun_ms < 0 else begun_ms) + task.lasts_ms

"""One run of a scenario under a policy, and its measurements."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from allocator.core import Floats, Options, PolicySpec, Settings, parse_quantities
from allocator.measures import jain_index
from allocator.policies import build
from laboratory.frameworks.base import Framework
from laboratory.links.base import DirectLink
from laboratory.master.ledger import Quota
from laboratory.reports.run_report import shares
from laboratory.resources import AgentSpec
from laboratory.scenarios.drawing import Drawn, Job, draw
from laboratory.scenarios.schema import ScenarioFile
from laboratory.workloads.play import Played, play
from laboratory.workloads.scenario import InTurn, JobStage

WAIT_PERCENTILE = 95


@dataclass(frozen=True, slots=True)
class ScenarioCell:
    """Parameters of a run: a policy in a mode, and a seed."""

    policy: str
    mode: str
    seed: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Results for the jobs of one group.

    wait_mean_s, wait_p95_s: from a job's registration to its first task, or to the end of the run
        if it has none.
    stay_mean_s: from registration to leaving, of jobs that left and were not cancelled; NaN if
        there are none.
    """

    group: str
    role: str
    jobs: int
    ended: int
    cancelled: int
    never_started: int
    wait_mean_s: float
    wait_p95_s: float
    stay_mean_s: float


@dataclass(frozen=True, slots=True)
class RunResult:
    """Measurements of a run.

    end_s: when the last job had left, or the time was over.
    finished: whether every job had left.
    used: mean part of each resource in use over the run, by name.
    role_share: mean dominant share of each role over the run.
    fairness: Jain's index of the roles' dominant shares divided by their weights, while all roles
        have jobs; NaN if they never do.
    time_s, part (T,) (T, R): part of each resource in use over time.
    """

    cell: ScenarioCell
    end_s: float
    finished: bool
    jobs: int
    ended: int
    offers: int
    declines: int
    tasks: int
    used: dict[str, float]
    role_share: dict[str, float]
    fairness: float
    groups: tuple[GroupResult, ...]
    kinds: tuple[str, ...]
    time_s: Floats
    part: Floats


def run(scenario: ScenarioFile, cell: ScenarioCell, settings: Settings | None = None) -> RunResult:
    """Draw the workload of a seed, and play it with an in-process allocator.

    `settings`: None: the default ones, with the policy of the cell.
    """
    world = ScenarioWorld(scenario, draw(scenario, cell.seed))
    settings = settings or Settings(policy=PolicySpec(cell.policy, mode=cell.mode), seed=cell.seed)
    played = play(
        world,
        DirectLink(build, settings),
        tell_demand=True,
        to_end=False,
        options=Options(filter_gpus=scenario.filter_gpus),
        until_ms=round(scenario.until_s * 1000),
        sample_ms=round(scenario.sample_s * 1000),
    )
    assert not played.record.defects, f"{cell}: {played.record.defects}"
    return _measure(world, played, cell)


class ScenarioWorld:
    """A drawn workload as a playable scenario, with a record of its jobs."""

    def __init__(self, scenario: ScenarioFile, drawn: Drawn) -> None:
        self._scenario = scenario
        self.drawn = drawn
        self.kinds = drawn.kinds
        self.agents: tuple[tuple[int, AgentSpec], ...] = ()  # `begin` adds them
        self.all_jobs = drawn.jobs
        self.jobs = len(self.all_jobs)
        self.weights = {role.path: role.weight for role in scenario.roles}
        self.roles = sorted({job.role for job in self.all_jobs})

    def begin(self, stage: JobStage) -> None:
        """Schedule the actions of agents, operators and jobs."""
        master = stage.master
        if self.weights:
            master.set_weights(self.weights)
        for role in self._scenario.roles:
            quota = Quota(_read(role.guarantee), _read(role.limit))
            if quota:
                stage.at(0, partial(master.set_quota, role.path, quota))
        for coming in self.drawn.agents:
            stage.at(coming.arrives_ms, partial(self._come, stage, coming.spec, coming.leaves_ms))
        for queue in self.drawn.queues:
            jobs = [partial(_framework, stage, job) for job in queue.jobs]
            in_turn = InTurn(stage, queue.jobs[0].role, jobs, iter(queue.gaps_ms))
            stage.at(queue.arrives_ms, in_turn.submit)

    def _come(self, stage: JobStage, spec: AgentSpec, leaves_ms: int | None) -> None:
        agent = stage.master.add_agent(spec)
        if leaves_ms is not None:
            stage.at(leaves_ms, partial(stage.master.remove_agent, agent))


def _framework(stage: JobStage, job: Job, left: Callable[[], None]) -> Framework:
    """Make a job's framework, which records the job's times."""
    heap = stage.master.event_heap

    def started() -> None:
        job.started_ms = heap.now_ms

    def ended(cancelled: bool = False) -> None:
        job.ended_ms, job.cancelled = heap.now_ms, cancelled
        left()

    job.submitted_ms = heap.now_ms
    return job.make(ended, started)


def _read(amounts: str | None) -> dict[str, int]:
    return parse_quantities(amounts) if amounts else {}


def _measure(world: ScenarioWorld, played: Played, cell: ScenarioCell) -> RunResult:
    progress, record = played.progress, played.record
    now_ms = played.master.event_heap.now_ms
    end_ms = max((at for _, at in progress.ended_ms), default=0) if progress.done else now_ms
    time_s, part = use_over_time(played, end_ms)
    lasted = np.diff(np.append(time_s, end_ms / 1000))
    whole = max(float(lasted.sum()), 1e-9)
    samples = played.role_shares
    share = {role: samples.shares(role) for role in world.roles}
    contended = np.all([samples.there(role) for role in world.roles], axis=0)
    weight = np.array([world.weights.get(role, 1.0) for role in world.roles])
    level = np.array([share[role][contended].sum() for role in world.roles]) / weight
    kinds = world.kinds
    return RunResult(
        cell=cell,
        end_s=end_ms / 1000,
        finished=progress.done,
        jobs=progress.jobs,
        ended=len(progress.ended_ms),
        offers=record.offers,
        declines=record.declines,
        tasks=record.tasks,
        used=dict(zip(kinds, (lasted @ part / whole).tolist(), strict=True)),
        role_share={role: float(share[role].mean()) for role in world.roles},
        fairness=float(jain_index(level)) if level.any() else float("nan"),
        groups=tuple(_groups(world.all_jobs, end_ms)),
        kinds=kinds,
        time_s=time_s,
        part=part,
    )


def use_over_time(played: Played, end_ms: int) -> tuple[Floats, Floats]:
    """Part of each resource in use from each moment on, up to the end."""
    time_s, part = shares(played)
    there = time_s <= end_ms / 1000
    return time_s[there], part[there]


def _groups(jobs: list[Job], end_ms: int) -> list[GroupResult]:
    by_group: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for job in jobs:
        by_group[job.group, job.role].append(job)
    return [_group(*key, members, end_ms) for key, members in by_group.items()]


def _group(group: str, role: str, jobs: list[Job], end_ms: int) -> GroupResult:
    there = [job for job in jobs if job.submitted_ms is not None]
    waits = [_from_to(job, job.started_ms, end_ms) for job in there] or [0.0]
    done = [job for job in there if job.ended_ms is not None and not job.cancelled]
    stays = [_from_to(job, job.ended_ms, end_ms) for job in done]
    return GroupResult(
        group=group,
        role=role,
        jobs=len(jobs),
        ended=sum(job.ended_ms is not None for job in there),
        cancelled=sum(job.cancelled for job in there),
        never_started=sum(job.started_ms is None for job in jobs),
        wait_mean_s=float(np.mean(waits)),
        wait_p95_s=float(np.percentile(waits, WAIT_PERCENTILE)),
        stay_mean_s=float(np.mean(stays)) if stays else float("nan"),
    )


def _from_to(job: Job, moment_ms: int | None, end_ms: int) -> float:
    assert job.submitted_ms is not None
    return ((end_ms if moment_ms is None else moment_ms) - job.submitted_ms) / 1000

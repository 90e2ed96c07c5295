"""Drawing a workload from a scenario and a seed: agents, arrivals, tasks, constraints."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from allocator.core import GANG_LABEL, Bools, parse_quantities
from laboratory.frameworks.base import Framework, Identity
from laboratory.frameworks.batch import BatchJob, Manner, Work
from laboratory.frameworks.spark import CoarseSpark
from laboratory.master.gates import GPU_CAPABILITY
from laboratory.resources import AgentSpec
from laboratory.scenarios.schema import (
    DRAWN,
    Agents,
    Duration,
    Frameworks,
    ScenarioFile,
    Spark,
)
from laboratory.workloads.constraint_model import ConstraintModel
from laboratory.workloads.spark_experiment import lognormal_ms, stops_ms

# Task durations.


def draw_ms(duration: Duration, count: int, rng: np.random.Generator) -> list[int]:
    """Draw durations in ms, at least 1 each.

    The mean is `mean_s` under every law. Pareto's minimum is ``mean * (alpha - 1) / alpha``.
    """
    mean = duration.mean_s * 1000
    match duration.law:
        case "constant":
            drawn = np.full(count, mean)
        case "exponential":
            drawn = rng.exponential(mean, count)
        case "erlang":
            drawn = rng.gamma(duration.phases, mean / duration.phases, count)
        case "lognormal":
            return lognormal_ms(rng, mean, duration.variation, count)
        case "pareto":
            least = mean * (duration.alpha - 1) / duration.alpha
            drawn = least * (1 - rng.random(count)) ** (-1 / duration.alpha)
    return np.maximum(np.rint(drawn), 1).astype(np.int64).tolist()


GPUS = "gpus"


class Left(Protocol):
    """Called when a framework has left."""

    def __call__(self, cancelled: bool = False) -> None:
        """Say whether it was cancelled."""


@dataclass(slots=True)
class Job:
    """A framework to run, and its times.

    make: builds it, given callbacks for when it has left and when its first task starts.
    submitted_ms, started_ms, ended_ms: when it registered, started its first task, and left.
    """

    group: str
    role: str
    make: Callable[[Left, Callable[[], None]], Framework]
    submitted_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Queue:
    """Consecutive jobs; the first arrives at `arrives_ms`."""

    arrives_ms: int
    gaps_ms: tuple[int, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Coming:
    """An agent, when it registers, and when it is lost."""

    arrives_ms: int
    leaves_ms: int | None
    spec: AgentSpec


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workload with all random values drawn.

    kinds: names of the resources.
    """

    agents: tuple[Coming, ...]
    queues: tuple[Queue, ...]
    kinds: tuple[str, ...]

    @property
    def jobs(self) -> list[Job]:
        """All jobs, queue by queue."""
        return [job for queue in self.queues for job in queue.jobs]


def draw(scenario: ScenarioFile, seed: int) -> Drawn:
    """Draw a scenario's workload; a seed determines it."""
    # One random stream for each part: an addition to one group changes no other group.
    parts = iter(np.random.SeedSequence(seed).spawn(2 + len(scenario.groups)))
    rng = np.random.default_rng(next(parts))
    meets = _meets(scenario, rng)
    agents = tuple(_agents(scenario.agents, meets, np.random.default_rng(next(parts))))
    queues: list[Queue] = []
    for group, part in zip(scenario.groups, parts, strict=True):
        own = np.random.default_rng(part)
        jobs = _spark_jobs if isinstance(group, Spark) else partial(_batch_jobs, meets=meets)
        queues += _queues(group, own, partial(jobs, scenario))
    names = [name for each in scenario.agents for name in parse_quantities(each.capacity)]
    return Drawn(agents, tuple(queues), tuple(dict.fromkeys(names)))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _model(scenario: ScenarioFile) -> ConstraintModel:
    given = scenario.constraints
    assert given is not None
    return ConstraintModel(
        given.constraints, given.per_job, given.rarest, given.commonest, given.rarer
    )


def _meets(scenario: ScenarioFile, rng: np.random.Generator) -> Bools:
    if scenario.constraints is None:
        return np.zeros((1, 0), np.bool_)
    return _model(scenario).draw_types(scenario.constraints.types, rng)


def _attribute(constraint: int) -> str:
    return f"{DRAWN}{constraint + 1}"


def _agents(groups: Sequence[Agents], meets: Bools, rng: np.random.Generator) -> Iterator[Coming]:
    """Yield the agents; with random constraints, each gets a random type."""
    for group in groups:
        for number in range(group.count):
            met = np.flatnonzero(meets[rng.integers(len(meets))]).tolist()
            attributes = dict(group.attributes) | {_attribute(each): "yes" for each in met}
            name = group.name if group.count == 1 else f"{group.name}-{number + 1}"
            yield Coming(
                _ms(group.arrives_s + number * group.apart_s),
                None if group.leaves_s is None else _ms(group.leaves_s),
                AgentSpec(name, parse_quantities(group.capacity), attributes),
            )


def _queues(
    group: Frameworks | Spark,
    rng: np.random.Generator,
    jobs: Callable[[Frameworks | Spark, np.random.Generator, str], tuple[Job, ...]],
) -> Iterator[Queue]:
    """Yield the queues of a group; with one job each, they are just jobs that arrive."""
    arrives_s = group.arrives_s
    for number in range(group.count):
        name = group.name if group.count == 1 else f"{group.name}-{number + 1}"
        gaps = tuple(_ms(group.gap_s * rng.uniform(2 / 3, 4 / 3)) for _ in range(group.jobs))
        yield Queue(_ms(arrives_s), gaps, jobs(group, rng, name))
        poisson = group.arrival == "poisson"
        arrives_s += rng.exponential(group.apart_s) if poisson else group.apart_s


def _name(queue: str, number: int, count: int) -> str:
    return queue if count == 1 else f"{queue}-job-{number + 1}"


def _batch_jobs(
    scenario: ScenarioFile,
    group: Frameworks,
    rng: np.random.Generator,
    queue: str,
    *,
    meets: Bools,
) -> tuple[Job, ...]:
    manner = Manner(
        gang=group.gang,
        requests_gang=group.states_gang and len(group.together) > 1,
        holds_ms=_ms(group.holds_s),
        greedy=group.greedy,
        refuse_ms=_ms(group.refuse_s),
        cancelled_after_ms=None
        if group.cancelled_after_s is None
        else _ms(group.cancelled_after_s),
    )
    by_label = group.states_gang and not manner.requests_gang
    labels = {GANG_LABEL: f"tasks:{group.gang}"} if by_label else {}
    jobs = []
    for number in range(group.jobs):
        work = _work(group, rng)
        allowed = {name: frozenset(values) for name, values in group.allowed.items()}
        if group.constrained:
            asks = _model(scenario).draw_wishes(1, meets, rng)[0]
            allowed |= {
                _attribute(each): frozenset({"yes"}) for each in np.flatnonzero(asks).tolist()
            }
        gpus = any(GPUS in each.need for each in work)
        identity = Identity(
            _name(queue, number, group.jobs),
            (group.role,),
            # Tasks of several sizes have no single demand.
            dict(work[0].need) if group.states_demand and len(work) == 1 else {},
            allowed,
            frozenset({GPU_CAPABILITY} if gpus else ()),
            more_labels=labels,
        )
        jobs.append(Job(group.name, group.role, partial(BatchJob, identity, work, manner)))
    return tuple(jobs)


def _work(group: Frameworks, rng: np.random.Generator) -> tuple[Work, ...]:
    """The tasks of a job, by size; sizes without tasks are left out."""
    needs = [group.task] if group.task else [size.need for size in group.sizes]
    shares = [size.share for size in group.sizes] or [1.0]
    counts = rng.multinomial(group.tasks, np.array(shares) / sum(shares))
    if group.gang > 1:  # each has as many tasks of each size
        counts = np.array(group.together) * (group.tasks // group.gang)
    return tuple(
        Work(parse_quantities(str(need)), tuple(draw_ms(group.duration, int(count), rng)))
        for need, count in zip(needs, counts, strict=True)
        if count
    )


def _spark_jobs(
    _scenario: ScenarioFile, group: Spark, rng: np.random.Generator, queue: str
) -> tuple[Job, ...]:
    settings = group.settings
    jobs = []
    for number in range(group.jobs):
        stages = tuple(
            tuple(lognormal_ms(rng, stage.mean_s * 1000, stage.variation, stage.tasks))
            for stage in group.stages
        )
        identity = settings.identity(_name(queue, number, group.jobs), group.role)
        if group.states_demand:
            identity = replace(identity, demand=settings.executor)
        driver = partial(
            CoarseSpark,
            identity,
            settings,
            stages,
            start_ms=_ms(group.start_s),
            stop_ms=stops_ms(rng),
        )
        jobs.append(Job(group.name, group.role, driver))
    return tuple(jobs)

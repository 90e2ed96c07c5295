"""Synthetic days: clusters with known right advice, played, and recorded as real journals.

The emulated master speaks the real protocol with a real `Sidecar`, whose own journal records all
messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from allocator import policies
from allocator.core import (
    Allocator,
    Detached,
    Options,
    PolicySpec,
    Settings,
    nbytes_of,
    parse_quantities,
)
from allocator.server.engine.journal_files import Head, Journal, Keeping
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.framing import frame
from allocator.wire.journal.records import (
    answered_record,
    closed_record,
    opened_record,
    request_record,
    start_record,
)
from laboratory.frameworks.base import Identity
from laboratory.frameworks.batch import BatchJob, Manner, TaskQueue, Work
from laboratory.master.ledger import Quota
from laboratory.resources import AgentSpec
from laboratory.workloads.play import Played, play
from laboratory.workloads.scenario import JobStage, Scenario
from tests.torture.wire_link import WireLink


class JournalLink(WireLink):
    """A session with a sidecar in this process that keeps a journal, as the real one does."""

    def __init__(self, path: Path, settings: Settings) -> None:
        def new_allocator(kept: Settings) -> Allocator:
            return Allocator(policies.build, kept, substitute=policies.substitute())

        super().__init__(new_allocator, settings)
        self._settings = settings
        self.journal = Journal(path, Keeping(1 << 40, 8, 0), self._head)

    def _head(self, file: int, records_before: int) -> Head:
        limits = self.sidecar.allocator.state.session_limits
        start = start_record(
            self._settings, limits, self.sidecar.welcome, file=file, records_before=records_before
        )
        kept = Detached(self.sidecar.kept())
        return Head(nbytes_of(kept.value), map(frame, head(start, kept.value)))

    def open(self, opening) -> None:
        self.close()
        self.journal.write(opened_record(self.sidecar.sessions_begun + 1))
        super().open(opening)

    def _say(self, request):
        data = request.SerializeToString()
        self.journal.write(request_record(self._stream, data))
        answers = self.sidecar.receive(self._stream, data)
        if answers:
            self.journal.write(answered_record(answers))
        return [self._session.receive(answer.SerializeToString()) for _, answer in answers]

    def close(self) -> None:
        if self._stream:
            self.journal.write(closed_record(self._stream))
        super().close()


@dataclass(frozen=True)
class Job:
    """A framework with equal tasks; `greedy`: it keeps whole offers."""

    at_s: float
    name: str
    role: str
    need: str
    durations_s: tuple[float, ...]
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    greedy: bool = False
    says: bool = True


def written(scenario: Scenario, path: Path, settings: Settings, *, until_ms: int) -> Played:
    """Play a scenario up to some time, and write its journal."""
    link = JournalLink(path, settings)
    played = play(
        scenario, link, tell_demand=True, options=EVERY_2_S, until_ms=until_ms, to_end=False
    )
    link.close()
    link.journal.close()
    return played


EVERY_2_S = Options(allocation_interval_ms=2_000)
"""Cycles take most of the time of a test."""

CHARACTERISED = PolicySpec("drf", mode="characterised")


@dataclass(frozen=True)
class MadeDay:
    """A cluster, its workload, and operators' settings."""

    agents: tuple[AgentSpec, ...]
    work: tuple[Job, ...]
    policy: PolicySpec = CHARACTERISED
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("cpus", "mem")

    @property
    def jobs(self) -> int:
        return len(self.work)

    def write(self, path: Path, until_s: float | None = None) -> Path:
        """Play it to its end, or up to some time, and return its journal."""
        until_ms = 24 * 3_600_000 if until_s is None else round(until_s * 1000)
        played = written(Staged(self), path, Settings(policy=self.policy), until_ms=until_ms)
        assert played.progress.done or until_s is not None, "the made day does not end"
        return path


class Staged:
    """The day as a scenario."""

    def __init__(self, made: MadeDay) -> None:
        self.kinds, self.jobs = made.kinds, made.jobs
        self.agents = tuple((0, spec) for spec in made.agents)
        self._made = made

    def begin(self, stage: JobStage) -> None:
        if self._made.weights:
            stage.master.set_weights(self._made.weights)
        for role, quota in self._made.quotas.items():
            stage.at(0, partial(stage.master.set_quota, role, quota))
        for job in self._made.work:
            stage.at(round(job.at_s * 1000), partial(self._submit, stage, job))

    @staticmethod
    def _submit(stage: JobStage, job: Job) -> None:
        need = dict(parse_quantities(job.need))
        identity = Identity(job.name, (job.role,), need if job.says else {}, job.allowed)
        lasts_ms = tuple(round(each * 1000) for each in job.durations_s)
        left = partial(stage.ended, job.role)
        if job.greedy:
            work, manner = [Work(need, lasts_ms)], Manner(greedy=True)
            stage.submit(BatchJob(identity, work, manner, lambda _cancelled: left()))
        else:
            stage.submit(TaskQueue(identity, need, lasts_ms, left=left))


def agents(
    count: int, capacity: str, name: str = "agent", **attributes: str
) -> tuple[AgentSpec, ...]:
    amounts = parse_quantities(capacity)
    return tuple(AgentSpec(f"{name}-{n + 1}", amounts, attributes) for n in range(count))


def drawn(count: int, mean_s: float, seed: int) -> tuple[float, ...]:
    """Durations between half the mean and one and a half times the mean."""
    return tuple(np.random.default_rng(seed).uniform(0.5, 1.5, count) * mean_s)

"""Soak a real sidecar: a random cluster with faults, and the books compared as it goes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from allocator.core import PolicySpec
from allocator.lab.event_heap import Priority
from allocator.lab.experiments.play import Played, play
from allocator.lab.links.sidecar_process import set_policy
from allocator.lab.links.stream import StreamLink
from allocator.lab.links.tokens import SESSION_TOKEN_FILE, read_token
from allocator.lab.random_cluster import RandomScenario
from allocator.lab.random_cluster.books_audit import differences, of_ledger, of_sidecar
from allocator.lab.workloads.cluster import AgentSpec
from allocator.lab.workloads.scenario import Progress, Stage

EVERY_MS = 5_000


@dataclass(slots=True)
class _Audited:
    """A soak that stops now and then to compare."""

    soak: RandomScenario
    target: str
    compared: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.soak.kinds

    @property
    def agents(self) -> tuple[tuple[int, AgentSpec], ...]:
        return self.soak.agents

    @property
    def jobs(self) -> int:
        return self.soak.jobs

    def begin(self, stage: Stage) -> None:
        self.soak.begin(stage)
        for when_ms in range(EVERY_MS, self.soak.duration_ms, EVERY_MS):
            stage.master.event_heap.at(when_ms, lambda: self._compare(stage), Priority.OBSERVE)

    def _compare(self, stage: Stage) -> None:
        master = stage.master
        master.settle()
        ours, theirs = of_ledger(master.ledger, master.event_heap.now_ms), of_sidecar(self.target)
        found = differences(ours, theirs, offered=not master.record.resyncs)
        self.wrong += [f"at {master.event_heap.now_ms} ms, {line}" for line in found]
        self.compared += 1


@dataclass(frozen=True, slots=True)
class Soaked:
    """What came of a soak.

    compared: how often the books were compared.
    wrong: where they differed.
    """

    played: Played
    compared: int
    wrong: tuple[str, ...]


def soak_sidecar(
    target: str,
    soak: RandomScenario,
    policy: PolicySpec,
    *,
    started_us: int = 1,
    watch: Callable[[Progress], None] | None = None,
) -> Soaked:
    """Play a soak on a sidecar that serves at `target`.

    started_us: when our master began to lead: the newer of two has the sidecar.
    watch: told now and then how far it is.
    Raises LinkDownError where no sidecar answers.
    """
    set_policy(target, policy)
    audited = _Audited(soak, target)
    link = StreamLink(target, started_us, read_token(SESSION_TOKEN_FILE))
    played = play(audited, link, tell_demand=True, options=soak.options, watch=watch)
    return Soaked(played, audited.compared, tuple(audited.wrong))

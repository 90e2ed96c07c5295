"""Soak test of a real sidecar: a random cluster with faults, whose books are compared at times."""

from collections.abc import Callable
from functools import partial

from allocator.core import PolicySpec
from laboratory.event_heap import Priority
from laboratory.links.borrowed import set_policy
from laboratory.links.sidecar_process import SESSION_TOKEN_FILE, read_token
from laboratory.links.stream import StreamLink
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.session import Record
from laboratory.random_cluster import RandomScenario
from laboratory.random_cluster.checks import differences, of_ledger, of_sidecar
from laboratory.workloads.play import play
from laboratory.workloads.scenario import JobProgress, JobStage

EVERY_MS = 5_000


class Soak:
    """A soak on the sidecar at `target`.

    compared: how often the books were compared.
    wrong: their differences.
    now_ms: the emulated time.
    record: the master's record; None before the soak has begun.
    """

    def __init__(self, target: str, scenario: RandomScenario) -> None:
        self.compared = 0
        self.wrong: list[str] = []
        self._target = target
        self._scenario = scenario
        self._master: EmulatedMaster | None = None
        scenario.also = self._begin

    @property
    def now_ms(self) -> int:
        return self._master.event_heap.now_ms if self._master else 0

    @property
    def record(self) -> Record | None:
        return self._master.record if self._master else None

    def play(
        self,
        policy: PolicySpec | None,
        *,
        started_us: int = 1,
        watch: Callable[[JobProgress], None] | None = None,
    ) -> None:
        """Play the random cluster to its end.

        policy: the policy to set first; None: keep the sidecar's.
        started_us: when our master began to lead; the newer of two masters gets the sidecar.
        watch: called from time to time with the progress.
        Raises LinkDownError if no sidecar answers.
        """
        if policy is not None:
            set_policy(self._target, policy)
        link = StreamLink(self._target, started_us, read_token(SESSION_TOKEN_FILE))
        play(self._scenario, link, tell_demand=True, options=self._scenario.options, watch=watch)

    def _begin(self, stage: JobStage) -> None:
        self._master = stage.master
        for when_ms in range(EVERY_MS, self._scenario.duration_ms, EVERY_MS):
            stage.master.event_heap.at(when_ms, partial(self._compare, stage), Priority.OBSERVE)

    def _compare(self, stage: JobStage) -> None:
        master = stage.master
        master.settle()
        ours, theirs = of_ledger(master.ledger, master.event_heap.now_ms), of_sidecar(self._target)
        found = differences(ours, theirs, offered=not master.record.resyncs)
        self.wrong += [f"at {master.event_heap.now_ms} ms, {line}" for line in found]
        self.compared += 1

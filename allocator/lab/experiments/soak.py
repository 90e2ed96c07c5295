"""Soak a real sidecar: a random cluster with faults, and the books compared as it goes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from allocator.core import PolicySpec
from allocator.lab.event_heap import Priority
from allocator.lab.links.sidecar_process import SESSION_TOKEN_FILE, read_token, set_policy
from allocator.lab.links.stream import StreamLink
from allocator.lab.random_cluster import RandomScenario
from allocator.lab.random_cluster.checks import differences, of_ledger, of_sidecar
from allocator.lab.workloads.play import Played, play
from allocator.lab.workloads.scenario import Progress, Stage

EVERY_MS = 5_000


class _Audit:
    """Stops a soak now and then to compare."""

    def __init__(self, soak: RandomScenario, target: str) -> None:
        self.compared = 0
        self.wrong: list[str] = []
        self._target = target
        self._until_ms = soak.duration_ms
        soak.also = self.begin

    def begin(self, stage: Stage) -> None:
        for when_ms in range(EVERY_MS, self._until_ms, EVERY_MS):
            stage.master.event_heap.at(when_ms, partial(self._compare, stage), Priority.OBSERVE)

    def _compare(self, stage: Stage) -> None:
        master = stage.master
        master.settle()
        ours, theirs = of_ledger(master.ledger, master.event_heap.now_ms), of_sidecar(self._target)
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
    audit = _Audit(soak, target)
    link = StreamLink(target, started_us, read_token(SESSION_TOKEN_FILE))
    played = play(soak, link, tell_demand=True, options=soak.options, watch=watch)
    return Soaked(played, audit.compared, tuple(audit.wrong))

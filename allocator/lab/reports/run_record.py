"""What a run was like: use over time, counts, waits, latencies."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from allocator.core import Reason
from allocator.lab.master.ledger_rows import Amount


@dataclass(slots=True)
class Record:
    """Everything that a run writes down as it goes.

    time_ms, used, total: the used and total amounts from each moment on at which one of them
        changed.
    latency_s: wall time from the sending of each batch that asks for a cycle to the last of its
        decisions.
    outcomes: what became of all decisions.
    steady: of those between whose cycle and whose arrival nothing happened: there is no excuse.
    waits_ms: from a framework's subscription to its first offer.
    fallbacks: offers that the master made without the sidecar.
    inverse_offers: how often a framework was asked to leave an agent.
    """

    time_ms: list[int] = field(default_factory=list)
    used: list[Amount] = field(default_factory=list)
    total: list[Amount] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    outcomes: Counter[Reason] = field(default_factory=Counter)
    steady: Counter[Reason] = field(default_factory=Counter)
    waits_ms: list[int] = field(default_factory=list)
    batches: int = 0
    events: int = 0
    offers: int = 0
    declines: int = 0
    tasks: int = 0
    operations: int = 0
    resyncs: int = 0
    fallbacks: int = 0
    inverse_offers: int = 0

    def note_use(self, now_ms: int, used: Sequence[int], total: Sequence[int]) -> None:
        """Write down what is used from now on, if it is something else than before."""
        row, whole = tuple(used), tuple(total)
        if self.time_ms and self.used[-1] == row and self.total[-1] == whole:
            return
        if self.time_ms and self.time_ms[-1] == now_ms:
            self.used[-1], self.total[-1] = row, whole
            return
        self.time_ms.append(now_ms)
        self.used.append(row)
        self.total.append(whole)

    @property
    def rejected(self) -> Counter[Reason]:
        """Decisions of which no offer was made as they said, by reason."""
        return _without_offered(self.outcomes)

    @property
    def defects(self) -> Counter[Reason]:
        """The same of those that are steady: the sidecar was wrong."""
        return _without_offered(self.steady)


def _without_offered(outcomes: Counter[Reason]) -> Counter[Reason]:
    return Counter({r: n for r, n in outcomes.items() if r != Reason.OFFERED})

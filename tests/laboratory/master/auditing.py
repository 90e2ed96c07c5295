"""A scenario whose books are compared periodically, and whose sessions are cut."""

from dataclasses import dataclass

from laboratory.event_heap import Priority
from laboratory.random_cluster.checks import differences, of_ledger
from laboratory.workloads.scenario import Scenario
from tests.laboratory.master.books import of_state
from tests.torture.wire_link import WireLink


@dataclass
class Audited:
    """A scenario on a sidecar in this process, whose books are compared periodically."""

    scenario: Scenario
    link: WireLink
    every_ms: int = 97
    cut_every_ms: int = 0
    until_ms: int = 0
    compared: int = 0
    facts: int = 0

    @property
    def kinds(self):
        return self.scenario.kinds

    @property
    def agents(self):
        return self.scenario.agents

    jobs = 1

    def begin(self, stage):
        self.scenario.begin(stage)
        self._master = stage.master
        self._master.event_heap.at(self.every_ms, self._compare, Priority.OBSERVE)
        if self.cut_every_ms:
            for when in range(self.cut_every_ms, self.until_ms, self.cut_every_ms):
                stage.at(when, self.link.cut)

    def _compare(self):
        master = self._master
        master.send()
        master.ledger.check()
        allocator = self.link.allocator
        allocator.check()
        if not len(allocator.state.open_decisions):
            self.compared += 1
            now_ms = master.event_heap.now_ms
            # The sidecar counts offers that it did not decide as used.
            exact = not (master.record.resyncs or master.record.fallbacks)
            ours, theirs = of_ledger(master.ledger, now_ms), of_state(allocator.state, now_ms)
            wrong = differences(ours, theirs, offered=exact)
            self.facts = max(self.facts, len(ours))
            assert not wrong, f"at {now_ms} ms: {wrong}"
        master.event_heap.after(self.every_ms, self._compare, Priority.OBSERVE)

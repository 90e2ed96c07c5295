"""The emulated master: it speaks the module's protocol to something that decides.

What Mesos's master does is done here in the same order, event by event: the bracket of an accept
(operations, release of the rest with its filter, transition), declines, ends of
tasks, frameworks that come, go, drop out and fail over, agents that come, go and change, operators'
calls, another master after this one. Time is simulated: a cycle for all agents each allocation
interval, one more where Mesos has an event trigger it, and the next action as soon as the decisions
are there.

It is the module's double: snapshots with filters, gates and outcomes in the same order, rows that
wait, a pause that is sent only while the master recovers, and a fallback whose offers are sent as
holdings. That decides only where it is told to (`fall_back`), and simply: while no sidecar is
there, simulated time stands still.
"""

from allocator.lab.master.failover import Failover
from allocator.lab.master.operators import OperatorCalls


class EmulatedMaster(Failover, OperatorCalls):
    """A Mesos master with its agents and frameworks; for its parameters see `Base`."""

    def open(self) -> None:
        """Begin the session, and the cycles."""
        self.session.open()
        self._cycles.begin()

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def step(self, until_ms: int | None = None) -> bool:
        """Do the next thing; False where there is none up to and including `until_ms`.

        What has happened is sent before time goes on, so that both sides count from one moment.
        """
        next_ms = self.event_heap.next_ms
        if next_ms is None or (until_ms is not None and next_ms > until_ms):
            return False
        if next_ms > self.event_heap.now_ms:
            self.send()
        return self.event_heap.step()

    def send(self) -> None:
        """Send the sidecar what is pending."""
        if len(self.outbox):
            self.session.send(self.event_heap.now_ms)

    def settle(self) -> None:
        """Tell the sidecar everything, and wait until it is applied."""
        self.session.settle(self.event_heap.now_ms)

"""Memory growth of a session: the core, the wire and the emulated master under steady load.

    python -m tests.endurance.growth --events 10000000

A steady cluster runs in one process: agents and frameworks come and go, offers are accepted and
declined, tasks end, filters expire, sessions are cut and reopened. Memory allocated by Python is
measured after a warm-up and at the end. It counts bytes, not resident pages, so the C library's
allocator makes no difference.
"""

import argparse
import gc
import time
import tracemalloc
from dataclasses import dataclass
from functools import partial

from allocator.core import PolicySpec, Settings
from laboratory.event_heap import Priority
from laboratory.master.emulated import EmulatedMaster
from laboratory.random_cluster import RandomScenario
from laboratory.random_cluster.checks import differences, of_ledger
from laboratory.workloads.scenario import JobProgress, JobStage
from tests.laboratory.master.books import of_state
from tests.laboratory.master.masters import wire_link
from tests.torture.wire_link import WireLink

SIZE = 6
CUT_EVERY_MS = 20_000
CHECK_EVERY_MS = 60_000
NEVER_MS = 10**12
KIB = 1024


@dataclass(frozen=True)
class Growth:
    """Memory at both times.

    events: sent to the sidecar, from the beginning.
    warm_bytes, end_bytes: allocated after the warm-up, and at the end.
    top: where most of the difference was allocated.
    """

    events: int
    warm_bytes: int
    end_bytes: int
    top: list[str]

    @property
    def bytes(self) -> int:
        """Growth from the warm-up to the end."""
        return self.end_bytes - self.warm_bytes


class Load:
    """A cluster that runs until it is stopped."""

    def __init__(self, seed: int, link: WireLink) -> None:
        scenario = RandomScenario(seed, size=SIZE, duration_ms=NEVER_MS)
        self.master = EmulatedMaster(link, scenario.kinds, scenario.options)
        self._link = link
        for register_ms, spec in scenario.agents:
            self.master.event_heap.at(register_ms, partial(self.master.add_agent, spec))
        scenario.begin(JobStage(self.master, JobProgress(scenario.jobs), tell_demand=True))
        self.master.event_heap.at(CUT_EVERY_MS, self._cut)
        self.master.event_heap.at(CHECK_EVERY_MS, self._check, Priority.OBSERVE)
        self.master.open()

    @property
    def events(self) -> int:
        """Number of events that the sidecar received."""
        return self.master.record.events

    def play(self, events: int) -> None:
        """Run until the sidecar has received this number of events."""
        while self.events < events:
            assert self.master.step()
            self._forget()

    def _forget(self) -> None:
        """Drop the records of the run, which grow by design and would count as growth."""
        record = self.master.record
        for written in (record.time_ms, record.used, record.total, record.latency_s):
            if len(written) > 1_000:
                del written[:-1]
        record.waits_ms.clear()

    def _cut(self) -> None:
        self.master.event_heap.after(CUT_EVERY_MS, self._cut)
        self._link.cut()

    def _check(self) -> None:
        master = self.master
        master.event_heap.after(CHECK_EVERY_MS, self._check, Priority.OBSERVE)
        master.settle()
        now_ms, state = master.event_heap.now_ms, self._link.allocator.state
        if not len(state.open_decisions):
            found = differences(
                of_ledger(master.ledger, now_ms), of_state(state, now_ms), offered=False
            )
            assert not found, found


def measure(seed: int, warm_up: int, events: int, policy: PolicySpec | None = None) -> Growth:
    """Play, and return the memory.

    warm_up: events before the first measurement.
    events: events in total.
    """
    settings = Settings(policy=policy or PolicySpec("drf", mode="characterised"))
    load = Load(seed, wire_link(settings.policy.name, settings.policy.mode, seed))
    tracemalloc.start()
    try:
        load.play(warm_up)
        gc.collect()
        before, (warm_bytes, _) = tracemalloc.take_snapshot(), tracemalloc.get_traced_memory()
        load.play(events)
        gc.collect()
        after, (end_bytes, _) = tracemalloc.take_snapshot(), tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    ours = [tracemalloc.Filter(inclusive=False, filename_pattern=tracemalloc.__file__)]
    most = after.filter_traces(ours).compare_to(before.filter_traces(ours), "lineno")
    return Growth(load.events, warm_bytes, end_bytes, [str(each) for each in most[:10]])


def main() -> None:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--warm-up", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    begin_s = time.monotonic()
    found = measure(given.seed, given.warm_up, given.events)
    took_s = time.monotonic() - begin_s
    kib = [number / KIB for number in (found.warm_bytes, found.end_bytes, found.bytes)]
    print(f"{found.events:,} events in {took_s:.0f} s, looked at after {given.warm_up:,}:")
    print(f"{kib[0]:,.0f} KiB, then {kib[1]:,.0f} KiB: {kib[2]:+,.0f} KiB")
    print("\n".join(found.top))


if __name__ == "__main__":
    main()

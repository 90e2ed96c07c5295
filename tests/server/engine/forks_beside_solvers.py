"""Forks a process over and over while solvers are at work; prints what came of it.

`python -m tests.server.engine.forks_beside_solvers SECONDS`. A process of its own, for where this
fails the whole process hangs, with its interpreter's lock held.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from allocator.core import Allocator, SetWeights
from allocator.policies import build
from allocator.server.config import Config
from allocator.server.config.sections import PolicySection
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.fair_shares import FairnessWatch
from allocator.server.engine.planning import PlanningThread
from allocator.server.system.frozen import LARGE
from tests.bench.cluster import arrivals, decline, settle

WAIT_S = 600.0  # on a machine that has yet to compile its loops
AGENTS, FRAMEWORKS, ROLES = 3000, 600, 100


def _loop() -> CoreLoop:
    """A core whose books are so large that processes are forked for questions."""
    loop = CoreLoop(Config(policy=PolicySection(name="pf-exact")), build_policy=build)
    for event in arrivals(AGENTS, FRAMEWORKS, ROLES):
        loop.allocator.step(event)
    return loop


def _cycle(allocator: Allocator, planning: PlanningThread) -> None:
    """One cycle, after which the cluster is another, so that the last plan stands no more."""
    state = allocator.state
    made = allocator.allocate(state.now_ms + 1000)
    settle(allocator, made)
    decline(allocator, made)
    allocator.step(SetWeights({f"role-{1 + allocator.cycle % ROLES}": allocator.cycle}))
    planning.look(allocator)


def main(seconds: float) -> None:
    """Plan, look at fairness and copy the books, all beside each other."""
    loop = _loop()
    loop.apart._size = (time.monotonic() + 1e9, LARGE)
    planning = PlanningThread(loop, budget_s=60.0, interval_s=0.0)
    watch = FairnessWatch(loop, 1.0)
    loop.start()
    planning.start()
    until_s, counts = time.monotonic() + seconds, dict.fromkeys(("copies", "cycles"), 0)

    def done() -> tuple[int, ...]:
        made = planning.counts.adopted, watch.counts.done
        return counts["copies"], counts["cycles"], loop.apart.begun, *made

    def goes_on() -> bool:
        """Whether there is time, or something has not happened yet on a busy machine."""
        return time.monotonic() < until_s or not all(done())

    def ask(work: Callable[[], Any]) -> Any:
        return loop.call(work).result(WAIT_S)

    def again(name: str, work: Callable[[], object]) -> None:
        while goes_on():
            work()
            counts[name] += 1

    works = {
        "copies": partial(loop.apart.ask, ask, loop.copied),
        "cycles": partial(ask, partial(_cycle, loop.allocator, planning)),
    }
    with ThreadPoolExecutor(len(works)) as pool:
        begun = [pool.submit(again, *each) for each in works.items()]
        while goes_on():
            watch.sample()
        for each in begun:
            each.result()
    while planning.running_s:
        time.sleep(0.01)
    assert not planning.counts.failed + watch.counts.failed + loop.apart.failed
    sys.stdout.write(" ".join(map(str, done())))
    planning.stop()
    loop.stop()


if __name__ == "__main__":
    main(float(sys.argv[1]))

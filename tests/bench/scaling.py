"""How cost grows with the cluster; `--out tools/docs/data/scaling.json` stores it for the page.

Each size is measured in a process of its own. A new master sends the sidecar's side of a session
its whole cluster; everything is offered, declined, and offered again; then nothing is free. Bytes
are those on the wire. Times are processor time of the sidecar's side, including decoding and
encoding of its messages, the minimum of the repetitions. `make docs` makes a page of the figures.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from allocator.core import Decisions, Event
from allocator.wire import Greeting
from allocator.wire.session.sidecar_session import SidecarSession
from laboratory.links.sidecar_process import figures_of
from laboratory.module_protocol import ModuleSession
from tests.bench.cluster import arrivals
from tests.bench.gauges import new_session
from tests.bench.report import BUILT
from tests.bench.yardstick import clock_ms, processor
from tests.world.rows import given_back, holdings_of, settled

AGENTS = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000)
FRAMEWORKS = (100, 1_000, 6_000)
SMALLEST = (10, 10)
"""Base memory: that of an empty sidecar."""

WITH_MODULE = ((1_000, 100), (10_000, 1_000), (10_000, 6_000))
REPEATS = 5

Row = dict[str, float]


class Master:
    """A master's side of a session in this process."""

    def __init__(self, agents: int, frameworks: int) -> None:
        self._session: SidecarSession = new_session()
        self._module = ModuleSession(Greeting("bench", "bench", 1))
        self._module.receive(self._say(self._module.hello().SerializeToString())[0])
        state = list(arrivals(agents, frameworks))
        requests = self._module.snapshot(state, sequence=0, clock_ms=1)
        said = [each.SerializeToString() for each in requests]
        self.snapshot_bytes = sum(map(len, said))
        _, self.snapshot_ms = clock_ms(lambda: [self._say(each) for each in said])
        self._now_ms = 1

    def cycle(self, events: Sequence[Event] = ()) -> tuple[list[Decisions], Row]:
        """Send events, and run a cycle; returns the decisions, and the cost."""
        self._now_ms += 1000
        request = self._module.batch(self._now_ms, events, cycle=True).SerializeToString()
        answers, took_ms = clock_ms(self._say, request)
        made = [self._module.receive(answer) for answer in answers]
        bytes_both = len(request) + sum(map(len, answers))
        return [each for each in made if isinstance(each, Decisions)], {
            "ms": took_ms,
            "bytes": bytes_both,
        }

    def settle(self, made: Sequence[Decisions]) -> list[Event]:
        """The outcomes that say that all decisions became offers."""
        for each in made:
            self._module.settle(len(each))
        return [settled(each) for each in made if len(each)]

    def _say(self, data: bytes) -> list[bytes]:
        return [answer.SerializeToString() for answer in self._session.receive(data)]


def measure(agents: int, frameworks: int) -> Row:
    """Measure one size, in this process."""
    master = Master(agents, frameworks)
    row: Row = {"agents": agents, "frameworks": frameworks}
    row |= {"snapshot_ms": master.snapshot_ms, "snapshot_bytes": master.snapshot_bytes}
    made, _ = master.cycle()
    reoffers, idle = [], []
    for _ in range(REPEATS):
        offered = master.settle(made)
        nothing, took = master.cycle(offered)
        assert not sum(map(len, nothing)), "something was free"
        idle.append(took["ms"])
        declined = [given_back(holdings_of(each)) for each in made if len(each)]
        made, took = master.cycle(declined)
        assert sum(map(len, made)), "no client was served"
        reoffers.append(took)
    row["reoffer_ms"] = min(took["ms"] for took in reoffers)
    row["reoffer_bytes"] = reoffers[-1]["bytes"]
    row["idle_ms"] = min(idle)
    row["memory_mib"] = figures_of(os.getpid()).memory_mib
    return row


def with_module() -> list[Row]:
    """Results of the C++ driver, if a module was built; whole re-offers, in seconds."""
    if not BUILT["driver"].exists():
        return []
    sidecar = str(Path(sys.executable).with_name("mesos-allocator"))
    sizes = ",".join(f"{agents}x{frameworks}" for agents, frameworks in WITH_MODULE)
    command = [str(BUILT["driver"]), "--sidecar", sidecar, "--sizes", sizes, "--rounds", "5"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(
        r"(\d+) agents, (\d+) frameworks.*?until reoffered, s +(\S+) +(\S+)", text, re.DOTALL
    )
    names = ("agents", "frameworks", "ours_s", "built_in_s")
    return [dict(zip(names, map(float, numbers), strict=True)) for numbers in found]


def main() -> None:
    """Measure one size, or measure and store all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", type=int, nargs=2, metavar=("AGENTS", "FRAMEWORKS"))
    parser.add_argument("--agents", type=int, nargs="*", default=AGENTS)
    parser.add_argument("--frameworks", type=int, nargs="*", default=FRAMEWORKS)
    parser.add_argument("--out", type=Path, default=Path("bench-out/scaling.json"))
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    sizes = [SMALLEST, *((a, f) for a in given.agents for f in given.frameworks)]
    rows = []
    for agents, frameworks in sizes:
        command = [sys.executable, "-m", "tests.bench.scaling", "--one"]
        child = subprocess.run(
            [*command, str(agents), str(frameworks)], stdout=subprocess.PIPE, check=True
        )
        rows.append(json.loads(child.stdout))
        print(f"{agents:,} x {frameworks:,}: {rows[-1]}", flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    kept = {"processor": processor(), "rows": rows, "module": with_module()}
    given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""A manner played in the simulation of module and core, and what it costs.

The brain is the module's own, the session and the core are the sidecar's, in one process without
clock, thread or socket. What is measured is processor time and memory of this process; what is
counted are intervals, sessions and lines.
"""

import resource
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from allocator import policies
from allocator.core import Allocator, PolicySpec, Settings
from allocator.server.config import Config, Flag, Loaded, load
from allocator.server.core_loop import CoreLoop
from allocator.server.metrics import start_http
from allocator.server.operators import Operators
from allocator.server.page import page_routes
from allocator.server.views import Views
from allocator.sim.hostile.words import Manner
from allocator.wire.sidecar import Sidecar
from tests.hostile.world import World
from tests.simulation.brain import Brain
from tests.simulation.simulation import Faults, Simulation

INTERVAL_MS = 1000
STEP_MS = 20
BEFORE, INTERVALS = 3, 6
"""Intervals before the tenants come, and with them."""

AGENTS = 8
MIB = 2**20

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass
class Figures:
    """What a manner did.

    Attributes
    ----------
    core_s, brain_s : float
        Processor time, from when the tenants came.
    core_most_s, brain_most_s : float
        The same for the dearest message or line.
    memory_mib : float
        How much more memory was taken at most than before they came.
    ended : int
        Sessions that ended.
    wait : int
        The most intervals in a row in which the honest framework was offered nothing.
    lines : dict of str to int
        Of the status page and of /metrics.
    set_aside : Counter of str
        What was not taken, by field and reason.
    """

    core_s: float = 0.0
    brain_s: float = 0.0
    core_most_s: float = 0.0
    brain_most_s: float = 0.0
    memory_mib: float = 0.0
    ended: int = 0
    wait: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    page_s: float = 0.0
    set_aside: Counter[str] = field(default_factory=Counter)


class Meter:
    """Processor time of what is called, all together and at most."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.whole_s = self.most_s = 0.0

    def metered(self, act: Callable[_P, _T]) -> Callable[_P, _T]:
        """The same, metered."""

        def metered(*words: _P.args, **options: _P.kwargs) -> _T:
            begun_s = time.process_time()
            try:
                return act(*words, **options)
            finally:
                took_s = time.process_time() - begun_s
                self.whole_s += took_s
                self.most_s = max(self.most_s, took_s)

        return metered


class PlanningLoop(CoreLoop):
    """The core as the server has it, except that it plans by itself."""

    def _new_allocator(self, settings: Settings) -> Allocator:
        allocator = super()._new_allocator(settings)
        allocator._plans = True
        return allocator


class Stage(Simulation):
    """The cluster of an honest framework, until the tenants come.

    Parameters
    ----------
    manner : Manner
    library : Path
        Of the brain.
    agents : int
        Honest ones.
    """

    def __init__(self, manner: Manner, library: Path, agents: int = AGENTS) -> None:
        self.manner, self.core, self.module = manner, Meter(), Meter()
        self.world = World(manner, self._tell, agents)
        self.ended = 0
        self._loops: list[CoreLoop] = []
        super().__init__(0, library, Faults.none())

    def play(self, intervals: int = INTERVALS) -> Figures:
        """Play so many intervals with the tenants; gives what they did."""
        for _ in range(BEFORE):
            self._interval()
        assert self.link.connected
        assert self.world.served
        figures = Figures()
        waits = 0
        self.core.begin()
        self.module.begin()
        before_mib, self.ended = _begin_peak(), 0
        self.world.arrive()
        for interval in range(intervals):
            served = self.world.served
            self.world.turn(interval)
            self._interval()
            waits = 0 if self.world.served > served else waits + 1
            figures.wait = max(figures.wait, waits)
        assert not self.brain.run("check")
        self.sidecar.allocator.check()
        figures.ended = self.ended
        figures.core_s, figures.core_most_s = self.core.whole_s, self.core.most_s
        figures.brain_s, figures.brain_most_s = self.module.whole_s, self.module.most_s
        figures.set_aside += self.sidecar.counts.mended
        self._look(figures)
        figures.memory_mib = _peak_mib() - before_mib
        return figures

    def close(self) -> None:
        """End the brain's life."""
        self.brain.close()

    def _interval(self) -> None:
        for _ in range(INTERVAL_MS // STEP_MS):
            self._pass(STEP_MS)
        self.world.answer()

    def _look(self, figures: Figures) -> None:
        """Ask for the status page and the metrics, as an operator does."""
        loop = self._loops[-1]
        loop.start()
        views = Views(loop, Operators(loop, Loaded(Config(), {})))
        config = load(None, {}, [Flag("--set", "http.port", "0")])
        server = start_http(config, loop, pages=page_routes(views, "local"))
        try:
            begun_s = time.process_time()
            for page in ("", "metrics"):
                url = f"http://127.0.0.1:{server.port}/{page}"
                with urllib.request.urlopen(url, timeout=60) as answer:
                    figures.lines[page or "page"] = answer.read().count(b"\n")
            figures.page_s = time.process_time() - begun_s
        finally:
            server.close()
            loop.stop()

    def _tell(self, line: str) -> list[str]:
        return self.tell(line)

    def _drop(self, why: str) -> None:
        self.ended += self._stream is not None
        super()._drop(why)

    def _new_master(self) -> World:
        return self.world

    def _new_brain(self) -> Brain:
        brain = super()._new_brain()
        brain.run("unchecked")
        brain.run = self.module.metered(brain.run)
        return brain

    def _new_sidecar(self) -> Sidecar:
        settings = Settings(policy=PolicySpec(self.manner.policy))
        loop = PlanningLoop(
            Config(),
            build_policy=policies.build,
            fallback=policies.fallback(),
            sidecar_id="sidecar",
            settings=settings,
        )
        self._loops.append(loop)
        sidecar = loop._sidecar
        sidecar.receive = self.core.metered(sidecar.receive)
        return sidecar


def _begin_peak() -> float:
    """Have the peak of memory counted from now on; gives what is taken now, in MiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status_mib("VmRSS")


def _peak_mib() -> float:
    return _status_mib("VmHWM")


def _status_mib(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024



"""Plays one manner of attack against the module's brain, and the sidecar's session and core.

All of them run in this process, without real time, threads or sockets.
"""

from pathlib import Path

from allocator.server.engine.core_loop import CoreLoop
from allocator.wire.session.sidecar import Sidecar
from tests.hostile.measuring import (
    AGENTS,
    BEFORE,
    INTERVALS,
    Figures,
    Meter,
    begin_peak,
    look,
    new_loop,
    peak_mib,
)
from tests.hostile.words import Manner
from tests.hostile.world import Tenanted
from tests.simulation.brain import Brain
from tests.simulation.simulation import Faults, Simulation

INTERVAL_MS = 1000
STEP_MS = 20


class Stage(Simulation):
    """A cluster with an honest framework, before the tenants come.

    library: the brain's shared library.
    agents: number of honest agents.
    guarantee: as in `Tenanted`.
    """

    def __init__(
        self, manner: Manner, library: Path, agents: int = AGENTS, *, guarantee: bool = True
    ) -> None:
        self.manner, self.core, self.module = manner, Meter(), Meter()
        self.world = Tenanted(manner, self.tell, agents, guarantee=guarantee)
        self.ended = 0
        self._loops: list[CoreLoop] = []
        super().__init__(0, library, Faults.none())

    def play(self, intervals: int = INTERVALS, *, pages: bool = True) -> Figures:
        """Play intervals with the tenants, and request pages; returns the effects."""
        for _ in range(BEFORE):
            self._interval()
        assert self.link.connected
        assert self.world.served
        figures = Figures()
        self.core.begin()
        self.module.begin()
        before_mib, self.ended = begin_peak(), 0
        self.world.arrive()
        figures.wait = self.play_on(range(intervals))
        assert not self.brain.run("check")
        self.sidecar.allocator.check()
        figures.ended = self.ended
        figures.core_s, figures.core_most_s = self.core.whole_s, self.core.most_s
        figures.brain_s, figures.brain_most_s = self.module.whole_s, self.module.most_s
        figures.set_aside.update(self.sidecar.counts.mended)
        if pages:
            look(self._loops[-1], figures, "T0")
        figures.memory_mib = peak_mib() - before_mib
        return figures

    def play_on(self, intervals: range) -> int:
        """Play intervals; returns the maximum in a row without an offer to the honest framework."""
        waits = longest = 0
        for interval in intervals:
            served = self.world.served
            self.world.turn(interval)
            self._interval()
            waits = 0 if self.world.served > served else waits + 1
            longest = max(longest, waits)
        return longest

    def close(self) -> None:
        """Close the brain."""
        self.brain.close()

    def _interval(self) -> None:
        for _ in range(INTERVAL_MS // STEP_MS):
            self._pass(STEP_MS)
        self.world.answer()

    def _drop(self, why: str) -> None:
        self.ended += self._stream is not None
        super()._drop(why)

    def _new_master(self) -> Tenanted:  # type: ignore[override]
        return self.world

    def _new_brain(self) -> Brain:
        brain = super()._new_brain()
        brain.run("unchecked")
        brain.run = self.module.metered(brain.run)  # type: ignore[method-assign]
        return brain

    def _new_sidecar(self) -> Sidecar:
        loop = new_loop(self.manner)
        self._loops.append(loop)
        sidecar = loop._sidecar
        sidecar.receive = self.core.metered(sidecar.receive)  # type: ignore[method-assign]
        return sidecar

"""Play worlds until the time is over; a world is the term of one master, with its cluster.

    rig         what faults act on: the process, its log, its network paths, its files
    link        the master's end of the stream, which continues alone while no answer comes
    wires       a TCP relay that disturbs connections, a cable that can be pulled, certificates
    faults      one function per fault
    invariants  what must hold under every fault
    report      the findings, as text and JSON

A seed determines the worlds, the faults, and their simulated times. How fast the process restarts
depends on the machine, so two runs with one seed are similar, not equal.
"""

import random
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from laboratory.event_heap import Priority
from laboratory.links.sidecar_process import scratch_directory
from laboratory.master.cycles import Timing
from laboratory.master.emulated import EmulatedMaster
from laboratory.random_cluster import RandomScenario
from laboratory.workloads.scenario import set_stage
from tests.torture.faults import FAULTS, Fault, Scene, restart
from tests.torture.invariants import (
    Liveness,
    OfferRules,
    Watch,
    conservation,
    equal,
    kept,
    steady,
)
from tests.torture.link import TorturedLink
from tests.torture.report import TortureFindings, TortureReport
from tests.torture.rig import Rig

# One master's term: a random cluster, faults, checks.

DURATION_MS = 60_000
FAULT_MS = 1_500
"""Mean time between faults."""

ANSWERS_S = 20.0
"""Maximum time without answers; detecting a stalled connection and reconnecting takes less."""

CALLS_MAX = 8
"""Minimum number of failed calls before missing answers are a violation."""

COMPARE_MS = 2_500
DECISION_MS = (0, 0, 150)
"""Delays of decisions to draw from: in one of three worlds, events may outdate decisions."""


class TortureWorld:
    """A master with its cluster, from its election to the end of its time.

    size: number of agents, and of concurrent frameworks.
    """

    def __init__(self, rig: Rig, seed: int, size: int, faults: Sequence[Fault] = FAULTS) -> None:
        self._rig = rig
        self._chance = random.Random(seed)
        self._faults = [fault for fault in faults if fault.possible(rig)]
        self._scenario = RandomScenario(seed, size=size, duration_ms=DURATION_MS, silent=True)
        # The sidecar serves the newest master. Rivals claim to be one microsecond older or newer.
        started_us = time.time_ns() // 1000
        link = TorturedLink(partial(rig.stream, started_us), rig.findings)
        timing = Timing(decision_ms=self._chance.choice(DECISION_MS))
        scenario = self._scenario
        master = EmulatedMaster(link, scenario.kinds, scenario.options, timing=timing)
        self.scene = Scene(rig, master, link, started_us, self._later)
        self._undone: list[Callable[[], None]] = []
        link.alone = self._alone
        self._liveness = Liveness(self.scene)
        self._answered_s = rig.sidecar.clock.now_s

    def play(self, over: Callable[[], bool]) -> None:
        """Play to the end of the world, or until `over`."""
        master = self.scene.master
        progress = set_stage(self._scenario, master, tell_demand=True)
        master.inspect(OfferRules(master, self._rig.findings))
        heap = master.event_heap
        heap.at(self._some_ms(FAULT_MS), self._strike)
        heap.at(COMPARE_MS, self._compare, Priority.OBSERVE)
        heap.at(0, self._look, Priority.OBSERVE)
        with self._closing(master):
            master.open()
            while not progress.done and not over() and master.step():
                pass

    @contextmanager
    def _closing(self, master: EmulatedMaster) -> Iterator[None]:
        """Undo faults that are still active, and add up the counts, even after an exception."""
        try:
            yield
        finally:
            for undo in self._undone:
                undo()
            master.close()
            counts = self._rig.findings.counts
            counts["worlds"] += 1
            counts["simulated_s"] += master.event_heap.now_ms // 1000
            counts["events"] += master.record.events
            counts["batches"] += master.record.batches
            counts["offers"] += master.record.offers
            counts["tasks"] += master.record.tasks
            counts["offers_of_the_fallback"] += master.record.fallbacks
            for name, happened in self._scenario.happened.items():
                counts[f"happened_{name}"] += happened

    def _strike(self) -> None:
        """Inject one fault, and schedule the next."""
        heap = self.scene.master.event_heap
        heap.after(self._some_ms(2 * FAULT_MS), self._strike)
        weights = [fault.weight for fault in self._faults]
        (fault,) = self._chance.choices(self._faults, weights)
        # Faults act on a running process.
        if self._rig.sidecar.wanted:
            self._rig.findings.faults[fault.name] += 1
            fault.strike(self.scene)

    def _look(self) -> None:
        master = self.scene.master
        master.event_heap.after(master.options.allocation_interval_ms, self._look, Priority.OBSERVE)
        conservation(master, self._rig.findings)
        steady(master, self._rig.findings)
        self._liveness.look()
        self._answers()

    def _answers(self) -> None:
        """Check that a running sidecar with free descriptors answers again in time."""
        rig, now_s, vain = self._rig, self._rig.sidecar.clock.now_s, self.scene.link.vain
        if not rig.sidecar.wanted or rig.short or not vain:
            self._answered_s = now_s
            return
        alone_s = min(now_s - self._answered_s, rig.sidecar.age_s)
        wrong = []
        if alone_s > ANSWERS_S and vain > CALLS_MAX:
            tail = rig.sidecar.meter.tail()
            wrong.append(f"{vain} calls failed within {alone_s:.0f} s; its log ends\n{tail}")
            rig.sidecar.kill()
            restart(self.scene)
        rig.findings.check("answers again", wrong)

    def _compare(self) -> None:
        self.scene.master.event_heap.after(COMPARE_MS, self._compare, Priority.OBSERVE)
        # Without a free descriptor it cannot answer questions.
        if self._rig.sidecar.wanted and not self._rig.short:
            equal(self.scene)
            kept(self._rig)

    def _later(self, after_ms: int, action: Callable[[], None]) -> None:
        """Call `action` after a delay, or at the end of the simulated time if that is earlier."""

        def act() -> None:
            if action in self._undone:
                self._undone.remove(action)
                action()

        self._undone.append(action)
        self.scene.master.event_heap.after(after_ms, act)

    def _alone(self) -> None:
        """Do what the module does without a sidecar: offer free resources, agent by agent."""
        master = self.scene.master
        clients = [
            (one, role)
            for one, row in sorted(master.ledger.frameworks.items())
            for role in sorted(row.roles)
        ]
        for agent in sorted(master.ledger.agents):
            self._chance.shuffle(clients)
            master.fall_back(agent, clients)

    def _some_ms(self, most: int) -> int:
        return self._chance.randint(1, most)


# The sequence of worlds.

SIZE = 10


@dataclass(frozen=True)
class Plan:
    """The parameters of a run.

    seed: of the first world; each further world adds one.
    out: a directory for the report, the log, and the journal if there are violations.
    size: number of agents, and of concurrent frameworks.
    cycles_min: cycles to play at least, even beyond the duration.
    tamper: called with each world before it is played; tests plant a defect with it.
    """

    duration_s: float
    seed: int
    out: Path
    size: int = SIZE
    cycles_min: int = 0
    faults: Sequence[Fault] = tuple(FAULTS)
    tamper: Callable[[TortureWorld], None] = lambda _world: None


def torture(
    plan: Plan,
    *,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[TortureFindings], None] = lambda _findings: None,
) -> TortureReport:
    """Torture a sidecar, which this starts and stops.

    stopped: whether to stop early.
    tell: called after each world.
    Raises SidecarGoneError if the first start fails.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    findings = TortureFindings(seed=plan.seed)
    end_s = time.monotonic() + plan.duration_s

    def over() -> bool:
        enough = findings.counts["cycles"] >= plan.cycles_min
        return stopped() or (enough and time.monotonic() >= end_s)

    with scratch_directory("torture-") as directory, ExitStack() as stack:
        rig = Rig(directory, plan.out, findings, plan.seed, stack)
        with Watch(rig):
            while not over():
                _play(TortureWorld(rig, findings.seed, plan.size, plan.faults), plan, rig, over)
                tell(findings)
                findings.seed += 1
        rig.await_threads()
        code = rig.sidecar.terminate()
        findings.check("ends in order", [] if code == 0 else [f"SIGTERM: exit code {code}"])
        if findings.broken:
            _keep_journal(rig, plan.out)
        counts, meter = findings.counts, rig.sidecar.meter
        counts["lives"], counts["log_bytes"], counts["log_lines"] = (
            rig.sidecar.lives,
            meter.bytes,
            meter.lines,
        )
        return TortureReport(plan.seed, plan.size, findings, dict(meter.said.most_common(20)))


def _play(world: TortureWorld, plan: Plan, rig: Rig, over: Callable[[], bool]) -> None:
    """Play one world; an exception is a violation."""
    plan.tamper(world)
    try:
        world.play(over)
    except Exception:  # noqa: BLE001 - any error is this seed's finding
        rig.findings.violate("the session continues", traceback.format_exc())


def _keep_journal(rig: Rig, out: Path) -> None:
    for path in rig.directory.glob("journal*"):
        with suppress(OSError):
            shutil.copy(path, out / path.name)

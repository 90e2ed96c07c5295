"""From world to world, until the time is over."""

import shutil
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from allocator.lab.links.sidecar_process import scratch_directory
from allocator.lab.torture.faults import FAULTS, Fault
from allocator.lab.torture.invariants import Watch
from allocator.lab.torture.report import Findings, Report
from allocator.lab.torture.rig import Rig, rigged
from allocator.lab.torture.world import World

SIZE = 10


@dataclass(frozen=True)
class Plan:
    """What to do.

    seed: of the first world; the next has the next one.
    out: A directory for the report, the log, and the journal where something was found.
    size: agents, and frameworks at a time.
    cycles_min: so many cycles are played, however long that takes.
    tamper: called with each world before it is played; so a test plants a defect.
    """

    duration_s: float
    seed: int
    out: Path
    size: int = SIZE
    cycles_min: int = 0
    faults: tuple[Fault, ...] = FAULTS
    tamper: Callable[[World], None] = lambda _world: None


def torture(
    plan: Plan,
    *,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[Findings], None] = lambda _findings: None,
) -> Report:
    """Torture a sidecar of our own.

    stopped: whether to end before the time is over.
    tell: called after each world.
    Raises SidecarGoneError where the first one does not start at all.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    findings = Findings(seed=plan.seed)
    end_s = time.monotonic() + plan.duration_s

    def over() -> bool:
        enough = findings.counts["cycles"] >= plan.cycles_min
        return stopped() or (enough and time.monotonic() >= end_s)

    with (
        scratch_directory("torture-") as directory,
        rigged(directory, plan.out, findings, plan.seed) as rig,
    ):
        with Watch(rig):
            while not over():
                _play(World(rig, findings.seed, plan.size, plan.faults), plan, rig, over)
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
        return Report(plan.seed, plan.size, findings, dict(meter.said.most_common(20)))


def _play(world: World, plan: Plan, rig: Rig, over: Callable[[], bool]) -> None:
    """Play one world; whatever it raises is a finding."""
    plan.tamper(world)
    try:
        world.play(over)
    except Exception:  # noqa: BLE001 - whatever it is, it is this seed's finding
        rig.findings.violate("the session goes on", traceback.format_exc())


def _keep_journal(rig: Rig, out: Path) -> None:
    for path in rig.directory.glob("journal*"):
        with suppress(OSError):
            shutil.copy(path, out / path.name)

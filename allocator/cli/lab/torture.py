"""`mesos-allocator torture`: chaos around a real sidecar process."""

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.tree import Exit, Playing, directory, fail, shown_example

if TYPE_CHECKING:
    from allocator.lab.torture.report import TortureFindings

HOUR_S = 3_600.0


def register(app: typer.Typer) -> None:
    example = "torture --hours 1 --seed 7 --out torture-out"
    app.command(cls=Playing, epilog=shown_example(example))(torture)


def torture(
    hours: Annotated[float, typer.Option(help="Duration.", min=0.001, max=10_000)] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the first world.", min=0)] = 0,
    size: Annotated[
        int, typer.Option(help="Agents, and frameworks at a time.", min=1, max=1_000)
    ] = 10,
    out: Annotated[
        Path,
        typer.Option(
            callback=directory, help="Directory for the report, and for the sidecar's log."
        ),
    ] = Path("torture-out"),
) -> None:
    """Inject faults into a sidecar process, and report every violated invariant.

    The sidecar is killed, frozen, restarted and replaced; its connections are reset, cut and
    stalled; its disk fills and its certificates expire; tenants send every harmful input that a
    master accepts. Meanwhile emulated masters compare every number. Ctrl-C ends the run and prints
    the report so far. Exit code 1: an invariant was violated.
    """
    from allocator.lab.torture import Plan, text, write
    from allocator.lab.torture import torture as run
    from allocator.lab.torture.rig import SidecarGoneError

    told: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        plan = Plan(hours * HOUR_S, seed, out, size)
        report = run(plan, stopped=lambda: bool(told), tell=_tell)
    except OSError as error:
        fail(Exit.FAILURE, f"--out {out}: {error.strerror or error}")
    except SidecarGoneError as error:
        fail(Exit.FAILURE, str(error))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    typer.echo(text(report))
    typer.echo(f"\nwritten: {write(report, out)}")
    if report.violations:
        first = report.findings.violations[0].seed
        fail(Exit.FAILURE, f"{report.violations} violations; the first with --seed {first}")


def _tell(findings: "TortureFindings") -> None:
    """Print one line of progress per world."""
    broken = sum(findings.broken.values())
    typer.echo(
        f"{findings.elapsed_s:7.0f} s  seed {findings.seed}: {findings.counts['cycles']} cycles,"
        f" {sum(findings.faults.values())} faults, {broken} violations",
        err=True,
    )

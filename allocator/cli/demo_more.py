"""`mesos-allocator demo claims` and `demo soak`."""

import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.exits import Exit, fail

if TYPE_CHECKING:
    from allocator.sim.experiments.claims import Verdict

SEEDS_MIN = 2


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(claims)
    app.command()(soak)


def claims(
    seeds: Annotated[int, typer.Option(help="Workloads to play.", min=SEEDS_MIN)] = 10,
    scale: Annotated[float, typer.Option(help="Part of the jobs.", min=0.001, max=1.0)] = 1.0,
    cores: Annotated[int, typer.Option(help="Processes; -1: one for each core.")] = -1,
    backend: Annotated[
        str, typer.Option(help="joblib's backend: loky, or an engine that you registered.")
    ] = "loky",
    out: Annotated[Path, typer.Option(help="Directory for the figures.")] = Path("demo-out"),
) -> None:
    """Check what the paper claims of its section V over many seeds, with confidence intervals."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from allocator.cli.demo_tables import print_claims
    from allocator.sim.experiments.claims import check_claims

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as progress:
        bar = progress.add_task("playing", total=None)
        verdicts = check_claims(
            range(seeds),
            scale,
            cores=cores,
            backend=backend,
            watch=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    out.mkdir(parents=True, exist_ok=True)
    rows = [_plain(verdict) for verdict in verdicts]
    about = {"seeds": seeds, "scale": scale, "claims": rows}
    (out / "claims.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    print_claims(verdicts, seeds)


def _plain(verdict: "Verdict") -> dict[str, object]:
    claim = verdict.claim
    return {
        "claim": claim.text,
        "of": claim.about,
        "unit": claim.unit,
        "margin": claim.margin,
        "outcome": verdict.outcome,
        "mean": verdict.mean,
        "low": verdict.low,
        "high": verdict.high,
        "values": list(verdict.values),
        "cases": [asdict(case) | {"setting": case.setting.name} for case in claim.cases],
    }


def soak(
    seconds: Annotated[int, typer.Option(help="Simulated seconds.", min=1)] = 300,
    size: Annotated[int, typer.Option(help="Agents, and frameworks at a time.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Where all chance begins.", min=0)] = 0,
    policy: Annotated[str, typer.Option(help="Name of the policy.")] = "drf",
    target: Annotated[
        str | None,
        typer.Option(
            help="A sidecar that runs already (host:port or unix:/path); else one starts."
        ),
    ] = None,
) -> None:
    """Let agents and frameworks do anything that Mesos allows, and compare the books."""
    from allocator.core import PolicySpec
    from allocator.policies import POLICIES
    from allocator.sim.experiments.soak import soak_sidecar
    from allocator.sim.experiments.soak_scenario import Soak
    from allocator.sim.links.base import LinkDownError
    from allocator.sim.links.sidecar_process import SidecarProcess

    if policy not in POLICIES:
        fail(Exit.USAGE, f"--policy: {policy!r}; choose from {', '.join(POLICIES)}")
    with ExitStack() as until_end:
        if target is None:
            directory = Path(until_end.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
            settings = {"log.level": "warning"}
            target = until_end.enter_context(SidecarProcess(directory, settings)).target
        scenario = Soak(seed, size, duration_ms=seconds * 1000)
        try:
            soaked = soak_sidecar(target, scenario, PolicySpec(policy, mode="characterised"))
        except LinkDownError as error:
            fail(Exit.UNREACHABLE, str(error))
    record = soaked.played.record
    typer.echo(
        f"{seconds} s with {size} agents and {size} frameworks, seed {seed}: {record.events}"
        f" events, {record.offers} offers, {record.tasks} tasks;"
        f" books compared {soaked.compared} times"
    )
    rejected = [f"{n} decisions were rejected as {r.name}" for r, n in record.rejected.items()]
    if soaked.wrong or rejected:
        fail(Exit.FAILURE, *rejected, *soaked.wrong)

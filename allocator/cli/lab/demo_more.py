"""`mesos-allocator demo claims`, `demo demands` and `demo soak`."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from allocator.cli.lab.spreading import Backend, Cluster, Jobs, spread_over
from allocator.cli.local.warm import compile_ahead
from allocator.cli.remote import completing
from allocator.cli.tree import Exit, choose, directory, fail
from allocator.plain import json_text

if TYPE_CHECKING:
    from allocator.lab.experiments.claims import Verdict

SEEDS_MIN = 2

SOAK_SECONDS = "Seconds of the emulated cluster's clock, which runs faster than the wall's."

_told: list[int] = []
"""Signals that came."""

Force = Annotated[
    bool,
    typer.Option("--force", help="Take the sidecar of --target from the master that it serves."),
]


PolicyName = Annotated[
    str, typer.Option(help="Name of the policy.", autocompletion=completing.policies)
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(claims)
    app.command()(demands)
    app.command()(soak)


@contextmanager
def on_sidecar(target: str | None, *, force: bool) -> Iterator[int]:
    """Play here: on one's own sidecars, or on one that is given back as it was.

    Says in one line why nothing can be played, and ends. SIGTERM ends as Ctrl-C does; whoever plays
    calls `end_if_told` now and then.

    Yields when our master began to lead, in microseconds.
    """
    from allocator.lab.experiments.runs import WorkerFailedError
    from allocator.lab.links.base import LinkDownError
    from allocator.lab.links.sidecar_process import SidecarBusyError, SidecarFailedError, borrowed
    from allocator.lab.module_protocol import SessionEndedError

    if target:
        _check_tokens(target)
    _told.clear()
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell that starts us in the background may want us to go on whatever happens to it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        with borrowed(target, force=force) if target else nullcontext(1) as started_us:
            yield started_us
    except LinkDownError as error:
        fail(Exit.UNREACHABLE if target else Exit.FAILURE, str(error))
    except SidecarBusyError as error:
        fail(Exit.REFUSED, str(error))
    except SessionEndedError as error:
        fail(Exit.REFUSED, f"the sidecar ended the session: {error}")
    except (SidecarFailedError, WorkerFailedError) as error:
        fail(Exit.FAILURE, str(error))


def _check_tokens(target: str) -> None:
    """End where a token cannot be read, or would pass in clear over a network."""
    from allocator.lab.links.sidecar_process import SESSION_TOKEN_FILE, TOKEN_FILE, read_token
    from allocator.server.config.checks import is_local

    for variable in (SESSION_TOKEN_FILE, TOKEN_FILE):
        try:
            token = read_token(variable)
        except OSError as error:
            fail(Exit.USAGE, f"{variable}: {error.filename}: {error.strerror}")
        if token and not is_local(target):
            text = f"the token of {variable} would pass there in clear; name a sidecar on this"
            fail(Exit.USAGE, f"--target {target}: {text} machine, or unset the variable")


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """End in order, with the code that a shell gives for a signal."""
    _told.append(number)
    sys.exit(128 + number)


def end_if_told() -> None:
    """End where a signal said so in vain: within a callback of C code an exception is lost."""
    if _told:
        sys.exit(128 + _told[0])


def claims(
    seeds: Annotated[int, typer.Option(help="Workloads to play.", min=SEEDS_MIN)] = 10,
    scale: Annotated[float, typer.Option(help="Part of the jobs.", min=0.001, max=1.0)] = 1.0,
    cores: Jobs = -1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    out: Annotated[
        Path, typer.Option(callback=directory, help="Directory for the figures.")
    ] = Path("demo-out"),
) -> None:
    """Check what the paper claims of its section V over many seeds, with confidence intervals."""
    from allocator.cli.render.demo_tables import print_claims
    from allocator.cli.render.terminal import progress
    from allocator.lab.experiments.claims import check_claims

    over = spread_over(cores, backend, cluster, "--cores")
    compile_ahead()
    with progress("playing", "runs", None) as tell:
        verdicts = check_claims(
            range(seeds),
            scale,
            spread=over,
            watch=lambda done, total: tell(done, total=total),
        )
    out.mkdir(parents=True, exist_ok=True)
    rows = [_plain(verdict) for verdict in verdicts]
    about = {"seeds": seeds, "scale": scale, "claims": rows}
    (out / "claims.json").write_text(json_text(about, indent=2) + "\n", encoding="utf-8")
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


def demands(
    mode: Annotated[
        str,
        typer.Option(
            help="How Spark is set up: coarse (executors of a fixed size), greedy (the size left"
            " open), dynamic (dynamic allocation), fine (fine-grained)."
        ),
    ] = "coarse",
    policy: PolicyName = "drf",
    seeds: Annotated[int, typer.Option(help="Workloads to play.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Jobs of each of four queues.", min=1)] = 6,
) -> None:
    """Count Spark's offers and declines by where its executors' demand is known from."""
    from allocator.cli.render.demo_tables import print_sources
    from allocator.lab.experiments.demand_sources import SOURCES, average, play_source
    from allocator.lab.workloads.spark_experiment import MODES
    from allocator.policies import POLICIES

    if mode not in MODES:
        fail(Exit.USAGE, f"--mode: {mode!r}; {choose([mode], MODES)}")
    if policy not in POLICIES:
        fail(Exit.USAGE, f"--policy: {policy!r}; {choose([policy], POLICIES)}")
    compile_ahead()
    print_sources(
        average(
            play_source(source, mode, policy=policy, seed=seed, jobs=jobs) for seed in range(seeds)
        )
        for source in SOURCES
    )


def soak(
    seconds: Annotated[int, typer.Option(help=SOAK_SECONDS, min=1)] = 300,
    size: Annotated[
        int, typer.Option(help="Agents, and frameworks at a time.", min=1, max=10_000)
    ] = 20,
    seed: Annotated[int, typer.Option(help="Where all chance begins.", min=0)] = 0,
    policy: PolicyName = "drf",
    target: Annotated[
        str | None,
        typer.Option(
            help="A sidecar that runs already (host:port or unix:/path); else one starts."
            " MESOS_ALLOCATOR_SESSION_TOKEN_FILE and MESOS_ALLOCATOR_TOKEN_FILE name files with"
            " its tokens for masters and operators."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Let agents and frameworks do anything that Mesos allows, and compare the books.

    The emulated cluster has a clock of its own, which does not wait for the one on the wall: some
    minutes of it are over in some seconds. `torture` goes by the wall.
    """
    from allocator.core import PolicySpec
    from allocator.lab.experiments.soak import soak_sidecar
    from allocator.lab.links.sidecar_process import SidecarProcess, scratch_directory
    from allocator.lab.random_cluster import RandomScenario
    from allocator.policies import POLICIES

    if policy not in POLICIES:
        fail(Exit.USAGE, f"--policy: {policy!r}; {choose([policy], POLICIES)}")
    if target is None:
        compile_ahead()
    begun_s = time.monotonic()
    with on_sidecar(target, force=force) as started_us, ExitStack() as until_end:
        if target is None:
            directory = until_end.enter_context(scratch_directory("soak-"))
            sidecar = SidecarProcess(directory, {"log.level": "warning"})
            target = until_end.enter_context(sidecar).target
        typer.echo(f"playing before {target}; the emulated clock runs fast", err=True)
        soaked = soak_sidecar(
            target,
            RandomScenario(seed, size, duration_ms=seconds * 1000),
            PolicySpec(policy, mode="characterised"),
            started_us=started_us,
            watch=lambda _progress: end_if_told(),
        )
    record = soaked.played.record
    typer.echo(
        f"{seconds} s of the emulated cluster's clock, in {time.monotonic() - begun_s:.0f} s on the"
        f" wall, with {size} agents and {size} frameworks, seed {seed}: {record.events}"
        f" events, {record.offers} offers, {record.tasks} tasks;"
        f" books compared {soaked.compared} times"
    )
    rejected = [f"{n} decisions were rejected as {r.name}" for r, n in record.rejected.items()]
    if soaked.wrong or rejected:
        fail(Exit.FAILURE, *rejected, *soaked.wrong)

"""`mesos-allocator demo`: an emulated master against a real sidecar, on this machine."""

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.lab import demo_more
from allocator.cli.local.warm import compile_ahead
from allocator.cli.remote import completing
from allocator.cli.remote.completing import Mode
from allocator.cli.tree import PLAIN, Exit, PlayingGroup, choose, directory, fail

if TYPE_CHECKING:
    from allocator.lab.experiments.runs import Result, Run

WORKERS_MAX = 2
SCENARIOS = ("section-v", "swim", "openb")
HELP = "Play the Spark-on-Mesos experiment: an emulated master against a real sidecar."

Policies = Annotated[
    str,
    typer.Option(
        help="Names, joined by commas: drf, ps-dsf, rps-dsf, tsf, bf-drf, ...",
        autocompletion=completing.joined(completing.policies),
    ),
]
Modes = Annotated[
    str,
    typer.Option(
        help="oblivious, characterised, or both joined by a comma.",
        autocompletion=completing.joined(completing.among(*Mode)),
    ),
]
Seed = Annotated[int, typer.Option(help="Where all chance of the workload begins.", min=0)]
Scale = Annotated[
    float,
    typer.Option(help="Part of the jobs to play; 1: all.", min=0.001, max=1.0),
]
Out = Annotated[Path, typer.Option(callback=directory, help="Directory for pictures and figures.")]
Workers = Annotated[
    int, typer.Option(help="Runs at a time, each on a sidecar of its own.", min=1, max=256)
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(cls=PlayingGroup, invoke_without_command=True, **PLAIN)
    group.callback()(demo)
    demo_more.register(group)
    app.add_typer(group, name="demo", help=HELP)


def demo(
    context: typer.Context,
    policies: Policies = "drf,ps-dsf,rps-dsf,tsf,bf-drf",
    modes: Modes = "oblivious,characterised",
    seed: Seed = 0,
    scale: Scale = 1.0,
    trace: Annotated[
        str,
        typer.Option(
            help="What to play: section-v (queues of Spark jobs), swim (an hour of Facebook's"
            " MapReduce jobs), openb (a GPU cluster with constraints). Traces are read from the"
            " directory MESOS_ALLOCATOR_TRACES; without the files, seeded stand-ins are played.",
            autocompletion=completing.among(*SCENARIOS),
        ),
    ] = "section-v",
    agents: Annotated[
        int | None,
        typer.Option(help="Agents, for swim (1000) and openb (1523).", min=1, max=100_000),
    ] = None,
    hour: Annotated[int, typer.Option(help="Hour of the SWIM sample.", min=0, max=23)] = 21,
    out: Out = Path("demo-out"),
    target: Annotated[
        str | None,
        typer.Option(
            help="A sidecar that runs already (host:port or unix:/path); else one starts."
            " MESOS_ALLOCATOR_SESSION_TOKEN_FILE and MESOS_ALLOCATOR_TOKEN_FILE name files with"
            " its tokens for masters and operators."
        ),
    ] = None,
    force: demo_more.Force = False,
    workers: Workers = WORKERS_MAX,
) -> None:
    """Play section V of Kesidis et al. under several policies, and compare them."""
    if context.invoked_subcommand is not None:
        return
    from allocator.cli.render.demo_tables import print_conclusions, print_runs
    from allocator.lab.workloads.traces import TraceError
    from allocator.policies import MODES, POLICIES

    names = _choose(policies, tuple(POLICIES), "--policies")
    kinds = _choose(modes, MODES, "--modes")
    _choose(trace, SCENARIOS, "--trace")
    try:
        runs, source = _runs(trace, names, kinds, seed, scale, agents, hour)
    except TraceError as error:
        fail(Exit.FAILURE, str(error))
    if target is None:
        compile_ahead()
    begin_s = time.monotonic()
    with demo_more.on_sidecar(target, force=force) as started_us:
        typer.echo(f"{trace}: {source}; seed {seed}; {len(runs)} runs")
        results = _play(runs, target, workers, started_us)
    _keep(out, results, {"trace": trace, "source": source, "seed": seed, "scale": scale})
    print_runs(results)
    print_conclusions(results, with_claims=trace == "section-v")
    typer.echo(f"{time.monotonic() - begin_s:.0f} s; figures and pictures are in {out}/")
    _report_rejections(results)


def _choose(text: str, known: Sequence[str], option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        fail(Exit.USAGE, f"{option}: {text!r}; {choose(unknown, known)}")
    return names


def _runs(
    trace: str,
    policies: list[str],
    modes: list[str],
    seed: int,
    scale: float,
    agents: int | None,
    hour: int,
) -> tuple[list["Run"], str]:
    from allocator.lab.experiments import demo_runs as catalogue

    if trace == "section-v":
        if agents is not None:
            fail(Exit.USAGE, "--agents: section-v has the paper's six agents; leave it out")
        runs = catalogue.section_v(policies, modes, seed, scale)
        return runs, "queues of Spark jobs on the paper's six agents"
    if trace == "swim":
        scenario, source = catalogue.swim(seed, agents or catalogue.SWIM_AGENTS, hour, scale)
    else:
        scenario, source = catalogue.openb(seed, agents or catalogue.OPENB_AGENTS, scale)
    return catalogue.on_trace(scenario, policies, modes, seed), source


def _play(runs: list["Run"], target: str | None, workers: int, started_us: int) -> list["Result"]:
    """Play with a progress bar; the results in the order of the runs."""
    from allocator.cli.render.terminal import progress
    from allocator.lab.experiments.runs import play_all

    order = {run.name: number for number, run in enumerate(runs)}
    ended = dict.fromkeys(order, 0)
    results: list[Result] = []
    first = "playing" if target else "starting sidecars"
    with progress(first, "jobs", sum(run.scenario.jobs for run in runs)) as tell:

        def watch(name: str, count: int) -> None:
            demo_more.end_if_told()
            ended[name] = max(ended[name], count)
            tell(sum(ended.values()), what="playing")

        playing = play_all(runs, target=target, workers=workers, watch=watch, started_us=started_us)
        with closing(playing):  # after Ctrl-C at once, not when it happens to be collected
            for result in playing:
                watch(result.name, runs[order[result.name]].scenario.jobs)
                results.append(result)
    return sorted(results, key=lambda result: order[result.name])


def _keep(out: Path, results: list["Result"], about: dict[str, object]) -> None:
    from allocator.lab.experiments import demo_runs as catalogue
    from allocator.lab.reports import plots
    from allocator.lab.reports import run_report as report

    out.mkdir(parents=True, exist_ok=True)
    figures = [result.figures for result in results]
    memory = {result.name: round(result.memory_mib, 1) for result in results}
    report.write_json(out / "runs.json", figures, {**about, "sidecar_memory_mib": memory})
    report.write_csv(out / "runs.csv", figures)
    kinds = results[0].kinds
    series = {result.name: (result.time_s, result.part) for result in results}
    report.write_series(out / "series.csv", series, kinds)
    for picture in catalogue.pictures(str(about["trace"]), str(about["source"]), list(series)):
        chosen = {name: series[name] for name in picture.runs}
        plots.over_time(out / picture.file, picture.title, chosen, kinds)


def _report_rejections(results: list["Result"]) -> None:
    """A decision that was turned down in such a run is a defect of the sidecar."""
    wrong = [
        f"{result.name}: {count} decisions were rejected as {reason}"
        for result in results
        for reason, count in result.figures.rejected.items()
    ]
    if wrong:
        fail(Exit.FAILURE, *wrong)

"""`allocator-lab demo`: an emulated master against a real sidecar, on this machine.

And `demo claims`, `demo demands` and `demo soak`.
"""

import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.local.plugins import Plugins, load_policies, settings_for, try_out
from allocator.cli.local.warm import compile_ahead
from allocator.cli.remote import completing
from allocator.cli.tree import PLAIN, Exit, PlayingGroup, directory, expect, fail
from allocator.plain import json_text
from laboratory.cli.options import (
    Backend,
    Cluster,
    Force,
    Jobs,
    Modes,
    Policies,
    Target,
    chosen,
    end_if_told,
    on_sidecar,
    spread_over,
)

if TYPE_CHECKING:
    from laboratory.experiments.claims import ClaimVerdict
    from laboratory.experiments.runs import ExperimentRun, Result
    from laboratory.experiments.soak import Soak

WORKERS_MAX = 2
SEEDS_MIN = 2
SCENARIOS = ("section-v", "swim", "openb")
HELP = "Run the experiment with Spark on Mesos: an emulated master with a real sidecar."

PolicyName = Annotated[
    str, typer.Option(help="Name of the policy.", autocompletion=completing.policies)
]
Seed = Annotated[int, typer.Option(help="Seed of the random workload.", min=0)]
Scale = Annotated[
    float,
    typer.Option(help="Fraction of the jobs to run; 1: all.", min=0.001, max=1.0),
]
Out = Annotated[Path, typer.Option(callback=directory, help="Directory for pictures and figures.")]
Workers = Annotated[
    int, typer.Option(help="Concurrent runs, each on its own sidecar.", min=1, max=256)
]


def register(app: typer.Typer) -> None:
    group = typer.Typer(cls=PlayingGroup, invoke_without_command=True, **PLAIN)
    group.callback()(demo)
    for command in (claims, demands, soak):
        group.command()(command)
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
            help="Workload: section-v (queues of Spark jobs), swim (an hour of Facebook's"
            " MapReduce jobs), openb (a GPU cluster with constraints). The files of"
            " traces are read from the directory MESOS_ALLOCATOR_TRACES; if they are"
            " missing, random workloads of a similar form are used.",
            autocompletion=completing.among(*SCENARIOS),
        ),
    ] = "section-v",
    agents: Annotated[
        int | None,
        typer.Option(
            help="Number of agents, for swim (default 1000) and openb (default 1523).",
            min=1,
            max=100_000,
        ),
    ] = None,
    hour: Annotated[int, typer.Option(help="Hour of the SWIM sample.", min=0, max=23)] = 21,
    out: Out = Path("demo-out"),
    target: Target = None,
    force: Force = False,
    plugin: Plugins = None,
    workers: Workers = WORKERS_MAX,
) -> None:
    """Play section V of Kesidis et al. under several policies, and compare them."""
    if context.invoked_subcommand is not None:
        return
    from allocator.policies import MODES, POLICIES
    from laboratory.cli.render.demo_tables import print_conclusions, print_runs
    from laboratory.workloads.traces import TraceError

    files = load_policies(plugin)
    names = chosen(policies, tuple(POLICIES), "--policies")
    kinds = chosen(modes, MODES, "--modes")
    try_out(names, kinds)
    expect("--trace", trace, SCENARIOS)
    try:
        runs, source = _runs(trace, names, kinds, seed, scale, agents, hour)
    except TraceError as error:
        fail(Exit.FAILURE, str(error))
    if target is None:
        compile_ahead()
    begin_s = time.monotonic()
    with on_sidecar(target, force=force) as started_us:
        typer.echo(f"{trace}: {source}; seed {seed}; {len(runs)} runs")
        results = _play(runs, target, workers, started_us, files)
    _keep(out, results, {"trace": trace, "source": source, "seed": seed, "scale": scale})
    print_runs(results)
    print_conclusions(results, with_claims=trace == "section-v")
    typer.echo(f"{time.monotonic() - begin_s:.0f} s; figures and pictures are in {out}/")
    _report_rejections(results)


def _runs(
    trace: str,
    policies: list[str],
    modes: list[str],
    seed: int,
    scale: float,
    agents: int | None,
    hour: int,
) -> tuple[list["ExperimentRun"], str]:
    from laboratory.experiments import demo_runs as catalogue

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


def _play(
    runs: list["ExperimentRun"],
    target: str | None,
    workers: int,
    started_us: int,
    plugins: tuple[str, ...],
) -> list["Result"]:
    """Play with a progress bar; returns results in the order of the runs."""
    from allocator.cli.render.terminal import progress
    from laboratory.experiments.runs import play_all

    order = {run.name: number for number, run in enumerate(runs)}
    ended = dict.fromkeys(order, 0)
    results: list[Result] = []
    first = "playing" if target else "starting sidecars"
    with progress(first, "jobs", sum(run.scenario.jobs for run in runs)) as tell:

        def watch(name: str, count: int) -> None:
            end_if_told()
            ended[name] = max(ended[name], count)
            tell(sum(ended.values()), what="playing")

        playing = play_all(
            runs,
            target=target,
            workers=workers,
            watch=watch,
            started_us=started_us,
            settings=settings_for(plugins),
        )
        with closing(playing):  # stops it right after Ctrl-C, not at garbage collection
            for result in playing:
                watch(result.name, runs[order[result.name]].scenario.jobs)
                results.append(result)
    return sorted(results, key=lambda result: order[result.name])


def _keep(out: Path, results: list["Result"], about: dict[str, object]) -> None:
    from laboratory.experiments import demo_runs as catalogue
    from laboratory.reports import plots
    from laboratory.reports import run_report as report

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
    """Fail if the emulated master rejected a decision: here that is a defect of the sidecar."""
    wrong = [
        f"{result.name}: {count} decisions were rejected as {reason}"
        for result in results
        for reason, count in result.figures.rejected.items()
    ]
    if wrong:
        fail(Exit.FAILURE, *wrong)


# Claims over many seeds, sources of demands, a soak.

SOAK_SECONDS = "Seconds of the emulated cluster's clock, which is faster than real time."


def claims(
    seeds: Annotated[int, typer.Option(help="Number of random workloads.", min=SEEDS_MIN)] = 10,
    scale: Annotated[float, typer.Option(help="Fraction of the jobs.", min=0.001, max=1.0)] = 1.0,
    cores: Jobs = -1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    out: Annotated[
        Path, typer.Option(callback=directory, help="Directory for the figures.")
    ] = Path("demo-out"),
) -> None:
    """Check the claims of the paper's section V over many seeds, with confidence intervals."""
    from allocator.cli.render.terminal import progress
    from laboratory.cli.render.demo_tables import print_claims
    from laboratory.experiments.claims import check_claims

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


def _plain(verdict: "ClaimVerdict") -> dict[str, object]:
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
            help="How Spark is configured: coarse (executors of a fixed size), greedy (no fixed"
            " size), dynamic (dynamic allocation), fine (fine-grained)."
        ),
    ] = "coarse",
    policy: PolicyName = "drf",
    seeds: Annotated[int, typer.Option(help="Number of random workloads.", min=1)] = 3,
    jobs: Annotated[int, typer.Option(help="Jobs of each of four queues.", min=1)] = 6,
) -> None:
    """Count offers and declines of Spark jobs, for each source of their executors' demand."""
    from allocator.policies import POLICIES
    from laboratory.cli.render.demo_tables import print_sources
    from laboratory.experiments.demand_sources import SOURCES, average, play_source
    from laboratory.workloads.spark_experiment import MODES

    expect("--mode", mode, MODES)
    expect("--policy", policy, POLICIES)
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
        int,
        typer.Option(
            help="Number of agents, and of frameworks at the same time.", min=1, max=10_000
        ),
    ] = 20,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.", min=0)] = 0,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Name of the policy, in characterised mode; default: drf, or with --target"
            " the policy that is in force there.",
            autocompletion=completing.policies,
        ),
    ] = None,
    target: Target = None,
    force: Force = False,
    plugin: Plugins = None,
) -> None:
    """Run an emulated cluster in which agents and frameworks do everything that Mesos allows.

    Their actions are random. Checks that sidecar and master agree on what is held.

    The clock of the emulated cluster is faster than real time: minutes pass in seconds. Ctrl-C ends
    the run and prints the findings so far.
    """
    from allocator.core import PolicySpec
    from allocator.policies import POLICIES
    from laboratory.experiments.soak import Soak
    from laboratory.links.sidecar_process import SidecarProcess, scratch_directory
    from laboratory.random_cluster import RandomScenario

    files = load_policies(plugin)
    if policy is not None:
        expect("--policy", policy, POLICIES)
        try_out([policy], ["characterised"])
    if target is None:
        policy = policy or "drf"
        compile_ahead()
    begun_s = time.monotonic()
    with on_sidecar(target, force=force) as started_us, ExitStack() as until_end:
        if target is None:
            directory = until_end.enter_context(scratch_directory("soak-"))
            sidecar = SidecarProcess(directory, {"log.level": "warning", **settings_for(files)})
            target = until_end.enter_context(sidecar).target
        typer.echo(f"playing against {target}; the emulated clock runs fast", err=True)
        playing = Soak(target, RandomScenario(seed, size, duration_ms=seconds * 1000))
        until_end.callback(lambda: _tell_soak(playing, size, seed, begun_s))
        playing.play(
            PolicySpec(policy, mode="characterised") if policy else None,
            started_us=started_us,
            watch=lambda _progress: end_if_told(),
        )
    if wrong := _wrong_in(playing):
        fail(Exit.FAILURE, *wrong)


def _tell_soak(playing: "Soak", size: int, seed: int, begun_s: float) -> None:
    """Summarize the run, also if it was interrupted."""
    if (record := playing.record) is None:
        typer.echo("nothing was played yet")
        return
    typer.echo(
        f"{playing.now_ms / 1000:.0f} s of the emulated cluster's clock, in"
        f" {time.monotonic() - begun_s:.0f} s of real time, with {size} agents and {size}"
        f" frameworks, seed {seed}: {record.events} events, {record.offers} offers,"
        f" {record.tasks} tasks; books compared {playing.compared} times,"
        f" {len(_wrong_in(playing))} differences"
    )


def _wrong_in(playing: "Soak") -> list[str]:
    counts = playing.record.rejected if playing.record else {}
    rejected = [f"{number} decisions were rejected as {why.name}" for why, number in counts.items()]
    return [*rejected, *playing.wrong]

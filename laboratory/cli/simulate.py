"""`allocator-lab simulate`: a user's scenario under several policies."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.local.plugins import Plugins, load_policies, try_out
from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import Exit, Playing, check_there, directory, fail, shown_example
from laboratory.cli.options import Backend, Cluster, Jobs, Modes, Policies, chosen, spread_over

if TYPE_CHECKING:
    from laboratory.scenarios.running import RunResult


def register(app: typer.Typer) -> None:
    example = "simulate examples/scenarios/one_greedy_framework.toml --policy drf,ps-dsf --seeds 5"
    app.command(cls=Playing, epilog=shown_example(example, "allocator-lab"))(simulate)


def simulate(
    scenario: Annotated[Path, typer.Argument(help="A TOML file; see examples/scenarios.")],
    policy: Policies = "drf,ps-dsf",
    mode: Modes = "oblivious,characterised",
    seeds: Annotated[
        int, typer.Option(help="Number of random workloads, with the seeds 0, 1, and so on.", min=1)
    ] = 3,
    jobs: Jobs = -1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    plugin: Plugins = None,
    out: Annotated[
        Path, typer.Option(callback=directory, help="Directory for tables and the picture.")
    ] = Path("simulate-out"),
) -> None:
    """Simulate a scenario under several policies, and compare them.

    With the same seed, all policies get the same workload. Results are means over the seeds, with
    95 % confidence intervals.
    """
    from allocator.cli.render.terminal import console
    from allocator.policies import MODES, POLICIES
    from laboratory.scenarios.running import ScenarioCell, run
    from laboratory.scenarios.schema import ScenarioError, read

    files = load_policies(plugin)
    policies = chosen(policy, tuple(POLICIES), "--policy")
    modes = chosen(mode, MODES, "--mode")
    over = spread_over(jobs, backend, cluster, plugins=files)
    check_there(scenario)
    try:
        read_scenario = read(scenario)
    except ScenarioError as error:
        fail(Exit.CONFIG, *str(error).splitlines())
    cells = [
        ScenarioCell(name, each, seed)
        for name in policies
        for each in modes
        for seed in range(seeds)
    ]
    try_out(policies, modes)
    console().print(read_scenario.about, markup=False)
    if backend == "loky":
        compile_ahead()
    calls = over(partial(run, read_scenario), cells)
    _show(_followed(calls, len(cells)), out)


def _followed(calls: Iterable["RunResult"], count: int) -> list["RunResult"]:
    from allocator.cli.render.terminal import progress

    results = []
    with progress("playing", "runs", count) as tell:
        for result in calls:
            results.append(result)
            tell(len(results))
    return results


def _show(results: list["RunResult"], out: Path) -> None:
    from allocator.cli.render.terminal import console, print_table
    from laboratory.scenarios import sweep_report

    files = sweep_report.write(out, results)
    for columns, rows in (sweep_report.policy_table(results), sweep_report.group_table(results)):
        console().print()
        print_table(columns, rows, "")
    console().print()
    typer.echo(f"written: {', '.join(str(path) for path in files)}")

"""`mesos-allocator reproduce`: the papers' tables and figures, beside what was printed."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import PLAIN, Exit, PlayingGroup, choose, directory, fail
from allocator.plain import json_text

if TYPE_CHECKING:
    from allocator.lab.papers.report import Report


class Experiment(NamedTuple):
    """One table or figure.

    function: module and function that compute it; loaded when it is asked for.
    parameters: which of ``seed`` and ``trials`` the function takes.
    """

    function: str
    parameters: tuple[str, ...]
    about: str


_BOTH = ("seed", "trials")

EXPERIMENTS: Mapping[str, Experiment] = {
    "kesidis-table-1": Experiment(
        "allocator.lab.papers.kesidis.tables:table_1",
        _BOTH,
        "task counts of six schedulers, means",
    ),
    "kesidis-table-2": Experiment(
        "allocator.lab.papers.kesidis.tables:table_2",
        _BOTH,
        "their sample standard deviations",
    ),
    "choosy-figures": Experiment(
        "allocator.lab.papers.choosy.examples:figures",
        _BOTH,
        "Figures 1, 3, 5: the optimum, and online",
    ),
    "choosy-theorems": Experiment(
        "allocator.lab.papers.choosy.examples:theorems",
        _BOTH,
        "Theorems 1 to 3 as properties",
    ),
    "choosy-theorem-4": Experiment(
        "allocator.lab.papers.choosy.examples:theorem_4",
        _BOTH,
        "how near Choosy comes from anywhere",
    ),
    "choosy-fig-6": Experiment(
        "allocator.lab.papers.choosy.ramp_up:figure_6", _BOTH, "ramp-up time by pickiness"
    ),
    "choosy-macrobenchmark": Experiment(
        "allocator.lab.papers.choosy.macro:macrobenchmark",
        _BOTH,
        "Figures 8, 9, Tables 1, 2",
    ),
    "choosy-scaling": Experiment(
        "allocator.lab.papers.choosy.macro:scaling",
        ("seed",),
        "an hour on up to 50,000 machines",
    ),
    "choosy-joins": Experiment(
        "allocator.lab.papers.choosy.micro:joins_and_leaves",
        _BOTH,
        "Figures 10 to 12: nine users",
    ),
    "choosy-empty-cluster": Experiment(
        "allocator.lab.papers.choosy.micro:empty_cluster",
        _BOTH,
        "Figure 13: all at once",
    ),
    "choosy-fig-14": Experiment(
        "allocator.lab.papers.choosy.jobs:figure_14", ("seed",), "four jobs on 160 cores"
    ),
    "choosy-fig-15": Experiment(
        "allocator.lab.papers.choosy.examples:figure_15", _BOTH, "time of the offline optimum"
    ),
    "kesidis-pf": Experiment(
        "allocator.lab.papers.kesidis.fluid:proportional_fairness_of_filling",
        _BOTH,
        "how near `pf` comes to proportional fairness over agents",
    ),
    "ps-dsf-fluid": Experiment(
        "allocator.lab.papers.kesidis.per_server_fluid:definition_of_filling",
        _BOTH,
        "how often `ps-dsf` meets its definition, and how far it is from it",
    ),
    "kesidis-propositions": Experiment(
        "allocator.lab.papers.kesidis.fluid:propositions",
        _BOTH,
        "Propositions 1 and 2 with priorities and server preferences",
    ),
    "kesidis-sensitivity": Experiment(
        "allocator.lab.papers.kesidis.sensitivity:sensitivity",
        _BOTH,
        "which modelling choice decides the claims of section V",
    ),
    "quincy-solver": Experiment(
        "allocator.lab.papers.quincy.solver_times:solver_times",
        _BOTH,
        "time of Quincy's minimum-cost flow",
    ),
    "quincy-table-2": Experiment(
        "allocator.lab.papers.quincy.figures:table_2",
        _BOTH,
        "one job at a time: time and data",
    ),
    "quincy-table-3": Experiment(
        "allocator.lab.papers.quincy.figures:table_3", _BOTH, "how long each job takes alone"
    ),
    "quincy-fig-6": Experiment(
        "allocator.lab.papers.quincy.figures:figures_5_to_7",
        _BOTH,
        "Figures 5 to 7: all schedulers",
    ),
    "quincy-starts": Experiment(
        "allocator.lab.papers.quincy.figures:starts",
        _BOTH,
        "the same by when the first jobs start",
    ),
    "quincy-table-4": Experiment(
        "allocator.lab.papers.quincy.figures:figure_8",
        _BOTH,
        "Table 4, Figure 8: narrow uplinks",
    ),
    "quincy-departures": Experiment(
        "allocator.lab.papers.quincy.figures:departures",
        _BOTH,
        "what departures from its text change",
    ),
    "drf-example": Experiment(
        "allocator.lab.papers.drf:example",
        (),
        "9 CPUs and 18 GB under DRF, asset fairness, CEEI",
    ),
    "drf-properties": Experiment(
        "allocator.lab.papers.drf:properties",
        _BOTH,
        "Table 2, each cell by experiment",
    ),
    "pf-examples": Experiment(
        "allocator.lab.papers.bonald.examples:examples", (), "proportional fairness and DRF"
    ),
    "pf-service-rates": Experiment(
        "allocator.lab.papers.bonald.traffic:figures",
        (),
        "both in dynamic traffic, by load",
    ),
    "pf-fig-3": Experiment(
        "allocator.lab.papers.bonald.traffic:figure_3", _BOTH, "four classes in dynamic traffic"
    ),
    "pf-capacity-region": Experiment(
        "allocator.lab.papers.bonald.traffic:capacity_region",
        _BOTH,
        "how much traffic is too much",
    ),
    "pf-fig-4": Experiment(
        "allocator.lab.papers.bonald.strategy:figure_4", (), "what one job gains by a false claim"
    ),
    "pf-fig-5": Experiment(
        "allocator.lab.papers.bonald.strategy:figure_5", (), "what a class gains by false claims"
    ),
    "pf-fig-6": Experiment(
        "allocator.lab.papers.bonald.tasks:figure_6", _BOTH, "whole tasks instead of a fluid"
    ),
}

HELP = "Compute the papers' tables and figures with the real policies, beside the printed ones."

Seed = Annotated[int, typer.Option(help="Where all chance begins.", min=0)]
Trials = Annotated[
    int | None, typer.Option(help="How often to repeat; the paper's number by default.", min=2)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Plot = Annotated[
    Path | None,
    typer.Option(callback=directory, help="Directory for the figure, where there is one to draw."),
]


def run(name: str, **options: int) -> "Report":
    """Compute one of the experiments.

    name: A key of `EXPERIMENTS`.
    **options: ``seed`` and ``trials``; what the experiment does not take is left out.
    """
    compile_ahead()
    experiment = EXPERIMENTS[name]
    module, _, function = experiment.function.partition(":")
    taken = {key: value for key, value in options.items() if key in experiment.parameters}
    report: Report = getattr(import_module(module), function)(**taken)
    return report


def list_experiments(as_json: AsJson = False) -> None:
    """Say what can be reproduced."""
    about = {name: experiment.about for name, experiment in EXPERIMENTS.items()}
    if as_json:
        typer.echo(json_text(about, indent=2))
        return
    for name, text in about.items():
        typer.echo(f"{name:22} {text}")


def reproduce_all(seed: Seed = 0, as_json: AsJson = False, plot: Plot = None) -> None:
    """Compute everything."""
    _show([run(name, seed=seed) for name in EXPERIMENTS], as_json, plot)


def write_pages(
    only: Annotated[
        str, typer.Option(help="Experiments to compute anew, joined by commas; all: every one.")
    ] = "",
    seed: Seed = 0,
    trials: Trials = None,
    out: Annotated[Path, typer.Option(callback=directory, help="Directory of the pages.")] = Path(
        "docs/papers"
    ),
) -> None:
    """Write the pages from the results that are kept beside them; compute some anew before."""
    from allocator.lab.papers import pages

    names = list(EXPERIMENTS) if only == "all" else [each for each in only.split(",") if each]
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        fail(Exit.USAGE, f"--only: {', '.join(unknown)}; {choose(unknown, EXPERIMENTS)}")
    for name in names:
        given = {"seed": seed} | ({} if trials is None else {"trials": trials})
        options = {key: each for key, each in given.items() if key in EXPERIMENTS[name].parameters}
        typer.echo(name)
        pages.keep(out, run(name, **options), options)
    for path in pages.write(out, list(EXPERIMENTS)):
        typer.echo(str(path))


def register(app: typer.Typer) -> None:
    group = typer.Typer(cls=PlayingGroup, no_args_is_help=True, **PLAIN)
    app.add_typer(group, name="reproduce", help=HELP)
    group.command("list")(list_experiments)
    group.command("all")(reproduce_all)
    group.command("pages")(write_pages)
    for name, experiment in EXPERIMENTS.items():
        _register(group, name, experiment)


def _register(group: typer.Typer, name: str, experiment: Experiment) -> None:
    """Add the command of one experiment, with the options that it takes."""

    def repeated(
        seed: Seed = 0, trials: Trials = None, as_json: AsJson = False, plot: Plot = None
    ) -> None:
        options = {"seed": seed} | ({} if trials is None else {"trials": trials})
        _show([run(name, **options)], as_json, plot)

    def drawn(seed: Seed = 0, as_json: AsJson = False, plot: Plot = None) -> None:
        _show([run(name, seed=seed)], as_json, plot)

    def certain(as_json: AsJson = False, plot: Plot = None) -> None:
        _show([run(name)], as_json, plot)

    commands: Mapping[tuple[str, ...], Callable[..., None]] = {
        _BOTH: repeated,
        ("seed",): drawn,
        (): certain,
    }
    help_text = experiment.about[0].upper() + experiment.about[1:] + "."
    group.command(name, help=help_text)(commands[experiment.parameters])


def _show(reports: list["Report"], as_json: bool, plot: Path | None = None) -> None:
    """Print the reports, and draw them; fail where a number differs and nobody knows why."""
    drawn = [report for report in reports if report.panels]
    if plot is not None and drawn:
        from allocator.lab.reports.plots import draw_report as draw

        plot.mkdir(parents=True, exist_ok=True)
        for report in drawn:
            draw(plot / f"{report.name}.svg", report)
    if as_json:
        plain = [as_dict(report) for report in reports]
        typer.echo(json_text(plain if len(plain) > 1 else plain[0], indent=2))
    else:
        from allocator.cli.render.paper_tables import print_report

        for report in reports:
            print_report(report)
    wrong = [report.name for report in reports if not report.holds]
    if wrong:
        fail(Exit.FAILURE, f"differs from the paper, unexplained: {', '.join(wrong)}")


def as_dict(report: "Report") -> dict[str, Any]:
    """Turn a report into plain data, with the verdicts."""
    result = asdict(report)
    result["holds"] = report.holds
    for row, plain in zip(report.rows, result["rows"], strict=True):
        plain["agrees"] = row.agrees
        for cell, plain_cell in zip(row.cells, plain["cells"], strict=True):
            plain_cell["agrees"] = cell.agrees
    return result

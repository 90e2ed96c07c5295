"""`allocator-lab reproduce`: the papers' tables and figures, beside the published numbers."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import PLAIN, Exit, PlayingGroup, choose, directory, fail
from allocator.plain import json_text

if TYPE_CHECKING:
    from laboratory.papers.report import PaperReport


class Experiment(NamedTuple):
    """One table or figure.

    module, function: what computes it; imported on first use.
    parameters: which of ``seed`` and ``trials`` the function takes.
    """

    module: str
    function: str
    about: str
    parameters: tuple[str, ...] = ("seed", "trials")


_KESIDIS_TABLES = "laboratory.papers.kesidis.tables"
_CHOOSY_EXAMPLES = "laboratory.papers.choosy.examples"
_CHOOSY_RAMP_UP = "laboratory.papers.choosy.ramp_up"
_CHOOSY_MACRO = "laboratory.papers.choosy.macro"
_CHOOSY_MICRO = "laboratory.papers.choosy.micro"
_CHOOSY_MARKET = "laboratory.papers.choosy.market"
_CHOOSY_JOBS = "laboratory.papers.choosy.jobs"
_KESIDIS_FLUID = "laboratory.papers.kesidis.fluid"
_KESIDIS_PER_SERVER_FLUID = "laboratory.papers.kesidis.per_server_fluid"
_KESIDIS_SENSITIVITY = "laboratory.papers.kesidis.sensitivity"
_KESIDIS_COROLLARY = "laboratory.papers.kesidis.corollary"
_KESIDIS_FIGURES = "laboratory.papers.kesidis.figures"
_QUINCY_SOLVER_TIMES = "laboratory.papers.quincy.solver_times"
_QUINCY_FIGURES = "laboratory.papers.quincy.figures"
_DRF = "laboratory.papers.drf"
_DRF_DISCRETE = "laboratory.papers.drf_discrete"
_BONALD_EXAMPLES = "laboratory.papers.bonald.examples"
_BONALD_TRAFFIC = "laboratory.papers.bonald.traffic"
_BONALD_TASKS = "laboratory.papers.bonald.tasks"
_BONALD_PROPERTIES = "laboratory.papers.bonald.properties"
_BONALD_THREE_RESOURCES = "laboratory.papers.bonald.three_resources"

EXPERIMENTS: Mapping[str, Experiment] = {
    "kesidis-table-1": Experiment(
        _KESIDIS_TABLES, "table_1", "task counts of six schedulers, means"
    ),
    "kesidis-table-2": Experiment(_KESIDIS_TABLES, "table_2", "their sample standard deviations"),
    "choosy-figures": Experiment(
        _CHOOSY_EXAMPLES, "figures", "Figures 1, 3, 5: the optimum, and online"
    ),
    "choosy-theorems": Experiment(_CHOOSY_EXAMPLES, "theorems", "Theorems 1 to 3 as properties"),
    "choosy-market": Experiment(
        _CHOOSY_MARKET, "market_equilibrium", "section 4.3: a market reaches the same shares"
    ),
    "choosy-theorem-4": Experiment(
        _CHOOSY_EXAMPLES, "theorem_4", "how near Choosy comes to the optimum from any start"
    ),
    "choosy-fig-6": Experiment(_CHOOSY_RAMP_UP, "figure_6", "ramp-up time by pickiness"),
    "choosy-fig-7": Experiment(
        _CHOOSY_RAMP_UP, "figure_7", "which shapes of task times ramp up in time", ()
    ),
    "choosy-macrobenchmark": Experiment(
        _CHOOSY_MACRO, "macrobenchmark", "Figures 8, 9, Tables 1, 2"
    ),
    "choosy-scaling": Experiment(
        _CHOOSY_MACRO, "scaling", "an hour on up to 50,000 machines", ("seed",)
    ),
    "choosy-joins": Experiment(_CHOOSY_MICRO, "joins_and_leaves", "Figures 10 to 12: nine users"),
    "choosy-empty-cluster": Experiment(_CHOOSY_MICRO, "empty_cluster", "Figure 13: all at once"),
    "choosy-fig-14": Experiment(_CHOOSY_JOBS, "figure_14", "four jobs on 160 cores", ("seed",)),
    "choosy-fig-15": Experiment(_CHOOSY_EXAMPLES, "figure_15", "time of the offline optimum"),
    "kesidis-pf": Experiment(
        _KESIDIS_FLUID,
        "proportional_fairness_of_filling",
        "how near `pf` comes to proportional fairness over agents",
    ),
    "ps-dsf-fluid": Experiment(
        _KESIDIS_PER_SERVER_FLUID,
        "definition_of_filling",
        "how often `ps-dsf` meets its definition, and how far it is from it",
    ),
    "kesidis-propositions": Experiment(
        _KESIDIS_FLUID,
        "propositions",
        "Propositions 1 and 2 with priorities and server preferences",
    ),
    "kesidis-corollary-1": Experiment(
        _KESIDIS_COROLLARY, "corollary_1", "proportional fairness of any fairness criterion"
    ),
    "kesidis-fig-1": Experiment(_KESIDIS_FIGURES, "figure_1", "DRF and PS-DSF, oblivious"),
    "kesidis-fig-2": Experiment(_KESIDIS_FIGURES, "figure_2", "DRF and PS-DSF, characterised"),
    "kesidis-fig-3": Experiment(_KESIDIS_FIGURES, "figure_3", "TSF, BF-DRF and rPS-DSF"),
    "kesidis-fig-4": Experiment(_KESIDIS_FIGURES, "figure_4", "both modes under DRF"),
    "kesidis-fig-5": Experiment(
        _KESIDIS_FIGURES, "figure_5", "BF-DRF and rPS-DSF, agents registered one by one"
    ),
    "kesidis-sensitivity": Experiment(
        _KESIDIS_SENSITIVITY,
        "sensitivity",
        "which modelling choice decides the claims of section V",
    ),
    "quincy-solver": Experiment(
        _QUINCY_SOLVER_TIMES, "solver_times", "time of Quincy's minimum-cost flow"
    ),
    "quincy-table-2": Experiment(_QUINCY_FIGURES, "table_2", "one job at a time: time and data"),
    "quincy-table-3": Experiment(_QUINCY_FIGURES, "table_3", "how long each job takes alone"),
    "quincy-fig-6": Experiment(_QUINCY_FIGURES, "figures_5_to_7", "Figures 5 to 7: all schedulers"),
    "quincy-starts": Experiment(_QUINCY_FIGURES, "starts", "the same by when the first jobs start"),
    "quincy-table-4": Experiment(_QUINCY_FIGURES, "figure_8", "Table 4, Figure 8: narrow uplinks"),
    "quincy-departures": Experiment(
        _QUINCY_FIGURES, "departures", "what departures from its text change"
    ),
    "drf-example": Experiment(
        _DRF, "example", "9 CPUs and 18 GB under DRF, asset fairness, CEEI", ()
    ),
    "drf-properties": Experiment(_DRF, "properties", "Table 2, each cell by experiment"),
    "drf-whole-tasks": Experiment(
        _DRF_DISCRETE, "whole_tasks", "section 5: the bound of one maximal task"
    ),
    "pf-examples": Experiment(_BONALD_EXAMPLES, "examples", "proportional fairness and DRF", ()),
    "pf-properties": Experiment(
        _BONALD_PROPERTIES, "properties", "scale invariance, local fairness and others"
    ),
    "pf-proposition-7": Experiment(
        _BONALD_PROPERTIES, "proposition_7", "which utilities are locally fair", ()
    ),
    "pf-service-rates": Experiment(
        _BONALD_TRAFFIC, "figures", "both in dynamic traffic, by load", ()
    ),
    "pf-heavy-traffic": Experiment(
        _BONALD_TRAFFIC, "heavy_traffic", "both near the capacity of one resource", ()
    ),
    "pf-fig-3": Experiment(_BONALD_TRAFFIC, "figure_3", "four classes in dynamic traffic"),
    "pf-three-resources": Experiment(
        _BONALD_THREE_RESOURCES, "three_resources", "three types of resource in dynamic traffic"
    ),
    "pf-capacity-region": Experiment(
        _BONALD_TRAFFIC, "capacity_region", "how much traffic is too much"
    ),
    "pf-fig-4": Experiment(_BONALD_TRAFFIC, "figure_4", "what one job gains by a false claim", ()),
    "pf-fig-5": Experiment(_BONALD_TRAFFIC, "figure_5", "what a class gains by false claims", ()),
    "pf-fig-6": Experiment(_BONALD_TASKS, "figure_6", "whole tasks instead of a fluid"),
}

HELP = (
    "Compute tables and figures of papers with the real policies, and compare them with"
    " the published ones."
)

Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
Trials = Annotated[
    int | None, typer.Option(help="Number of repetitions; default: the paper's.", min=2)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Plot = Annotated[
    Path | None,
    typer.Option(callback=directory, help="Directory for the figure, if there is one."),
]


def run(name: str, **options: int) -> "PaperReport":
    """Compute one of the experiments.

    name: A key of `EXPERIMENTS`.
    **options: ``seed`` and ``trials``; those that the experiment does not take are ignored.
    """
    compile_ahead()
    experiment = EXPERIMENTS[name]
    taken = {key: value for key, value in options.items() if key in experiment.parameters}
    report: PaperReport = getattr(import_module(experiment.module), experiment.function)(**taken)
    return report


def list_experiments(as_json: AsJson = False) -> None:
    """List the experiments."""
    about = {name: experiment.about for name, experiment in EXPERIMENTS.items()}
    if as_json:
        typer.echo(json_text(about, indent=2))
        return
    for name, text in about.items():
        typer.echo(f"{name:22} {text}")


def reproduce_all(seed: Seed = 0, as_json: AsJson = False, plot: Plot = None) -> None:
    """Compute all experiments."""
    _show([run(name, seed=seed) for name in EXPERIMENTS], as_json, plot)


def write_pages(
    only: Annotated[
        str, typer.Option(help="Experiments to compute again, separated by commas, or: all.")
    ] = "",
    seed: Seed = 0,
    trials: Trials = None,
    out: Annotated[Path, typer.Option(callback=directory, help="Directory of the pages.")] = Path(
        "docs/papers"
    ),
) -> None:
    """Write the pages from stored results.

    The experiments that --only names are first computed again.
    """
    from laboratory.papers import pages

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

    def command(as_json: AsJson = False, plot: Plot = None, **given: int | None) -> None:
        options = {key: each for key, each in given.items() if each is not None}
        _show([run(name, **options)], as_json, plot)

    # Typer reads the options from the signature, in this order.
    known = {"seed": (Seed, 0), "trials": (Trials, None)}
    own = {key: known[key] for key in experiment.parameters}
    options: dict[str, tuple[Any, Any]] = {**own, "as_json": (AsJson, False), "plot": (Plot, None)}
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(key, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for key, (kind, default) in options.items()
        ]
    )
    help_text = experiment.about[0].upper() + experiment.about[1:] + "."
    group.command(name, help=help_text)(command)


def _show(reports: list["PaperReport"], as_json: bool, plot: Path | None = None) -> None:
    """Print and draw reports; fail if a number differs from the paper without an explanation."""
    drawn = [report for report in reports if report.panels]
    if plot is not None and drawn:
        from laboratory.papers.drawing import draw_report as draw

        plot.mkdir(parents=True, exist_ok=True)
        for report in drawn:
            draw(plot / f"{report.name}.svg", report)
    if as_json:
        plain = [as_dict(report) for report in reports]
        typer.echo(json_text(plain if len(plain) > 1 else plain[0], indent=2))
    else:
        from laboratory.cli.render.paper_tables import print_report

        for report in reports:
            print_report(report)
    wrong = [report.name for report in reports if not report.holds]
    if wrong:
        fail(Exit.FAILURE, f"unexplained difference from the paper: {', '.join(wrong)}")


def as_dict(report: "PaperReport") -> dict[str, Any]:
    """Turn a report into plain data, with the verdicts."""
    result = asdict(report)
    result["holds"] = report.holds
    for row, plain in zip(report.rows, result["rows"], strict=True):
        plain["agrees"] = row.agrees
        plain["differs"] = row.differs
        for cell, plain_cell in zip(row.cells, plain["cells"], strict=True):
            plain_cell["agrees"] = cell.agrees
            plain_cell["verdict"] = cell.verdict
    return result

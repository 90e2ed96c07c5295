"""All commands, and nothing that is slow to import: `--help` and completion must be quick."""

from importlib import import_module
from typing import Annotated

import typer

from allocator import __version__
from allocator.cli import admin, more_settings, rules, serve, warm
from allocator.cli.exits import Exit, fail
from allocator.server import loop_cache

HELP = """Decide who is offered which agent's resources, for an Apache Mesos master.

Exit codes: 0 done, 1 failure, 2 wrong usage, 3 sidecar unreachable, 4 refused by the sidecar,
78 wrong configuration.
"""

SIMULATOR_ONLY = {"joblib", "matplotlib", "pyarrow", "scipy"}
"""What the extra `sim` installs."""

PASS_THROUGH = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    name="mesos-allocator",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
serve.register(app)
warm.register(app)
admin.register(app)
rules.register(app)
more_settings.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


@app.command(context_settings=PASS_THROUGH, add_help_option=False)
def demo(context: typer.Context) -> None:
    """Play the Spark-on-Mesos experiment: an emulated master against a real sidecar."""
    _run_module("allocator.cli.demo", context)


@app.command(context_settings=PASS_THROUGH, add_help_option=False)
def reproduce(context: typer.Context) -> None:
    """Compute the papers' tables and figures, beside the published numbers."""
    _run_module("allocator.cli.reproduce", context)


@app.command(context_settings=PASS_THROUGH, add_help_option=False)
def simulate(context: typer.Context) -> None:
    """Play a scenario of your own under several policies, over many seeds."""
    _run_module("allocator.cli.simulate", context)


@app.command(context_settings=PASS_THROUGH, add_help_option=False)
def replay(context: typer.Context) -> None:
    """Compute again what a sidecar answered, from its journal, and compare."""
    _run_module("allocator.cli.replay", context)


@app.command(context_settings=PASS_THROUGH, add_help_option=False)
def graph(context: typer.Context) -> None:
    """Export or draw who may use which agents, from a journal."""
    _run_module("allocator.cli.graph", context)


def _run_module(name: str, context: typer.Context) -> None:
    """Run the `app` of a module that is imported only now, with arguments of its own."""
    if note := loop_cache.prepare():
        typer.echo(note, err=True)
    try:
        command = typer.main.get_command(import_module(name).app)
        command.main(args=context.args, prog_name=context.command_path)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in SIMULATOR_ONLY:
            raise
        fail(
            Exit.FAILURE,
            f"{missing} is not installed, which {context.command_path} needs;"
            " pip install 'mesos-allocator[sim]' brings it",
        )


def main() -> None:
    """Run the command line."""
    app()

"""All commands, and nothing that is slow to import: `--help` and completion must be quick."""

from typing import Annotated

import typer

from allocator import __version__
from allocator.cli.lab import advise, demo, reproduce, simulate, torture
from allocator.cli.local import graph, replay, serve, warm
from allocator.cli.remote import admin, rules, settings, usage
from allocator.cli.tree import PLAIN, Root
from allocator.server.system import threads

HELP = """Decide who is offered which agent's resources, for an Apache Mesos master.

Exit codes: 0 done, 1 failure, 2 wrong usage, 3 sidecar unreachable, 4 refused by the sidecar,
5 changed and not saved, 78 wrong configuration.
"""

app = typer.Typer(name="mesos-allocator", help=HELP, no_args_is_help=True, cls=Root, **PLAIN)
for _register in (
    serve.register,
    warm.register,
    admin.register,
    usage.register,
    settings.register_policy,
    rules.register,
    settings.register,
    demo.register,
    reproduce.register,
    simulate.register,
    advise.register,
    torture.register,
    replay.register,
    graph.register,
):
    _register(app)


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


def main() -> None:
    try:
        app()
    except SystemExit as end:
        # A user's policy may go on, and even compile; the interpreter must not end under it.
        threads.end_with(end.code if isinstance(end.code, int) else bool(end.code))
        raise

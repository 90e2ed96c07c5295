"""All commands. Import nothing slow here: `--help` and shell completion must be quick."""

import gc
from typing import Annotated

import typer

from allocator import __version__
from allocator.cli.local import graph, replay, serve, warm
from allocator.cli.remote import admin, rules, settings, usage
from allocator.cli.tree import PLAIN, Root
from allocator.server.system import threads
from laboratory.cli import advise, demo, reproduce, simulate

HELP = """Decide which agents' resources an Apache Mesos master offers to which framework.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 sidecar unreachable, 4 refused by the sidecar,
5 changed but not saved, 78 invalid configuration.
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
        # A user's policy may still run in a thread; the interpreter must not shut down under it.
        threads.end_with(end.code if isinstance(end.code, int) else bool(end.code))
        # Or the interpreter looks through all objects as it ends, for longer than a command takes.
        gc.freeze()
        raise

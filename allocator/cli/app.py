"""Registers all commands. Imports nothing slow, so that `--help` and shell completion are quick."""

import typer

from allocator.cli.local import graph, replay, serve, warm
from allocator.cli.remote import admin, rules, settings, usage
from allocator.cli.tree import PLAIN, Root, add_version, run_program

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
    replay.register,
    graph.register,
):
    _register(app)
add_version(app)


def main() -> None:
    run_program(app)

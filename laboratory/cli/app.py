"""All commands of `allocator-lab`. Import nothing slow here: `--help` must be quick."""

import typer

from allocator.cli.tree import PLAIN, Root, add_version, run_program
from laboratory.cli import advise, demo, replay, reproduce, simulate

HELP = """Compare policies on an emulated Mesos master: in experiments, and on recorded days.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 sidecar unreachable, 4 refused by the sidecar,
78 invalid scenario.
"""


class _LabRoot(Root):
    """Names the distribution to install if a library is missing."""

    installed_by = dict.fromkeys(
        ("joblib", "matplotlib", "pyarrow", "scipy"), "mesos-allocator-lab"
    )


app = typer.Typer(name="allocator-lab", help=HELP, no_args_is_help=True, cls=_LabRoot, **PLAIN)
for _register in (
    demo.register,
    reproduce.register,
    simulate.register,
    advise.register,
    replay.register,
):
    _register(app)
add_version(app)


def main() -> None:
    run_program(app)

"""`mesos-allocator advise`: what to change, by recorded days of one's own cluster."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.lab.options import Backend, Cluster, Jobs, spread_over
from allocator.cli.local.plugins import Plugins, load_policies, try_out
from allocator.cli.local.replay import journals_in
from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import Exit, Playing, directory, fail, shown_example

if TYPE_CHECKING:
    from allocator.lab.advise.advising import Report, Spread
    from allocator.lab.advise.reading import ReadDay

PAGE = "advice.html"

HELP = """Say which policy and settings would serve a recorded cluster best.

Each JOURNAL is a day: a file, or a directory whose files belong together. The tasks that ran in it
are played on an emulated master under every policy, in both modes, with some settings of the best
ones, and compared with the policy in force. The answer says who gains and who loses, which
differences are noise, which quotas and constraints are in the way, and what to paste into the
configuration; or to keep what there is. It is printed, and written to OUT/advice.html.
"""


def register(app: typer.Typer) -> None:
    example = "advise /var/lib/mesos-allocator --out advice"
    app.command(help=HELP, cls=Playing, epilog=shown_example(example))(advise)


def advise(
    journals: Annotated[
        list[Path],
        typer.Argument(
            metavar="JOURNAL...",
            exists=True,
            readable=True,
            show_default=False,
            help="A day each: a journal, or the directory of one.",
        ),
    ],
    hours: Annotated[
        float,
        typer.Option(
            help="How much of each day is played: the hours in which most waits; 0: all.",
            min=0.0,
            max=1e6,
        ),
    ] = 0.5,
    seeds: Annotated[
        int, typer.Option(help="How often the best are played again, each time shaken.", min=2)
    ] = 5,
    jobs: Jobs = -1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    plugin: Plugins = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", callback=directory, help="Where the page goes.")
    ] = Path("advice-out"),
) -> None:
    from allocator.policies import MODES, POLICIES

    over = spread_over(jobs, backend, cluster, plugins=load_policies(plugin))
    try_out(tuple(POLICIES), MODES)
    compile_ahead()
    _show(_play(_read(journals, hours), seeds, over), out)


def _read(journals: Sequence[Path], hours: float) -> list["ReadDay"]:
    """Read all days, or end with what is wrong with each that is none."""
    from allocator.cli.render.terminal import progress
    from allocator.lab.advise.reading import NoDayError, read_day

    days, wrong = [], []
    for path in journals:
        try:
            files = journals_in(path) if path.is_dir() else [path]
        except OSError as error:
            fail(Exit.FAILURE, str(error))
        if not files:
            wrong.append(f"{path}: there is no journal in it; see `journal.path`")
            continue
        try:
            with progress(f"reading {path}", "records", None) as tell:
                days.append(read_day(str(path), files, hours, tell))
        except NoDayError as error:
            wrong.append(str(error))
    if wrong:
        fail(Exit.FAILURE, *wrong)
    return days


def _play(days: list["ReadDay"], seeds: int, over: "Spread") -> "Report":
    from allocator.cli.render.terminal import progress
    from allocator.lab.advise.advising import advise as advise_on

    with progress("playing", "runs", None) as tell:
        return advise_on(days, seeds, over, lambda done, total: tell(done, total=total))


def _show(report: "Report", out: Path) -> None:
    from allocator.cli.render.advice import print_advice
    from allocator.lab.advise import page

    print_advice(report)
    page.write(out / PAGE, report)
    typer.echo(f"\nwritten: {out / PAGE}")

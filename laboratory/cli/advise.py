"""`allocator-lab advise`: recommend settings from recorded days of a cluster."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.local.plugins import Plugins, load_policies, try_out
from allocator.cli.local.replay import journals_in
from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import Exit, Playing, directory, fail, shown_example
from laboratory.cli.options import Backend, Cluster, Jobs, spread_over

if TYPE_CHECKING:
    from laboratory.advise.advising import AdviceReport, Spread
    from laboratory.advise.reading import ReadDay

PAGE = "advice.html"

HELP = """Recommend the policy and settings that would serve a recorded cluster best.

Each JOURNAL is one day: a file, or a directory of files that belong together. The recorded tasks
are replayed on an emulated master under every policy in both modes, and under variations of the
best ones, and compared with the policy in force. The report says which roles gain and lose, which
differences are noise, and which quotas and constraints are bottlenecks. It recommends settings for
the configuration, or to keep the present ones. The report is printed, and written to
OUT/advice.html. """


def register(app: typer.Typer) -> None:
    example = "advise /var/lib/mesos-allocator --out advice"
    app.command(help=HELP, cls=Playing, epilog=shown_example(example, "allocator-lab"))(advise)


def advise(
    journals: Annotated[
        list[Path],
        typer.Argument(
            metavar="JOURNAL...",
            exists=True,
            readable=True,
            show_default=False,
            help="One recorded day each: a journal, or the directory of one.",
        ),
    ],
    hours: Annotated[
        float,
        typer.Option(
            help="How many hours of each day to replay: those in which most clients wait; 0: all.",
            min=0.0,
            max=1e6,
        ),
    ] = 0.5,
    seeds: Annotated[
        int,
        typer.Option(
            help="Number of runs of the best policies, each with random variations.", min=2
        ),
    ] = 5,
    jobs: Jobs = -1,
    backend: Backend = "loky",
    cluster: Cluster = None,
    plugin: Plugins = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", callback=directory, help="Directory of the page.")
    ] = Path("advice-out"),
) -> None:
    from allocator.policies import MODES, POLICIES

    over = spread_over(jobs, backend, cluster, plugins=load_policies(plugin))
    try_out(tuple(POLICIES), MODES)
    compile_ahead()
    _show(_play(_read(journals, hours), seeds, over), out)


def _read(journals: Sequence[Path], hours: float) -> list["ReadDay"]:
    """Read all days; if any is unusable, report each of these and end."""
    from allocator.cli.render.terminal import progress
    from laboratory.advise.reading import NoDayError, read_day

    days, wrong = [], []
    for path in journals:
        files = journals_in(path)
        if not files:
            wrong.append(f"{path}: contains no journal; see `journal.path`")
            continue
        try:
            with progress(f"reading {path}", "records", None) as tell:
                days.append(read_day(str(path), files, hours, tell))
        except NoDayError as error:
            wrong.append(str(error))
    if wrong:
        fail(Exit.FAILURE, *wrong)
    return days


def _play(days: list["ReadDay"], seeds: int, over: "Spread") -> "AdviceReport":
    from allocator.cli.render.terminal import progress
    from laboratory.advise.advising import advise as advise_on

    with progress("playing", "runs", None) as tell:
        return advise_on(days, seeds, over, lambda done, total: tell(done, total=total))


def _show(report: "AdviceReport", out: Path) -> None:
    from laboratory.advise import page
    from laboratory.cli.render.advice import print_advice

    print_advice(report)
    page.write(out / PAGE, report)
    typer.echo(f"\nwritten: {out / PAGE}")

"""`mesos-allocator advise`: what to change, by recorded days of one's own cluster."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allocator.cli.exits import Exit, fail
from allocator.cli.local.replay import journals_in
from allocator.cli.tree import Playing, shown_example

if TYPE_CHECKING:
    from allocator.lab.advise.advising import Report
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
    """Add the command."""
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
    jobs: Annotated[int, typer.Option(help="Processes; -1: one for each core.", min=-1)] = -1,
    backend: Annotated[
        str,
        typer.Option(
            help="loky: processes of this machine; dask, ray, spark: the workers of an existing "
            "cluster of that engine."
        ),
    ] = "loky",
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Of dask the scheduler, as in tcp://host:8786; of ray the head, as in host:6379 "
            "or ray://host:10001; of spark the master, as in spark://host:7077."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the page goes.")] = Path(
        "advice-out"
    ),
) -> None:
    """Advise."""
    from allocator.lab.experiments.spread import BACKENDS, BackendError

    if backend not in BACKENDS:
        fail(Exit.USAGE, f"--backend: {backend!r}; choose from {', '.join(BACKENDS)}")
    if jobs == 0:
        fail(Exit.USAGE, "--jobs: 0 processes do nothing; give a number, or -1 for all cores")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(Exit.FAILURE, f"--out {out} cannot be made: {error.strerror}")
    days = _read(journals, hours)
    try:
        report = _play(days, seeds, jobs, backend, cluster)
    except BackendError as error:
        fail(Exit.FAILURE, f"--backend {backend}: {error}")
    _show(report, out)


def _read(journals: Sequence[Path], hours: float) -> list["ReadDay"]:
    """Read all days, or end with what is wrong with each that is none."""
    from allocator.cli.render.progress import progress
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


def _play(
    days: list["ReadDay"], seeds: int, jobs: int, backend: str, cluster: str | None
) -> "Report":
    from allocator.cli.render.progress import progress
    from allocator.lab.advise.advising import advise as advise_on
    from allocator.lab.experiments.spread import spread

    def over(function: Callable[[Any], Any], cells: Sequence[Any]) -> Iterable[Any]:
        return spread(function, cells, jobs=jobs, backend=backend, cluster=cluster)

    with progress("playing", "runs", None) as tell:
        return advise_on(days, seeds, over, lambda done, total: tell(done, total=total))


def _show(report: "Report", out: Path) -> None:
    """Print the advice, and write the page."""
    from allocator.cli.render.advice import print_advice
    from allocator.lab.advise import page

    print_advice(report)
    page.write(out / PAGE, report)
    typer.echo(f"\nwritten: {out / PAGE}")

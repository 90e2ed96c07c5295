"""`mesos-allocator replay`: recompute a sidecar's answers from its journal."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import typer

from allocator import __version__
from allocator.cli.local.plugins import Plugins, load_policies
from allocator.cli.local.warm import compile_ahead
from allocator.cli.tree import Exit, Playing, fail, shown_example
from allocator.plain import json_text, printable

if TYPE_CHECKING:
    from allocator.core import Allocator
    from allocator.wire.journal.framing import Torn
    from allocator.wire.journal.replay import Found, Replay

HELP = """Recompute a sidecar's answers from its journal, and compare them with the recorded ones.

Reads the files in the given order, which must begin with the oldest; of a directory, reads all
journals, PATH.2 before PATH.1 before PATH. Each file begins with the complete state of the sidecar,
so older files may be missing. A file that ends within a record, because the process ended while
writing, is read up to its last complete record. The rest of a damaged file is skipped.

Every answer is compared with its recorded digest, and so is the state at the start of each further
file; --no-check omits both. Scores are 64-bit floating point numbers. On another type of processor,
or with other versions of the allocator, numpy or numba, their last digits may differ, and
frameworks with nearly equal scores may be served in another order. Replay on the type of machine
that recorded the journal.

Exit codes: 0 all as recorded, 1 differences or damage, 2 wrong usage.
"""

_NUMBERED = re.compile(r"(.*)\.(\d+)")


@dataclass(slots=True)
class FileFound:
    """The result of reading one file.

    `file`: its number among the files of the process that wrote it.
    `cut_off_at`, `cut_off_bytes`: offset and size of an incomplete last record, if any.
    """

    path: str
    sidecar_id: str = ""
    sidecar_version: str = ""
    file: int = 0
    records: int = 0
    cut_off_at: int | None = None
    cut_off_bytes: int | None = None
    damage: str = ""


Paths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...|DIR",
        exists=True,
        readable=True,
        show_default=False,
        help="Journals, the oldest first, or their directory.",
    ),
]
Checked: TypeAlias = Annotated[
    bool, typer.Option("--check/--no-check", help="Compare with what was recorded.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    example = "replay /var/lib/mesos-allocator"
    app.command(help=HELP, cls=Playing, epilog=shown_example(example))(replay)


def replay(
    paths: Paths, check: Checked = True, as_json: AsJson = False, plugin: Plugins = None
) -> None:
    from allocator.core import Allocator

    load_policies(plugin)
    report = read_journals(paths, Allocator, check=check, quiet=as_json)
    if as_json:
        typer.echo(json_text(report.as_dict(), indent=2))
    report.end()


class ReplayReport(NamedTuple):
    """The result of replaying journals."""

    files: list[FileFound]
    found: "Found"

    def as_dict(self) -> dict[str, Any]:
        return {"files": list(map(asdict, self.files)), **asdict(self.found)}

    def end(self) -> None:
        """End the command if there were differences or damage, or no records."""
        errors = [f"{each.path}: {each.damage}" for each in self.files if each.damage]
        errors += self.found.differences
        if not any(each.sidecar_id for each in self.files) and not errors:
            errors.append(f"{', '.join(each.path for each in self.files)}: contains no records")
        if errors or self.found.differing or self.found.checkpoints_differing:
            fail(Exit.FAILURE, *errors)


def read_journals(
    paths: Sequence[Path], make: "Callable[..., Allocator]", *, check: bool, quiet: bool
) -> ReplayReport:
    """Replay journals, the oldest first, and print the results unless `quiet`.

    `make`: makes the allocators.
    `check`: whether to compare with the recorded results.
    """
    from allocator import policies
    from allocator.wire.journal.replay import Replay

    files = [file for path in paths for file in journals_in(path)]
    if not files:
        fail(Exit.FAILURE, f"no journal in {', '.join(map(str, paths))}")
    player = Replay(policies.build, policies.substitute(), check=check, make=make)
    read = []
    for path in files:
        read.append(play_file(path, player))
        if not quiet:
            typer.echo(printable(_in_words(read[-1])))
    player.finish()
    if not quiet:
        for line in _summary(player.found, check):
            typer.echo(line)
    return ReplayReport(read, player.found)


def journals_in(path: Path) -> list[Path]:
    """List the journals of a directory, the oldest first; of a file, this file.

    Ends the command if the directory cannot be read.
    """
    from allocator.wire.journal.framing import MAGIC

    def age(path: Path) -> tuple[str, int, str]:
        numbered = _NUMBERED.fullmatch(path.name)
        # PATH.new, a file that the sidecar is about to switch to, sorts after PATH.
        base, number = (numbered[1], int(numbered[2])) if numbered else (path.stem, 0)
        return (base if numbered or path.suffix == ".new" else path.name, -number, path.name)

    def is_journal(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC

    if not path.is_dir():
        return [path]
    try:
        files = (each for each in path.iterdir() if each.is_file())
        return sorted(filter(is_journal, files), key=age)
    except OSError as error:
        fail(Exit.FAILURE, str(error))


def play_file(path: Path, player: "Replay") -> FileFound:
    """Replay a file up to its end, or up to the first damage."""
    from allocator.wire.journal.framing import JournalError, read_records

    compile_ahead()
    found = FileFound(str(path))

    def cut_off(torn: "Torn") -> None:
        found.cut_off_at, found.cut_off_bytes = torn

    try:
        with path.open("rb") as file:
            for record in read_records(file, cut_off):
                if record.HasField("start"):
                    start = record.start
                    found.file, found.sidecar_version = start.file, start.sidecar_version
                    found.sidecar_id = start.sidecar_id
                elif not record.HasField("checkpoint_piece"):
                    found.records += not record.HasField("checkpoint_end")
                player.take(record)
    except (OSError, JournalError, MemoryError) as error:
        found.damage = str(error) or "does not fit into memory"
    return found


def _in_words(found: FileFound) -> str:
    parts = [f"{found.path}: {found.records} records"]
    if found.file:
        parts.append(f"file {found.file} of sidecar {found.sidecar_id!r}")
    if found.sidecar_version not in {"", __version__}:
        parts.append(f"written by version {found.sidecar_version!r}, this is {__version__}")
    if found.cut_off_at is not None:
        where = f"{found.cut_off_bytes} bytes at byte {found.cut_off_at}"
        parts.append(f"ends within a record, {where}: the process ended while writing")
    if found.damage:
        parts.append(f"the rest was skipped: {found.damage}")
    return "; ".join(parts)


def _summary(found: "Found", check: bool) -> Iterator[str]:
    for name in ("records", "sessions", "answers", "cycles", "decisions"):
        yield f"{name:10} {getattr(found, name)}"
    if found.repeated:
        yield f"repeated   {found.repeated} records are in two files and count once"
    if found.missing:
        yield f"missing    {found.missing} records are in no file"
    if check:
        wrong = found.differing + found.checkpoints_differing
        verdict = f"{wrong} DIFFER" if wrong else "all as recorded"
        states = f"{found.checkpoints} states between files"
        yield f"checked    {found.checked} records with answers, {states}: {verdict}"

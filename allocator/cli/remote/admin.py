"""Commands for a running sidecar: its status, shares, explanations and dumps."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from google.protobuf.message import Message

from allocator.cli.remote import bundle, completing, explain, lists, top
from allocator.cli.remote.connection import (
    CommandToAll,
    Sidecar,
    group,
    named_by,
    printed_by,
    remote,
)
from allocator.cli.remote.files import write_whole
from allocator.cli.remote.options import RoleBelow
from allocator.cli.remote.output import Form, written
from allocator.plain import printable

if TYPE_CHECKING:
    from allocator.v1 import types_pb2

_SHARES = "allocator.cli.render.share_tables"


class Sort(StrEnum):
    """Order in which frameworks are shown."""

    WAITING = "waiting"
    SHARE = "share"
    NAME = "name"


def register(app: typer.Typer) -> None:
    status_shown = printed_by("allocator.cli.render.tables", "status")
    remote(app, "status", status_shown, command_class=CommandToAll)(status)
    # `--wide` affects only tables; the choice and order of frameworks apply to JSON as well.
    show, arrange = (printed_by(_SHARES, name) for name in ("shares", "arranged"))
    remote(app, "shares", show, arrange, named_by("names", "clients", "framework_id"))(shares)
    top.register(app)
    lists.register(app)
    remote(app, "dump", None)(dump)
    remote(app, "snapshot", None)(snapshot)
    bundle.register(app)
    explain.register(
        group(
            app,
            "explain",
            "Explain why a framework or a role gets no offers, or why an agent is not offered.",
        )
    )


def status(
    sidecar: Sidecar,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Print one line for monitoring plugins, with performance data after a bar; exit"
            " codes: 0 ok, 1 warning, 2 critical, 3 unknown.",
        ),
    ] = False,
) -> Message | dict[str, Any] | None:
    """Show the sidecar's status. If several are named, show which one leads, and its status."""
    from allocator.cli.remote.output import plain
    from allocator.cli.render import tables

    if len(sidecar.connections) > 1:
        from allocator.cli.remote.leading import ask_all, rows

        data = rows(ask_all(sidecar.connections))
        judge = tables.all_checked
    else:
        data, judge = plain(sidecar.ask("GetStatus")), tables.checked
    if not check:
        return data
    code, line = judge(data)
    typer.echo(written(sidecar.form, data) or line)
    raise typer.Exit(int(code))


def shares(
    sidecar: Sidecar,
    role: RoleBelow = "",
    fair: Annotated[
        bool,
        typer.Option(
            "--fair",
            help="Also show fair shares: what the policy would give if it allocated the whole"
            " cluster from scratch. Costs about as much as one allocation of the"
            " cluster.",
        ),
    ] = False,
    newcomer: Annotated[
        str,
        typer.Option(
            help="Also show the share of a new framework in this role; the role may be new.",
            autocompletion=completing.roles,
        ),
    ] = "",
    newcomer_demand: Annotated[
        str,
        typer.Option(
            help="What one task of that framework needs, as in 'cpus:2;mem:2048'; default:"
            " unknown.",
            autocompletion=completing.amounts,
        ),
    ] = "",
    wide: Annotated[bool, typer.Option("--wide", help="All columns.")] = False,
    sort: Annotated[
        Sort, typer.Option(help="Order of frameworks: longest wait, largest share, or name first.")
    ] = Sort.WAITING,
    limit: Annotated[
        int, typer.Option(min=0, help="Maximum number of frameworks and of roles; 0: all.")
    ] = 0,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only frameworks that wait for an offer.")
    ] = False,
) -> Message:
    """Show the shares of roles and frameworks, by default the longest waiting frameworks first."""
    del wide, sort, limit, waiting  # used by `arranged` and `shares` of the tables
    if newcomer_demand and not newcomer:
        raise typer.BadParameter("--newcomer-demand needs --newcomer, which names the role")
    return sidecar.ask(
        "GetShares",
        role=role,
        fair=fair,
        newcomer_role=newcomer,
        newcomer_demand=quantities(newcomer_demand),
    )


def dump(
    sidecar: Sidecar,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="File to write; none: standard output."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="json", help="Accepts only json, the default."),
    ] = None,
) -> None:
    """Write the whole state as JSON."""
    file = _dump_file(file, output)
    told = (piece.json for piece in sidecar.pieces("Dump"))
    if file is not None:
        write_whole(file, told)
        return
    for part in told:
        sys.stdout.buffer.write(part)


def _dump_file(file: Path | None, output: str | None) -> Path | None:
    """Return the file of a dump. In earlier versions `--output` named it, and still may."""
    if output is None or output == Form.JSON:
        return file
    if output in set(Form):
        raise typer.BadParameter(f"--output {output}: a dump is always JSON; leave it out")
    if file is not None:
        text = f"--output {output}: is not a format, and the file is {file}; leave it out"
        raise typer.BadParameter(text)
    warn = f"warning: --output is for the format, not the file; write `dump {output}`"
    typer.echo(printable(warn), err=True)
    return Path(output)


def snapshot(
    sidecar: Sidecar,
    output: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")],
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="Replace names of frameworks, roles, agents, hosts, users and attributes by"
            " pseudonyms; keep amounts.",
        ),
    ] = False,
) -> None:
    """Save the state for a bug report; `replay FILE` repeats its next cycle on any machine."""
    pieces = sidecar.pieces("Snapshot", pseudonyms=pseudonyms)
    write_whole(output, (piece.data for piece in pieces), mode=0o600)


def quantities(text: str, *, hours: bool = False) -> "types_pb2.Quantities":
    """Parse amounts, or resource-hours, by name. Raises `typer.BadParameter`."""
    from allocator.core import parse_hours, parse_quantities
    from allocator.v1 import types_pb2

    try:
        amounts = parse_hours(text) if hours else parse_quantities(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return types_pb2.Quantities(name=amounts.keys(), amount=amounts.values())

"""Commands for a running sidecar: what it does, why, and what operators set."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allocator.cli import explain, top
from allocator.cli.connection import Sidecar, remote
from allocator.cli.exits import Exit, fail

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from allocator.v1 import types_pb2


def register(app: typer.Typer) -> None:
    """Add the commands."""
    remote(app, "status", show("status"))(status)
    remote(app, "shares", show("shares"))(shares)
    top.register(app)
    remote(app, "dump", None)(dump)
    group = typer.Typer(no_args_is_help=True)
    app.add_typer(group, name="explain", help="Why a framework, a role or an agent gets nothing.")
    explain.register(group)


def show(name: str) -> Any:  # noqa: ANN401
    """Print a response with the function of that name; tables are imported only then."""

    def print_it(data: dict[str, Any]) -> None:
        from allocator.cli import tables

        getattr(tables, name)(data)

    return print_it


def status(sidecar: Sidecar) -> "Message":
    """Show what the sidecar is doing."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=sidecar.timeout_s)


def shares(
    sidecar: Sidecar,
    role: Annotated[str, typer.Option(help="Only this role and those below it.")] = "",
    fair: Annotated[
        bool,
        typer.Option(
            "--fair",
            help="Also what the policy would give if the whole cluster were given out anew; costs"
            " about as much as one allocation.",
        ),
    ] = False,
    newcomer: Annotated[
        str, typer.Option(help="Also what a new framework in this role would be given.")
    ] = "",
    newcomer_demand: Annotated[
        str, typer.Option(help="What one task of it needs, as in 'cpus:2;mem:2048'; none: unknown.")
    ] = "",
) -> "Message":
    """Show who holds what."""
    from allocator.v1 import admin_pb2

    request = admin_pb2.GetSharesRequest(
        role=role,
        fair=fair,
        newcomer_role=newcomer,
        newcomer_demand=quantities(newcomer_demand),
    )
    return sidecar.stub.GetShares(request, timeout=sidecar.timeout_s)


def dump(
    sidecar: Sidecar,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; none: standard output.")
    ] = None,
) -> None:
    """Write the whole state as JSON."""
    from allocator.v1 import admin_pb2

    pieces = sidecar.stub.Dump(admin_pb2.DumpRequest(), timeout=sidecar.timeout_s)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece.json)
        return
    try:
        with output.open("wb") as file:
            for piece in pieces:
                file.write(piece.json)
    except OSError as error:
        fail(Exit.FAILURE, f"{output}: {error.strerror}")


def quantities(text: str) -> "types_pb2.Quantities":
    """Read amounts by name, or say that the command line is wrong."""
    from allocator.core import parse_quantities
    from allocator.v1 import types_pb2

    try:
        amounts = parse_quantities(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return types_pb2.Quantities(name=amounts.keys(), amount=amounts.values())

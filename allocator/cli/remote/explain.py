"""`mesos-allocator explain`: why somebody gets nothing, from a running sidecar."""

from typing import Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing
from allocator.cli.remote.connection import Sidecar, printed_by, remote

Cycles = Annotated[
    int,
    typer.Option(min=1, max=256, help="Of so many of the last cycles it is told what was in them."),
]

CYCLES_USUAL = 10


def register(group: typer.Typer) -> None:
    show = printed_by("allocator.cli.render.explanations", "show")
    remote(group, "framework", show)(framework)
    remote(group, "role", show)(role)
    remote(group, "agent", show)(agent)


def framework(
    sidecar: Sidecar,
    name: Annotated[
        str,
        typer.Argument(help="Id or name of the framework.", autocompletion=completing.frameworks),
    ],
    cycles: Cycles = CYCLES_USUAL,
) -> Message:
    """Say why a framework gets nothing: what blocks it, its last offers, cycles that it lost."""
    return sidecar.ask("Explain", framework=name, cycles=cycles)


def role(
    sidecar: Sidecar,
    name: Annotated[
        str,
        typer.Argument(help="Path of the role, such as eng/ads.", autocompletion=completing.roles),
    ],
    cycles: Cycles = CYCLES_USUAL,
) -> Message:
    """Say why the frameworks of a role, and of those below it, get nothing."""
    return sidecar.ask("Explain", role=name, cycles=cycles)


def agent(
    sidecar: Sidecar,
    name: Annotated[
        str, typer.Argument(help="Id or host of the agent.", autocompletion=completing.agents)
    ],
    cycles: Cycles = CYCLES_USUAL,
) -> Message:
    """Say why an agent is offered to nobody, or to whom, and who was next."""
    return sidecar.ask("Explain", agent=name, cycles=cycles)

"""`mesos-allocator explain`: ask a running sidecar why a framework, role or agent gets nothing."""

from typing import Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing
from allocator.cli.remote.connection import Sidecar, printed_by, remote

Cycles = Annotated[
    int,
    typer.Option(min=1, max=256, help="Number of recent cycles to describe."),
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
    """Explain why a framework gets no offers.

    Shows the reasons, its last offers, and recent cycles in which others were served.
    """
    return sidecar.ask("Explain", framework=name, cycles=cycles)


def role(
    sidecar: Sidecar,
    name: Annotated[
        str,
        typer.Argument(help="Path of the role, such as eng/ads.", autocompletion=completing.roles),
    ],
    cycles: Cycles = CYCLES_USUAL,
) -> Message:
    """Explain why the frameworks of a role and its descendants get no offers."""
    return sidecar.ask("Explain", role=name, cycles=cycles)


def agent(
    sidecar: Sidecar,
    name: Annotated[
        str, typer.Argument(help="Id or host of the agent.", autocompletion=completing.agents)
    ],
    cycles: Cycles = CYCLES_USUAL,
) -> Message:
    """Explain to which frameworks an agent is offered, or why it is offered to none."""
    return sidecar.ask("Explain", agent=name, cycles=cycles)
